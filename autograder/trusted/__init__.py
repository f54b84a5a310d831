"""What holds the tests, in processes that run no student code."""
