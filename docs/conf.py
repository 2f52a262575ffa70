"""The site of these pages: `make docs` builds it into site/, from the repository's root.

Pages stay as GitHub shows them. What only the site needs is added here: the contents, from the
table of docs/README.md; the notebook, as a page; and the leaderboard, from the records.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from myst_parser.parsers.sphinx_ import MystParser
from pygments.lexers.data import JsonLexer
from sphinx.application import Sphinx
from sphinx.highlighting import lexers

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "src"))

from thonecls import __version__
from thonecls.benchmark import read_results
from thonecls.benchmark.board_page import write_leaderboard

project = "thonecls"
version = release = __version__
copyright = "the thonecls contributors"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary"]
root_doc = "docs/README"
source_suffix = {".md": "markdown", ".ipynb": "notebook"}
include_patterns = [
    *("docs/**.md", "docs/**.ipynb", "README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"),
    *("benchmarks/records/README.md", "studio/API.md"),
]
exclude_patterns = [".*", "site", "runs", "data", "src", "tests", "**/node_modules", "dist"]
myst_heading_anchors = 4
myst_enable_extensions = ["dollarmath"]
default_role = "code"  # as backticks are meant in docstrings
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
lexers["jsonc"] = JsonLexer()  # which knows comments, but not this name
html_theme = "furo"
html_title = f"thonecls {__version__}"
html_copy_source = False
html_show_sphinx = False


def as_markdown(notebook: str) -> str:
    """A notebook's cells as Markdown, code fenced."""
    parts = []
    for cell in json.loads(notebook)["cells"]:
        text = "".join(cell["source"])
        parts.append(text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```")
    return "\n\n".join(parts)


class NotebookParser(MystParser):
    """Notebooks read as the Markdown of their cells."""

    supported = ("notebook",)

    def parse(self, inputstring: str, document: Any) -> None:
        """Parse the cells as one page."""
        super().parse(as_markdown(inputstring), document)


def escape(
    app: Sphinx, what: str, name: str, item: object, options: object, lines: list[str]
) -> None:
    """Take docstrings for what they are, plain text with `code` and examples, not markup."""
    for number, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            parts = line.split("`")  # every second one is code
            parts[::2] = [re.sub(r"([|*\\]|(?<=\w)_(?!\w))", r"\\\1", part) for part in parts[::2]]
            lines[number] = "`".join(parts)


def is_skipped(
    app: Sphinx, what: str, name: str, item: object, skip: bool, options: object
) -> bool | None:
    """Leave out what scikit-learn adds to every estimator."""
    return True if re.fullmatch(r"[gs]et_\w+_(request|routing)", name) else None


def add_contents(app: Sphinx, docname: str, source: list[str]) -> None:
    """Put the contents below the first page: the pages that its table links to, in that order."""
    if docname != root_doc:
        return
    pages = re.findall(r"\]\(([^)#]+)\.(?:md|ipynb)\)", source[0])
    pages = [page for page in pages if page != "adr/README"]
    records = ["README", *sorted(path.stem for path in (ROOT / "docs" / "adr").glob("0*.md"))]
    deeper = ["/README", "/CHANGELOG", "/benchmarks/records/README", "/studio/API"]
    listed = "\n".join(
        [*dict.fromkeys(f"/{(Path('docs') / p).as_posix()}" for p in pages), *deeper]
    ).replace("/docs/../", "/")
    adr = "\n".join(f"/docs/adr/{name}" for name in records)
    source[0] += f"\n```{{toctree}}\n:hidden:\n\n{listed}\n```\n"
    source[0] += f"\n```{{toctree}}\n:hidden:\n:caption: Design records\n\n{adr}\n```\n"


def add_leaderboard(app: Sphinx, exception: Exception | None) -> None:
    """Write the leaderboard's page beside the site's own."""
    if exception is None:
        results = read_results(ROOT / "benchmarks" / "records")
        write_leaderboard(results, Path(app.outdir) / "leaderboard.html")


def setup(app: Sphinx) -> None:
    """Tell Sphinx of the above."""
    app.add_source_parser(NotebookParser)
    app.connect("source-read", add_contents)
    app.connect("autodoc-process-docstring", escape)
    app.connect("autodoc-skip-member", is_skipped)
    app.connect("build-finished", add_leaderboard)
