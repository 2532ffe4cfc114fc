"""What readers of other languages read, in `po/`: `build --po` brings its entries up to date, and writes its pages.

There is a file of entries for each notebook of the trail and for each page, and one, `shown.po`, for what code shows.
The key of an entry is the English text: a block of Markdown, or a text given to `say`, a question or an answer. Where
the English text has changed a little, gettext's way is to keep the translation and to mark it fuzzy, until somebody
has looked at it and has removed the mark.
"""

import ast
import io
from pathlib import Path

from course.reader.files import replace
from course.reader.language import CATALOGS, SHOWN, entries, has_words, po_path
from course.reader.notebooks.answers import kept
from course.reader.notebooks.cells import read_text
from course.reader.notebooks.names import more_in, names_in, text_path, trail_in
from course.reader.notebooks.promises import entry, plain
from course.reader.notebooks.translated import blocks, key, translate

PAGES = Path("course", "author", "site", "pages")
# {name of its entries: the English page}
TRANSLATED: dict[str, Path] = {}
SHOWING = "course/reader", "course/author/setup", "course/author/site", "course/commands.py"  # here `say` is called
HEADER = (
    'msgid ""\nmsgstr ""\n"Language: {}\\n"\n"MIME-Version: 1.0\\n"\n"Content-Type: text/plain; charset=UTF-8\\n"\n'
)
HEADER += '"Content-Transfer-Encoding: 8bit\\n"\n\n'


def main(root: Path) -> None:
    """Bring the entries of all languages up to date, and write the pages that are made of them."""
    for language in CATALOGS:
        for catalog, texts in catalogs(root).items():
            path = po_path(root, language, catalog)
            old = path.read_text(encoding="utf-8") if path.exists() else ""
            replace(root, {path: updated(old, texts, CATALOGS[language])})
    replace(root, pages(root))


def pages(root: Path) -> dict[Path, str]:
    """Return {path: text} of the pages in other languages."""
    found = {}
    for language in CATALOGS:
        for catalog, source in TRANSLATED.items():
            if entries(po_path(root, language, catalog)):
                text = translate(root, language, catalog, read_text(root / source))
                found[root / target(source, language)] = text + "\n"
    return found


def target(source: Path, language: str) -> Path:
    """Return the path of a page in another language: README.zh-CN.md, and zh/install.md beside install.md."""
    if source.parent == Path():
        return source.with_suffix(f".{CATALOGS[language].replace('_', '-')}.md")
    return source.parent / language / source.name


def catalogs(root: Path) -> dict[str, dict[str, list[str]]]:
    """Return {name of a file of entries: {English text: the places where it stands}}."""
    found = {name: prose(root, name) for name in trail_in(root)}
    for catalog, source in TRANSLATED.items():
        texts = map(key, filter(has_words, blocks(read_text(root / source))))
        found[catalog] = dict.fromkeys(texts, [source.as_posix()])
    return found | {SHOWN: shown(root)}


def prose(root: Path, name: str) -> dict[str, list[str]]:
    """Return {block: places} of the Markdown cells of a notebook's text."""
    import jupytext

    path = text_path(root, name)
    cells = jupytext.reads(read_text(path), fmt="py:percent").cells
    texts = [block for cell in cells if cell.cell_type == "markdown" for block in blocks(cell.source)]
    return dict.fromkeys(map(key, filter(has_words, texts)), [path.relative_to(root).as_posix()])


def shown(root: Path) -> dict[str, list[str]]:
    """Return {text: places} of what code shows: questions of the trail and answers, titles, and what `say` is given."""
    found = {}

    def note(text, place: str) -> None:
        if isinstance(text, str) and has_words(text):
            found.setdefault(text, []).append(place)

    for name in trail_in(root):
        path = text_path(root, name)
        asked = [call for call in calls_of(read_text(path)) if ast.unparse(call.func) == "checks.predict"]
        for call in asked:
            for each in [*call.args[1:], *(part for word in call.keywords for part in ast.walk(word.value))]:
                note(getattr(each, "value", None), path.relative_to(root).as_posix())
            told = kept(root / "course" / "reader" / "answers")[call.args[0].value]
            note(told["because"].strip(), f"course/reader/answers:{call.args[0].value}")
    for name in names_in(root) + more_in(root):  # on the map
        told = entry(root, name)
        note(told.title, text_path(root, name).relative_to(root).as_posix())
        if name in names_in(root):
            note(plain(told.promise), text_path(root, name).relative_to(root).as_posix())
    for part in SHOWING:
        for path in sorted((root / part).rglob("*.py")) if (root / part).is_dir() else [root / part]:
            for call in calls_of(read_text(path)):
                if ast.unparse(call.func) in ("say", "later") and call.args:
                    note(getattr(call.args[0], "value", None), path.relative_to(root).as_posix())
    return found


def calls_of(source: str) -> list[ast.Call]:
    """Return the calls in a source, in their order."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return sorted(calls, key=lambda call: (call.lineno, call.col_offset))


def updated(old: str, texts: dict[str, list[str]], locale: str) -> str:
    """Return a file of entries with exactly these texts. What was translated stays; what is only similar is fuzzy."""
    from babel.messages.catalog import Catalog
    from babel.messages.pofile import read_po, write_po

    template = Catalog()
    for text, places in texts.items():
        template.add(text, locations=[(place, None) for place in dict.fromkeys(places)])
    catalog = read_po(io.StringIO(old), ignore_obsolete=True)
    catalog.update(template, no_fuzzy_matching=False)
    for each in catalog:
        each.flags -= {"python-format", "python-brace-format"}  # guesses from the signs % and {
    written = io.BytesIO()
    write_po(written, catalog, width=110, omit_header=True, ignore_obsolete=True)
    return HEADER.format(locale) + written.getvalue().decode().rstrip("\n") + "\n"
