"""A CSV file as columns of numbers and words."""

import csv
import decimal
import math
import reprlib

import numpy as np

from levels_more.checks import file_name


def read_columns(path, na_value):
    """Return {name: array} of a CSV file with a header. Missing cells are empty, or hold `na_value`.

    Raises ValueError for a column that stands twice and, naming the line, for more or fewer cells than in the header.
    """
    with open(file_name("from_csv: path", path), newline="", encoding="utf-8-sig") as file:
        reader = csv.DictReader(file)
        names = reader.fieldnames or ()
        lines = {f"{path}, line {reader.line_num}": row for row in reader}
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{path}: {names.count(name)} columns are called {name!r}; expected each name once")
    for line, row in lines.items():
        if None in row or None in row.values():  # a cell without a column name, or a column without a cell
            raise ValueError(f"{line}: {reprlib.repr([*row.values()])} beneath {len(names)} names")
    return {name: column(name, {line: row[name] for line, row in lines.items()}, na_value) for name in names}


def column(name, cells, na_value):
    """Convert the cells {line: text} of a column to int64, float32, float64 (if float32 is too narrow), or text.

    Raises ValueError, naming the line, for text among numbers, and for a number that no float can hold.
    """
    cells = {line: "" if cell == na_value else cell for line, cell in cells.items()}
    numbers = []
    for line, cell in cells.items():
        try:
            numbers.append(float(cell.replace("_", "?") or "nan"))  # Python would read 1_2 as 12
        except ValueError:
            if all(map(math.isnan, numbers)):
                return np.array([*cells.values()])
            cure = "a missing one is empty or na_value"
            raise ValueError(f"{line}, column {name}: {cell!r} among numbers; {cure}") from None
        if is_lost(cell, numbers[-1]):
            raise ValueError(f"{line}, column {name}: {cell!r} would become {numbers[-1]}, as no float is near it")
    exact = [*map(whole_number, cells.values())]
    if None not in exact:
        return np.array(exact, np.int64)
    with np.errstate(over="ignore", under="ignore"):
        narrow = np.array(numbers, np.float32)
    kept = all(n in (None, x) for n, x in zip(exact, narrow.tolist(), strict=True))
    if kept and are_distinct(narrow, np.array(numbers)):
        return narrow
    for line, n, x in zip(cells, exact, numbers, strict=True):
        if n not in (None, x):
            told = "would be rounded, because gaps, fractions or larger numbers make this column floats"
            raise ValueError(f"{line}, column {name}: {cells[line]!r} {told}")
    return np.array(numbers)


def is_lost(text, number):
    """Whether the number that was read from a text is infinite or 0, and the text is not."""
    digits = [int(letter) for letter in text.lower().partition("e")[0] if letter.isdecimal()]
    return math.isinf(number) and digits != [] or number == 0 and any(digits)


def are_distinct(narrow, numbers):
    """Whether float32 keeps these float64 numbers apart from each other, from 0 and from infinity."""
    apart = len(np.unique(narrow)) == len(np.unique(numbers))
    return apart and all((test(narrow) == test(numbers)).all() for test in (np.isinf, np.logical_not))


def whole_number(text):
    """Convert the text of a number to an int, exactly; None if it is not a whole number, or does not fit int64."""
    number = decimal.Decimal(text or "nan")
    fits = number.is_finite() and -(2**63) <= number < 2**63 and number == number.to_integral_value()
    return int(number) if fits else None
