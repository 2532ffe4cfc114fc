"""What readers of other languages read, in `po/`: `build --po` brings its entries up to date, and writes its pages.

There is a file of entries for each notebook of the trail and for each page, and one, `shown.po`, for what code shows.
The key of an entry is the English text: a block of Markdown, or a text given to `say`, a question or an answer. Where
the English text has changed a little, gettext's way is to keep the translation and to mark it fuzzy, until somebody
has looked at it and has removed the mark.
"""

import ast
import io
import re
from pathlib import Path

from course.reader.files import replace
from course.reader.language import CATALOGS, SHOWN, entries, has_words, po_path
from course.reader.notebooks.answers import FOLDER, kept
from course.reader.notebooks.cells import read_text
from course.reader.notebooks.names import more_in, names_in, text_path, trail_in
from course.reader.notebooks.promises import entry, plain
from course.reader.notebooks.translated import keys, translate

PAGES = Path("course", "author", "site", "pages")
# {name of its entries: the English page}
TRANSLATED = {"README": Path("README.md")}
TRANSLATED |= {page: PAGES / f"{page}.md" for page in ("contents", "glossary", "index", "install")}
ASKING = {".js": r'\bsay\("(.*?)"[,)]', ".html": r"\{\{_(.*?)\}\}"}  # how a script or a template asks for a text
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
                text = re.sub(
                    r"\n+```\{toctree\}.*?```", "", read_text(root / source), flags=re.DOTALL
                )  # the site has one
                found[root / target(source, language)] = translate(root, language, catalog, text) + "\n"
    return found


def target(source: Path, language: str) -> Path:
    """Return the path of a page in another language, beside the English one: README.zh-CN.md."""
    return source.with_suffix(f".{CATALOGS[language].replace('_', '-')}.md")


def catalogs(root: Path) -> dict[str, dict[str, list[str]]]:
    """Return {name of a file of entries: {English text: the places where it stands}}."""
    found = {name: prose(root, name) for name in trail_in(root)}
    for catalog, source in TRANSLATED.items():
        found[catalog] = dict.fromkeys(keys(read_text(root / source)), [source.as_posix()])
    return found | {SHOWN: shown(root)}


def prose(root: Path, name: str) -> dict[str, list[str]]:
    """Return {block: places} of the Markdown cells of a notebook's text."""
    import jupytext

    path = text_path(root, name)
    cells = jupytext.reads(read_text(path), fmt="py:percent").cells
    texts = [text for cell in cells if cell.cell_type == "markdown" for text in keys(cell.source)]
    return dict.fromkeys(texts, [path.relative_to(root).as_posix()])


def shown(root: Path) -> dict[str, list[str]]:
    """Return {text: places} of what code shows: questions of the trail and answers, titles, and what `say` is given."""
    found = {}
    for text, place in [*asked(root), *listed(root), *said(root)]:
        if isinstance(text, str) and has_words(text):
            found.setdefault(text, []).append(place if isinstance(place, str) else place.relative_to(root).as_posix())
    return found


def asked(root: Path):
    """Yield the texts of the trail's questions, choices and answers, and where they stand."""
    answers = kept(root / FOLDER)
    for name in trail_in(root):
        path = text_path(root, name)
        for call in calls_of(read_text(path), "checks.predict"):
            parts = [part for word in call.keywords for part in ast.walk(word.value)]
            for each in [*call.args[1:], *parts]:
                yield getattr(each, "value", None), path
            yield answers[call.args[0].value]["because"].strip(), f"{FOLDER.as_posix()}: {call.args[0].value}"


def listed(root: Path):
    """Yield the titles of the English notebooks, and the promises of the five, as the map lists them."""
    for name in names_in(root) + more_in(root):
        told = entry(root, name)
        yield told.title, text_path(root, name)
        if name in names_in(root):
            yield plain(told.promise), text_path(root, name)


def said(root: Path):
    """Yield what the code of the course gives to `say`, and what the site's scripts and templates ask for."""
    for path in sorted((root / PAGES).rglob("*.*")):
        for text in re.findall(ASKING[path.suffix], read_text(path)) if path.suffix in ASKING else ():
            yield text, path
    for part in SHOWING:
        for path in sorted((root / part).rglob("*.py")) if (root / part).is_dir() else [root / part]:
            for call in calls_of(read_text(path), "say", "later"):
                yield getattr(call.args[0], "value", None), path


def calls_of(source: str, *names: str) -> list[ast.Call]:
    """Return the calls of these functions in a source, in their order."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return sorted(
        (call for call in calls if ast.unparse(call.func) in names), key=lambda call: (call.lineno, call.col_offset)
    )


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
