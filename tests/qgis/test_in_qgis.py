"""The plugin in a real QGIS without a window: from layers to a map, in its colours."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from commands import program
from thonecls.datasets import Example

ROOT = Path(__file__).parents[2]
PLUGIN = ROOT / "qgis" / "thonecls_qgis"
LONGEST = 600  # seconds, on a machine that does much else


def qgis_process() -> str:
    """QGIS's command line; Debian's script hands it a flag that it does not know."""
    found = program("qgis_process")
    return shutil.which(f"{found}.bin") or found


def environment(profile: Path) -> dict[str, str]:
    """With a profile of its own, and the Python that runs the tests as that of thonecls.

    QGIS's Python finds a torch of its own, which must not reach thonecls.
    """
    given = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return given | {
        "QT_QPA_PLATFORM": "offscreen",
        "QGIS_CUSTOM_CONFIG_PATH": str(profile),
        "XDG_RUNTIME_DIR": str(profile),
        "THONECLS_PYTHON": sys.executable,
        "PYTHONPATH": str(profile / "modules"),
    }


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A profile of QGIS with the plugin, in a folder with a space and an umlaut."""
    qgis_process()
    folder = tmp_path_factory.mktemp("Profil ä")
    plugins = folder / "profiles" / "default" / "python" / "plugins"
    shutil.copytree(PLUGIN, plugins / PLUGIN.name)
    (folder / "modules").mkdir()
    (folder / "modules" / "torch.py").write_text("raise ImportError('a torch of QGIS')\n")
    settings = folder / "profiles" / "default" / "QGIS" / "QGIS3.ini"
    settings.parent.mkdir()
    settings.write_text(f"[PythonPlugins]\n{PLUGIN.name}=true\n")
    return folder


@pytest.fixture(scope="module")
def trained(profile: Path, smallholding: Example, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What `qgis_process run thonecls:train` says."""
    out = tmp_path_factory.mktemp("Lauf ö") / "run 1"
    given = {
        "SCENE": str(smallholding.scene),
        "LABELS": str(smallholding.labels),
        "FIELD": "species",
        "VALUE": "lantana",
        "OUTPUT": str(out),
    }
    done = subprocess.run(
        [qgis_process(), "--json", "run", "thonecls:train"]
        + [f"--{name}={value}" for name, value in given.items()],
        env=environment(profile),
        capture_output=True,
        encoding="utf-8",
        timeout=LONGEST,
        check=False,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return json.loads(done.stdout)["results"]


def test_qgis_process_makes_a_map_from_layers(trained: dict[str, Any]) -> None:
    folder = Path(trained["OUTPUT"])
    for name, file in {
        "MAP": "map.tif",
        "PROBABILITY": "probability.tif",
        "POLYGONS": "polygons.gpkg",
        "REPORT": "report.html",
        "MODEL": "model.safetensors",
    }.items():
        assert trained[name] == str(folder / file)
        assert (folder / file).exists()
    assert (folder / "map.qml").exists()
    assert 0 < trained["MAPPED_SHARE"] < 1
    assert trained["VERDICT"] in ("good", "check", "poor")
    told = json.loads((folder / "run.json").read_text("utf-8"))
    assert (told["label"], told["where"]) == ("lantana", "\"species\" = 'lantana'")


def test_layers_progress_cancel_and_colours_inside_qgis(
    profile: Path, smallholding: Example, trained: dict[str, Any], tmp_path: Path
) -> None:
    script = Path(__file__).with_name("in_qgis.py")
    files = (PLUGIN.parent, smallholding.scene, smallholding.labels, trained["OUTPUT"], tmp_path)
    done = subprocess.run(
        [qgis_python(), script, *map(str, files)],
        env=environment(profile),
        capture_output=True,
        encoding="utf-8",
        timeout=LONGEST,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert not found["torch"]
    assert not found["thonecls"]
    names = ["check", "install", "map", "report", "sample", "suggest", "train"]
    assert found["algorithms"] == names
    assert found["missing"].startswith("thonecls is not installed. Run the algorithm 'Install")
    assert found["buttons"] == ["Install…"]
    assert found["there"] == ""
    assert (found["selected"], found["edited"]) == (
        "labels: 30 features: 30 inside",
        "labels: 41 features: 41 inside",
    )
    assert "Give both the field" in found["wrong 0"][0]
    assert "the field 'code' holds numbers: 'three' is none" in found["wrong 1"]
    assert found["made"]["MAP"] == str(tmp_path / "map ä" / "map.tif")
    assert found["steps"] == sorted(found["steps"])
    assert found["steps"][-1] == 100
    assert any(words.startswith("map: 2,688 of 2,688") for words in found["told"])
    assert found["loaded"] == {
        "map.tif": ["map ä: map", "paletted"],
        "polygons.gpkg": ["map ä: polygons", "singleSymbol"],
        "probability.tif": ["map ä: probability", "singlebandpseudocolor"],
    }
    assert found["points"] == 12
    assert found["model"]
    assert found["counted"] == 2688
    assert found["cancelled"] == {}
    assert found["after cancel"] < 60


def qgis_python() -> str:
    """A Python that has QGIS's modules: the system's, where QGIS is."""
    for path in ("/usr/bin/python3", shutil.which("python3") or "python3"):
        asked = [path, "-I", "-c", "import qgis.core"]
        if Path(path).exists() and subprocess.run(asked, capture_output=True).returncode == 0:
            return path
    if "qgis_process" in os.environ.get("THONECLS_REQUIRE", "").split():
        pytest.fail("QGIS is required, but no Python has its modules")
    pytest.skip("no Python has QGIS's modules")
