"""The project's own files agree: citation, lower bounds, workflow, hooks, changelog, docs."""

from __future__ import annotations

import ast
import importlib.util
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def load(name: str) -> ModuleType:
    """A script of `.ci` as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / ".ci" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def read_yaml(path: str) -> Any:
    return yaml.safe_load((ROOT / path).read_text("utf-8"))


def test_the_library_names_no_flags_of_the_command_line() -> None:
    """Its words are shown by a page and by a plugin too; whole commands may stand in them."""
    package = ROOT / "src" / "thonecls"
    for path in package.rglob("*.py"):
        apart = ("cli", "workflow/options.py", "version.py")  # they make commands, or ask git
        if path.relative_to(package).as_posix().startswith(apart):
            continue
        for words in texts(ast.parse(path.read_text("utf-8"))):
            told = re.sub(r"\b(thonecls|dask|pip) [^`,;:]*", "", words)
            assert not re.search(r"(^|[ (`])--[a-z]{2}", told), (path.name, words)


def texts(node: ast.AST) -> Iterator[str]:
    """All strings in some code; of an f-string all that is written out, as one."""
    if isinstance(node, ast.JoinedStr):
        yield "".join(str(p.value) if isinstance(p, ast.Constant) else "…" for p in node.values)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    else:
        for child in ast.iter_child_nodes(node):
            yield from texts(child)


def test_the_citation_names_the_paper_that_the_readme_names() -> None:
    citation = read_yaml("CITATION.cff")
    paper = citation["preferred-citation"]
    readme = " ".join((ROOT / "README.md").read_text("utf-8").split())
    assert f"*{paper['title']}*, ICCV {paper['year']}" in readme
    assert paper["url"] in readme
    names = [author["family-names"] for author in paper["authors"]]
    assert names == ["Zhao", "Wang", "Li", "Zhong"]
    assert (citation["title"], citation["license"]) == (PROJECT["name"], PROJECT["license"])
    assert citation["keywords"] == PROJECT["keywords"]
    assert PROJECT["urls"]["Paper"] == paper["url"]
    assert PROJECT["urls"]["Preprint"].endswith(paper["identifiers"][0]["value"].split(":")[1])


def test_lower_bounds_become_pins_of_what_users_install() -> None:
    pins = dict(line.split("==") for line in load("lowest").lowest(PROJECT))
    assert pins["numpy"] == "2.0"
    assert pins["elapid"] == "1.0.4"  # of an extra
    assert not {"pytest", "ruff", "sphinx", "thonecls"} & pins.keys()
    extras = PROJECT["optional-dependencies"]
    users = [
        r for name, extra in extras.items() if name not in ("dev", "docs", "all") for r in extra
    ]
    assert len(pins) == len(PROJECT["dependencies"]) + len(users)


@pytest.mark.parametrize("line", ["numpy", "numpy<3", "numpy==2.0", "numpy>2"])
def test_a_requirement_without_a_lower_bound_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match="needs a lower bound"):
        load("lowest").lowest({"dependencies": [line], "optional-dependencies": {}})


def test_the_workflow_runs_targets_that_there_are_on_every_python() -> None:
    jobs = read_yaml(".github/workflows/ci.yml")["jobs"]
    assert jobs["test"]["strategy"]["matrix"]["python"] == ["3.11", "3.12", "3.13"]
    assert PROJECT["requires-python"] == ">=3.11"
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.M))
    commands = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    made = {word for line in commands for word in re.findall(r"\bmake ([a-z-]+)", line)}
    assert {"test", "dist"} <= made <= targets
    assert "make test COVERAGE=1" in commands
    assert any(".ci/lowest.py" in line for line in commands)
    phony = re.search(r"^\.PHONY: (.*)$", makefile, re.M)
    assert phony is not None
    assert set(phony[1].split()) == targets


def test_hooks_run_the_tools_of_the_project_and_fetch_nothing() -> None:
    (repository,) = read_yaml(".pre-commit-config.yaml")["repos"]
    assert repository["repo"] == "local"
    for hook in repository["hooks"]:
        assert hook["language"] == "system"
        assert hook["entry"].startswith(".venv/bin/python -m ")


def test_the_readme_is_two_screens_and_every_page_is_in_the_index() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    assert len(readme.splitlines()) <= 90
    index = (ROOT / "docs" / "README.md").read_text("utf-8")
    for page in (ROOT / "docs").glob("*.md"):
        if page.name != "README.md":
            assert f"]({page.name})" in index, page.name


def test_the_changelog_is_grouped_and_begins_with_this_version() -> None:
    from thonecls import __version__

    lines = (ROOT / "CHANGELOG.md").read_text("utf-8").splitlines()
    versions = [line.split()[1].rstrip(",") for line in lines if line.startswith("## ")]
    assert versions[0] == __version__.partition(".dev")[0]
    groups = {line for line in lines if line.startswith("### ")}
    assert groups == {"### What you may have to change", "### Added", "### Changed", "### Fixed"}
