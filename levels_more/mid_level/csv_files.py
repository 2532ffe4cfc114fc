"""A CSV file as columns of numbers and words."""

import csv
import decimal
import math
import reprlib

import numpy as np

from levels_more.checks import file_name


def read_columns(path, na_value):
    """{name: array} of a CSV file with a header. Missing cells are empty, or hold `na_value`.

    Raises ValueError, naming the line, where its cells do not fit the header.
    """
    with open(file_name("from_csv: path", path), newline="", encoding="utf-8-sig") as file:
        reader = csv.DictReader(file)
        names, lines = reader.fieldnames or (), {f"{path}, line {reader.line_num}": row for row in reader}
    for line, row in lines.items():
        if None in row or None in row.values():  # under no name, or for no cell
            raise ValueError(f"{line}: {reprlib.repr([*row.values()])} beneath {len(names)} names")
    return {name: column(name, {line: row[name] for line, row in lines.items()}, na_value) for name in names}


def column(name, cells, na_value):
    """The cells {line: text} under that name as an array: int64, or floats, float64 where float32 is too narrow.

    Raises ValueError, naming the line, for a text among numbers, and for a whole number that no float is.
    """
    cells, numbers = {line: "" if cell == na_value else cell for line, cell in cells.items()}, []
    for line, cell in cells.items():
        try:
            numbers.append(float(cell.replace("_", "?") or "nan"))  # 1_2 is a name, though not for Python
        except ValueError:
            if all(map(math.isnan, numbers)):
                return np.array([*cells.values()])
            cure = "a missing one is empty or na_value"
            raise ValueError(f"{line}, column {name}: {cell!r} among numbers; {cure}") from None
    exact = [*map(whole_number, cells.values())]
    if None not in exact:
        return np.array(exact, np.int64)
    with np.errstate(over="ignore"):
        narrow = np.array(numbers, np.float32)
    kept = all(n in (None, x) for n, x in zip(exact, narrow.tolist(), strict=True))
    if kept and (np.isinf(narrow) == np.isinf(numbers)).all():
        return narrow
    for line, n, x in zip(cells, exact, numbers, strict=True):
        if n not in (None, x):
            told = "would be rounded, for the column has gaps, fractions or larger numbers; fill them with whole ones"
            raise ValueError(f"{line}, column {name}: {cells[line]!r} {told}")
    return np.array(numbers)


def whole_number(text):
    """The whole number that a text of a number says, exactly; None where it is none, or too large for int64."""
    number = decimal.Decimal(text or "nan")
    fits = number.is_finite() and -(2**63) <= number < 2**63 and number == number.to_integral_value()
    return int(number) if fits else None
