"""The exercises: each check takes its solution, rejects plausible wrong ones, and survives whatever it is handed."""

import functools
import inspect
import math
import pickle
import re
import subprocess
import sys
import threading
from pathlib import Path

import jupytext
import numba
import numpy as np
import pytest
from answered import SOLUTIONS

from course import build
from course.reader import cases, exercises, progress
from course.reader.cases import plain_data
from course.reader.exercises.judge import judge_answers
from levels_more.hardware import Assembler, launch_kernel, pool  # noqa: F401 (what a notebook has at hand)
from levels_more.high_level import Callback, Sequential  # noqa: F401
from levels_more.kernels import BACKENDS, PLANS, element_loop  # noqa: F401
from levels_more.low_level import (  # noqa: F401
    DOOR,
    GradientTape,
    Graph,
    Tensor,
    Variable,
    apply,
    constant,
    reduce_mean,
    reduce_sum,
    tanh,
    trace,
)
from levels_more.mid_level import SGD, BinaryAccuracy, Dense, Layer, Loss, Optimizer  # noqa: F401
from solutions import hardware, high_level, kernels, low_level, mid_level

MODULES = {
    "01_hardware": hardware,
    "02_kernels": kernels,
    "03_low_level": low_level,
    "04_mid_level": mid_level,
    "05_high_level": high_level,
}
SEEDS = range(2)


def each_in(table):
    """(key, function) for each function in a table of the modules, {key: {what it is: the function}}."""
    known = [pair for module in MODULES.values() for pair in getattr(module, table).items()]
    return [pytest.param(key, each, id=f"{key} {what}") for key, named in known for what, each in named.items()]


# What there is.


def cells(number):
    """The exercise cells of 02_… and of more/02_…, each with the text before it: {key: (text, code)}."""
    found, texts = {}, []
    for name in (name for name in build.all_in(build.ROOT) if Path(name).name[:2] == number):
        for cell in jupytext.read(build.text_path(build.ROOT, name)).cells:
            texts += [cell.source] * (cell.cell_type == "markdown")
            for key in re.findall(r'^exercises\.check\("(.*?)"', cell.source, re.MULTILINE):
                found[key] = texts[-1], cell.source
    return found


def test_each_exercise_has_a_stub_a_check_a_solution_and_wrong_ones():
    asked = {key for name in MODULES for key in cells(name[:2])}
    assert asked == exercises.EXERCISES.keys() == SOLUTIONS.keys()
    for name, module in MODULES.items():
        assert sorted(cells(name[:2])) == sorted(module.SOLUTIONS) == sorted(module.WRONG)
        assert 4 <= len(module.SOLUTIONS) <= 6 and all(key.startswith(name[:2]) for key in module.SOLUTIONS)
        assert module.ALSO_RIGHT.keys() == module.SOLUTIONS.keys() and all(module.ALSO_RIGHT.values())
        assert min(map(len, module.WRONG.values())) >= 5


@pytest.mark.versions
@pytest.mark.parametrize("name", MODULES)
def test_stubs_are_blank_and_promise_the_right_number_of_lines(name, capsys):
    scope = {}
    exec(f"import numpy as np\nfrom levels_more.{name[3:]} import *", scope)
    for key, (text, code) in cells(name[:2]).items():
        exec(compile(code, key, "exec"), scope)
        lines = exercises.EXERCISES[key].lines
        assert capsys.readouterr().out == f"{key} still blank: a solution takes about {lines} lines\n"
        assert f"bout {lines} lines" in " ".join(text.replace("\n# ", " ").split()), key
        stub = scope[SOLUTIONS[key].__name__]
        assert inspect.signature(stub) == inspect.signature(SOLUTIONS[key])
        assert abs(len(inspect.getsource(SOLUTIONS[key]).splitlines()) - 1 - lines) <= 1, key


# What the checks say.


