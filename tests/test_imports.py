"""What importing does not load, each in a fresh interpreter: nobody waits for what is not used."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import thonecls
from thonecls.datasets import write_example
from thonecls.extras import EXTRAS
from thonecls.method import config, losses, teacher
from thonecls.methods import METHODS
from thonecls.methods.spectral import SPECTRAL

LEARNING = ("torch", "sklearn")
TABLES = ("pandas", "geopandas")
FILES = ("rasterio", "h5py", "pyproj", *TABLES)
PICTURES = ("matplotlib", "jinja2")
SCIPY = ("scipy.linalg", "scipy.optimize", "scipy.special")
ALL = (*LEARNING, *FILES, *PICTURES, "scipy")
DOES_NOT_LOAD = [
    ("import thonecls", (*ALL, "numpy", "cyclopts", "rich", "importlib.metadata")),
    ("from thonecls import TrainConfig, FAST", (*ALL, "numpy")),
    ("from thonecls import Scene", (*ALL,)),
    ("from thonecls.methods import METHODS", (*ALL, "numpy")),
    ("from thonecls.io.raster import open_raster", (*LEARNING, *TABLES, *PICTURES, *SCIPY)),
    ("from thonecls.io.inputs import read_labels", (*LEARNING, *PICTURES, *SCIPY)),
    ("from thonecls.workflow import check_scene", (*LEARNING, *PICTURES, *SCIPY)),
    ("import thonecls.studio.launch", (*LEARNING, *PICTURES)),  # the page opens before
]
# All of these load torch: one interpreter runs them, each allowed what those before it are.
WITH_TORCH = [
    ("from thonecls.losses import taylor_variational", ("sklearn", *FILES, *PICTURES, "scipy")),
    ("from thonecls import fit", ("sklearn", *FILES, *PICTURES, *SCIPY)),
    ("from thonecls import THOneCls", ("rasterio", "pyproj", "geopandas", *PICTURES)),
    (
        "import thonecls.workflow.demo, thonecls.benchmark, thonecls.methods.classifier",
        tuple(EXTRAS),
    ),
]
# Commands, by their words; SCENE and LABELS are files.
WORDS_DO_NOT_LOAD = [
    ("--help", (*ALL, "numpy")),
    ("--version", (*ALL, "numpy")),
    ("train --help", (*ALL, "numpy")),
    ("benchmark --help", (*ALL, "numpy")),
    ("studio --help", (*ALL, "numpy", "fastapi", "uvicorn")),
    ("methods", (*ALL, "numpy")),
    ("trian", (*ALL, "numpy")),
    ("check SCENE LABELS", (*LEARNING, *PICTURES, *SCIPY)),
]


def loaded_by(*codes: str) -> list[set[str]]:
    """The modules that a new interpreter has loaded after running each of some codes."""
    told = "import sys; sys.stderr.write('\\nloaded ' + ' '.join(sys.modules) + '\\n')"
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(f"{code}\n{told}" for code in codes)],
        capture_output=True,
        text=True,
        check=True,
    )
    lines = [line for line in done.stderr.splitlines() if line.startswith("loaded ")]
    assert len(lines) == len(codes)
    return [set(line.split()) for line in lines]


@pytest.mark.parametrize(("code", "unwanted"), DOES_NOT_LOAD, ids=[x for x, _ in DOES_NOT_LOAD])
def test_importing_this_does_not_load_that(code: str, unwanted: tuple[str, ...]) -> None:
    (loaded,) = loaded_by(code)
    assert loaded & set(unwanted) == set()


def test_importing_what_learns_does_not_load_that() -> None:
    loaded = loaded_by(*(code for code, _ in WITH_TORCH))
    too_much = {
        code: found & set(unwanted)
        for (code, unwanted), found in zip(WITH_TORCH, loaded, strict=True)
    }
    assert too_much == {code: set() for code, _ in WITH_TORCH}


@pytest.mark.parametrize(
    ("words", "unwanted"), WORDS_DO_NOT_LOAD, ids=[x for x, _ in WORDS_DO_NOT_LOAD]
)
def test_a_command_loads_only_what_it_runs(
    words: str, unwanted: tuple[str, ...], tmp_path: Path
) -> None:
    files: dict[str, str] = {}
    if "SCENE" in words:
        example = write_example(tmp_path, height=24, width=20, bands=6, labels=20)
        files = {"SCENE": str(example.scene), "LABELS": str(example.labels)}
    arguments = [files.get(word, word) for word in words.split()]
    code = f"from thonecls.cli import main\ntry: main({arguments!r})\nexcept SystemExit: pass"
    (loaded,) = loaded_by(code)
    assert "thonecls.cli.app" in loaded
    assert loaded & set(unwanted) == set()


@pytest.mark.parametrize(
    "name", ["thonecls", "thonecls.benchmark", "thonecls.methods", "thonecls.workflow"]
)
def test_lazy_names_are_all_there_and_type_checkers_see_the_same(name: str) -> None:
    package: ModuleType = importlib.import_module(name)
    assert package.__file__ is not None
    tree = ast.parse(Path(package.__file__).read_text())
    seen = {
        (alias.name, node.module)
        for block in tree.body
        if isinstance(block, ast.If)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert seen == set(package._HOMES.items())
    for exported in package.__all__:
        assert getattr(package, exported) is not None
        assert exported in dir(package)
    with pytest.raises(AttributeError, match=f"module '{name}' has no attribute 'nothing'"):
        _ = package.nothing


def test_no_lazy_name_is_hidden_by_a_module() -> None:
    for package in (
        thonecls,
        *map(importlib.import_module, ("thonecls.benchmark", "thonecls.workflow")),
    ):
        folder = Path(str(package.__file__)).parent
        assert not {path.stem for path in folder.iterdir()} & set(package._HOMES)


def test_names_without_torch_are_those_of_the_functions() -> None:
    assert tuple(losses.LOSSES) == config.LOSSES
    assert tuple(teacher.CONSISTENCIES) == config.CONSISTENCIES
    assert tuple(teacher.DECAYS) == config.DECAYS


def test_every_card_has_a_procedure() -> None:
    networks = {name for name, method in METHODS.items() if method.network}
    assert set(METHODS) - networks == {"density-ratio", "auto", *SPECTRAL}
