"""Other languages: the code of a translated notebook is the English one's, and nothing that a reader reads is left out."""

import io
import json
import re
import unicodedata

import pytest
from babel.messages.pofile import read_po
from fontTools.ttLib import TTFont
from markdown_it import MarkdownIt

from course import build
from course.author import font
from course.author.builder import po
from course.author.setup import depth, workspace
from course.reader import language
from course.reader.figures.picture import FONTS
from course.reader.language import CATALOGS, MARK, SHOWN, po_path, say, speaking
from course.reader.notebooks import names
from course.reader.notebooks.cells import BuildError
from course.reader.notebooks.translated import translate
from course.reader.session import resume
from course.reader.session.table import table

NAMES = names.translated_in(build.ROOT)
FILES = [po_path(build.ROOT, each, catalog) for each in CATALOGS for catalog in po.catalogs(build.ROOT)]
# Words that a Chinese reader must tell apart: {English: Chinese}, as in the glossary and in the books that readers know
WORDS = {"tensor": "张量", "gradient": "梯度", "slope": "斜率", "kernel": "内核", "op": "算子", "register": "寄存器"}
WORDS |= {"optimizer": "优化器", "layer": "层", "level": "级", "batch": "小批量", "tape": "磁带", "launch": "启动"}
WORDS |= {
    "epoch": "轮次",
    "learning rate": "学习率",
    "weight": "权重",
    "bias": "偏置",
    "callback": "回调",
    "step": "步",
}
ALSO = {"kernel": "kernel"}  # the matrix of a layer, as Keras calls it
CHINESE = re.compile(r"[\u3000-\u303f\u4e00-\u9fff\uff00-\uffef]")


def entries_of(path):
    """The entries of a file, as babel reads them, without the header."""
    return [each for each in read_po(io.StringIO(path.read_text(encoding="utf-8"))) if each.id]


def code_of(name):
    notebook = build.read_notebook(build.ROOT, name)
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def printed(output):
    """What an output says as text; of a picture, its sentence."""
    return output.get("text") or output.get("data", {}).get("text/plain", "")


def code_in(text):
    """The names and expressions that a text shows as code."""
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    return re.findall(r"`([^`]+)`", text) + re.findall(r"<code>(.*?)</code>", text)


@pytest.mark.quick
def test_the_whole_trail_is_translated():
    assert [build.trail_in(build.ROOT)] * len(CATALOGS) == [
        [names.original(name) for name in NAMES if names.language_of(name) == each] for each in CATALOGS
    ]


@pytest.mark.quick
@pytest.mark.parametrize("name", NAMES)
def test_code_is_that_of_the_english_notebook_and_outputs_differ_in_words_alone(name):
    """What is printed by the cells' own code is the same to the letter; what the course says has the same numbers."""
    said = 0
    assert MARK not in names.notebook_path(build.ROOT, name).read_text(encoding="utf-8"), (
        "each text that is shown has an entry"
    )
    for ours, theirs in zip(code_of(name), code_of(names.original(name)), strict=True):
        assert (ours.id, ours.source.encode()) == (theirs.id, theirs.source.encode())
        if "nbval-ignore-output" in ours.metadata.get("tags", []):
            continue
        assert [each.output_type for each in ours.outputs] == [each.output_type for each in theirs.outputs]
        for one, other in zip(map(printed, ours.outputs), map(printed, theirs.outputs), strict=True):
            if CHINESE.search(one):
                said += 1
                assert sorted(re.findall(r"\d+", one)) == sorted(re.findall(r"\d+", other)), (one, other)
            else:
                assert one == other
    assert said > 3


