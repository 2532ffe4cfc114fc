"""The course as a website that can be read without an installation: `python3 -m course site`.

The pages are copied with the project's folder structure, so that the links between them still work. Then Sphinx
builds the site. Notebooks are not executed: the site shows their stored outputs.
"""

import functools
import html
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from docutils.nodes import make_id

from course.author.builder import po
from course.author.builder.files import environment
from course.author.setup import index_page
from course.author.site import alive, hooks, names, stored_run, trains
from course.reader.inspection import differences, real_ones
from course.reader.inspection.source_index import places
from course.reader.language import CATALOGS, later, say, speaking, spoken
from course.reader.notebooks.minutes import trail_takes
from course.reader.notebooks.names import ROOT, language_of, more_in, names_in, notebook_path, trail_in, translated_in
from course.reader.notebooks.stored import hash_of
from course.reader.programs import lines
from course.terminal.arguments import parser

PAGES = Path(__file__).resolve().parent / "pages"
# Parts of links from and to these pages, which are removed: on the site the pages are at the top level.
HERE = "course/author/site/pages/"
UP = "../../../../"
COPIED = "TEACHING.md", "teaching", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE", "pictures", "data/README.md"
BENCH = "course/author/bench/README.md", "course/author/bench/results.md", "course/author/bench/results.png"

STAMP = "made-of.txt"  # in the folder of a site: a hash of its sources
ASKED = "01-net-time"  # the question on the first page, which has no result: its answer is folded beside it
ASKED_ON_THE_TRAIL = "1-orders"  # the question on a first page in another language
TRAINED = "batches=batches, losses=losses, rate=task.learning_rate)"  # in the cell in which trail 1 first trains
WALK = "05_high_level.ipynb#From-fit-to-the-multiply"
STAGES = {
    "01_hardware": "1a",
    "02_kernels": "2",
    "03_low_level": "3a",
    "04_mid_level": "4",
}  # the stage that a notebook's links to the walk lead to; the first for other notebooks
REAL_ONES = "real_ones.md"
DIFFERENCES = "differences.md"
ROW = r"\[([^]]*)\]\((?:more/)?05_differences\.ipynb#(\w+)\)"  # in Jupyter, a link to the notebook; here, to a row
STILL = later("*This figure moves in JupyterLab only.*")


def main(arguments):
    given = parser("site").parse_args(arguments)
    folder = Path(given.folder or ROOT / ".course" / "site").absolute()
    made_of = hash_of(source_hash(ROOT), given.address)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir()) and not (folder / STAMP).exists()):
        print(f"{folder} holds other files than a site, and they would be replaced: name a new folder, or an empty one")
        return 1
    if (folder / STAMP).exists() and (folder / STAMP).read_text(encoding="utf-8") == made_of:
        print(f"Nothing has changed. The site begins at {folder / 'index.html'}")
        return 0
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch, "source")
        built = Path(scratch, "built")
        lay_out(ROOT, source)
        sphinx = [sys.executable, "-m", "sphinx", "--builder", "html", "--quiet", "--fail-on-warning", "--keep-going"]
        if given.address:  # each page then says where it stands, and a first page where its picture is
            sphinx += ["--define", f"html_baseurl={given.address.rstrip('/')}/"]
        done = subprocess.run([*sphinx, "--conf-dir", PAGES, source, built], env=environment(ROOT))
        if done.returncode:
            return done.returncode
        shutil.rmtree(built / ".doctrees")
        for name in ("frames", trains.FOLDER):
            shutil.move(source / name, built / name)
        shutil.copy(ROOT / "pictures" / hooks.PICTURE, built)
        (built / STAMP).write_text(made_of, encoding="utf-8")
        if folder.exists():
            shutil.rmtree(folder)
        folder.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(built, folder)
    print(f"The site begins at {folder / 'index.html'}")
    return 0


def source_hash(root):
    """A hash of all files that determine the content and the look of the pages."""
    folders = "course", "data", "levels", "levels_more", "notebooks", "po", *COPIED, "requirements-test.lock"
    paths = {path for name in folders for path in (root / name, *(root / name).rglob("*")) if path.is_file()}
    sources = [path for path in paths if path.suffix != ".pyc"]
    return hash_of(sorted((path.relative_to(root).as_posix(), path.read_bytes().hex()) for path in sources))


