"""Plans, records and runners of the benchmark."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from concurrent.futures import CancelledError, Future
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from numpy.typing import NDArray

from commands import run
from crashing import ended, start
from thonecls.benchmark import STUDIES, Cell, cells_of, read_results, run_cells
from thonecls.benchmark.measure import load_map, split_of
from thonecls.benchmark.paper import PAPER_PRIORS, in_ablation, in_tables
from thonecls.benchmark.plan import (
    MECHANISMS,
    Protocol,
    cell_of,
    changed,
    config_of,
    methods_for,
)
from thonecls.benchmark.records import NAME, Record, Results, append_record, claimed
from thonecls.benchmark.run import _result, estimate, run_cell
from thonecls.benchmark.tables import build_table
from thonecls.benchmark.targets import data_of
from thonecls.datasets import DATASETS, synthetic
from thonecls.errors import ClusterError, ConfigError
from thonecls.images import IMAGES
from thonecls.methods import METHODS
from thonecls.methods.catalogue import AT_ONCE
from thonecls.splits import PROTOCOLS

TINY = {"width": 0.125, "epochs": 2, "batches": 2, "unlabeled": 300}
BASE = changed(Cell("indian-pines", 2, preset="fast"), TINY)
ROOT = Path("nowhere")


def facts(cell: Cell, f1: float = 50.0) -> dict[str, Any]:
    return {"cell": cell.as_dict(), "scores": {"f1": f1}}


# Plans


def test_a_cell_goes_to_json_and_back() -> None:
    cell = Cell("honghu", 4, "oc", "fast", "spatial", 3, 40, "true", (("order", 5),))
    assert cell_of(json.loads(json.dumps(cell.as_dict()))) == cell
    assert cell_of(json.loads(json.dumps(BASE.as_dict()))).id == BASE.id


def test_ids_tell_cells_apart_and_stay_what_they_are() -> None:
    cells = [c for study in STUDIES.values() for c in cells_of(study, seeds=[0, 1])]
    assert len({cell.id for cell in cells}) == len(set(cells))
    # Finished work would be run again if this changed.
    assert Cell("indian-pines", 2).id == "f128893ef890268f"
    assert Cell("indian-pines", 2, protocol="half", seed=3).id == "872a9afe6951274c"
    assert len({changed(BASE, change).id for change in MECHANISMS.values()}) == len(MECHANISMS)


def test_a_plan_knows_every_protocol() -> None:
    assert get_args(Protocol) == tuple(PROTOCOLS)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"method": "nonsense"}, "thonecls methods"),
        ({"method": "nnpu"}, "needs the class prior"),
        ({"protocol": "random"}, "one of paper, resampled, spatial, half, plot"),
        ({"method": "nnpu", "prior": "guess"}, "a number or one of"),
        ({"depth": 3}, "no setting 'depth'"),
    ],
)
def test_impossible_cells_are_refused(change: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        changed(Cell("indian-pines", 2), change)


def test_an_option_cannot_silently_lose_to_what_the_study_varies() -> None:
    with pytest.raises(ConfigError, match="'order' itself"):
        cells_of(STUDIES["order"], seeds=[0], change={"order": 3})


@pytest.mark.parametrize(
    ("dataset", "target", "epochs", "rate", "beta"),
    [
        ("indian-pines", 2, 300, 1e-4, 0.5),
        ("honghu", 4, 150, 1e-4, 0.5),
        ("hanchuan", 2, 170, 2e-4, 0.2),
        ("pavia-university", 2, 100, 1e-4, 0.5),
        ("pavia-university", 8, 300, 1e-4, 0.5),
    ],
)
def test_each_dataset_has_the_papers_schedule(
    dataset: str, target: int, epochs: int, rate: float, beta: float
) -> None:
    config = config_of(Cell(dataset, target))
    assert (config.epochs, config.rate, config.beta) == (epochs, rate, beta)
    assert config_of(Cell(dataset, target, "bce")).beta == 0


def test_studies_name_real_places_and_every_figure_of_the_paper_has_one() -> None:
    for name, study in STUDIES.items():
        for dataset, target in study.places:
            assert target in data_of(dataset).classes
        for cell in cells_of(study, seeds=[0]):
            needs = methods_for(cell.dataset)[cell.method].needs_prior
            config_of(cell, prior=0.5 if needs else None)
        if name in ("kl-teacher", "beta", "prior"):
            for place in study.places:
                class_name = DATASETS[place[0]].classes[place[1]]
                for label in study.columns:
                    if (name, label) != ("prior", "t-honecls"):
                        assert in_ablation(name, place[0], class_name, label) is not None


@pytest.mark.parametrize(
    ("name", "protocol"),
    [("scattered", "resampled"), ("half", "half"), ("plot", "plot")],
)
def test_settings_are_tuned_where_the_paper_has_no_figures(name: str, protocol: str) -> None:
    cells = cells_of(STUDIES[f"tuning-{name}"], seeds=[0])
    assert {(cell.preset, cell.protocol) for cell in cells} == {("fast", protocol)}
    assert len({(cell.dataset, cell.target) for cell in cells}) == 32
    quick = {name for name, method in METHODS.items() if method.learning is AT_ONCE}
    assert {cell.method for cell in cells} == quick - {"auto"}  # which is one of the others
    assert not {(c.dataset, c.target) for c in cells} & {
        (dataset, target) for dataset, priors in PAPER_PRIORS.items() for target in priors
    }


def test_a_tuning_study_is_planned_without_data(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["benchmark", "tuning-half", "--data-root", "nowhere", "--seeds", "2", "--dry-run"]
    assert run(*words, "--json") == 0
    plan = json.loads(capsys.readouterr().out)["waiting"]
    assert len(plan) == 2 * 32 * 11
    assert {entry["cell"]["protocol"] for entry in plan} == {"half"}


def test_the_paper_stands_beside_ours() -> None:
    assert in_tables("indian-pines", 2, "t-honecls", "f1") == (93.40, 0.50)
    assert in_tables("indian-pines", 2, "variational", "f1") == (8.44, 1.72)
    assert in_tables("indian-pines", 2, "vpu", "f1") is None  # its vPU is `variational`
    assert in_tables("honghu", None, "t-honecls", "f1") == (97.39, None)
    assert in_ablation("kl-teacher", "honghu", "Cotton", "taylor+ema+kl, order 5") == (91.01, None)
    assert in_ablation("beta", "honghu", "Cotton", "beta=1.0") == (98.65, 0.23)


def test_a_plan_says_how_long_it_will_take() -> None:
    nothing = Results({}, [])
    small = estimate(Cell("indian-pines", 2), 2, nothing)
    large = estimate(Cell("honghu", 4), 2, nothing)
    assert 600 < small.seconds < 3600
    assert large.seconds > 5 * small.seconds
    assert 1e9 < large.memory < 8e9
    assert estimate(Cell("indian-pines", 2), 1, nothing).seconds > 1.5 * small.seconds


def test_a_plan_reads_records_with_settings_that_are_no_more(tmp_path: Path) -> None:
    more = {"curves": {"loss": [0.5, 0.4]}, "pixels": 21025, "training_seconds": 1e6}
    more |= {"config": {"epochs": 2, "foresight": 3}, "machine": {"threads": 1}}
    append_record(tmp_path, facts(BASE) | more)
    found, nothing = (estimate(BASE, 1, r) for r in (read_results(tmp_path), Results({}, [])))
    assert found.seconds > 100 * nothing.seconds


# Records


def test_records_come_back(tmp_path: Path) -> None:
    append_record(tmp_path, facts(BASE, 12.5))
    found = read_results(tmp_path)
    assert not found.damaged
    record = found.find(BASE)
    assert record is not None
    assert record.facts["scores"]["f1"] == 12.5
    assert found.find(replace(BASE, seed=1)) is None


def test_damaged_lines_are_reported_and_skipped(tmp_path: Path) -> None:
    cells = [replace(BASE, seed=seed) for seed in range(3)]
    append_record(tmp_path, facts(cells[0]))
    with (tmp_path / NAME).open("ab") as file:
        file.write(b'{"cell": {"dataset": "indian-pi\n')
        file.write(b"\xff\xfe\x00 not text\n[1, 2]\n")
        file.write(b'{"cell": {"dataset": "indian-pines", "target": 2, "depth": 3}, "error": ""}\n')
        file.write(b'{"cell": {"dataset": "indian-pines", "target": 2}, "scores": {"f1": "x"}}\n')
    append_record(tmp_path, facts(cells[1]))
    with (tmp_path / NAME).open("ab") as file:
        file.write(json.dumps(facts(cells[0])).encode()[:40])  # killed while it wrote
    append_record(tmp_path, facts(cells[2]))
    found = read_results(tmp_path)
    assert len(found.damaged) == 6
    assert "line 2" in found.damaged[0]
    assert all(found.find(cell) for cell in cells)


def test_a_failure_never_hides_a_result(tmp_path: Path) -> None:
    failure = {"cell": BASE.as_dict(), "error": "no memory"}
    for line in (failure, facts(BASE), failure):
        append_record(tmp_path, line)
    assert read_results(tmp_path).find(BASE) is not None


def _append_many(folder: Path, worker: int) -> None:
    for i in range(40):
        append_record(folder, facts(replace(BASE, seed=1000 * worker + i)) | {"pad": "x" * 5000})


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_many_writers_do_not_mix_their_lines(tmp_path: Path) -> None:
    writers = [start(partial(_append_many, tmp_path, worker)) for worker in range(2)]
    assert [ended(writer) for writer in writers] == [0, 0]
    found = read_results(tmp_path)
    assert not found.damaged
    assert len(found.records) == 80


def test_a_cell_is_claimed_by_one_runner(tmp_path: Path) -> None:
    with claimed(tmp_path, BASE) as mine:
        assert mine
        with claimed(tmp_path, BASE) as again:
            assert not again
        with claimed(tmp_path, replace(BASE, seed=1)) as other:
            assert other
    with claimed(tmp_path, BASE) as later:
        assert later


# Runs


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the results of four cells, run one after the other."""
    folder = tmp_path_factory.mktemp("alone")
    run_cells(FOUR, folder, root=ROOT, threads=1)
    return folder