@pytest.mark.quick
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_entry_is_translated_and_keeps_the_code(path):
    """None is missing, none is fuzzy; each piece of code and each {field} of the English text is in its translation.

    What is bold is seen: Markdown takes `。**字` for two stars.
    """
    for each in entries_of(path):
        assert each.string and not each.fuzzy, f"{path.name}: {each.id!r} is missing or fuzzy"
        gone = [code for code in code_in(each.id) if code not in each.string]
        assert not gone, f"{path.name}: {each.id!r} has lost {gone}"
        fields = [sorted(re.findall(r"\{\w+\}", text)) for text in (each.id, each.string)]
        assert fields[0] == fields[1] or path.stem != SHOWN, f"{path.name}: {each.id!r} has other fields"
        if path.stem == SHOWN:
            continue
        page = re.sub(r"<(code|pre)\b.*?</\1>", "", MarkdownIt().enable("table").render(each.string), flags=re.DOTALL)
        assert "**" not in page, f"{path.name}: {each.string!r}: bold text that ends in 。 needs a space after it"


@pytest.mark.quick
@pytest.mark.parametrize("name", build.trail_in(build.ROOT))
def test_a_word_is_the_same_on_the_whole_trail(name):
    found = 0
    for each in entries_of(po_path(build.ROOT, "zh", name)):
        bare = re.sub(r"```.*?```|`[^`]*`|<code>.*?</code>|\]\([^)]*\)|\w+-level API", "", each.id, flags=re.DOTALL)
        for word, chinese in WORDS.items():
            if re.search(rf"\b{word}(s|es|ed)?\b", bare, re.IGNORECASE):
                found += 1
                assert chinese in each.string or ALSO.get(word, chinese) in each.string, (word, each.string)
    assert found > 20


@pytest.mark.quick
def test_the_glossary_has_both_languages_and_each_word_once():
    terms = {}
    for each in entries_of(po_path(build.ROOT, "zh", "glossary"))[2:]:
        english, chinese = (text.removeprefix("```{glossary}\n").split("\n")[0] for text in (each.id, each.string))
        word, found = re.fullmatch(r"(.+)（(.+)）", chinese).groups()
        assert found == english
        terms[english] = word
    assert len(terms) > 40 and len({*terms.values()}) == len(terms), (
        "two words that differ in English differ in Chinese"
    )
    assert [word for word in WORDS if terms.get(word, WORDS[word]) != WORDS[word]] == []


@pytest.mark.quick
def test_the_entries_and_the_pages_are_those_of_today():
    """`python3 -m course build --po` would change nothing."""
    for each in CATALOGS:
        for catalog, texts in po.catalogs(build.ROOT).items():
            old = po_path(build.ROOT, each, catalog).read_text(encoding="utf-8")
            assert po.updated(old, texts, CATALOGS[each]) == old, catalog
    for path, text in po.pages(build.ROOT).items():
        assert path.read_text(encoding="utf-8") == text, path.name


@pytest.mark.quick
def test_every_link_ends_somewhere():
    places = {build.ROOT / "notebooks" / f"{name}.ipynb": build.read_notebook(build.ROOT, name).cells for name in NAMES}
    texts = {path: "\n".join(c.source for c in cells if c.cell_type == "markdown") for path, cells in places.items()}
    followed = 0
    for path, text in (texts | po.pages(build.ROOT)).items():
        for link in re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r'(?:src|srcset)="([^"]+)"', text):
            if not link.startswith(("http", "#")) and "{{" not in text:
                followed += 1
                assert (path.parent / link.partition("#")[0]).exists(), f"{path.name}: {link}"
    assert followed > 60


@pytest.mark.quick
def test_the_english_readme_leads_to_the_chinese_one():
    first = {
        name: (build.ROOT / name).read_text(encoding="utf-8").split("\n")[2]
        for name in ("README.md", "README.zh-CN.md")
    }
    assert "[中文](README.zh-CN.md)" in first["README.md"] and "[English](README.md)" in first["README.zh-CN.md"]
    page = (build.ROOT / po.target(po.TRANSLATED["install"], "zh")).read_text(encoding="utf-8")
    assert "换源" in page and "镜像源" in page