def lay_out(root, source):
    """Write the sources of all pages, as Sphinx reads them, into a folder."""
    shutil.copytree(PAGES, source, ignore=shutil.ignore_patterns("conf.py", "static", "*.html"))
    (source / "index.md").write_text(landing(root), encoding="utf-8")
    for language in CATALOGS:
        page = po.target(PAGES / "index.md", language)
        with speaking(language):
            (source / page.name).write_text(landing(root, page), encoding="utf-8")
    page = (PAGES / REAL_ONES).read_text(encoding="utf-8").replace("{{real ones}}", answers(root))
    (source / REAL_ONES).write_text(page, encoding="utf-8")
    page = (PAGES / DIFFERENCES).read_text(encoding="utf-8").replace("{{differences}}", differing())
    (source / DIFFERENCES).write_text(page, encoding="utf-8")
    (source / trains.FOLDER).mkdir()
    (source / trains.FOLDER / "programs.js").write_text(trains.programs_file(), encoding="utf-8")
    (source / "api").mkdir()
    for name, text in names.pages(root).items():
        (source / "api" / f"{name}.md").write_text(text, encoding="utf-8")
    for name in COPIED + BENCH:
        target = source / name
        target.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if (root / name).is_dir() else shutil.copy)(root / name, target)
    for path in source.glob("*.md"):
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace(UP, "").replace(f"]({HERE}", "]("), encoding="utf-8")
    for path in notebooks(root):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        link_walk(notebook, path.stem, cells_of(root))
        with speaking(language_of(path.relative_to(root / "notebooks").as_posix())):
            prepare(notebook, source, "../" * (len(path.relative_to(root).parts) - 1))
        target = source / path.relative_to(root)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(json.dumps(notebook), encoding="utf-8")


def landing(root, page=PAGES / "index.md"):
    """The first page: its template, filled with lists of the notebooks and parts of their stored outputs.

    In another language, `page` is its translation, and the question on it is the first one of the trail.
    """
    filled = {"trail": index_page.trail(root, "notebooks/"), "five": index_page.five(root, "notebooks/")}
    filled |= {"more": index_page.more(root, "notebooks/"), "hours": index_page.hours(trail_takes(root))}
    filled |= {"begin": say(index_page.BEGIN), "after": say(index_page.AFTER)}
    for name, those in (("trail", trail_in), ("five", names_in), ("translated", translated_in)):
        filled[f"{name} pages"] = "\n".join(f"notebooks/{each}" for each in those(root))
    entries = [index_page.entry(root, name) for name in more_in(root)]  # in the menu with the level that each adds to
    filled["more pages"] = "\n".join(f"{each.name[6]} · {each.title} <notebooks/{each.name}>" for each in entries)
    text = page.read_text(encoding="utf-8")
    filled["side by side"], _ = stored_run.side_by_side(root)
    filled["costs"] = stored_run.table(root, "linear_regression")
    filled["where"] = stored_run.where(root)
    first = notebook_path(root, (trail_in(root, spoken()) if spoken() else names_in(root))[0])
    pages = [one.get("text/html", "") for one in stored_run.outputs(json.loads(first.read_text(encoding="utf-8")))]
    key = ASKED_ON_THE_TRAIL if spoken() else ASKED
    asked, answer = (next(page for page in pages if f'data-{part}="{key}"' in page) for part in ("question", "answer"))
    filled["predict"] = f"{asked}<details><summary>{say('the answer')}</summary>{answer}</details>"
    filled["train"] = trains.place("")
    return re.sub("{{(.+?)}}", lambda found: filled[found[1]], text)


def answers(root):
    """The twelve questions and their places as HTML. Our own places link to the cell that defines the name."""
    written, index = names.written(root), places(root)

    def link(place, text):
        _, address = written[f"{place.file.removesuffix('.py').replace('/', '.')}.{place.name}"]
        return f'<a href="{address.removeprefix("../")}">{html.escape(text)}</a>'

    return real_ones.as_html([(question, question.place(index)) for question in real_ones.QUESTIONS], link)


