"""A Sphinx extension: formulas as MathML, links from words to the glossary, and links from names to notebooks."""

import functools
import html
import json
import re

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml

from course.reader.language import CATALOGS, ROOT, SHOWN, entries, po_path

SKIPPED = nodes.title, nodes.literal, nodes.literal_block, nodes.reference, nodes.raw, nodes.caption, nodes.math
WORDS = nodes.paragraph, nodes.emphasis, nodes.strong
GLOSSARY = "glossary"
TRANSLATED = re.compile(r"notebooks/(zh)/|.*\.(zh)-CN$")  # pages in another language
PICTURE = "side_by_side.png"  # in pictures/
LINKED = "index", "notebooks/", "api/"  # on other pages, words such as "plans" have their everyday meaning


def setup(app):
    app.add_html_math_renderer("mathml", (formula, None), (formula, None))
    app.connect("doctree-resolved", link_terms)
    app.connect("doctree-resolved", link_notebooks)
    app.connect("html-page-context", translate_page)
    app.connect("html-page-context", address_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def formula(self, node):
    self.body.append(tex2mathml(node.astext(), as_block=isinstance(node, nodes.math_block)))
    raise nodes.SkipNode


def language_of(page):
    """The language of a page: "zh", or "" for English."""
    found = TRANSLATED.match(page)
    return found[1] or found[2] if found else ""


def translate_page(app, page, template, context, tree):
    """Tell a browser the language of a page, and its scripts what they say in it."""
    language = language_of(page)
    if language:
        context["language"] = CATALOGS[language].replace("_", "-")
        said = json.dumps(entries(po_path(ROOT, language, SHOWN)), ensure_ascii=False).replace("<", "\\u003c")
        app.add_js_file(None, body=f"const SAID = {said};", priority=100)


def address_page(app, page, template, context, tree):
    """Give a first page its address and its picture, for those who link to it. Both are whole addresses."""
    home = app.config.html_baseurl
    if home and page.split(".")[0] == "index":
        for name, address in ("url", context["pageurl"]), ("image", home + PICTURE):
            context["metatags"] += f'<meta content="{html.escape(address)}" property="og:{name}" />\n'


@functools.cache
def terms(app, language):
    """{glossary word or its plural, in lower case: its anchor}, and a pattern that matches them, longest first.

    The words of a Chinese glossary stand before their English ones, and are not parted from others by spaces.
    """
    found = {}
    for term in app.env.get_doctree(glossary_in(language)).findall(nodes.term):
        word = term.astext().lower()
        if language:
            found[word.partition("（")[0]] = term["ids"][0]
        else:
            found |= dict.fromkeys((word, word + "s", word + "es"), term["ids"][0])
    words = "|".join(map(re.escape, sorted(found, key=len, reverse=True)))
    return found, re.compile(f"({words})" if language else rf"(?<![\w.-])({words})(?![\w-])", re.IGNORECASE)


def glossary_in(language):
    return f"{GLOSSARY}.{CATALOGS[language].replace('_', '-')}" if language else GLOSSARY


def ancestors(node):
    while node := node.parent:
        yield node


def link_terms(app, tree, page):
    """Link the first use of each glossary word on a page to its definition."""
    if not page.startswith(LINKED):
        return
    language = language_of(page)
    anchors, pattern = terms(app, language)
    seen = set()
    glossary = app.builder.get_relative_uri(page, glossary_in(language))
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
