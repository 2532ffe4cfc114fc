"""A CSV file as columns of numbers and words."""

import csv
import decimal
import io
import math
import re
import reprlib
from collections import Counter
from pathlib import Path

import numpy as np

from levels_more.checks import file_name

CURE = "a quote inside a cell in quotes is written twice"
UNCLOSED = {  # part of what Python's reader says -> what is wrong in the row
    "unexpected end": f"a quote opens in this row and never closes; close it, and {CURE}",
    "expected after": f"text follows a closing quote in this row; is a quote missing? {CURE}",
    "field larger": f"a cell has more than {csv.field_size_limit():,} letters; does a quote open and never close?",
}
MISSING = {"na", "n/a", "#n/a", "nil", "none", "null", "missing", "-", "--", ".", "?"}  # often stand for no number


def read_columns(path, na_value):
    """Return {name: array} of a CSV file with a header, in UTF-8. Missing cells are empty, or hold `na_value`.

    Raises ValueError, naming file and line: for more or fewer cells than in the header, a quote that never closes, and
    a header without names, or with one twice; also for another encoding, and for a file without rows.
    """
    path = file_name("from_csv: path", path)
    (first, names), *rows = read_rows(path) or [(1, [])]
    check_names(names, f"{path}, line {first}")
    for line, row in rows:
        if len(row) != len(names):
            raise ValueError(f"{path}, line {line}: {reprlib.repr(row)} beneath {len(names)} names")
    if not rows:
        raise ValueError(f"{path}, line {first}: {reprlib.repr(names)} and no rows beneath; expected at least one")
    columns = {}
    for k, name in enumerate(names):
        cells = ["" if row[k] == na_value else row[k] for _, row in rows]
        columns[name] = column(cells, lambda row, name=name: f"{path}, line {rows[row][0]}, column {name}")
    return columns


def read_rows(path):
    """Return (the line at which it begins, its cells) of each row that is not blank. Raises ValueError for quotes."""
    reader = csv.reader(io.StringIO(read_text(path), newline=""), strict=True)
    rows = []
    line = 1
    try:
        for row in reader:
            if row:
                rows.append((line, row))
            line = reader.line_num + 1
    except csv.Error as error:
        told = [cause for part, cause in UNCLOSED.items() if part in str(error)]
        raise ValueError(f"{path}, line {line}: {(told or [error])[0]}") from None
    return rows


def read_text(path):
    """Return the text of a file in UTF-8. Raises ValueError, with line and byte, for another encoding, or a NUL."""
    data = Path(path).read_bytes()
    at = data.find(b"\0")  # as in UTF-16 without a mark
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        at = error.start
    if at >= 0:
        line = len(re.findall(rb"\r\n?|\n", data[:at])) + 1
        raise ValueError(
            f"{path}, line {line}: byte {data[at]:#04x} is no text in UTF-8; save the table as CSV in UTF-8"
        )
    return text.removeprefix("\ufeff")


def check_names(names, place):
    """Raise ValueError unless these are the names of columns, each once."""
    if not names:
        raise ValueError(f"{place}: the file is empty; expected a line with the names of the columns")
    if len(names) == 1 and re.search("[;\t]", names[0]):
        cure = "save the table with commas between cells, and points in numbers"
        raise ValueError(f"{place}: {reprlib.repr(names[0])} is one name, as it holds no comma; {cure}")
    for name, count in Counter(names).items():
        if count > 1:
            raise ValueError(f"{place}: {count} columns are called {name!r}; expected each name once")
        if as_number(name) is not None and math.isfinite(as_number(name)) and not name.isdecimal():
            raise ValueError(f"{place}: {name!r} is a number; expected the names of the columns in the first line")


def column(cells, place):
    """Convert the cells of a column to int64, float32, float64 (if float32 is too narrow), or text.

    An empty cell is a missing one. If a cell has a zero in front of other digits, as 00501 has, all stay text. Raises
    ValueError, with the place(row), for text among numbers, and for a number that no float can hold.
    """
    if any(map(is_code, cells)):
        return np.array(cells)
    numbers = []
    for row, cell in enumerate(cells):
        numbers.append(math.nan if cell == "" else as_number(cell))
        if numbers[-1] is None and all(map(math.isnan, numbers[:-1])):
            check_missing(cells, row, place)
            return np.array(cells)
        if numbers[-1] is None:
            raise ValueError(f"{place(row)}: {cell!r} among numbers; a missing one is empty or na_value")
        if is_lost(cell, numbers[-1]):
            raise ValueError(f"{place(row)}: {cell!r} would become {numbers[-1]}, as no float is near it")
    exact = [*map(whole_number, cells)]
    if None not in exact and all(-(2**63) <= n < 2**63 for n in exact):
        return np.array(exact, np.int64)
    with np.errstate(over="ignore", under="ignore"):
        narrow = np.array(numbers, np.float32)
    kept = all(n in (None, x) for n, x in zip(exact, narrow.tolist(), strict=True))
    if kept and are_distinct(narrow, np.array(numbers)):
        return narrow
    for row, (n, x) in enumerate(zip(exact, numbers, strict=True)):
        if n not in (None, x) and "e" not in cells[row].lower():  # 1e23 is no count
            told = "would be rounded, because gaps, fractions or larger numbers make this column floats"
            raise ValueError(f"{place(row)}: {cells[row]!r} {told}; an id stays text if it has a letter in front")
    return np.array(numbers)


def as_number(text):
    """The float that a text is, or None. (Python would read 1_2 as 12.)"""
    try:
        return float(text.replace("_", "?"))
    except ValueError:
        return None


def is_code(text):
    """Whether a text of digits has a zero in front, which a number would lose."""
    digits = text.strip().lstrip("+-")[:2]
    return len(digits) == 2 and digits.isdecimal() and int(digits) < 10


def check_missing(cells, row, place):
    """Raise ValueError if this cell and those like it seem to stand for missing numbers."""
    word = cells[row]
    others = {cell for cell in cells if cell not in ("", word)}
    if word.strip().lower() in MISSING and others and None not in map(as_number, others):
        raise ValueError(f"{place(row)}: {word!r} among numbers; na_value={word!r} makes it a missing one")


def is_lost(text, number):
    """Whether the number that was read from a text is infinite or 0, and the text is not."""
    digits = [int(letter) for letter in text.lower().partition("e")[0] if letter.isdecimal()]
    return math.isinf(number) and digits != [] or number == 0 and any(digits)


def are_distinct(narrow, numbers):
    """Whether float32 keeps these float64 numbers apart from each other, from 0 and from infinity."""
    apart = len(np.unique(narrow)) == len(np.unique(numbers))
    return apart and all((test(narrow) == test(numbers)).all() for test in (np.isinf, np.logical_not))


def whole_number(text):
    """Convert the text of a number to an int, exactly. None if it is not whole, or beyond int64 with an exponent."""
    try:
        number = decimal.Decimal(text or "nan")
    except decimal.InvalidOperation:  # its exponent is too large for a Decimal
        return None
    fits = number.is_finite() and (-(2**63) <= number < 2**63 or "e" not in text.lower())
    return int(number) if fits and number == number.to_integral_value() else None
