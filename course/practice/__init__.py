"""What a reader does: predictions, exercises and their grading; and what teachers need for it."""
