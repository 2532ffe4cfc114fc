"""Datasets: what a pass holds, in memory and element by element; threads; files; errors."""

import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from levels_more.hardware import PLACE, placed_on
from levels_more.low_level import (
    Tensor,
    constant,
    exp,
    function,
    reduce_mean,
)
from levels_more.mid_level import DataLoader, Dataset


def numbers(count):
    return Dataset.from_tensor_slices(np.arange(count))


def streamed(data):
    """The same dataset, but no longer in memory."""
    return data.map(lambda x: x)


def listed(data):
    """One pass as Python's numbers and lists."""
    return [element.numpy().tolist() for element in data]


def prefetching():
    return [thread for thread in threading.enumerate() if thread.name.startswith("prefetch")]


def wait_for(condition, seconds=5.0):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.001)
    return condition()


@pytest.fixture(autouse=True)
def no_thread_stays():
    yield
    assert wait_for(lambda: not prefetching())


# Each stage as itertools has it on a list

LISTS = {
    "take": lambda rows, n: rows[:n],
    "skip": lambda rows, n: rows[n:],
    "repeat": lambda rows, n: rows * n,
    "batch": lambda rows, n: [rows[i : i + n] for i in range(0, len(rows), n)],
}
STEPS = st.lists(st.tuples(st.sampled_from(sorted(LISTS)), st.integers(1, 5)), max_size=4)


@settings(deadline=None)
@given(st.integers(1, 20), STEPS, st.sampled_from([lambda data: data, streamed, lambda data: data.map(abs).cache()]))
def test_stages_are_those_of_lists(count, steps, kind):
    data, rows, batches = kind(numbers(count)), list(range(count)), 0
    for name, n in steps:
        batches += name == "batch"
        if batches <= 1:
            data, rows = getattr(data, name)(n), LISTS[name](rows, n)
    assert len(data) == len(rows)
    assert listed(data) == rows == listed(data)


@settings(deadline=None)
@given(st.integers(1, 30), st.integers(1, 40), st.integers(0, 2**40))
def test_a_shuffled_pass_has_each_row_once_and_a_buffer_moves_none_far_ahead(count, size, seed):
    """Elements and row numbers are drawn alike."""
    rows, elements = (data.shuffle(size, seed) for data in (numbers(count), streamed(numbers(count))))
    passes = [listed(rows) for _ in range(3)]
    assert [listed(elements) for _ in range(3)] == passes
    for order in passes:
        assert sorted(order) == list(range(count))
        assert all(place >= row - (size - 1) for place, row in enumerate(order))
        assert size > 1 or order == list(range(count))


@pytest.mark.quick
def test_the_orders_of_a_seed_are_these_on_every_machine():
    whole, part = numbers(12).shuffle(12, seed=7), numbers(12).shuffle(4, seed=7)
    assert [listed(whole), listed(whole)] == [
        [4, 6, 10, 0, 1, 3, 8, 7, 2, 5, 9, 11],
        [7, 10, 6, 11, 0, 8, 9, 1, 3, 4, 2, 5],
    ]
    assert [listed(part), listed(part)] == [
        [2, 3, 5, 0, 1, 6, 7, 9, 10, 11, 8, 4],
        [3, 0, 5, 6, 1, 2, 4, 8, 10, 7, 9, 11],
    ]


def test_each_pass_has_an_order_of_its_own_unless_told():
    data = numbers(50).shuffle(50, seed=3)
    passes = [listed(data) for _ in range(4)]
    assert len({tuple(order) for order in passes}) == 4
    again = numbers(50).shuffle(50, seed=3)
    assert listed(again.repeat(4)) == sum(passes, [])
    still = numbers(50).shuffle(50, seed=3, reshuffle_each_iteration=False)
    assert listed(still) == listed(still) == passes[0]
    frozen = numbers(50).shuffle(50, seed=3).cache()
    assert listed(frozen) == listed(frozen) == passes[0]
    assert listed(numbers(50).shuffle(50)) != listed(numbers(50).shuffle(50))


# Elements


@pytest.mark.quick
def test_elements_are_tensors_in_tuples_and_dicts():
    table = dict(depth=np.array([1.5, 2.5]), species=np.array(["Adelie", "Gentoo"]))
    rows = Dataset.from_tensor_slices((table, [1.0, 2.0]))
    for data in (rows, rows.map(lambda *row: row)):
        (first, y), second = data
        assert type(first["depth"]) is Tensor and first["depth"].dtype == np.float64 and float(first["depth"]) == 1.5
        assert first["species"] == "Adelie" and y.dtype == np.float32
        ((both, _),) = data.batch(2)
        assert both["species"].tolist() == ["Adelie", "Gentoo"] and both["depth"].shape == (2,)


