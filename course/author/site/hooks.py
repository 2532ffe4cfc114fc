"""A Sphinx extension: formulas as MathML, links from words to the glossary, and links from names to notebooks."""

import functools
import re

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml

SKIPPED = nodes.title, nodes.literal, nodes.literal_block, nodes.reference, nodes.raw, nodes.caption, nodes.math
WORDS = nodes.paragraph, nodes.emphasis, nodes.strong
GLOSSARY = "glossary"
LINKED = "index", "notebooks/", "api/"  # on other pages, words such as "plans" have their everyday meaning


def setup(app):
    app.add_html_math_renderer("mathml", (formula, None), (formula, None))
    app.connect("doctree-resolved", link_terms)
    app.connect("doctree-resolved", link_notebooks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def formula(self, node):
    self.body.append(tex2mathml(node.astext(), as_block=isinstance(node, nodes.math_block)))
    raise nodes.SkipNode


@functools.cache
def terms(app):
    """{glossary word or its plural, in lower case: its anchor}, and a pattern that matches them, longest first."""
    found = {}
    for term in app.env.get_doctree(GLOSSARY).findall(nodes.term):
        word = term.astext().lower()
        found |= dict.fromkeys((word, word + "s", word + "es"), term["ids"][0])
    words = "|".join(map(re.escape, sorted(found, key=len, reverse=True)))
    return found, re.compile(rf"(?<![\w.-])({words})(?![\w-])", re.IGNORECASE)


def ancestors(node):
    while node := node.parent:
        yield node


def link_terms(app, tree, page):
    """Link the first use of each glossary word on a page to its definition."""
    if not page.startswith(LINKED):
        return
    anchors, pattern = terms(app)
    seen = set()
    glossary = app.builder.get_relative_uri(page, GLOSSARY)
    for text in list(tree.findall(nodes.Text)):
        if not isinstance(text.parent, WORDS) or any(isinstance(each, SKIPPED) for each in ancestors(text)):
            continue
        parts = []
        end = 0
        for found in pattern.finditer(text):
            anchor = anchors[found[0].lower()]
            if anchor not in seen:
                seen.add(anchor)
                link = nodes.reference("", found[0], refuri=f"{glossary}#{anchor}", internal=True, classes=["term"])
                parts += [nodes.Text(text[end : found.start()]), link]
                end = found.end()
        if parts:
            text.parent.replace(text, [*parts, nodes.Text(text[end:])])


def link_notebooks(app, tree, page):
    """Link names of notebooks in the text, such as `more/02_random` or `02_random`, to their pages."""
    for words in [*tree.findall(nodes.literal), *tree.findall(nodes.emphasis)]:
        name = words.astext()
        to = next(
            (f"notebooks/{way}{name}" for way in ("", "more/") if f"notebooks/{way}{name}" in app.env.found_docs), page
        )
        if to != page and not isinstance(words.parent, SKIPPED):
            link = nodes.reference("", "", refuri=app.builder.get_relative_uri(page, to), internal=True)
            words.replace_self(link)
            link += words
