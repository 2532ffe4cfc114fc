"""What a reader should know and need not be told twice."""

import logging

SAID = set()  # the texts that were said in this process


def say_once(text):
    """Log this text as a warning of the logger "levels", the first time that it comes."""
    if text not in SAID:
        SAID.add(text)
        logging.getLogger("levels").warning(text)
