"""README.md, the pages for teachers and those beside them say what is so: minutes, sections, commands, links, pictures, versions."""

import functools
import re

import numpy as np
import pytest
from PIL import Image

from course import build, commands, figures
from course.author import pages
from course.author import site as reading
from course.author.build import ROOT, names_in, text_path
from course.author.setup import environment, index_page
from course.reader.files import with_tables
from course.reader.notebooks import minutes
from course.reader.notebooks.minutes import UNTIMED
from course.teacher import timetable
from solutions.answers import ANSWERS

READING = "course/author/site/pages"
NAMED = (
    "README.md",
    "TEACHING.md",
    "teaching/units.md",
    "teaching/grading.md",
    "teaching/questions.md",
    "CONTRIBUTING.md",
    *(f"{READING}/{name}.md" for name in ("install", "contents", "beside")),
)
EXPORTED = r"^#\| export \w+ (?:blank|most) (\S+)"  # the key of a function to write
PAGES = {name: (ROOT / name).read_text(encoding="utf-8") for name in NAMED}
NAMES = names_in(ROOT)


def test_the_timetable_is_that_of_the_headings():
    found = with_tables(PAGES["TEACHING.md"], timetable.TABLES, "course/teacher/timetable.py")
    assert found == PAGES["TEACHING.md"], "a heading or its minutes changed: run `python -m course.teacher.timetable`"


def test_the_list_of_notebooks_is_that_of_the_texts():
    page = PAGES[f"{READING}/contents.md"]
    found = with_tables(page, {"what branches off": pages.what_branches_off}, "course/author/pages.py")
    assert found == page, "a title changed: run `python -m course.author.pages`"


@functools.cache
def made_pages():
    """The map of a reader's desk, and the first page of the site."""
    return index_page.page(ROOT), reading.landing(ROOT)


SITTINGS = "two sittings, each of less than an hour and a half"


@pytest.mark.parametrize("name", NAMES)
def test_every_page_gives_a_notebook_the_minutes_of_the_rule(name):
    taken = round(minutes.total(minutes.sections(build.from_text(ROOT, name).cells, ROOT)))
    assert f"\n| `{name}` | {taken} | " in PAGES["TEACHING.md"], "run `python -m course.teacher.timetable`"
    intro = text_path(ROOT, name).read_text(encoding="utf-8").split("\n# %%\n")[0]
    assert SITTINGS in " ".join(intro.replace("\n# ", " ").split())
    for page in made_pages():
        assert re.findall(rf"^\d\. \[.*{name}\.ipynb\), (\d+) min\. ", page, re.MULTILINE) == [str(taken)]


@pytest.mark.parametrize("name", NAMES)
def test_a_sitting_is_no_longer_than_it_may_be(name):
    """85 minutes each, and none of them a mere rest."""
    whole = timetable.in_all(timetable.for_the_class(name))
    first = timetable.in_all(timetable.first_sitting(name))
    assert 40 <= first <= 85 and 40 <= whole - first <= 85


def test_every_page_gives_the_trail_the_hours_of_the_rule():
    taken = minutes.trail_takes(ROOT)
    assert f"\n| the trail, all five | {taken} | " in PAGES["TEACHING.md"], "run `python -m course.teacher.timetable`"
    hours = f"about {index_page.hours(taken)}"
    assert all(hours in " ".join(PAGES[page].split()) for page in ("README.md", f"{READING}/install.md")), hours
    for page in made_pages():
        assert f"## The trail: {index_page.hours(taken)}\n" in page


def test_a_week_is_a_double_lesson_and_a_day_is_a_day():
    rows = re.findall(r"^\| \*\*\d\*\* `(\w+)` \|.*\| (\d+) \|.*\| (\d+) \|$", timetable.five_weeks(), re.MULTILINE)
    assert [name for name, *_ in rows] == NAMES
    for name, here, home in rows:
        assert 45 <= int(here) <= 90 and int(here) + int(home) == minutes.minutes_of(ROOT, name), name
    clock = re.findall(r"^\| (\d+):(\d\d) \|", timetable.one_day(), re.MULTILINE)
    times = [60 * int(hour) + int(minute) for hour, minute in clock]
    assert times == sorted(set(times)) and times[0] == 9 * 60 and 16 * 60 <= times[-1] <= 17 * 60


