"""The X-ray of a step: what it counts is true, what it opens is unchanged, and its trace keeps to the format."""

import json
import re
import sys
from contextlib import contextmanager
from itertools import combinations

import pytest

from course import reference, tasks
from course.reader.inspection import xray
from levels.low_level import functions
from levels_more.compiler.eager import backward
from levels_more.hardware import exp, log, pool
from levels_more.high_level import Sequential
from levels_more.high_level.rows import batches_to_check
from levels_more.kernels import counted
from levels_more.low_level import DOOR, Replay, constant, device, eager, function
from levels_more.mid_level import SGD, Adam, BatchNormalization, Dataset, Dense, Dropout

pytestmark = pytest.mark.versions

LINE, NET = tasks.linear(), tasks.rings()
TEN, HUNDRED = ((task.x[task.batches[0]], task.y[task.batches[0]]) for task in (LINE, NET))


def line_model():
    return starting(Sequential([Dense(1, name="dense")]), LINE, "mse")


def net_model():
    return starting(Sequential([Dense(4, "relu"), Dense(8, "relu"), Dense(1, "sigmoid")]), NET, "binary_crossentropy")


def launched_model():
    model = Sequential([Dense(4, "relu"), BatchNormalization(), Dropout(0.5), Dense(1, "sigmoid")])
    model.compile(Adam(0.01), "binary_crossentropy", ["accuracy"])
    return model


def starting(model, task, loss, metrics=()):
    model.build(task.x.shape, task.x.dtype)
    model.set_weights(task.weights)
    model.compile(SGD(task.learning_rate), loss, metrics)
    return model


@pytest.fixture(scope="module")
def line():
    return xray.opened(line_model(), *TEN), xray.compiled(line_model(), *TEN)


@pytest.fixture(scope="module")
def net():
    return xray.opened(net_model(), *HUNDRED), xray.compiled(net_model(), *HUNDRED)


@pytest.fixture(scope="module")
def by_launches():
    """A step that is no map over rows, so that its program goes launch by launch; in float32, with Adam and a metric."""
    model = launched_model()
    rows = [array.astype("f4") for array in HUNDRED]
    with replayed():
        return xray.opened(model, *rows), xray.compiled(model, *rows)


