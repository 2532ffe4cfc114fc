"""The notebooks as files: which there are, their cells and blanks, how long they take, and where the reader's are."""