@pytest.mark.parametrize("value", [1e40, [1e40, 1.0], [[0.0], [-3.5e38]]])
def test_a_number_too_large_for_float32_is_refused_as_constant_does(value):
    for make in (
        lambda: constant(value),
        lambda: list(Dataset.from_tensor_slices([value])),
        lambda: list(Dataset.from_generator(lambda: iter([value]))),
    ):
        with pytest.raises(OverflowError, match="^a number is too large for float32$"):
            make()
    with pytest.raises(RuntimeError, match="element 0: OverflowError: a number is too large for float32"):
        list(Dataset.from_tensor_slices([1.0]).map(lambda x: value))
    (kept,) = Dataset.from_tensor_slices(np.array([1e40]))
    assert kept.numpy() == 1e40
    assert [x.numpy().item() for x in Dataset.from_tensor_slices([np.inf, 1e-46])] == [np.inf, 0.0]


def test_a_generator_begins_anew_in_each_pass():
    data = Dataset.from_generator(lambda: ((float(n), n) for n in range(3)))
    assert [[(float(x), int(y)) for x, y in data] for _ in "12"] == [[(0, 0), (1, 1), (2, 2)]] * 2
    assert next(iter(data))[0].dtype == np.float32
    with pytest.raises(TypeError, match="known at the end"):
        len(data)
    with pytest.raises(TypeError, match="a function that makes iterators, got <generator"):
        Dataset.from_generator(n for n in range(3))


def in_one_array():
    """0, 1, …, 5, each in the same array, which is filled anew."""
    held = np.zeros(1, np.float32)
    for k in range(6):
        held[:] = k
        yield held


STAGES = {
    "batch": lambda data: data.batch(2),
    "shuffle": lambda data: data.shuffle(6),
    "a second pass of cache": lambda data: list(data := data.cache()) and data,
    "zip": lambda data: Dataset.zip(data, data).shuffle(6).map(lambda x, y: x),
}


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("pairs", [False, True])
def test_each_element_keeps_its_numbers_if_a_generator_fills_one_array_anew(pairs, stage):
    found = list(STAGES[stage](Dataset.from_generator(lambda: ((x, x) if pairs else x for x in in_one_array()))))
    first = [x[0] if pairs else x for x in found]
    assert sorted(float(n) for x in first for n in x.numpy().ravel()) == [0, 1, 2, 3, 4, 5]


def test_zip_stops_with_the_shortest():
    data = Dataset.zip(numbers(3), numbers(9).skip(4))
    assert [(int(a), int(b)) for a, b in data] == [(0, 4), (1, 5), (2, 6)] and len(data) == 3
    assert len(Dataset.zip(numbers(3), numbers(1).repeat())) == 3
    with pytest.raises(TypeError, match="zip is None; expected datasets"):
        Dataset.zip()


def test_a_pass_that_is_cached_runs_once_and_only_a_whole_one_is_kept():
    calls = []
    data = numbers(4).map(lambda n: calls.append(int(n)) or n).cache()
    next(iter(data))
    assert listed(data) == listed(data) == [0, 1, 2, 3]
    assert calls == [0, 0, 1, 2, 3]


def test_a_cache_keeps_what_a_later_stage_overwrites():
    def double(x):
        x *= 2
        return x

    data = streamed(Dataset.from_tensor_slices(np.ones((2, 1)))).cache().map(double)
    assert listed(data) == listed(data) == listed(data) == [[2.0], [2.0]]


def test_a_row_that_is_not_there_is_said_on_use():
    data = Dataset.from_batches(np.ones(3), np.ones(3), np.array([[0, 3]], np.int32))
    for use in (
        lambda: list(data),
        lambda: list(data.map(lambda x, y: (x, y))),
        lambda: function(lambda x, y: reduce_mean(x * y)).over(*data.rows()[0], data.rows()[1]),
    ):
        with pytest.raises(IndexError, match="out of (range|bounds)|hold row 3"):
            use()
    assert len(list(Dataset.from_batches(np.ones(3), np.ones(3), np.array([[0, 2]], np.int32)))) == 1