def test_in_eight_weeks_everything_is_written_and_no_week_is_much_longer():
    rows = re.findall(r"^\| (\d) \|.*\| (\d+) \| (.*) \|$", timetable.eight_weeks(), re.MULTILINE)
    assert [week for week, *_ in rows] == list("12345678")
    written = [key for *_, keys in rows for key in re.findall(r"`([\w.]+)`", keys)]
    asked = [
        key for name in NAMES for key in re.findall(EXPORTED, text_path(ROOT, name).read_text(encoding="utf-8"), re.M)
    ]
    assert written == asked
    taken = [int(minutes) for _, minutes, _ in rows]
    assert max(taken) <= 1.3 * sum(taken) / 8


def test_a_plan_holds_nothing_optional_and_no_work_to_choose_from():
    for name in NAMES:
        assert not [each for each in timetable.for_the_class(name) if each.optional or UNTIMED.fullmatch(each.title)]
    kept = timetable.in_a_day("01_hardware", 500, ("Memory",))
    assert "Memory" in [section.title for section in kept]


def test_what_is_named_in_italics_is_a_section():
    texts = [path.read_text(encoding="utf-8") for path in ROOT.glob("notebooks/**/text/*.py")]
    titles = [re.sub(r" \([^()]*\)$", "", title) for text in texts for title in re.findall(r"^# ##+ (.*)$", text, re.M)]
    titles += re.findall(r"^## (.*)$", PAGES["TEACHING.md"], re.MULTILINE) + ["Run All Cells"]
    named = re.findall(r"(?<!\*)\*([A-Z][^*]+)\*(?!\*)", PAGES["TEACHING.md"])
    assert len(named) >= 8 and not {" ".join(each.split()) for each in named} - {*titles}


@pytest.mark.quick
@pytest.mark.parametrize("page", PAGES)
def test_every_command_is_one(page):
    named = set(re.findall(r"-m course ([a-z][\w-]*)", PAGES[page]))
    assert named <= {*commands.COMMANDS} and ({"test"} <= named or page.startswith((READING, "teaching/")))


@pytest.mark.parametrize("page", PAGES)
def test_every_link_leads_somewhere(page):
    for target in re.findall(r"\]\(([^)]+)\)", PAGES[page]):
        file, _, anchor = target.partition("#")
        if not target.startswith("https://"):
            led = (ROOT / page).parent / file if file else ROOT / page
            assert led.is_file(), target
            heads = re.findall(r"^#+ (.*)$", led.read_text(encoding="utf-8"), re.M) if anchor else [""]
            assert anchor in [head.lower().replace(" ", "-") for head in heads], target


def test_pictures_are_small_and_described():
    found = dict(re.findall(r"!\[([^\]]*)\]\([./]*(pictures/\w+\.png)\)", "".join(PAGES.values())))
    found |= dict(re.findall(r'<img alt="([^"]*)" src="(pictures/\w+\.png)">', PAGES["README.md"]))
    dark = re.findall(r'srcset="(pictures/\w+\.png)"', PAGES["README.md"])
    assert {*found.values(), *dark} == {path.relative_to(ROOT).as_posix() for path in ROOT.glob("pictures/*")}
    for text, path in found.items():
        with Image.open(ROOT / path) as image:
            assert image.format == "PNG" and image.width <= (1920 if "side_by_side" in path else 900)
        assert (ROOT / path).stat().st_size <= 200_000 and len(text.split()) > 20
    assert any(text.endswith(figures.loop_order("ijk", 303).text) for text in found)
    assert any("float64 losses differ by 0," in text for text in found)


