"""From what a class handed in to scores in the gradebook."""