FOUR = [replace(BASE, seed=seed) for seed in range(3)] + [
    changed(BASE, {"method": "nnpu", "prior": "true", "protocol": "spatial"})
]


def outcome(folder: Path) -> dict[str, Any]:
    """What may not depend on who ran the cells: ids and scores; each cell has one line."""
    lines = [json.loads(line) for line in (folder / NAME).read_text("utf-8").splitlines()]
    result = {cell_of(line["cell"]).id: (line["scores"], line["pu"]) for line in lines}
    assert len(result) == len(lines)
    return result


def test_a_record_holds_all_that_a_reader_asks_for(alone: Path) -> None:
    record = read_results(alone).find(FOUR[3])
    assert record is not None
    held = record.facts
    assert set(held["scores"]) >= {"precision", "recall", "f1", "auc", "accuracy"}
    assert set(held["pu"]) == {"recall", "share", "puf", "pauc"}
    assert set(held["cuts"]) == {"tmi", "mean"}
    for cut in held["cuts"].values():
        assert set(cut) == {"threshold", "precision", "recall", "f1"}
        assert 0 <= cut["threshold"] <= 1
    assert held["prior"] == pytest.approx(1428 / 145**2)
    assert held["config"]["width"] == 0.125
    assert len(held["curves"]["f1"]) == len(held["curves"]["loss"]) == 2
    assert held["curves"]["f1"][-1] == pytest.approx(held["scores"]["f1"], abs=1e-2)
    assert held["machine"]["threads"] == 1
    assert {"python", "torch", "thonecls"} <= set(held["versions"])
    assert held["seconds"] > 0
    assert held["peak_memory"] > 1e8
    assert held["date"].startswith("20")
    assert load_map(alone, FOUR[3]).shape == (145, 145)
    assert not list((alone / "work").glob("*.checkpoint"))


