"""README and docs: their examples run, and their links lead somewhere."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize(
    "page", [p for p in PAGES if ">>>" in p.read_text("utf-8")], ids=lambda p: p.name
)
def test_examples_run(page: Path) -> None:
    failed, ran = doctest.testfile(str(page), module_relative=False, encoding="utf-8")
    assert ran > 0
    assert failed == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text("utf-8")):
        if target.startswith(("https://", "http://")):
            continue  # a test fetches nothing
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_readme_links_to_the_paper() -> None:
    links = re.findall(r"\]\((https://[^)]+)\)", (ROOT / "README.md").read_text("utf-8"))
    assert any(link.startswith("https://openaccess.thecvf.com/content/ICCV2023/") for link in links)
    assert "https://arxiv.org/abs/2308.15081" in links


def test_the_readme_shows_the_two_commands_and_ci_runs_one() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    assert "make demo" in readme
    assert "make test" in readme
    assert "make test" in (ROOT / ".ci/run").read_text("utf-8")


def test_the_lock_has_the_versions_of_the_constraints() -> None:
    def versions(name: str) -> dict[str, str]:
        found = re.findall(r"^([\w.-]+)==(\S+)", (ROOT / name).read_text("utf-8"), re.M)
        return {package.lower().replace("_", "-"): version for package, version in found}

    assert versions("constraints.lock") == versions("constraints.txt")
