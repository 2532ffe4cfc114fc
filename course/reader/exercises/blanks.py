"""Compare a reader's function for a blank with the course's own, on the same cases, and report the first difference.

It is right if its results equal those of the course's function, up to rounding. If they are equal to the last bit, the
reader's `levels` is built from it. If not, the message says which digits differ and what would give the same ones, and
the notebook uses the course's function. No code in a cell stops the notebook here: no endless loop, no exception, and
no misspelt name.
"""

import contextlib

import numpy as np

from course.reader import progress
from course.reader.cases import KEPT, Blank, CapturedOutput, Wrong, answer, short
from course.reader.cases.plain_data import Other, describe, pack, unpack
from course.reader.exercises.judge import Verdict, equal
from course.reader.language import later, say
from course.reader.notebooks import blanks
from course.reader.words import brief

# {key of a blank: what gives the same bits as the course's function}, for each blank that can be right with other bits
SAME_BITS = {
    "01-dot": "a total that starts at 0.0 and adds one product at a time, in order",
    "01-line_slopes": later("`g * error + g * error` for `de`, and an input times `de` for a weight"),
    "01-through_relu": "`dot(d, row)`, and 0.0 where relu gave 0.0",
    "01-_slope_at_z": "the table's rows as they stand, and `dp * p * (1.0 - p)` from left to right",
    "02-relu_grad": "`select(y <= 0.0, 0.0, dy)`, because -0.0 and 0.0 have different bits",
    "02-matmul_ikj": later("a sum that starts at 0.0 and adds one product at a time, with k ascending"),
    "03-hand_on": later("keeping the first share as it is, because 0.0 + -0.0 is 0.0"),
    "04-affine": later("`x @ kernel + bias`"),
    "04-squared_error": later("one difference that is multiplied by itself"),
    "04-cross_entropy": "`-(y_true * log(p) + (1.0 - y_true) * log(1.0 - p))`",
    "04-Adam.update": "the formula as it stands: `b1 * m + (1.0 - b1) * dw`, and `dw * dw` before it is multiplied",
    "05-epoch_loss": later(
        "a total that starts at 0.0 and adds `losses[k] * rows[k]` in order, divided by `sum(rows)`"
    ),
    "05-one_pass": "`epoch_loss` of the losses and of the number of rows in each batch",
}
NEAR = {"float32": 1e-4, "float16": 1e-2}  # the tolerance, relative to the largest expected number; else 1e-9


AFTERWARDS = {  # {state: what a message in a notebook adds to the text}
    "right": later(" The notebook and your `levels` use it from here on."),
    "other bits": later(" So the notebook uses the course's function."),
    "not yet": later(" Until then the notebook uses the course's function."),
}


def not_yet(why: str) -> Verdict:
    return Verdict("not yet", why if why.endswith(("?", ".", "？", "。")) else say("{why}.", why=why))


def untouched() -> Verdict:
    return Verdict("still blank", say("not filled in, so the notebook uses the course's function"))


def in_a_notebook(found: Verdict) -> str:
    """The text of a verdict, and what the notebook does now."""
    if found.state == "still blank":
        return found.text
    begun = say("not yet. {why}", why=found.text) if found.state == "not yet" else found.text
    return begun + say(AFTERWARDS[found.state])


def try_blank(source: str, notebook: str, key: str, success: bool) -> str:
    """Test a blank after its cell has run, and return the message. Unless it is "right", the course's own replaces it.

    source: the cell; success: whether it ran without an error.
    """
    from IPython import get_ipython

    shell = get_ipython()
    try:
        course = blanks.filled(source, notebook, key)
    except LookupError as error:
        return f"{key}: {error}"
    name = shell.compile.cache(course)  # so that its source can be found and shown, as that of a cell
    own, brought = blanks.made(course, key, shell.user_ns, name)  # its globals are the notebook's
    heard = CapturedOutput()
    found = verdict(source, notebook, key, named_in(shell.user_ns, key) if success else None, own, heard)
    with contextlib.suppress(blanks.Unfit):
        blanks.note(source, notebook, key, found.state == "right")
    if found.state in ("right", "other bits"):
        progress.note_solved(f"{notebook[:2]}-{key}")
    if found.state != "right":
        shell.user_ns.update(brought)  # and the class around a method, or a table that holds it
    return f"{key}: {in_a_notebook(found)}" + printed_lines(heard.text)