def test_loader_reads_what_has_a_length_and_items():
    class Squares:
        def __len__(self):
            return 5

        def __getitem__(self, row):
            return np.float32(row), row * row

    assert [y.numpy().tolist() for x, y in DataLoader(Squares(), 2)] == [[0, 1], [4, 9], [16]]
    assert sorted(int(y) for x, y in DataLoader(Squares(), shuffle=True)) == [0, 1, 4, 9, 16]
    with pytest.raises(TypeError, match="expected numbers or text"):
        Dataset.from_tensor_slices(Squares())


# In memory


def test_row_numbers_pass_through_all_stages_that_need_no_rows():
    data = numbers(10).shuffle(10, seed=1).skip(1).take(8).repeat(2).cache().batch(4).shuffle(4).prefetch(2).take(3)
    (x,), batches = data.rows()
    assert batches.shape == (3, 4) and batches.dtype == np.int64 and x.shape == (10,)
    one = Dataset.from_batches(np.ones((4, 1)), np.ones((4, 1)), [[0, 1], [2]])
    arrays, batches = one.rows()
    assert [rows.tolist() for rows in batches] == [[0, 1], [2]] and [x.shape for x in arrays] == [(4, 1), (4, 1)]


@pytest.mark.parametrize(
    "data",
    [
        numbers(4),
        numbers(4).map(abs).batch(2),
        numbers(4).batch(2).repeat(),
    ],
)
def test_there_are_no_rows_where_a_stage_needs_elements(data):
    assert not data.in_memory
    with pytest.raises(TypeError, match="gives no batches of row numbers; go through the dataset in a loop"):
        data.rows()
    assert next(iter(data)) is not None


# Threads


def test_prefetch_runs_ahead_by_its_size_and_no_more():
    made = []
    passing = iter(numbers(20).map(lambda n: made.append(int(n)) or n).prefetch(3))
    next(passing)
    assert wait_for(lambda: len(made) == 4)
    time.sleep(0.05)
    assert made == [0, 1, 2, 3]
    assert len(prefetching()) == 1  # it ends with its consumer, as `no_thread_stays` asserts


def test_the_thread_places_numbers_where_its_consumer_does():
    places = []
    data = numbers(3).map(lambda n: places.append(PLACE.device.name) or n).prefetch(2)
    with placed_on("gpu:0"):
        assert [x.device.name for x in data] == ["gpu:0"] * 3
    assert places == ["gpu:0"] * 3


