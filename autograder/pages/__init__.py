"""What people read about grades: a student's feedback, a teacher's report."""
