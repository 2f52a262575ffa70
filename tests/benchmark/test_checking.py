"""Record files: what is wrong with them is said line by line; methods and scenes of one's own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from numpy.typing import NDArray

import leaderboard
from published import RECORDS
from thonecls.benchmark import read_results
from thonecls.benchmark.board_page import as_page
from thonecls.benchmark.checking import check_records, record_schema
from thonecls.benchmark.leaderboard import runs_of_board
from thonecls.benchmark.own import own_record, write_records
from thonecls.datasets import synthetic
from thonecls.errors import ConfigError
from thonecls.methods import METHODS
from thonecls.scene import Scene
from thonecls.splits import Labels

ROOT = Path(__file__).parents[2]
CARD = {"name": "mine", "on": "single spectra", "minimises": "nothing", "paper": "ours"}
SCENE = {"name": "fields", "title": "Fields, made up", "classes": {"1": "wheat"}, "where": "ask"}


def good() -> dict[str, Any]:
    return {
        "cell": {"dataset": "indian-pines", "target": 2, "method": "sam", "protocol": "half"},
        "scores": {"precision": 50.0, "recall": 50.0, "f1": 50.0},
        "machine": {"processor": "Abacus 7", "cores": 2, "threads": 1, "system": "Linux"},
        "date": "2026-11-18",
    }


def check(folder: Path, *lines: Any) -> list[str]:
    text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    (folder / "a.jsonl").write_text(text + "\n")
    return check_records(folder)


def without(name: str) -> dict[str, Any]:
    return {key: value for key, value in good().items() if key != name}


def test_every_committed_file_keeps_to_the_schema() -> None:
    assert check_records(ROOT / RECORDS) == []


def test_the_schema_is_one_and_holds_whole_lines() -> None:
    schema = record_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    whole = jsonschema.Draft202012Validator(schema)
    for line in (good(), {"method": CARD}, {"scene": SCENE}):
        assert whole.is_valid(line)
    assert not whole.is_valid(without("machine"))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{", "not JSON"),
        ([1], "[1] is not of type 'object'"),
        (without("date"), "'date' is a required property"),
        (without("scores"), "'scores', or an 'error'"),
        ({**good(), "scores": {"precision": 50.0, "recall": 50.0}}, "scores: 'f1' is a required"),
        (
            {**good(), "scores": {"precision": 50.0, "recall": 50.0, "f1": 101.0}},
            "scores.f1: 101.0 is greater than the maximum of 100",
        ),
        (
            {**good(), "scores": {"precision": 90.0, "recall": 50.0, "f1": 90.0}},
            "scores.f1: 90.0 is not what precision and recall give, 64.29",
        ),
        ({**good(), "cell": {**good()["cell"], "method": "smm"}}, "no method 'smm'"),
        ({**good(), "cell": {**good()["cell"], "target": 40}}, "has no class 40"),
        ({**good(), "cell": {**good()["cell"], "dataset": "moon"}}, "no dataset 'moon', nor"),
        ({**good(), "cell": {**good()["cell"], "protocol": "luck"}}, "'protocol' is one of"),
        ({**good(), "cell": {**good()["cell"], "speed": 3}}, "speed"),
        ({"method": {**CARD, "name": "sam"}}, "thonecls has a method 'sam' itself"),
        ({"method": {**CARD, "on": "Tuesdays"}}, "method.on: 'Tuesdays' is not one of"),
        ({"scene": {**SCENE, "classes": {"zero": "x"}}}, "scene.classes"),
        ({"scene": SCENE, "cell": {}}, "holds nothing else"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(line: Any, words: str, tmp_path: Path) -> None:
    found = check(tmp_path, good(), line)
    assert len(found) == 1
    assert found[0].startswith(f"{tmp_path / 'a.jsonl'}, line 2: ")
    assert words in found[0]


def test_a_cell_is_done_in_one_file_only(tmp_path: Path) -> None:
    assert check(tmp_path, good(), good()) == []  # run again: the last counts
    (tmp_path / "b.jsonl").write_text(json.dumps(good()) + "\n")
    (found,) = check_records(tmp_path)
    assert f"already done in {tmp_path / 'a.jsonl'}, line 1" in found


def test_the_command_tells_and_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    check(tmp_path, good())
    assert leaderboard.main(check=True, records=tmp_path) == 0
    check(tmp_path, good(), without("date"))
    assert leaderboard.main(check=True, records=tmp_path) == 1
    assert "line 2: 'date' is a required property" in capsys.readouterr().out


def constant(scene: Scene, labels: Labels, seed: int) -> NDArray[np.float32]:
    return np.full(scene.shape, 0.9, dtype=np.float32)


def test_a_method_and_a_scene_of_ones_own_are_shown(tmp_path: Path) -> None:
    from dataclasses import replace

    data = replace(synthetic(height=40, width=40, bands=4, seed=0), name="fields")
    options: dict[str, Any] = {"protocol": "half", "positives": 20}
    records = [
        own_record(constant, data, 1, method="mine", **options),
        own_record(METHODS["matched-filter"], data, 1, method="matched-filter", **options),
    ]
    write_records(tmp_path / "fields.jsonl", records, methods=[CARD], scenes=[SCENE])
    assert check_records(tmp_path) == []
    results = read_results(tmp_path)
    assert (results.records, results.damaged) == ({}, [])  # nothing that can be run here
    runs = runs_of_board(results)
    assert [(r.method, r.mechanism) for r in runs] == [
        ("mine", "half, positives 20"),
        ("matched-filter", "half, positives 20"),
    ]
    assert runs[0].scores is not None
    assert runs[0].scores["recall"] == 100
    assert '"Fields", "1, wheat"' in as_page(results)
    (tmp_path / "fields.jsonl").write_text(json.dumps(records[0]) + "\n")  # without the cards
    assert "no dataset 'fields', nor a card" in check_records(tmp_path)[0]


def test_a_map_of_another_shape_is_refused() -> None:
    data = synthetic(height=40, width=40, bands=4, seed=0)
    with pytest.raises(ConfigError, match="a map of the scene's shape"):
        own_record(lambda *_: np.zeros(3, np.float32), data, 1, method="mine", positives=20)