def differing():
    """All stored questions, in Markdown: those on which libraries differ, by what they are about, then the others."""
    rows = lines.rows()
    parts = differences.grouped(row for row in rows if differences.differs(row))
    parts["Where all agree"] = [row for row in rows if not differences.differs(row)]
    return "\n\n".join(
        f"## {title}\n\n```{{raw}} html\n{differences.as_html(those, anchored=True)}\n```"
        for title, those in parts.items()
    )


def notebooks(root=ROOT):
    return [path for depth in ("", "*/", "*/*/") for path in sorted(root.glob(f"notebooks/{depth}*.ipynb"))]


def prepare(notebook, folder, here):
    """Turn a notebook into a page: add anchors of exported cells, figures that move or a note, and a trainer.

    Links to rows of differences, and to pages of the site, are made to lead there.
    """
    cells = []
    for number, cell in enumerate(notebook["cells"], 1):
        if cell["cell_type"] == "markdown":
            text = re.sub(ROW, rf'<a href="{here}differences.html#\2">\1</a>', "".join(cell["source"]))
            cell["source"] = re.sub(rf"\]\((?:\.\./)*{HERE}", f"]({here}", text)
        if names.exported(cell):
            anchor = f'<span id="cell-{number}"></span>'
            cells.append({"cell_type": "markdown", "metadata": {}, "source": anchor, "id": f"anchor-{number}"})
        cells.append(cell)
        for output in cell.get("outputs", ()):
            if "text/html" in output.get("data", {}):
                output["data"]["text/html"] = linked("".join(output["data"]["text/html"]), here)
            if "image/png" in output.get("data", {}):
                words = " ".join("".join(output["data"]["text/plain"]).split())
                cell["metadata"]["mystnb"] = {"image": {"alt": words}}
                moves = alive.moving(words, folder, here)
                if moves:
                    output["data"] = {"text/html": moves}
                elif "widgets.explore(" in "".join(cell["source"]):
                    cells.append(
                        {"cell_type": "markdown", "metadata": {}, "source": say(STILL), "id": f"still-{number}"}
                    )
        if TRAINED in "".join(cell["source"]):
            page = trains.place(here)
            cells.append({"cell_type": "markdown", "metadata": {}, "source": page, "id": f"train-{number}"})
    notebook["cells"] = cells


@functools.cache
def cells_of(root):
    """{(notebook, cell id): the anchor of that cell on its page}, for the exported cells."""
    found = {}
    for path in sorted(root.glob("notebooks/*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        found |= {(path.stem, c["id"]): f"cell-{n}" for n, c in enumerate(cells, 1) if names.exported(c)}
    return found


def link_walk(notebook, name, cells):
    """Make the walk's links point to cells, and links to the walk point to the stage of this notebook's level."""

    def cell(found):
        return f'href="{found[1]}{found[2]}.html#{cells[found[2], found[3]]}"'

    stage = STAGES.get(name, "5a")
    for each in notebook["cells"]:
        if each["cell_type"] == "markdown":
            to = rf'<a href="05_high_level.html#walk-{stage}">\1</a>'
            each["source"] = re.sub(rf"\[([^]]*)\]\({re.escape(WALK)}\)", to, "".join(each["source"]))
        for output in each.get("outputs", ()):
            if "text/html" in output.get("data", {}):
                page = "".join(output["data"]["text/html"])
                output["data"]["text/html"] = re.sub(r'href="((?:\.\./)*)(\w+)\.ipynb#cell-id=(\w+)"', cell, page)


def linked(page, here):
    """HTML whose links to sections of notebooks, in Jupyter's form, point to the pages of these notebooks."""

    def lead(found):
        anchor = f"#{make_id(html.unescape(found[2]))}" if found[2] else ""
        return f'href="{here}notebooks/{found[1]}.html{anchor}"'

    return re.sub(r'href="(?:\.\./)*((?:more/)?\d\d_\w+)\.ipynb(?:#([^"]*))?"', lead, page)
