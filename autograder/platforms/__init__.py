"""Learning platforms: whose an entry of an export is, and the files that they import scores from."""
