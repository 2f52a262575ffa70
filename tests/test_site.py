"""The site of the docs has its pages, and the tutorial's notebook runs."""

from __future__ import annotations

import ast
import json
import os
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
NOTEBOOK = ROOT / "docs" / "tutorial.ipynb"


def test_the_site_has_its_pages() -> None:
    """Of the site that `make docs` builds before it runs this; its warnings are errors there."""
    if "THONECLS_SITE" not in os.environ:
        pytest.skip("THONECLS_SITE names no site: make docs builds it and runs this")
    site = Path(os.environ["THONECLS_SITE"])
    for page in ("docs/README", "docs/api", "docs/tutorial", "docs/leaderboard", "leaderboard"):
        assert (site / f"{page}.html").exists(), page
    api = (site / "docs/api.html").read_text("utf-8")
    assert "taylor_variational" in api
    assert "critical_difference" in api
    assert "critical difference" in (site / "leaderboard.html").read_text("utf-8")
    assert "fit_ratio" in (site / "docs/tutorial.html").read_text("utf-8")


def test_the_notebook_runs_and_keeps_no_outputs() -> None:
    cells = json.loads(NOTEBOOK.read_text("utf-8"))["cells"]
    names: dict[str, Any] = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            assert (cell["outputs"], cell["execution_count"]) == ([], None)
            exec(compile(ast.parse("".join(cell["source"])), str(NOTEBOOK), "exec"), names)
    assert names["scores"].f1 > 50  # far above what mapping everything would have
    assert names["probability"].shape == names["data"].truth.shape


def test_links_of_the_notebook_lead_to_pages() -> None:
    import re

    cells = json.loads(NOTEBOOK.read_text("utf-8"))["cells"]
    text = "".join(line for c in cells if c["cell_type"] == "markdown" for line in c["source"])
    targets = re.findall(r"\]\(([^)#]+)\)", text)
    assert targets
    for target in targets:
        assert (NOTEBOOK.parent / target).exists(), target