def named_in(names: dict, key: str):
    """The function of that key among these names, or the method of a class there; None if there is none."""
    top, _, method = key.partition(".")
    found = names.get(top)
    return getattr(found, method, None) if method else found


LINES = 10  # shown of what a function prints: enough to find a mistake, and not the whole output of a loop


def printed_lines(printed: str) -> str:
    """The lines beneath the verdict: what a reader's function printed in the first case; "" if it printed nothing."""
    lines = printed.splitlines()
    if not lines:
        return ""
    shown = lines[:LINES] + ["…"] * (len(lines) > LINES)
    return "\n" + say("In the first case it prints:") + "".join(f"\n  {line[:120]}" for line in shown)


def verdict(source: str, notebook: str, key: str, function, own, heard: CapturedOutput) -> Verdict:
    """Compare the function of a cell with the course's own. `function` is None if the cell raised an error.

    heard: collects what the reader's function prints.
    """
    try:
        written = blanks.written(source, notebook, key)
    except blanks.Unfit as unfit:
        return not_yet(str(unfit))
    if blanks.is_stub(written):
        return untouched()
    given = blanks.signature(written)
    expected = blanks.signature(blanks.written(blanks.filled(source, notebook, key), notebook, key))
    if given != expected:
        told = say("You wrote {given}, but the course calls {expected}", given=given, expected=expected)
        return not_yet(told)
    if function is None:
        return not_yet(say("The cell raises an error"))
    return compare_answers(f"{notebook[:2]}-{key}", answers_of(function, heard), answers_of(own, CapturedOutput()))


def answers_of(function, heard: CapturedOutput):
    """Wrap a function for `compare_answers`: packed data in, packed data out. What it prints goes to `heard`."""

    def answers(name, inputs):
        with contextlib.redirect_stdout(heard):
            return pack(answer(function, name, unpack(inputs)))

    return answers


def compare_answers(key: str, mine, own, seed: int = 0) -> Verdict:
    """Compare the answers of a reader's function (`mine`, maybe in another process) with those of the course's own.

    First only two results, so that a wrong first try is told at once: later cases may compile both functions.
    """
    first = compare_results(key, mine, own, seed, 2)
    return first if first.state in ("not yet", "still blank") else compare_results(key, mine, own, seed, 0)


def compare_results(key: str, mine, own, seed: int, most: int) -> Verdict:
    """Compare the first results, or all of them if `most` is 0."""
    inputs = pack([key, seed, most])
    try:
        cases, failed = unpack(own("filled", inputs))
    except Wrong as wrong:
        cases = []
        failed = str(wrong)
    if failed:  # the course's own fails only if a cell that it needs has not run, or was changed
        return not_yet(say("It cannot be tried: {failed}", failed=failed))
    try:
        answers, failed = unpack(mine("filled", inputs))
        answers = [(str(said), str(name), str(kind), value) for said, name, kind, value in answers]
        return compare_rows(key, cases, answers, str(failed)[:400] if failed else "")
    except Blank:
        return untouched()
    except Wrong as wrong:
        return not_yet(str(wrong))
    except Exception as error:  # from a malformed answer, or from values that cannot be compared
        raised = f"{type(error).__name__}: {error}"[:360]
        return not_yet(say("What it gives cannot be compared ({raised})", raised=raised))


def compare_rows(key: str, cases: list, answers: list, failed: str) -> Verdict:
    """Compare the answers row by row, and return the verdict. failed: the error that ended the answers early, or ""."""
    kept = [value for said, _, _, value in answers if said == KEPT and value]
    cases, answers = ([row for row in rows if row[0] != KEPT] for rows in (cases, answers))
    other = ""
    for k, case in enumerate(cases):
        said = f"{case[0]}: {case[1]}: " if case[1] else f"{case[0]}: "
        if k >= len(answers) or answers[k][:2] != case[:2]:
            return not_yet(failed or said + missing(case, answers[k : k + 1]))
        near = NEAR.get(str(getattr(case[3], "dtype", "")), 1e-9)
        if differs := difference(answers[k][2:], case[2:], lambda p, q, near=near: equal(p, q, near)):
            return not_yet(said + differs + exchanged(cases, answers, k))
        if not other and (differs := difference(answers[k][2:], case[2:], same_bits)):
            other = said + differs
    if failed or len(answers) > len(cases):
        return not_yet(failed or say("It gives more results than it should"))
    count = len({said for said, *_ in cases})
    if kept:
        return Verdict("other bits", say("right ({count} cases). {why}", count=count, why=kept[0]))
    if other:
        same = say(" This gives the same bits: {how}.", how=say(SAME_BITS[key])) if key in SAME_BITS else ""
        text = say("right ({count} cases), but the last bits differ. {other}.", count=count, other=other) + same
        return Verdict("other bits", text + say(" All levels must agree to the last bit."))
    if any(map(has_digits, cases)):
        return Verdict("right", say("right, to the last bit ({count} cases).", count=count))
    return Verdict("right", say("right ({count} cases).", count=count))