@pytest.mark.versions
@pytest.mark.parametrize("key", SOLUTIONS)
def test_the_solution_is_right_whatever_is_drawn(key):
    for seed in SEEDS:
        found = exercises.verdict(key, SOLUTIONS[key], seed)
        assert found.state == "right" and re.fullmatch(r"\d+ cases", found.text), found


@pytest.mark.parametrize("key, function", each_in("ALSO_RIGHT"))
def test_another_style_is_right_too(key, function):
    for seed in SEEDS:
        found = exercises.verdict(key, function, seed)
        assert found.state == "right", found


@pytest.mark.parametrize("key, function", each_in("WRONG"))
def test_a_wrong_solution_is_rejected_whatever_is_drawn(key, function):
    for seed in SEEDS:
        found = exercises.verdict(key, function, seed)
        assert found.state == "not yet" and 40 < len(found.text) < 600, found


def test_a_mistake_is_only_named_where_it_fits():
    found = exercises.verdict("01-3", lambda count, step, itemsize: 1000)
    assert found.text == "<lambda>(0, 1, 4) gives 1000, expected 0"


@pytest.mark.parametrize("key", ["01-1", "01-3", "01-4", "01-5", "02-3", "04-5", "05-4"])
def test_answers_learned_by_heart_fail_for_other_inputs(key):
    heart = {}

    def learns(*arguments):
        said = pickle.dumps(arguments[-1:] if callable(arguments[0]) else arguments)
        if said not in heart:
            heart[said] = SOLUTIONS[key](*arguments)
        return heart[said]

    def recites(*arguments):
        said = pickle.dumps(arguments[-1:] if callable(arguments[0]) else arguments)
        return heart.get(said, next(iter(heart.values())))

    assert exercises.verdict(key, learns, seed=0).state == "right"
    assert exercises.verdict(key, recites, seed=0).state == "right"
    assert exercises.verdict(key, recites, seed=1).state == "not yet"


VALUES = None, True, 0, 1, -1, 10**400, 1.5, math.nan, math.inf, "", "a float", np.float32(1)
LISTS = [], (), [[]], [[], []], [[], [], []], [None] * 4, [0] * 27, list(range(27)), [[]] * 4, [([], [])] * 4
GRAPHS = ([], [0]), ([("input", [], 0)], [0]), [[], [(2,)]]
ARRAYS = np.zeros(0), np.zeros((0, 3)), np.zeros((3, 2)), [np.zeros(0)] * 4, [np.zeros((0, 3))] * 4
STEPS = [(np.zeros(0), True)] * 3, [1.0, [np.zeros(2)]], (0.5, [])
TOO_LARGE = "x" * (plain_data.TEXT + 1), [0] * (plain_data.ITEMS + 1)
NO_ANSWERS = *VALUES, *LISTS, *GRAPHS, *ARRAYS, *STEPS, *TOO_LARGE
# What `pack` does not make.
NO_KINDS = None, 5, "x", [], ["plain"], ["plain", {}], ["plain", [1]], ["list", None], ["other", "a float"]
NO_ARRAYS = ["|O", [1], "AAAA"], ["<f8", [-1], ""], ["<f8", [0, 10**18], ""], ["<f8", [10**30], ""], ["<f8", "3", ""]
TOO_DEEP = functools.reduce(lambda inner, _: ["list", [inner]], range(plain_data.DEPTH + 1), ["plain", 1])
NO_DATA = *NO_KINDS, ["call", "exit"], *(["array", each] for each in NO_ARRAYS), ["number", ["<f8", [], "!!"]], TOO_DEEP