def test_an_error_of_the_thread_arrives_in_its_place():
    data = numbers(6).map(lambda n: 1 // (4 - int(n))).prefetch(3)
    for _ in range(2):
        seen = []
        with pytest.raises(RuntimeError, match="stage 2, map: element 4: ZeroDivisionError") as caught:
            for n in data:
                seen.append(int(n))
        assert len(seen) == 4 and isinstance(caught.value.__cause__, ZeroDivisionError)


# Files


def write(folder, data, ends="\n"):
    """A file of these bytes, or of this text with such ends of lines."""
    path = folder / "table.csv"
    path.write_bytes(data if isinstance(data, bytes) else data.replace("\n", ends).encode())
    return path


def test_columns_of_a_file(tmp_path):
    path = write(tmp_path, "\ufeffid,depth,kind\n1,0.5,a\n2,NA,NA\n\n3,,7\n")
    (row,) = Dataset.from_csv(path, na_value="NA").batch(3)
    assert row["id"].dtype == np.int64 and row["id"].numpy().tolist() == [1, 2, 3]
    assert row["depth"].dtype == np.float32 and np.isnan(row["depth"].numpy()).tolist() == [False, True, True]
    assert row["kind"].tolist() == ["a", "", "7"]
    x, y = next(iter(Dataset.from_csv(path, "id", na_value="NA")))
    assert list(x) == ["depth", "kind"] and int(y) == 1


@pytest.mark.parametrize(
    "dtype, cells",
    [
        # what float32 would round to another whole number, to infinity or to 0, or make equal, is float64
        ("f8", ["16777217", ""]),
        ("f8", ["1e39", "0.5"]),
        ("f8", ["1700000000.5", "1700000060.5"]),
        ("f8", ["1e-46", "0.5"]),
        ("f8", ["-1e-300", "0"]),
        # pandas and NumPy write floats with an exponent from 1e16 on: only written-out digits have to be exact
        ("f8", ["1.2345678901234568e+18", "0.5"]),
        ("f4", ["9223372036854775808", "0e99999999999999999999"]),
        ("f4", ["0.1", "0.25", ""]),
        ("f4", ["-0.0", "0e5", ""]),
        ("f4", ["0.5", "٠.٠", ""]),
        ("f4", ["0e5", ".5"]),
        ("i8", ["0", "10", "-0"]),
        # codes keep the zeros in front
        ("text", ["10001", "2134", "00501"]),  # only the last says that these are codes
        ("text", ["1.5", "007"]),
        ("text", ["٠٠٥٠١", "٢"]),
    ],
)
def test_a_column_is_as_wide_as_its_numbers_and_no_wider(tmp_path, dtype, cells):
    (row,) = Dataset.from_csv(write(tmp_path, "a,b\n" + "".join(f"1,{cell}\n" for cell in cells))).batch(9)
    if dtype == "text":
        assert np.asarray(row["b"]).tolist() == cells
    else:
        assert row["b"].dtype == dtype
        np.testing.assert_array_equal(row["b"].numpy(), np.array([float(cell or "nan") for cell in cells], dtype))


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        ("a,b\n1,2\n3,x\n", {}, "table.csv, line 3, column b: 'x' among numbers"),
        ('a,b\n"1\n",2\n3\n', {}, r"table.csv, line 4: \['3'\] beneath 2 names"),
        ("a,b\n1,9007199254740993\n2,\n", {}, "line 2, column b: '9007199254740993' would be rounded, because gaps"),
        ("a,b\n1,0.5\n2,1e400\n", {}, "table.csv, line 3, column b: '1e400' would become inf"),
        ("a,b\n1,1e-400\n", {}, "line 2, column b: '1e-400' would become 0.0"),
        ("id,id,y\n", {}, "table.csv, line 1: 2 columns are called 'id'; expected each name once"),
        ("a,b\n1,2\n", {"label_name": "c"}, "no column is called 'c'; there are a, b"),
        ("", {}, "table.csv, line 1: the file is empty; expected a line with the names of the columns"),
        ("a;b\n1;2\n", {}, "line 1: 'a;b' is one name, as it holds no comma; save the table with commas"),
        ("5.1,3.5,setosa\n4.9,3.0,setosa\n", {}, "line 1: '5.1' is a number; expected the names of the columns"),
        ("a,b\n1,2\n3,4,5\n", {}, r"line 3: \['3', '4', '5'\] beneath 2 names"),
        ("a\nNA\n1\n", {}, "line 2, column a: 'NA' among numbers; na_value='NA' makes it a missing one"),
        ('a\n1\n"1,000"\n', {}, "line 3, column a: '1,000' among numbers"),
        # a quote that never closes swallows no rows
        ('size,city\n1,Bern\n2,"Oslo\n3,Rome\n4,Lima\n', {}, "line 3: .*a quote opens in this row and never closes"),
        ('size,city\n1,"Bern\n2,"Oslo"\n3,Rome\n', {}, "line 2: .*text follows a closing quote .* is a quote missing"),
        ('size,city\n1,"two\nlines"\n2,"Oslo\n', {}, "line 4: .*a quote opens in this row and never closes"),
        (b"city\nBern\nZ\xfcrich\n", {}, "line 3: byte 0xfc is no text in UTF-8; save the table as CSV in UTF-8"),
        (b"n,city\n1,Bern\0\n" + b"2,Rome\n" * 9, {}, "line 2: byte 0x00 is no text"),
        ("n,city\n1,Zürich\n2,Ü".encode()[:-1], {}, "line 3: byte 0xc3 is no text"),
    ],
)
def test_a_mistake_in_a_file_is_found_by_line_and_column(tmp_path, text, options, words):
    for ends in ("\n", "\r\n"):
        with pytest.raises(ValueError, match=words):
            Dataset.from_csv(write(tmp_path, text, ends), **options)


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
def test_quotes_in_a_file_are_read_as_they_are_meant(tmp_path, ends):
    cells = ["Oslo", "two\nlines", 'a "big" one', '5" pipe', "Rome, Italy", " kept ", ""]
    quoted = ['"Oslo"', '"two\nlines"', '"a ""big"" one"', '5" pipe', '"Rome, Italy"', " kept ", '""']
    text = "n,city\n" + "\n".join(f'"{n}",{cell}' for n, cell in enumerate(quoted))
    (row,) = Dataset.from_csv(write(tmp_path, text, ends)).batch(10)
    assert row["n"].numpy().tolist() == [*range(7)]
    assert row["city"].tolist() == [cell.replace("\n", ends) for cell in cells]


