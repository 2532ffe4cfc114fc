"""Predictions, exercises, their grading, and what teachers need."""