@pytest.mark.parametrize("key", SOLUTIONS)
def test_nothing_is_right_but_the_right_answer(key):
    """Who answers may be a student's process, which says whatever it likes."""
    for answer in [*map(plain_data.pack, NO_ANSWERS), *NO_DATA]:
        assert judge_answers(key, lambda name, inputs, answer=answer: answer, 0).state == "not yet"
    for which in range(-4, 4):  # what it was asked, or a part of it

        def echo(name, inputs, which=which):
            return inputs[1][which] if len(inputs[1]) > abs(which) else inputs

        def echo_in_a_list(name, inputs):
            return ["list", [echo(name, inputs), ["list", inputs[1][1:]]]]

        for answer in (echo, echo_in_a_list):
            assert judge_answers(key, answer, 0).state == "not yet"


# What readers do.


def forever(*arguments):
    while True:
        pass


def endless_calls(*arguments):
    return endless_calls(*arguments)


def spoils(*arguments):
    for each in arguments:
        if isinstance(each, np.ndarray):
            each *= 0.0
    return np.float32(0.0)


ODD = {
    "half filled": lambda *arguments: 2 * ...,
    "nothing": lambda *arguments: print(end=""),
    "spoils": spoils,
}
ODD_BEFORE = {  # what is found out before an exercise's own questions, or in the same way in all of them
    "forever": forever,
    "endless calls": endless_calls,
    "quits": lambda *arguments: sys.exit(),
    "one argument": lambda x: x,
    **{str(each): each for each in (5, None, np.ones(3), print)},
}
HANDED_OVER = [(key, name, odd) for name, odd in ODD.items() for key in SOLUTIONS]
HANDED_OVER += [(f"0{number}-1", name, odd) for name, odd in ODD_BEFORE.items() for number in range(1, 6)]


@pytest.mark.parametrize("key, name, odd", HANDED_OVER, ids=lambda each: each if isinstance(each, str) else "")
def test_whatever_is_handed_over_gets_an_answer(key, name, odd, monkeypatch):
    if name == "forever":
        monkeypatch.setattr(cases, "TIME_LIMIT", 0.1)
    found = exercises.verdict(key, odd)
    assert found.state == ("still blank" if name == "half filled" else "not yet") and len(found.text) < 700, found
    told = {"forever": "takes more than 0.1 s", "endless calls": "RecursionError"}
    assert told.get(name, "") in found.text


@pytest.mark.versions
def test_the_time_limit_leaves_nothing_behind(monkeypatch):
    monkeypatch.setattr(cases, "TIME_LIMIT", 0.02)
    before = threading.active_count()
    for pause in np.linspace(0.015, 0.025, 20):  # about as long as the limit
        found = exercises.verdict("01-3", lambda *arguments, pause=pause: threading.Event().wait(pause))
        assert found.state == "not yet"
    assert threading.active_count() <= before + 3


LIMITED = """
import signal, sys, threading, time
from course.reader import cases, exercises

IGNORED
cases.TIME_LIMIT = 0.2


def check():
    for code in sys.argv[1:]:
        names = {}
        exec("def stubborn(count, step, itemsize):\\n    " + code, names)
        print(exercises.verdict("01-3", names["stubborn"]).text)
        for _ in range(20):
            time.sleep(0.01)  # what is raised too late would come here


RUN
"""
STUBBORN = {
    "an endless loop": "while True: pass",
    "one that goes on after an exception": "while True:\n        try: x = 1\n        except Exception: pass",
    "one that goes on after everything": "while True:\n        try: x = 1\n        except: pass",
    "one that gives an answer in the end": "try:\n        while True: pass\n    except: return 0",
    "what cannot be stopped": "import time; time.sleep(100)",
}


@pytest.mark.versions
@pytest.mark.parametrize("place", ["started with nohup", "in another thread"])
def test_the_time_limit_holds_whatever_it_stops(place):
    """In a process of its own: what cannot be stopped ends with it."""
    ignored, run = "signal.signal(signal.SIGINT, signal.SIG_IGN)", "check()"
    if place == "in another thread":
        ignored, run = "", "thread = threading.Thread(target=check); thread.start(); thread.join()"
    program = LIMITED.replace("IGNORED", ignored).replace("RUN", run)
    options = {"env": build.environment(build.ROOT), "capture_output": True, "text": True, "timeout": 60}
    done = subprocess.run([sys.executable, "-c", program, *STUBBORN.values()], **options)
    told = "stubborn(0, 1, 4) takes more than 0.2 s: does its loop ever end?\n"
    assert done.stdout == told * len(STUBBORN), done.stderr
    assert not done.stderr