def test_finished_cells_are_never_run_again(alone: Path) -> None:
    before = (alone / NAME).read_bytes()
    ran: list[Cell] = []
    run_cells(FOUR, alone, root=ROOT, on_start=ran.append)
    assert not ran
    assert (alone / NAME).read_bytes() == before


def test_a_failed_cell_is_recorded_and_the_rest_goes_on(tmp_path: Path) -> None:
    bad = changed(BASE, {"positives": 100_000})
    ended: list[Cell] = []
    run_cells([bad, BASE], tmp_path, root=ROOT, on_record=lambda cell, _: ended.append(cell))
    found = read_results(tmp_path)
    assert ended == [bad, BASE]
    assert found.find(BASE) is not None
    assert "ask for fewer positives" in found.records[bad.id].facts["error"]
    ended.clear()
    run_cells([bad], tmp_path, root=ROOT, on_record=lambda cell, _: ended.append(cell))
    assert not ended
    run_cells([bad], tmp_path, root=ROOT, retry=True, on_record=lambda cell, _: ended.append(cell))
    assert ended == [bad]


def run_or_die(cell: Cell, *more: Any) -> dict[str, Any]:
    """In place of `run_cell`: the process of seed 1 is killed from outside."""
    if cell.seed == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return run_cell(cell, *more)