def test_a_text_that_has_changed_is_fuzzy_and_shown_in_english(tmp_path):
    """A changed text keeps its translation as a proposal; until somebody has looked at it, the reader sees English."""
    path = po_path(tmp_path, "zh", "page")
    path.parent.mkdir(parents=True)
    told = po.updated("", {"A kernel computes an op on a device.": ["page.md"]}, "zh_CN")
    told = told.replace('device."\nmsgstr ""', 'device."\nmsgstr "内核在设备上计算算子。"')
    path.write_text(told, encoding="utf-8")
    english = "## A new one (3 min)\n\nA kernel computes\nan op on a device.\n\n```python\nx = 1\n```"
    page = translate(tmp_path, "zh", "page", english).split("\n\n")
    assert page == ["## A new one (3 min)", MARK, "内核在设备上计算算子。", "```python\nx = 1\n```"]
    changed = po.updated(told, {"A kernel computes one op on a device.": ["page.md"]}, "zh_CN")
    assert "#, fuzzy" in changed and "内核在设备上计算算子。" in changed
    path.write_text(changed, encoding="utf-8")
    text = "A kernel computes one op on a device."
    assert translate(tmp_path, "zh", "page", text) == f"{text}\n\n{MARK}"


@pytest.mark.quick
def test_what_is_said_is_in_the_language_that_is_spoken(monkeypatch):
    assert say("You said {given}", given="20") == "You said 20"
    with speaking("zh"):
        assert say("You said {given}", given="20") == "你选的是：20"
        assert say("Nobody has translated this") == f"Nobody has translated this{MARK}"
        assert say("3.5") == "3.5"
    monkeypatch.setattr(language, "spoken", lambda: "zh")
    assert say("yesterday") == "昨天"


def test_the_font_has_each_sign_and_is_small():
    for path in FONTS.values():
        missing = font.signs() - {*map(chr, TTFont(path).getBestCmap())}
        assert {sign for sign in missing if CHINESE.match(sign)} == set(), "python -m course.author.font makes it anew"
    folder = FONTS["regular"].parent
    assert "SIL Open Font License" in (folder / "OFL.txt").read_text(encoding="utf-8")
    assert sum(path.stat().st_size for path in folder.iterdir()) < 300_000


@pytest.mark.quick
def test_a_desk_has_the_notebooks_of_its_language(tmp_path):
    root = build.copy_project(
        build.ROOT, tmp_path.resolve() / "copy", list(map(build.level_of, build.names_in(build.ROOT)))
    )
    assert workspace.open_desk(root) == []
    assert not (root / build.MINE / "zh").exists()
    depth.choose(root, "some", language="zh")
    assert names.desk_words(root) == {"some", "zh"}
    with speaking(names.language_in(root)):
        assert workspace.open_desk(root) == []
        told, opened = resume.main(root)
    assert opened == "zh/trail/1_hardware" and told == "你还没有运行过任何单元格，所以打开第一个笔记本。"
    notebook = json.loads((root / build.MINE / "zh" / "trail" / "1_hardware.ipynb").read_text(encoding="utf-8"))
    assert "".join(notebook["cells"][0]["source"]).startswith("# 小径 1 · 硬件")
    assert "小径" in (root / build.MINE / "map.md").read_text(encoding="utf-8")
    assert resume.follows(root, "zh/trail/5_high_level") == "01_hardware"
    depth.choose(root, language="en")
    assert names.desk_words(root) == {"some"}
    with pytest.raises(BuildError, match="there is no language 'fr': there are en and zh"):
        depth.choose(root, language="fr")


@pytest.mark.quick
def test_progress_is_a_table_in_chinese_too():
    """A Chinese sign takes two places, and the columns stand beneath each other."""
    with speaking("zh"):
        head, *rows, after, where = table().splitlines()
    assert head.split() == ["猜一猜", "填空", "练习"] and len(rows) == 6 and MARK not in after + where

    def place(line, word):
        return sum(1 + (unicodedata.east_asian_width(sign) in "WF") for sign in line[: line.index(word)])

    assert {place(row, "完成") for row in rows} == {place(head, "填空")}