@pytest.mark.versions
def test_the_readers_own_interrupt_passes():
    def stopped(*arguments):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        exercises.verdict("01-3", stopped)


@pytest.mark.versions
def test_of_a_class_every_method_may_be_blank_or_one():
    class Scale(Layer):
        def build(self, shape): ...

        def call(self, x):
            return ...

    assert exercises.verdict("04-1", Scale).state == "still blank"
    Scale.build = mid_level.Scale.build
    assert exercises.verdict("04-1", Scale).state == "still blank"
    Scale.call = mid_level.Scale.call
    assert exercises.verdict("04-1", Scale).state == "right"


@pytest.mark.versions
def test_a_kernel_must_compile_too():
    def only_python(out, x):
        kernels.sum_by_fours(out, x)
        eval("0")

    found = exercises.verdict("02-4", only_python)
    assert found.state == "not yet" and "compiled, raises" in found.text and len(found.text) < 700


@pytest.mark.versions
def test_a_kernel_compiled_by_the_reader_is_one_too():
    assert exercises.verdict("02-2", numba.njit(kernels.gradient_product)).state == "right"


def test_no_such_exercise():
    with pytest.raises(LookupError, match="there is no exercise '01-99'. The exercises are 01-1, 01-2"):
        exercises.verdict("01-99", len)


def test_what_is_right_is_noted(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(progress, "FILE", tmp_path / "progress.db")
    exercises.check("01-3", hardware.lines_touched)
    assert not progress.FILE.exists()  # a test is no reader
    monkeypatch.delenv("PYTEST_VERSION")
    exercises.check("01-3", hardware.rounded_down)
    exercises.check("01-1", hardware.sum_in_pairs)
    assert list(progress.load()["exercises"]) == ["01-1"]
    printed = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in printed] == ["01-3 right", "01-3 not yet", "01-1 right"]


# Notebook 03.


def test_walking_each_road_anew_takes_too_long(monkeypatch):
    """Each op of the last program is reached on twice as many roads as the one after it."""

    def every_road(makers, target):
        def roads(tensor):
            return [r for x in makers[tensor][1] for r in roads(x)] + [makers[tensor]] if tensor in makers else []

        return list({id(record): record for record in roads(target)}.values())

    monkeypatch.setattr(cases, "TIME_LIMIT", 0.2)
    found = exercises.verdict("03-5", every_road)
    assert "60 times u + u * 0.5 takes more than 0.2 s" in found.text


def test_a_check_leaves_the_level_as_it_was():
    compiler, plans = BACKENDS["cpu"].compiler, dict(PLANS)
    for key, function in low_level.SOLUTIONS.items():
        exercises.verdict(key, function)
        exercises.verdict(key, lambda *arguments: arguments[99])
        if key != "03-1":  # whose kernels are compiled, and stay
            assert plans == PLANS
        plans = dict(PLANS)
    assert BACKENDS["cpu"].compiler is compiler and DOOR.top is DOOR.bottom


def test_a_graph_that_nobody_could_have_written_is_refused():
    """It comes from a student's process."""
    x = w = np.ones((1, 2))
    for op, read in (("exp", [0]), ("add", [0, 1]), ("add", [1, 2])):  # none of the four, too large, not yet there
        nodes = [("input", [], 0), ("constant", [], np.ones((200, 1))), (op, read, None)]
        with pytest.raises((cases.Wrong, IndexError)):
            exercises.low_level.values_of("", (nodes, [2]), [x], w)