def test_several_processes_give_the_same_results_although_one_dies(
    alone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("thonecls.benchmark.run.run_cell", run_or_die)
    first, dies, last = FOUR[:3]
    run_cells(FOUR[:3], tmp_path, root=ROOT, jobs=2, threads=1)
    found = read_results(tmp_path)
    assert "process died" in found.records[dies.id].facts["error"]
    expected = read_results(alone)
    for cell in (first, last):
        one, other = (held.records[cell.id].facts for held in (found, expected))
        assert (one["scores"], one["pu"]) == (other["scores"], other["pu"])


class KilledWorker(Exception):  # noqa: N818  # Dask's name for it
    pass


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (KilledWorker("3 workers"), "process died"),
        (CancelledError(), "cluster no longer answers"),
        (OSError("closed"), "cluster no longer answers"),
    ],
)
def test_what_ends_a_cell_on_a_cluster_is_told(error: Exception, outcome: str) -> None:
    future: Future[dict[str, Any]] = Future()
    future.set_exception(error)
    if "cluster" in outcome:
        with pytest.raises(ClusterError, match=outcome):
            _result(BASE, future)
    else:
        assert outcome in _result(BASE, future)["error"]


def test_published_labels_are_taken_only_in_their_number() -> None:
    data = synthetic(height=40, width=40, bands=4)
    train, test = np.zeros((2, 40, 40), np.uint8)
    ones = np.argwhere(data.truth == 1)
    train[tuple(ones[:7].T)], test[tuple(ones[7:].T)] = 1, 1
    data = replace(data, train=train, test=test)
    found = {
        positives: split_of(Cell("longkou", 1, positives=positives), data, 50).labels.positive.size
        for positives in (100, 20, 40)
    }
    assert found == {100: 7, 20: 20, 40: 40}
    assert split_of(Cell("longkou", 1, protocol="resampled", positives=9), data, 50).test.any()


def test_a_table_says_where_published_labels_were_not_at_hand() -> None:
    study = replace(STUDIES["table-longkou"], places=(("longkou", 1),), columns={"T-HOneCls": {}})
    for split, told in (("drawn", True), ("published", False)):
        cell = Cell("longkou", 1)
        record = Record(cell, {**facts(cell), "split": split})
        table = build_table("table-longkou", study, Results({cell.id: record}, []), seeds=[0])
        assert ("drawn here, not the published ones" in table.note) == told


