"""The plugin's catalogue: its words are those of the command line, and fit any value."""

from __future__ import annotations

import ast
import configparser
import doctest
import subprocess
import sys
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import pytest

from thonecls import __version__
from thonecls.cli.app import ScenePreset, app
from thonecls.methods import METHODS
from thonecls.splits import Coverage
from thonecls.workflow import TrainOptions
from thonecls_qgis import commands, process
from thonecls_qgis.catalogue import CHECK, COMMANDS, MAP, SAMPLE, TRAIN, Command
from thonecls_qgis.commands import (
    File,
    arguments,
    findings_page,
    help_page,
    reword,
    where_equal,
)

PLUGIN = Path(commands.__file__).parent
SCENE, LABELS = "/data/Prüfung 1/scene.tif", "/data/Prüfung 1/labels.gpkg"


def flags_of(command: Command) -> set[str]:
    found = app[command.name].assemble_argument_collection()
    return {name for argument in found for name in argument.names}


@pytest.mark.parametrize("command", COMMANDS, ids=lambda c: c.name)
def test_every_flag_of_the_plugin_is_one_of_the_command(command: Command) -> None:
    used = {p.flag for p in command.parameters} | {p.layer_flag for p in command.parameters}
    used |= {"--json"} | ({"--progress"} if command.progress else set())
    assert used - {"", "-"} <= flags_of(command)


def test_choices_are_those_of_the_package() -> None:
    choices = {p.name: p.choices for p in TRAIN.parameters if p.choices}
    assert choices["METHOD"] == tuple(METHODS)
    preset = get_args(get_args(ScenePreset)[0])[0]
    assert choices["PRESET"] == get_args(preset)
    assert set(choices["COVERAGE"]) == set(get_args(Coverage))


def test_defaults_are_those_of_the_package() -> None:
    usual = TrainOptions()
    shown = {p.name: p.default for p in TRAIN.parameters}
    assert shown["METHOD"] == usual.method
    assert (shown["FOLDS"], shown["SEED"]) == (usual.folds, usual.seed)


def test_a_training_in_words() -> None:
    given: dict[str, Any] = {
        "SCENE": File(SCENE),
        "LABELS": File(LABELS, "Sichtungen"),
        "WHERE": "\"art\" = 'Lantana'",
        "POLYGONS_TOO": True,
        "DROP_BAD_BANDS": True,
        "NODATA": "-9999",
        "EXTRA": "--epochs 50 --truth 'a b.gpkg'",
        "OUTPUT": "/data/Prüfung 1/Lauf",
        "LOAD": True,
    }
    assert arguments(TRAIN, given) == [
        "train",
        SCENE,
        LABELS,
        "--layer=Sichtungen",
        "--where=\"art\" = 'Lantana'",
        "--drop-bad-bands",
        "--nodata=-9999",
        "--out=/data/Prüfung 1/Lauf",
        "--epochs",
        "50",
        "--truth",
        "a b.gpkg",
        "--json",
        "--progress=json",
    ]
    assert "--no-polygons" in arguments(TRAIN, given | {"POLYGONS_TOO": False})


def test_a_cube_of_a_file_and_a_command_without_progress() -> None:
    given = {"RUN": "/run", "SCENE": File("/a.nc", "reflectance"), "OUTPUT": "/out"}
    assert arguments(MAP, given)[:4] == ["map", "/run", "/a.nc", "--variable=reflectance"]
    assert arguments(CHECK, {"SCENE": File("/a.tif")}) == ["check", "/a.tif", "--json"]


def test_a_value_that_is_no_number_is_no_filter_of_a_number() -> None:
    with pytest.raises(ValueError, match="three"):
        where_equal("code", "three", True)
    assert where_equal('a"b', "x", False) == '"a""b" = \'x\''


def test_messages_speak_of_the_form() -> None:
    told = "points.gpkg is there already: choose another --out"
    assert reword(told, SAMPLE) == "points.gpkg is there already: choose another ‘Points’"
    assert "‘Labels come from’: all" in reword("say --coverage all", CHECK)


@pytest.mark.parametrize("module", [commands, process], ids=lambda m: m.__name__)
def test_examples_run(module: ModuleType) -> None:
    failed, ran = doctest.testmod(module)
    assert ran > 0
    assert failed == 0


def test_findings_are_escaped() -> None:
    finding = {"status": "problem", "subject": "labels", "words": "<script> & --nodata 0"}
    page = findings_page({"findings": [finding], "fit": False}, None)
    assert "&lt;script&gt; &amp; ‘Value that means no data’: 0" in page
    assert "✕" in page


@pytest.mark.parametrize("command", COMMANDS, ids=lambda c: c.name)
def test_every_parameter_has_help_and_a_name_of_its_own(command: Command) -> None:
    names = [p.name for p in command.parameters] + [o.name for o in command.outputs]
    assert len(set(names)) == len(names)
    assert all(p.help in help_page(command) or '"' in p.help or ">" in p.help
               for p in command.parameters)  # fmt: skip


def test_the_plugin_is_what_qgis_asks_for() -> None:
    read = configparser.ConfigParser(interpolation=None)
    read.read(PLUGIN / "metadata.txt", "utf-8")
    about = read["general"]
    assert about["version"] == __version__.partition(".dev")[0]
    assert about["hasProcessingProvider"] == "yes"
    assert about["license"] == "GPL-2.0-or-later"
    assert (PLUGIN / about["icon"]).read_text("utf-8").startswith("<svg")
    assert "GNU GENERAL PUBLIC LICENSE" in (PLUGIN / "LICENSE").read_text("utf-8")
    for path in PLUGIN.glob("*.py"):
        source = path.read_text("utf-8")
        assert source.startswith("# SPDX-License-Identifier: GPL-2.0-or-later\n"), path.name
        ast.parse(source, feature_version=(3, 9))  # of QGIS 3.22 on Windows


def test_the_zip_holds_one_folder_with_all_that_qgis_needs(tmp_path: Path) -> None:
    script = PLUGIN.parents[1] / ".ci" / "qgis.py"
    addresses = ("https://example.org/code/", "a@b.org")
    subprocess.run(
        [sys.executable, script, tmp_path / "dist", *addresses], check=True, capture_output=True
    )
    (path,) = (tmp_path / "dist").iterdir()
    with zipfile.ZipFile(path) as archive:
        names = set(archive.namelist())
        about = archive.read("thonecls_qgis/metadata.txt").decode("utf-8")
    kept = {file.name for file in PLUGIN.iterdir() if file.is_file()}
    assert names == {f"thonecls_qgis/{name}" for name in kept}
    assert "email=a@b.org\n" in about
    assert "tracker=https://example.org/code/issues\n" in about


def test_the_plugin_imports_neither_the_package_nor_torch() -> None:
    for path in PLUGIN.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                assert not {name.name.split(".")[0] for name in node.names} & {"thonecls", "torch"}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                assert (node.module or "").split(".")[0] not in {"thonecls", "torch"}, path.name


def test_parts_without_qgis_need_the_standard_library_alone() -> None:
    code = f"""
import sys
sys.path.insert(0, {str(PLUGIN.parent)!r})
import thonecls_qgis.commands, thonecls_qgis.environment, thonecls_qgis.process
print({{"qgis", "numpy", "torch", "thonecls"}} & set(sys.modules))"""
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "set()", done.stderr
