"""Records behind published tables, what they carry, and how tables get into pages."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import rasterio

import render
import reproduce
from commands import run
from published import RECORDS, insert
from thonecls import Model, __version__
from thonecls.benchmark import Cell, read_results, run_cells
from thonecls.benchmark.records import Results, append_record
from thonecls.datasets import write_example
from thonecls.version import UNKNOWN, commit, software

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PAGE = "before\n<!-- table: a -->\n{}\n<!-- end of table -->\nafter\n"
QUICK = ("--epochs", 1, "--batches", 2, "--unlabeled", 50, "--width", 0.25)


def facts(cell: Cell) -> dict[str, Any]:
    names = ("precision", "recall", "f1", "auc", "accuracy")
    return {"cell": cell.as_dict(), "scores": dict.fromkeys(names, 90.0)}


@pytest.mark.parametrize(
    ("standing", "table", "put"),
    [
        ("", "| x |", True),
        ("| old |", "| x |", True),  # one that is not made of cells
        ("", "0 of 6 cells are run.", False),
        ("| old |", "Version . 0 cells are run.", False),
        ("6 of 6 cells are run.", "2 of 6 cells are run.", False),
        ("16 cells are run.", "15 cells are run.", False),
        ("6 of 6 cells are run.", "6 of 6 cells are run. New.", True),
        ("2 of 6 cells are run.", "3 of 6 cells are run.", True),
    ],
)
def test_a_table_gives_way_only_to_as_many_cells(
    standing: str, table: str, put: bool, tmp_path: Path
) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE.format(standing))
    assert insert(page, "a", table) == put
    assert page.read_text() == PAGE.format(table if put else standing)


def test_rendering_without_records_leaves_every_page_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {}
    for page in PAGES:
        copy = tmp_path / page.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(page.read_bytes())
        before[copy] = page.read_text()
    monkeypatch.chdir(tmp_path)
    render.main()
    for name, part in reproduce.PARTS.items():
        assert list(reproduce.render(name, part, Results({}, []))) == []
    assert {page: page.read_text() for page in before} == before


def test_every_part_has_its_place_in_the_page() -> None:
    page = (ROOT / reproduce.PAGE).read_text()
    for name, part in reproduce.PARTS.items():
        assert (f"<!-- table: {name} -->" in page) == (not part.study.board)


def test_records_lie_apart_from_what_is_unfinished(tmp_path: Path) -> None:
    cell = Cell("indian-pines", 2, "sam")
    work, records = tmp_path / "work", tmp_path / "records"
    run_cells([cell], work, records=records, root=tmp_path)
    assert [path.suffix for path in sorted(records.iterdir())] == [".jsonl", ".lock"]
    assert (work / "maps" / f"{cell.id}.npy").exists()
    found = read_results(records).find(cell)
    assert found is not None
    assert found.facts["versions"]["thonecls"] == __version__
    assert found.facts["commit"] == commit()
    skipped: list[Cell] = []
    run_cells([cell], tmp_path / "other", records=records, root=tmp_path, on_skip=skipped.append)
    assert skipped == [cell]


def test_all_files_of_records_are_read(tmp_path: Path) -> None:
    here, there = Cell("indian-pines", 2), Cell("indian-pines", 11)
    append_record(tmp_path, facts(here))
    (tmp_path / "elsewhere.jsonl").write_text(json.dumps(facts(there)) + "\n")
    found = read_results(tmp_path)
    assert found.find(here) is not None
    assert found.find(there) is not None


def test_committed_records_are_whole_and_small() -> None:
    results = read_results(ROOT / RECORDS)
    assert results.damaged == []
    for record in results.records.values():
        assert {"versions", "commit", "machine", "date"} <= record.facts.keys()
        assert len(json.dumps(record.facts)) < 50_000


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    done = subprocess.run(
        ["git", "-C", str(folder), *who, *words], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_the_commit_is_that_of_the_source_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert commit(tmp_path) == UNKNOWN  # as from a wheel
    tree = tmp_path / "a tree"
    (tree / "src").mkdir(parents=True)
    git(tree, "init", "--quiet")
    (tree / "src/code.py").write_text("1\n")
    git(tree, "add", ".")
    git(tree, "commit", "--quiet", "--message", "first")
    head = git(tree, "rev-parse", "HEAD")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))  # as inside a hook
    commit.cache_clear()
    assert commit(tree) == head[:12]
    assert commit(tree / "src") == UNKNOWN  # a folder in somebody's repository
    (tree / "notes.txt").write_text("no code\n")
    commit.cache_clear()
    assert commit(tree) == head[:12]
    (tree / "src/code.py").write_text("2\n")
    commit.cache_clear()
    assert commit(tree) == f"{head[:12]}-modified"
    monkeypatch.setenv("PATH", str(tmp_path))  # no git at all
    commit.cache_clear()
    assert commit(tree) == UNKNOWN
    commit.cache_clear()


@pytest.mark.parametrize("method", ["t-honecls", "sam"])
def test_models_and_maps_say_what_made_them(method: str, tmp_path: Path) -> None:
    example = write_example(tmp_path, height=24, width=20, bands=6, labels=20)
    quick = QUICK if method == "t-honecls" else ()
    where = ("--where", "species = 'lantana'")
    words = ("train", example.scene, example.labels, *where, "--method", method)
    assert run(*words, "--folds", 0, "--out", tmp_path / "run", *quick) == 0
    for name in ("map.tif", "probability.tif"):
        with rasterio.open(tmp_path / "run" / name) as file:
            assert software() in file.tags().values()
    assert software() in (tmp_path / "run/report.html").read_text()
    if method == "t-honecls":
        versions = Model.load(tmp_path / "run/model.safetensors").training["versions"]
        assert (versions["thonecls"], versions["commit"]) == (__version__, commit())