def test_what_is_needed_is_what_setup_asks_for():
    (_, low), (_, high) = environment.PYTHONS
    versions = [f"3.{minor}" for minor in range(low, high + 1)]
    assert f"Python {', '.join(versions[:-1])} or {versions[-1]} on" in PAGES[f"{READING}/install.md"]
    lean, all_of_it = (f"{environment.MEGABYTES[lock] / 1000:.1f} GB" for lock in (environment.CORE, environment.TEST))
    assert f"About {lean} of disk" in PAGES[f"{READING}/install.md"]
    assert f"({all_of_it} with those)" in PAGES[f"{READING}/install.md"]
    assert f"Python {versions[0]} or later" in PAGES["README.md"] and lean in PAGES["README.md"]


# Three lessons, and ten questions.


def part(page, title):
    """The text of a page for teachers beneath a heading of the second order."""
    return PAGES[f"teaching/{page}.md"].split(f"\n## {title}\n")[1].split("\n## ")[0]


def test_a_unit_takes_fifty_minutes_and_stands_on_one_notebook_of_the_trail():
    units = PAGES["teaching/units.md"].split("\n## What a student can")[0].split("\n## ")[1:]
    assert len(units) == 3
    for unit in units:
        (name,) = re.findall(r"^`(trail/\w+)`", unit, re.MULTILINE)
        text = text_path(ROOT, name).read_text(encoding="utf-8")
        titles = re.findall(r"^# ## (.+?)(?: \(.*\))?$", text, re.MULTILINE)
        rows = re.findall(r"^\| (\d+) \| (.+?) \| (.+) \|$", unit, re.MULTILINE)
        assert sum(int(taken) for taken, *_ in rows) == 50, name
        assert all(asked.strip() for *_, asked in rows) and "```\n" in unit and "What goes wrong: " in unit
        assert set(re.findall(r"\*([A-Z][^*]+)\*", " ".join(what for _, what, _ in rows))) <= {*titles}
        named = set(re.findall(r"[Tt]he blank `(\w+)`", unit))
        assert named and all(f"#| blank {key}\n" in text for key in named)


def test_each_blank_shows_what_a_student_can_do():
    named = dict(
        re.findall(r"^\| (\d) [a-z ]+ \|.*\| (.*) \|$", part("units", "What a student can do afterwards"), re.MULTILINE)
    )
    assert list(named) == list("12345")
    for level, keys in named.items():
        assert {f"0{level}-{key}" for key in re.findall(r"`(\w+)`", keys)} <= {*ANSWERS}


def test_the_key_is_right_and_says_of_each_wrong_answer_what_it_shows():
    """What can be computed is computed."""
    text = part("questions", "Ten questions, before and after")
    found = re.findall(r"^ ?(\d+)\. (.+?)\(a\) (.+?) \(b\) (.+?) \(c\) (.+?)\.$", text, re.MULTILINE | re.DOTALL)
    asked = {int(number): answers for number, _, *answers in found}
    key = {int(n): each for n, *each in re.findall(r"^\| (\d+) \| ([abc]) \| (.+) \|$", text, re.MULTILINE)}
    assert list(asked) == list(key) == [*range(1, 11)]
    for letter, told in key.values():
        assert sorted(re.findall(r"\b([abc]): ", told) + [letter]) == list("abc")
    assert len({letter for letter, _ in key.values()}) == 3

    def right(number):
        return asked[number]["abc".index(key[number][0])]

    assert float(right(1).replace(",", "")) == np.ones(2**25, "f").cumsum()[-1]
    assert int(right(3)) == np.ravel_multi_index((2, 1), (4, 3))
    assert [int(asked[3][k]) for k in (1, 2)] == [np.ravel_multi_index((2, 1), (4, 3), order="F"), 2 + 1]
    assert int(right(4)) == 5 * 3
    loss = [(w * 3 - 4) ** 2 for w in (2 - 1e-6, 2 + 1e-6)]
    assert int(right(5)) == round((loss[1] - loss[0]) / 2e-6)
    draws = np.random.default_rng(0).standard_normal((20, 1000)).tolist()
    up, down = ([functools.reduce(float.__add__, each[::way], 0.0) for each in draws] for way in (1, -1))
    assert up != down and any(p == q for p, q in zip(up, down, strict=True)) and right(8).startswith("perhaps")