def exchanged(cases: list, answers: list, k: int) -> str:
    """`; dw1 and dw3 are exchanged` if that is what makes row k differ; else ""."""
    said, name, *_ = cases[k]
    for j, (beside, other, *_) in enumerate(cases[: len(answers)]):
        if beside == said and name and other and j != k:
            wrong = difference(answers[j][2:], cases[k][2:], equal) or difference(answers[k][2:], cases[j][2:], equal)
            if not wrong:
                return say("; `{name}` and `{other}` are exchanged", name=name, other=other)
    return ""


def missing(case: tuple, next_one: list) -> str:
    """The message for a missing or misplaced row: `expected float64[2], yours is a list of 2`."""
    wanted = case[2] or named(case[3])
    if not next_one or next_one[0][0] != case[0]:
        return say("expected {wanted}, yours is missing", wanted=wanted)
    return expected_not_yours(wanted, next_one[0][1] or next_one[0][2] or named(next_one[0][3]))


def expected_not_yours(wanted, yours) -> str:
    return say("expected {wanted}, yours is {yours}", wanted=wanted, yours=yours)


def has_digits(case: tuple) -> bool:
    """Whether the value of this row holds floating-point numbers, which are rounded."""
    value = case[3]
    values = value if isinstance(value, list | tuple) else [value]
    return any(isinstance(each, float) or getattr(each, "dtype", np.dtype("?")).kind in "fc" for each in values)


def same_bits(p, q) -> bool:
    """Whether two values are equal to the last bit, except that all NaNs are equal."""
    p = np.asarray(p)
    q = np.asarray(q)
    if p.dtype != q.dtype or q.dtype.kind not in "fc":
        return equal(p, q)
    return np.where(np.isnan(p), np.nan, p).tobytes() == np.where(np.isnan(q), np.nan, q).tobytes()


def difference(answer: tuple, right: tuple, same) -> str:
    """The message for two values that differ: `expected 0.4, yours is 0.2`, for arrays at the first place; else "".

    answer, right: (a class or "", plain data); same(p, q) compares the data.
    """
    kind, value = answer
    wanted, expected = right
    if type(value) is int and isinstance(expected, float):
        value = float(value)
    if kind != wanted or describe(value) != describe(expected):
        hint = say(" (is there a `return` in every case?)") if value is None else ""
        shapes = isinstance(value, np.ndarray) and isinstance(expected, np.ndarray) and value.dtype == expected.dtype
        if shapes and kind == wanted:
            wanted = say("the shape {shape}", shape=expected.shape)
            return expected_not_yours(wanted, value.shape)
        return expected_not_yours(wanted or named(expected), kind or named(value)) + hint
    if same(value, expected):
        return ""
    at = ""
    if isinstance(expected, np.ndarray) and expected.ndim:
        place = next(place for place in np.ndindex(expected.shape) if not same(value[place], expected[place]))
        at = say("at {place}: ", place=brief(place))
        value = value[place]
        expected = expected[place]
    elif isinstance(expected, list | tuple) and len(brief(expected)) > 40:
        place = next(place for place in range(len(expected)) if not same(value[place], expected[place]))
        at = say("at {place}: ", place=place)
        value = value[place]
        expected = expected[place]
    return at + expected_not_yours(spelled(expected, value), spelled(value, expected))


def named(value) -> str:
    return describe(value) if isinstance(value, np.ndarray | list | tuple | Other) else short(value)


def spelled(value, beside) -> str:
    """A number to six digits, or to all digits if six are the same as those of the number `beside` it."""
    if isinstance(value, float | np.floating) and isinstance(beside, float | np.floating):
        six = f"{value:.6g}"
        return six if six != f"{beside:.6g}" else repr(float(value))
    return brief(value)
