"""Around the commands: what they take, the reader's desk and how it is kept, a browser. The door is `__main__.py`.

What it goes through before there is an environment is of the standard library, in the grammar of Python 3.7:
`arguments`, `commands`, `environment`, `making`, `stage`, `wheelhouse`.
"""