@contextmanager
def replayed():
    """Inside this `with` block every graph is replayed, op by op."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(functions, "BACK_ENDS", [])
        yield


def rows_of(picture, kind):
    return [row for row in picture.root.walk() if row.kind == kind]


def paths(row, above=()):
    yield (*above, row.kind)
    for inner in row.rows:
        yield from paths(inner, (*above, row.kind))


def test_a_step_goes_from_fit_down_to_the_device(line):
    opened, compiled = line
    assert ("fit", "train step", "layer", "layer", "op", "launch", "kernel") in set(paths(opened.root))
    assert ("fit", "launch", "kernel") in set(paths(compiled.root))
    assert ("fit", "compile", "train step", "layer", "layer", "op") in set(paths(compiled.root))
    names = [row.name for row in rows_of(opened, "train step")[0].rows]
    assert names == ["sequential", "MeanSquaredError", "GradientTape", "SGD"]


@pytest.mark.parametrize("make, rows", [(line_model, TEN), (net_model, HUNDRED)])
def test_launches_and_bytes_are_those_that_level_2_counts(make, rows, monkeypatch):
    monkeypatch.setattr(backward, "_WALKS", {})  # a shape that other tests met often is walked by one program
    model = make()
    data = batches_to_check(model, *rows, None, len(rows[0]), None)
    data = data._replace(fits=True)  # what counts is the step

    def step():
        with eager():
            model.fit(data, verbose=0)

    kernels = rows_of(xray.opened(make(), *rows), "kernel")
    assert (len(kernels), sum(row.bytes for row in kernels)) == counted(step)


def test_each_op_is_one_launch_of_its_own_kernel(net):
    for op in rows_of(net[0], "op"):
        ((launch,),) = ([each for each in op.rows if each.kind == "launch"],)
        (kernel,) = launch.rows
        assert kernel.name == f"{op.name} on cpu:0" and kernel.device is pool()["cpu:0"]
        assert (op.launches, op.nbytes) == (1, kernel.bytes) and "kernels" in (kernel.place.level, kernel.place.adds_to)


@pytest.mark.parametrize("which", ["line", "net"])
def test_a_compiled_step_is_traced_and_launched_once(which, request):
    opened, compiled = request.getfixturevalue(which)
    (program,) = rows_of(compiled, "kernel")
    if which == "line":
        assert program.name == "row program on cpu:0"
        assert program.bytes == 10 * ((2 + 1) * 8 + 8)  # ten rows and their numbers, as `compare` counts
    (compiling,) = rows_of(compiled, "compile")
    traced = [row.name for row in compiling.walk() if row.kind == "op"]
    assert traced == [row.name for row in rows_of(opened, "train step")[0].walk() if row.kind == "op"]
    assert not compiling.launches


def compiled_step(model, *rows):
    """The program of a step, and the arguments that it is for. The model has taken it once."""
    step, args = function(model.train_step), [*map(constant, rows)]
    step(*args)
    ((program, _),) = step.programs.values()
    return program, args


def test_a_program_of_launches_is_shown_launch_by_launch(by_launches):
    opened, compiled = by_launches
    (replay,) = rows_of(compiled, "replay")
    launched = [row for row in replay.walk() if row.kind == "launch"]
    assert all(len(row.rows) == 1 for row in launched)
    done = [row.name for row in launched]
    (compiling,) = rows_of(compiled, "compile")
    assert repr(compiling) == f"compile {compiling.ops} ops to {len(done)}"
    assert repr(replay) == f"replay {len(done)} ops"
    assert {"matmul", "reduce_sum", "divide", "random_uniform"} < {*done}
    assert replay.launches == len(done) < rows_of(opened, "train step")[0].launches  # what nobody needs is left out
    assert replay.place.file == "levels/low_level/replay.py"
    with replayed():
        program, args = compiled_step(launched_model(), *[array.astype("f4") for array in HUNDRED])
    assert type(program) is Replay
    nbytes = sum(row.bytes for row in replay.walk() if row.kind == "kernel")
    assert (replay.launches, nbytes) == counted(lambda: program.run(args))


def test_a_list_of_programs_is_one_launch_that_moves_what_they_move():
    """Each loop, product or sum reads what comes from elsewhere, and writes what is read elsewhere."""

    def model():
        made = Sequential([Dense(16, "relu"), Dense(16, "relu"), Dense(1, "sigmoid")])
        made.compile(Adam(0.01), "binary_crossentropy", ["accuracy"])
        return made

    picture = xray.compiled(model(), *HUNDRED)
    (launched,) = rows_of(picture, "kernel")
    program, _ = compiled_step(model(), *HUNDRED)
    moved = 0
    for unit in program.units:
        inside = {*unit.nodes}
        read = {x for node in inside for x in node.inputs} - inside
        moved += sum(x.spec.nbytes for x in read | {node for node in inside if node in program.words})
    assert (launched.name, launched.bytes) == ("list of programs on cpu:0", moved)
    file = "levels_more/compiler/fused/backend.py"
    assert launched.place.file == file and file in repr(picture)


def test_the_loss_is_that_of_record_opened_and_compiled(line, net):
    losses, _ = reference.linear_regression(*LINE[:2], LINE.weights, LINE.batches[:1], LINE.learning_rate)
    assert [picture.loss for picture in line] == losses * 2
    losses, _ = reference.dnn_classifier(*NET[:2], NET.weights, NET.batches[:1], NET.learning_rate, exp=exp, log=log)
    assert [picture.loss for picture in net] == losses * 2


@pytest.mark.parametrize("look", [xray.opened, xray.compiled])
def test_an_xray_changes_nothing(look):
    model, other = (starting(Sequential([Dense(1)]), LINE, "mse", ["mae"]) for _ in range(2))
    model.training.optimizer, other.training.optimizer = Adam(0.1), Adam(0.1)
    kept = dict(model.training.programs)
    look(model, *TEN)
    assert model.training.programs == kept
    assert [w.tolist() for w in model.get_weights()] == [w.tolist() for w in LINE.weights] and model.history is None
    assert not model.training.optimizer.iterations.numpy()
    data = Dataset.from_batches(LINE.x, LINE.y, LINE.batches[:50])
    assert model.fit(data, verbose=0).losses.tolist() == other.fit(data, verbose=0).losses.tolist()
    assert model.history.history == other.history.history


def test_a_model_that_is_not_built_is_built_and_keeps_its_first_weights():
    model = Sequential([Dense(1)])
    model.compile("sgd", "mse")
    first = xray.opened(model, *TEN).loss
    assert model.count() == 3 and xray.compiled(model, *TEN).loss == first


def test_it_listens_no_longer_than_the_step():
    heard, model = [], line_model()

    class Broken(Sequential):
        def train_step(self, x, y):
            raise ArithmeticError("broken")

    def profiler(frame, event, argument):
        heard.append(event)

    broken = starting(Broken([Dense(1)]), LINE, "mse")
    before = {variable: variable.numpy() for variable in (*model.variables, *broken.variables)}
    sys.setprofile(profiler)
    try:
        for patient in (model, broken):
            try:
                xray.opened(patient, *TEN)
            except ArithmeticError:
                heard.append("broken")
            assert sys.getprofile() is profiler and DOOR.top is DOOR.bottom
    finally:
        sys.setprofile(None)
    assert heard.count("broken") == 1
    assert all((variable.numpy() == value).all() for variable, value in before.items())


def test_a_step_of_one_s_own(line):
    class Scaled(Sequential):
        def train_step(self, x, y):
            return super().train_step(x * 0.5, y)

    model = starting(Scaled([Dense(1)]), LINE, "mse")
    picture = xray.opened(model, *TEN)
    (step,) = rows_of(picture, "train step")
    assert step.place is None and "your own code" in repr(picture)
    assert repr(step.rows[0]).startswith("op multiply")
    assert picture.root.launches == line[0].root.launches + 1


def test_another_device_has_a_track_of_its_own():
    pool(cpus=2)
    with device("cpu:1"):
        picture = xray.opened(line_model(), *TEN)
    assert {row.device.name for row in rows_of(picture, "kernel")} == {"cpu:1"}
    names = {e["args"]["name"] for e in picture.trace() if e["ph"] == "M" and e["name"] == "thread_name"}
    assert "cpu:1" in names


# How it is shown.


def test_it_prints_what_is_the_same_every_time(line):
    text = repr(line[0])
    assert text == repr(xray.opened(line_model(), *TEN)) and "µs" not in text
    head, first, *rest = text.split("\n")
    assert head.split() == ["launches", "bytes", "defined", "in"]
    assert first.startswith("fit sequential") and first.endswith("levels_more/high_level/model.py")
    assert len(rest) == sum(row.kind not in ("fit", "launch", "kernel") for row in line[0].root.walk())


def test_as_html_it_unfolds_and_names_files_and_sections(line, by_launches):
    for picture in (*line, *by_launches):
        page, rows = picture._repr_html_(), [*picture.root.walk()]
        assert page.count("<details") == page.count("</details>") == sum(bool(row.rows) for row in rows)
        assert page.count("µs") == len(rows) and page.count("<a href=") == sum(bool(row.place.notebook) for row in rows)
        assert not re.search(r"<summary>((?!</summary>).)*<a ", page), "one press cannot unfold and lead"
        assert page.count("<span") == page.count("</span>") and page.count("<div") == page.count("</div>")
    assert 'href="04_mid_level.ipynb#A-layer-that-builds-itself-' in line[0]._repr_html_()


PHASES = {  # of the trace event format: the fields that an event of each kind needs, beside its arguments
    "X": {"name": str, "cat": str, "ts": (int, float), "dur": (int, float), "pid": int, "tid": int},
    "M": {"name": str, "pid": int, "tid": int},
}


@pytest.mark.parametrize("which", ["line", "by_launches"])
def test_the_trace_keeps_to_the_format(which, request, tmp_path):
    for picture in request.getfixturevalue(which):
        picture.save(tmp_path / "step.json")
        trace = json.loads((tmp_path / "step.json").read_text(encoding="utf-8"))
        assert trace["displayTimeUnit"] in ("ms", "ns")
        named, tracks = set(), {}
        for event in trace["traceEvents"]:
            for field, kind in PHASES[event["ph"]].items():
                assert isinstance(event[field], kind) and not isinstance(event[field], bool), (field, event)
            assert isinstance(event["args"], dict)
            if event["ph"] == "M":
                assert event["name"] in ("process_name", "thread_name") and isinstance(event["args"]["name"], str)
                named.add((event["pid"], event["tid"]))
            else:
                assert event["ts"] >= 0 and event["dur"] >= 0
                tracks.setdefault((event["pid"], event["tid"]), []).append(event)
        assert tracks.keys() == named and len(tracks) == 2  # Python's, and that of cpu:0
        for events in tracks.values():
            assert nested(events)
        total = sum(len(events) for events in tracks.values())
        assert total == len([*picture.root.walk()])


def nested(events):
    """Whether of any two events on a track one holds the other, or ends before it: what a viewer needs to stack them."""
    spans = [(ts, ts + dur) for ts, dur in sorted((each["ts"], each["dur"]) for each in events)]
    near = 1e-6
    return all(
        end <= later + near or last <= end + near or (later <= start + near and end <= last + near)
        for (start, end), (later, last) in combinations(spans, 2)
    )
