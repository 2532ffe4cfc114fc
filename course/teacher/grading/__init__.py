"""`python3 -m course grade FOLDER`: test the blanks and exercises of a whole class on other numbers."""
