"""What only one command needs is an extra, and says so where it is missing."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from commands import run
from thonecls import PUExtraTreesClassifier
from thonecls.benchmark.plan import Cell
from thonecls.benchmark.records import append_record, claimed
from thonecls.cli.studio import studio
from thonecls.datasets import download, indian_pines, is_present
from thonecls.errors import ConfigError
from thonecls.extras import EXTRAS
from thonecls.parallel import workers

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
X = np.arange(40, dtype=np.float32).reshape(20, 2)


def grow_trees(folder: Path) -> object:
    return PUExtraTreesClassifier(0.3).fit(X, np.arange(20) < 5)


def enter_cluster(folder: Path) -> object:
    with workers(dask="tcp://127.0.0.1:1"):
        return None


def open_studio(folder: Path) -> object:
    return studio(project=folder / "studio", open=False)


def claim(folder: Path) -> object:
    with claimed(folder, Cell("indian-pines", 2)):
        return None


@pytest.mark.parametrize(
    ("package", "purpose", "use"),
    [
        ("tensorly", "indian-pines", lambda folder: indian_pines()),
        ("numba", "PUExtraTreesClassifier", grow_trees),
        ("pooch", "a download", lambda folder: download("pavia-university", folder)),
        ("filelock", "a benchmark", lambda folder: append_record(folder, {})),
        ("filelock", "a benchmark", claim),
        ("distributed", "a cluster", enter_cluster),
        ("fastapi", "the studio", open_studio),
        ("uvicorn", "the studio", open_studio),
    ],
)
def test_a_missing_package_is_named_with_its_extra(
    package: str,
    purpose: str,
    use: Callable[[Path], object],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    hint = f"{purpose} needs {package}: pip install 'thonecls[{EXTRAS[package]}]'"
    with pytest.raises(ConfigError, match=re.escape(hint)):
        use(tmp_path)


def test_the_demo_without_its_scene_prints_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "tensorly", None)
    assert not is_present("indian-pines", tmp_path)
    assert run("demo", "--out", tmp_path / "demo") == 2
    printed = capsys.readouterr().err
    assert printed == "error: indian-pines needs tensorly: pip install 'thonecls[demo]'\n"
    assert not (tmp_path / "demo").exists()


def test_extras_are_those_of_the_project_and_no_dependency_of_the_main_job() -> None:
    def named(requirements: list[str]) -> set[str]:
        return {re.split("[<>=]", requirement)[0] for requirement in requirements}

    extras = PROJECT["optional-dependencies"]
    offered = {
        package: extra
        for extra, requirements in extras.items()
        if extra not in ("all", "dev", "docs")
        for package in named(requirements)
    }
    assert offered == EXTRAS
    assert extras["all"] == [f"thonecls[{','.join(sorted(set(EXTRAS.values())))}]"]
    assert not named(PROJECT["dependencies"]) & EXTRAS.keys()
