"""Around the commands: what they take, the reader's desk and how it is kept, a browser. `course/__main__.py` is the door."""
