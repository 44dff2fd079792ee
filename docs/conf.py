"""How the documentation is built: Sphinx and MyST, with nothing loaded from elsewhere."""

import sys
from importlib.metadata import version as installed_version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "extensions"))

project = "keyhole"
author = "The keyhole founders"
project_copyright = "The keyhole founders, Apache-2.0"
version = release = installed_version("keyhole")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_design",
    "from_package",
    "mathml",
    "nothing_outside",
]
exclude_patterns = ["_build", "extensions"]

# Formulas become MathML while the pages are built: browsers draw it by themselves.
html_math_renderer = "mathml"
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "html_image"]
myst_heading_anchors = 3

# What stands in single backticks in docstrings is code.
default_role = "code"
# Quotation marks in options and code are meant as they stand.
smartquotes_action = "De"
autodoc_member_order = "bysource"
# Results are made by the verbs, not by hand: their parameters are no help.
autodoc_class_signature = "separated"
autodoc_default_options = {"exclude-members": "__init__, __new__"}
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented_params"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
python_maximum_signature_line_length = 70
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_preprocess_types = False

html_theme = "furo"
html_title = "keyhole"
html_static_path = ["_static"]
html_css_files = ["keyhole.css"]
html_copy_source = False
html_show_sphinx = False
# Fonts of the reader's machine: no page asks another machine for anything.
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#8f2f22", "color-brand-content": "#2f5d8a"},
    "dark_css_variables": {"color-brand-primary": "#e58a7b", "color-brand-content": "#8db8e0"},
}
pygments_style = "friendly"
pygments_dark_style = "github-dark"
