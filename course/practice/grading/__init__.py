"""The blanks and exercises of a class, tried again on other numbers: `python3 -m course grade FOLDER`."""
