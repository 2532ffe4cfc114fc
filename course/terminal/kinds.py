"""The kinds of arguments, and of values that they take: a section, a path, names, a number, a port.

Like `course/__main__.py`, this module uses only the standard library and the syntax of Python 3.7.
"""

import argparse
import os

SECTIONS = "training", "kernels", "start", "growth", "machines"  # of `bench`


def flag(name, help, **settings):
    """Return an argument that is given or not, as `add_argument` takes it."""
    return [name], dict(settings, action="store_true", help=help)


def value(names, metavar, help, **settings):
    """Return an argument that has a value; a second name stands behind a blank."""
    return names.split(), dict(settings, metavar=metavar, help=help)


def section(text):
    """Return `text`; raises ArgumentTypeError if it is no section. (With `choices`, some Pythons require a section.)"""
    if text not in SECTIONS:
        raise argparse.ArgumentTypeError(f"there is no section {text}: there are {', '.join(SECTIONS)}")
    return text


def path(text):
    """Return a path, with the home folder in the place of `~`: not every shell does that, and none everywhere."""
    return os.path.expanduser(text)


def address(text):
    """Return the address of a site. Raises ArgumentTypeError if it does not begin with https:// or http://."""
    if not text.startswith(("https://", "http://")):
        raise argparse.ArgumentTypeError("expected an address that begins with https://, not " + text)
    return text


def listed(text):
    """Return the names between the commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def number(text):
    """Return a whole number. Raises ArgumentTypeError unless it is at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError("expected a whole number from 1 on, not " + text)
    return int(text)


def port(text):
    """Return the port number. Raises ArgumentTypeError unless it is 1 to 65535, which the servers do not check."""
    if not text.isdecimal() or not 1 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError("a port is a whole number from 1 to 65535, not " + text)
    return int(text)
