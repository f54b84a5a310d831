"""Chapters, their answers and their exam, on their way to students."""