def test_the_papers_prior_is_km2_on_what_the_paper_did_not_map(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("thonecls.priors.MOST_UNLABELED", 500)
    upu = {"method": "upu", "prior": "paper"}
    held = run_cell(changed(Cell("indian-pines", 5, preset="fast"), TINY | upu), ROOT, tmp_path, 1)
    assert 0 < held["prior"] < 1
    known = run_cell(changed(BASE, upu), ROOT, tmp_path, 1)
    assert known["prior"] == 0.297668


def test_a_change_of_all_cells_does_not_merge_what_is_compared() -> None:
    with pytest.raises(ConfigError, match="sets 'prior' itself"):
        cells_of(STUDIES["prior"], change={"prior": 0.2})
    assert changed(Cell("indian-pines", 2), {"prior": 0.2}) == Cell("indian-pines", 2)


def test_workers_in_another_folder_get_whole_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Path] = []

    def look(cell: Cell, root: Path, folder: Path, *_: Any) -> dict[str, Any]:
        seen.extend([root, folder])
        return facts(cell)

    monkeypatch.setattr("thonecls.benchmark.run.run_cell", look)
    monkeypatch.chdir(tmp_path)
    run_cells([BASE], Path("out"), root=Path("data"))
    assert seen == [tmp_path / "data", tmp_path / "out"]


def test_cells_of_other_runners_are_told_of(tmp_path: Path) -> None:
    append_record(tmp_path, facts(BASE))
    skipped: list[Cell] = []
    run_cells([BASE], tmp_path, root=ROOT, on_skip=skipped.append)
    assert skipped == [BASE]


def test_a_method_on_spectra_is_a_cell_too(tmp_path: Path) -> None:
    held = run_cell(Cell("indian-pines", 11, "matched-filter"), ROOT, tmp_path, 1)
    assert held["scores"]["f1"] > 30
    assert "curves" not in held


def start_runner(folder: Path) -> subprocess.Popen[bytes]:
    """`thonecls benchmark` in a process of its own, on the first two of the four cells."""
    command = [sys.executable, "-m", "thonecls.cli", "benchmark", "table-ip-pu"]
    command += ["--dataset", "indian-pines", "--target", "2"]
    command += ["--method", "t-honecls", "--preset", "fast"]
    command += ["--seeds", "2", "--threads", "1", "--out", str(folder), "--json"]
    for name, value in TINY.items():
        command += [f"--{name}", str(value)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def wait_for_an_epoch(runner: subprocess.Popen[bytes], work: Path, since: float) -> None:
    """Until the runner is in a cell: its first epoch is over."""
    while runner.poll() is None and not has_newer_curve(work, since):
        time.sleep(0.02)


def has_newer_curve(work: Path, since: float) -> bool:
    for path in work.glob("*.curve"):
        with contextlib.suppress(FileNotFoundError):  # recorded in this moment
            if path.stat().st_mtime > since:
                return True
    return False


def test_killed_runs_and_several_at_once_lose_and_double_nothing(
    alone: Path, tmp_path: Path
) -> None:
    """One is killed; then one in a process of its own, and one here when that is in a cell."""
    began = time.time()
    runner = start_runner(tmp_path)
    # Into a cell: after its first epoch, or while it is scored and recorded.
    wait_for_an_epoch(runner, tmp_path / "work", began)
    time.sleep(random.Random(1).uniform(0, 0.6))
    runner.kill()
    runner.wait()
    assert not read_results(tmp_path).damaged
    began = time.time()
    runner = start_runner(tmp_path)
    wait_for_an_epoch(runner, tmp_path / "work", began)
    run_cells(FOUR[:2], tmp_path, root=ROOT, threads=1)
    assert runner.wait() == 0
    expected = outcome(alone)
    assert outcome(tmp_path) == {cell.id: expected[cell.id] for cell in FOUR[:2]}


def test_a_cluster_gives_the_same_and_outlives_a_worker(alone: Path, tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
    )
    with cluster, distributed.Client(cluster) as client:
        killed: list[int] = []

        def kill_one(_: Cell) -> None:
            if not killed:  # the first cell has just been handed out
                killed.append(min(client.run(os.getpid).values()))
                os.kill(killed[0], signal.SIGKILL)

        address = cluster.scheduler_address
        run_cells(FOUR[2:], tmp_path, root=ROOT, dask=address, threads=1, on_start=kill_one)
    assert killed
    expected = outcome(alone)
    assert outcome(tmp_path) == {cell.id: expected[cell.id] for cell in FOUR[2:]}


# The command


def test_studies_and_datasets_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("benchmark") == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in ("table-honghu", "kl-teacher", "maps"))
    assert run("datasets", "--json", "--data-root", "nowhere") == 0
    listed = json.loads(capsys.readouterr().out)
    assert listed["indian-pines"]["here"]
    assert not listed["longkou"]["here"]
    assert run("datasets", "salinas", "--data-root", "nowhere") == 0
    assert "Salinas_corrected" in capsys.readouterr().out


