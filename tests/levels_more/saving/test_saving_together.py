"""Saved while others save and load, killed in the middle, one bit flipped: a model is whole, or refused."""

import contextlib
import inspect
import random
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from course.author.build import ROOT, environment
from levels_more.high_level import Sequential
from levels_more.mid_level import SGD, Dense
from levels_more.saving import load_model

WHOLE = "weights.safetensors"


def model(number):
    """Every weight is `number`, and so is what the optimizer remembers, and the number of units."""
    made = Sequential([Dense(number, "relu"), Dense(1)], name=f"number_{number}")
    made.build((None, 20))
    made.compile(SGD(0.1, momentum=0.9), "mse")
    made.training.optimizer.build(made.trainable_variables)
    for part in (made, made.training.optimizer):
        part.set_weights([np.full(w.shape, number, w.dtype) for w in part.get_weights()])
    return made


def number_of(made):
    """The number of a model that is whole."""
    number = int(made.name.removeprefix("number_"))
    values = [w for part in (made, made.training.optimizer) for w in part.get_weights()]
    assert made.layers[0].units == number and all((w == number).all() for w in values), (number, values)
    return number


WORK = f"""
import numpy as np
from levels_more.high_level import CSVLogger, Sequential
from levels_more.saving import load_model
from levels_more.mid_level import SGD, Dense
{inspect.getsource(model)}
{inspect.getsource(number_of)}
"""


@contextlib.contextmanager
def running(code, folder, count=1):
    """So many processes that run this code on a folder, from the moment in which all have begun."""
    command = [sys.executable, "-c", f"{WORK}folder = {str(folder)!r}\nprint('ready', flush=True)\n{code}"]
    options = {"env": environment(ROOT), "stdout": subprocess.PIPE, "text": True}
    processes = [subprocess.Popen(command, **options) for _ in range(count)]
    try:
        for process in processes:
            assert process.stdout.readline() == "ready\n"
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.communicate(timeout=60)


# Several at once ------------------------------------------------------------------------------------------------------

SAVES = "for _ in range(50):\n    for made in models: made.save(folder)\n"


@pytest.mark.timeout(300)
def test_who_loads_gets_one_whole_model_while_others_save(tmp_path):
    model(1).save(tmp_path / "m")
    with running("models = [model(2), model(30)]\n" + SAVES, tmp_path / "m", 2) as processes:
        numbers, ended = set(), time.monotonic() + 120
        while any(process.poll() is None for process in processes) and time.monotonic() < ended:
            numbers.add(number_of(load_model(tmp_path / "m")))
        assert [process.wait(timeout=60) for process in processes] == [0, 0]  # no save has failed either
    assert numbers >= {2, 30}
    assert [file.name for file in tmp_path.rglob("*")] == ["m", WHOLE]


def test_the_folder_of_a_save_that_failed_may_be_another_ones(tmp_path):
    """Several make the same new folder at once, again and again."""
    code = "made = model(3)\nfor k in range(20): made.save(f'{folder}/{k}')\n"
    with running(code, tmp_path, 3) as processes:
        assert [process.wait(timeout=120) for process in processes] == [0] * 3
    assert sorted({file.name for file in tmp_path.rglob("*.*")}) == [WHOLE]


# Interrupted ----------------------------------------------------------------------------------------------------------

ENDS = [("SIGINT", 2), ("SIGKILL", 5)] if sys.platform != "win32" else [("SIGTERM", 5)]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("end, times", ENDS)
def test_whoever_is_killed_leaves_a_whole_model_and_no_litter_that_stays(end, times, tmp_path):
    draw, folder = random.Random(end), tmp_path / "m"
    code = "models = [model(2), model(30)]\nmodels[0].save(folder)\nprint('saves', flush=True)\n" + 60 * SAVES
    for _ in range(times):
        shutil.rmtree(folder, ignore_errors=True)
        with running(code, folder) as [process]:
            assert process.stdout.readline() == "saves\n"
            time.sleep(draw.random() * 0.05)
            process.send_signal(getattr(signal, end))
            process.communicate(timeout=60)
        assert number_of(load_model(folder)) in (2, 30)
        assert [path.name for path in tmp_path.iterdir()] == ["m"]  # nothing beside it, not for a moment
        if end == "SIGINT":
            assert [file.name for file in folder.iterdir()] == [WHOLE]
        model(7).save(folder)
        assert [file.name for file in folder.iterdir()] == [WHOLE]
        assert number_of(load_model(folder)) == 7


@pytest.mark.parametrize("moment", range(1, 400, 37))
def test_ctrl_c_at_any_moment_leaves_nothing(moment, tmp_path):
    """An interrupt between any two lines of Python, in a new folder and over an old model."""
    made, old = model(2), model(5)
    old.save(tmp_path / "old")
    for name in ("old", "new"):
        left = moment

        def trace(frame, event, argument):
            nonlocal left
            left -= 1
            if left == 0:
                raise KeyboardInterrupt
            return trace

        sys.settrace(trace)
        try:
            made.save(tmp_path / name)
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(None)
    assert number_of(load_model(tmp_path / "old")) in (2, 5)
    if (tmp_path / "new").exists():
        assert number_of(load_model(tmp_path / "new")) == 2
    assert {file.name for file in tmp_path.rglob("*.*")} == {WHOLE}


# One bit --------------------------------------------------------------------------------------------------------------


def test_one_flipped_bit_is_noticed_wherever_it_is(tmp_path):
    model(3).save(tmp_path)
    [file] = tmp_path.iterdir()
    data, draw = file.read_bytes(), random.Random(3)
    for _ in range(150):
        at, bit = draw.randrange(len(data)), 1 << draw.randrange(8)
        file.write_bytes(data[:at] + bytes([data[at] ^ bit]) + data[at + 1 :])
        with pytest.raises(ValueError, match="was the file changed, or cut off") as error:
            load_model(tmp_path)
        assert file.as_posix() in str(error.value) and "\n" not in str(error.value)


# What callbacks write -------------------------------------------------------------------------------------------------

LOGS = """
x = np.zeros((4, 20), "f4")
made = model(3)
made.fit(x, x[:, :1], epochs=100_000, verbose=0, callbacks=[CSVLogger(folder)])
"""


def test_a_log_has_whole_lines_whenever_its_writer_is_killed(tmp_path):
    file, draw = tmp_path / "log.csv", random.Random(5)
    for _ in range(2):
        with running(LOGS, file) as [process]:
            while not file.exists() or file.stat().st_size < 100:
                assert process.poll() is None
            time.sleep(draw.random() * 0.1)
            process.kill()
            process.wait()
        text = file.read_text()
        assert text.startswith("epoch,loss\n") and text.endswith("\n")
        assert [int(line.split(",")[0]) for line in text.splitlines()[1:]] == list(range(text.count("\n") - 1))
        file.unlink()
