"""Settings of the documentation site: ``make docs``. Nothing is fetched."""

from __future__ import annotations

import inspect

import featstream

project = "featstream"
copyright = "the featstream authors"
version = release = featstream.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "_templates"]
suppress_warnings = ["ref.footnote"]  # a list of references need not be cited

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_default_options = {
    "members": True,
    "inherited-members": "tuple,int,Enum",
}
autodoc_typehints = "none"
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False
strip_signature_backslash = True  # napoleon then escapes the last letter of `scores_`
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"plot_(novels|timeline)",  # others take minutes
    "show_memory": False,
    "min_reported_time": 1e9,
    "write_computation_times": False,  # that page loads scripts from elsewhere
    "show_signature": False,
    "download_all_examples": False,
    "remove_config_comments": True,
}

html_theme = "furo"
html_title = "featstream"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False


def _skip_foreign(app, what, name, obj, skip, options):
    """Leave out what scikit-learn adds: its labels are unknown here."""
    home = getattr(inspect.unwrap(obj), "__module__", None) if callable(obj) else None
    return True if str(home).startswith("sklearn.") else None


def setup(app):
    """Connect to Sphinx."""
    app.connect("autodoc-skip-member", _skip_foreign)