def test_a_dry_run_runs_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["benchmark", "beta", "--dataset", "indian-pines", "--target", "2", "--seeds", "2"]
    assert run(*words, "--out", tmp_path / "b", "--dry-run", "--json") == 0
    plan = json.loads(capsys.readouterr().out)
    assert plan["cells"] == len(plan["waiting"]) == 14
    assert plan["seconds"] > 600
    assert run(*words, "--out", tmp_path / "b", "--dry-run") == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].startswith("14 of 14 cells are to be run: about ")  # the total, first of all
    assert len(shown) == 5  # a header, a line for each method, how to see all cells
    assert [line.split()[1:3] for line in shown[2:4]] == [["taylor", "2"], ["t-honecls", "12"]]
    assert not (tmp_path / "b").exists()


def test_plans_and_tables_need_no_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["benchmark", "table-honghu", "--data-root", "nowhere", "--out", tmp_path / "b"]
    assert run(*words, "--dry-run", "--seeds", "1", "--json", "--positives", "40") == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out)["cells"] == 50
    assert "honghu is not in nowhere" in " ".join(shown.err.split())
    assert run(*words, "--render-only") == 0
    assert "97.81" in (tmp_path / "b" / "table-honghu.md").read_text("utf-8")


def test_the_figure_of_maps_names_what_it_leaves_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    append_record(tmp_path, facts(Cell("indian-pines", 2)))
    words = ["benchmark", "maps", "--dataset", "indian-pines", "--target", "2", "--seeds", "1"]
    assert run(*words, "--render-only", "--out", tmp_path) == 0
    assert "1 cells, such as indian-pines 2 t-honecls" in " ".join(capsys.readouterr().err.split())


def test_a_scene_is_drawn_on_request(tmp_path: Path) -> None:
    assert run("datasets", "indian-pines", "--picture", tmp_path / "a.png") == 0
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert run("datasets", "--picture", tmp_path / "b.png") == 2


def test_tables_are_made_from_what_is_there(
    alone: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["benchmark", "table-ip-pu", "--dataset", "indian-pines", "--target", "2"]
    words += ["--method", "t-honecls", "--preset", "fast", "--seeds", "3", "--render-only"]
    settings = [word for name, value in TINY.items() for word in (f"--{name}", value)]
    assert run(*words, *settings, "--out", alone, "--json", "--data-root", "nowhere") == 0
    summary = json.loads(capsys.readouterr().out)
    assert (summary["cells"], summary["done"]) == (3, 3)
    table = (alone / "table-ip-pu.md").read_text("utf-8")
    assert "93.40(0.50)" in table
    assert "3 of 3 cells" in table
    assert {Path(path).suffix for path in summary["written"]} == {".md", ".tex", ".csv", ".html"}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["table-mars"], "no study 'table-mars'"),
        (["order", "--dataset", "mars"], "no dataset 'mars'"),
        (["order", "--dataset", "indian-pines"], "say which classes"),
        (["table-honghu", "--data-root", "nowhere"], "none of the study's datasets"),
        (["table-ip-pu", "--target", "99"], "nothing is left"),
        (["order", "--dataset", "indian-pines", "--target", "99"], "has no class 99"),
        (["table-ip-pu", "--method", "pan"], "no column of 'pan'"),
        (["table-ip-pu", "--positives", "0"], "must be 1 or more"),
        (["labels", "--positives", "9"], "sets 'positives' itself"),
        (["order", "--dataset", "indian-pines", "--target", "2", "--order", "3"], "leave that"),
        (["table-ip-pu", "--jobs", "0"], "must be 1 or more"),
    ],
)
def test_impossible_wishes_are_refused(
    words: list[str], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("benchmark", *words, "--out", tmp_path / "b") == 2
    assert says in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "b").exists()