# Bad input


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Dataset.from_tensor_slices((np.ones(3), np.ones(4))), r"arrays of \[3, 4\] rows"),
        (lambda: Dataset.from_batches(np.ones(3), np.ones(4), [[0]]), r"arrays of \[3, 4\] rows"),
        *(
            (
                lambda rows=rows: Dataset.from_batches(np.ones(3), np.ones(3), rows),
                "expected row numbers .steps, batch. from 0",
            )
            for rows in ([], [[0], []], [[0, -1], [1]], [[0, -1]], [[0.5]], np.arange(3), [[0], [[1, 2]]])
        ),
        (lambda: Dataset.from_tensor_slices([np.ones(3), np.ones(4)]), "several arrays go into a tuple"),
        (lambda: numbers(3).shard(5, 4).batch(1, drop_remainder=True), "batch: 0 elements make no batch of 1"),
        (lambda: list(numbers(3).repeat()), "never ends"),
    ],
)
def test_what_cannot_be_is_said(make, words):
    with pytest.raises(ValueError, match=words):
        make()


UNLIKE = {  # two elements that make no batch, and what the error says of them
    "a key is missing": (
        [{"x": 1.0, "y": 2}, {"x": 3.0}],
        r"{'x': 'float32\[\]', 'y': 'int64\[\]'}, and element 1 is {'x'",
    ),
    "a tuple and a number": ([1.0, (2.0,)], r"float32\[\], and element 1 is \('float32\[\]',\)"),
    "other lengths": ([[1, 2], [3]], r"int64\[2\], and element 1 is int64\[1\]"),
}


@pytest.mark.parametrize("name", UNLIKE)
def test_elements_that_make_no_batch_are_shown(name):
    elements, words = UNLIKE[name]
    told = f"^batch: element 0 is {words}.*; the elements of a batch need the same parts"
    with pytest.raises(ValueError, match=told):
        list(Dataset.from_generator(lambda: iter(elements)).batch(2))
    later = Dataset.from_generator(lambda: iter([elements[0]] * 5 + elements[1:])).batch(2)
    with pytest.raises(ValueError, match="^batch: element 4 is .*, and element 5 is "):
        list(later)


def test_a_function_that_fails_is_found_by_stage_and_element():
    with pytest.raises(RuntimeError, match="stage 3, filter: element 1: ZeroDivisionError"):
        list(numbers(3).map(abs).filter(lambda n: 1 // (1 - int(n))))
    assert listed(numbers(3).filter(lambda n: n)) == [1, 2]
    with pytest.raises(RuntimeError, match="element 1: TypeError: expected numbers or text, got None"):
        list(numbers(3).map(lambda n: None if n else n))
    tensors = numbers(3).map(lambda n: exp(constant(float(n))))
    for data in (tensors, tensors.prefetch(2)):
        with pytest.raises(RuntimeError, match="element 0: TypeError: got a tensor; stages work on NumPy arrays"):
            next(iter(data))


def test_nothing_left_is_no_error():
    none = numbers(3).filter(lambda n: False)
    for empty in (none, none.repeat(2), none.batch(2), none.shuffle(5), none.prefetch(1)):
        assert list(empty) == []
    assert [n for n in none.repeat()] == []  # it would search for ever
    assert list(numbers(3).take(0)) == list(numbers(3).skip(5)) == []
    assert listed(numbers(2).repeat().take(3)) == [0, 1, 0]


# Shards, and batches in their turn


@pytest.mark.parametrize("drop", [False, True])
def test_a_shard_in_batches(drop):
    """Ten rows in two shards of five: with batches of two, the last one is shorter, or is dropped."""
    shard = Dataset.from_tensor_slices((np.arange(10.0),)).shard(2, 1).batch(2, drop_remainder=drop)
    found = [rows.numpy().tolist() for (rows,) in shard]
    assert found == [[1.0, 3.0], [5.0, 7.0], [9.0]][: 2 if drop else 3]
    assert len(shard) == len(found)
    whole = Dataset.from_tensor_slices((np.arange(10.0),)).shard(2, 1).batch(5, drop_remainder=drop)
    assert [rows.numpy().tolist() for (rows,) in whole] == [[1.0, 3.0, 5.0, 7.0, 9.0]]


def test_nothing_is_taken_before_its_turn():
    x = np.arange(20.0)
    steps = Dataset.from_tensor_slices(x).batch(2).steps(5)
    assert next(iter(steps)).numpy().tolist() == [0.0, 1.0] and next(iter(steps)).numpy().tolist() == [2.0, 3.0]
    found = iter(Dataset.from_batches(x, x, [[0, 1], [2, 3], [4, 20]]))
    assert [next(found)[0].numpy().tolist() for _ in "12"] == [[0.0, 1.0], [2.0, 3.0]]
    with pytest.raises(IndexError):
        next(found)
