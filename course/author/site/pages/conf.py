"""Sphinx's settings: stored outputs only, no network. Every warning is an error (see `main` in course/author/site)."""

from pathlib import Path

project = "levels"
author = "the levels authors"
html_title = "levels"
extensions = ["myst_nb", "course.author.site.hooks"]
exclude_patterns = ["jupyter_execute"]  # files of myst-nb, which Sphinx would read as pages

nb_execution_mode = "off"  # use the stored outputs
nb_merge_streams = True
nb_mime_priority_overrides = [("html", "text/html", 0), ("html", "image/svg+xml", 1)]
nb_render_markdown_format = "myst"
nb_ipywidgets_js = {}  # they would be loaded from a network; `alive.js` moves the figures instead
myst_enable_extensions = ["dollarmath", "deflist", "attrs_inline"]
myst_heading_anchors = 4
# outputs of widgets that need a kernel, and hints that name a class of several levels
suppress_warnings = ["mystnb.unknown_mime_type", "ref.python"]

html_theme = "sphinx_book_theme"
html_theme_options = {"show_navbar_depth": 1, "show_toc_level": 2, "pygments_light_style": "a11y-high-contrast-light"}
html_theme_options |= {"pygments_dark_style": "a11y-high-contrast-dark", "use_download_button": False}
html_math_renderer = "mathml"  # browsers render it without a script
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = ["alive.js"]
html_search_scorer = str(Path(__file__).with_name("static") / "scorer.js")
html_use_index = html_domain_indices = html_show_search_summary = False  # summaries need fetch: fails on file://
html_copy_source = html_show_sourcelink = html_show_sphinx = False
html_context = {"default_mode": "auto"}
