"""README.md and TEACHING.md say what is so: minutes, sections, commands, links, pictures, versions."""

import re

import pytest
from PIL import Image

from course import __main__ as the_door
from course import figures
from course.build import ROOT, names_in
from course.build.minutes import UNTIMED
from course.practice import teaching

PAGES = {name: (ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "TEACHING.md")}
NAMES = names_in(ROOT)


def test_the_timetable_is_that_of_the_headings():
    found = teaching.with_tables(PAGES["TEACHING.md"])
    assert found == PAGES["TEACHING.md"], "a heading or its minutes changed: run `python -m course.practice.teaching`"


def test_a_timetable_is_written_anew_and_nothing_else():
    page = PAGES["TEACHING.md"]
    old = re.sub(r" \d+ ·", " 99 ·", page)
    assert old != page and teaching.with_tables(old) == page
    for part in ("<!-- one day: written by course/practice/teaching.py -->\n", "<!-- end of one day -->\n"):
        with pytest.raises(ValueError, match="one day"):
            teaching.with_tables(page.replace(part, ""))


@pytest.mark.parametrize("name", NAMES)
def test_a_heading_is_read_with_its_minutes(name):
    """Each section has minutes, but for those that are work to choose from, or done by the last cell."""
    found = teaching.sections(name)
    assert len(found) > 8 and not [section.title for section in found if re.search(r"\d min", section.title)]
    assert all(UNTIMED.fullmatch(each.title) for each in found if not each.minutes)
    assert found[-1] == teaching.Section("Build", 0, False)


def test_a_week_is_a_double_lesson_and_a_day_is_a_day():
    assert all(60 <= teaching.minutes(name) <= 85 for name in NAMES), {name: teaching.minutes(name) for name in NAMES}
    clock = re.findall(r"^\| (\d+):(\d\d) \|", teaching.one_day(), re.MULTILINE)
    times = [60 * int(hour) + int(minute) for hour, minute in clock]
    assert times == sorted(set(times)) and times[0] == 9 * 60 and 16 * 60 <= times[-1] <= 17 * 60


def test_a_day_cannot_leave_out_what_is_not_there(monkeypatch):
    monkeypatch.setattr(teaching, "DAY", [("01_hardware", ("Lanes", "Measure your car"))])
    with pytest.raises(ValueError, match="Measure your car.*What a step costs"):
        teaching.one_day()


def test_the_levels_minutes():
    found = re.findall(r"^\| `(\w+)` \|.* \| (\d+) \|$", PAGES["README.md"], re.MULTILINE)
    assert found == [(name, str(teaching.minutes(name))) for name in NAMES], "run `python -m course.practice.teaching`"
    old = PAGES["README.md"].replace("| the ground | ", "| the ground | 1")
    assert old != PAGES["README.md"] and teaching.with_minutes(old) == PAGES["README.md"]


def test_what_is_named_in_italics_is_a_section():
    texts = [path.read_text(encoding="utf-8") for path in ROOT.glob("notebooks/**/text/*.py")]
    titles = [re.sub(r" \([^()]*\)$", "", title) for text in texts for title in re.findall(r"^# ##+ (.*)$", text, re.M)]
    titles += re.findall(r"^## (.*)$", PAGES["TEACHING.md"], re.MULTILINE) + ["Run All Cells"]
    named = re.findall(r"(?<!\*)\*([A-Z][^*]+)\*(?!\*)", PAGES["TEACHING.md"])
    assert len(named) >= 8 and not {" ".join(each.split()) for each in named} - {*titles}


@pytest.mark.parametrize("page", PAGES)
def test_every_command_is_one(page):
    named = set(re.findall(r"-m course ([a-z][\w-]*)", PAGES[page]))
    assert {"test"} <= named <= {*the_door.COMMANDS}


@pytest.mark.parametrize("page", PAGES)
def test_every_link_leads_somewhere(page):
    for target in re.findall(r"\]\(([^)]+)\)", PAGES[page]):
        file, _, anchor = target.partition("#")
        if not target.startswith("https://"):
            assert (ROOT / file).is_file(), target
            heads = re.findall(r"^#+ (.*)$", (ROOT / file).read_text(encoding="utf-8"), re.M) if anchor else [""]
            assert anchor in [head.lower().replace(" ", "-") for head in heads], target


def test_pictures_are_small_and_described():
    found = dict(re.findall(r"!\[([^\]]*)\]\((pictures/\w+\.png)\)", PAGES["README.md"]))
    assert {*found.values()} == {path.relative_to(ROOT).as_posix() for path in ROOT.glob("pictures/*")}
    for text, path in found.items():
        with Image.open(ROOT / path) as image:
            assert image.format == "PNG" and image.width <= 900
        assert (ROOT / path).stat().st_size < 150_000 and len(text.split()) > 20
    assert any(text.endswith(figures.loop_order("ijk", 303).text) for text in found)
    assert any("losses in float64 differ by 0," in text for text in found)


def test_a_picture_is_described_where_it_stands():
    page = "![](pictures/one.png) and ![old](pictures/two.png)"
    assert teaching.with_description(page, "two", r"new \1") == r"![](pictures/one.png) and ![new \1](pictures/two.png)"


def test_what_is_needed_is_what_setup_asks_for():
    (_, low), (_, high) = the_door.PYTHONS
    versions = [f"3.{minor}" for minor in range(low, high + 1)]
    assert f"Python {', '.join(versions[:-1])} or {versions[-1]} on" in PAGES["README.md"]
    assert f"About {the_door.MEGABYTES / 1000:g} GB of disk" in PAGES["README.md"]