@pytest.fixture
def small_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A CIFAR-10 of few and small images, bright where positive."""
    spec = replace(IMAGES["cifar10"], train=(60,) * 10, test=(20,) * 10, shape=(3, 12, 12))
    monkeypatch.setitem(IMAGES, "cifar10", spec)
    rng = np.random.default_rng(0)
    arrays: dict[str, NDArray[np.uint8]] = {}
    for part, each in (("train", 60), ("test", 20)):
        labels = np.repeat(np.arange(10, dtype=np.uint8), each)
        level = np.where(np.isin(labels, (0, 1, 8, 9)), 150, 90)[:, None, None, None]
        noise = rng.integers(0, 60, (len(labels), 3, 12, 12))
        arrays |= {f"x_{part}": (level + noise).astype(np.uint8), f"y_{part}": labels}
    folder = tmp_path / "images"
    folder.mkdir()
    np.savez_compressed(folder / "cifar10.npz", **arrays)  # type: ignore[arg-type]
    return folder


def test_images_run_as_cells(small_images: Path, tmp_path: Path) -> None:
    """A network, a method of two phases and the trees; a record each, with curves."""
    small = {"epochs": 2, "batches": 2, "unlabeled": 400, "rate": 1e-3}
    settings = tuple(sorted(small.items()))
    cells = [
        Cell(
            "cifar10",
            0,
            name,
            positives=40,
            prior=prior,  # type: ignore[arg-type]
            settings=(("unlabeled", 400),) if name == "puet" else settings,
        )
        for name, prior in (("taylor", None), ("dist-pu", "true"), ("puet", 0.4))
    ]
    run_cells(cells, tmp_path / "out", root=small_images)
    results = read_results(tmp_path / "out")
    for cell in cells:
        record = results.find(cell)
        assert record is not None, results.records[cell.id].facts.get("error")
        assert record.facts["scores"]["pixels"] == 200
        epochs = {"taylor": 2, "dist-pu": 4, "puet": 0}[cell.method]
        curves = record.facts.get("curves", {"loss": [], "accuracy": []})
        assert len(curves["loss"]) == len(curves["accuracy"]) == epochs
    assert not list((tmp_path / "out" / "work").glob("*.checkpoint*"))
    found = results.find(cells[2])
    assert found is not None
    assert found.facts["scores"]["accuracy"] > 90
    table = build_table("table-rgb", STUDIES["table-rgb"], results, seeds=[0])
    row = table.rows[0]
    assert row.name == "CIFAR-10"
    assert config_of(cells[0]).unlabeled == 400
    assert config_of(Cell("cifar10", 0, "taylor")).unlabeled == 45_000
    paper = row.entries["Taylor"].paper
    assert paper is not None
    assert paper.mean == 86.76
    assert row.entries["P3MIX-E"].paper == row.entries["P3MIX-C"].paper
    assert row.entries["vPU"].paper is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"method": "oc", "prior": 0.4}, "there is no method 'oc' for cifar10"),
        ({"target": 3}, "on images 'target' is 0"),
        ({"preset": "fast"}, "on images 'preset' is paper"),
        ({"protocol": "spatial"}, "on images 'protocol' is paper or resampled"),
        ({"method": "nnpu", "prior": "km2"}, "on images 'prior' is a number or 'true'"),
        ({"method": "nnpu"}, "needs the class prior"),
        ({"settings": (("width", 0.5),)}, "taylor on images has no setting 'width'"),
        ({"method": "puet", "prior": 0.4, "settings": (("epochs", 2),)}, "has no setting 'epochs'"),
    ],
)
def test_impossible_cells_on_images_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Cell(**{"dataset": "cifar10", "target": 0, "method": "taylor", **change})
