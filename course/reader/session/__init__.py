"""`python3 -m course resume`: find where the reader stopped, and restore the notebook's state."""
