"""Every command, killed at any moment: what follows equals an uninterrupted run, or is refused.

A kill leaves a folder as it was before the change that did not come, so each round begins from a
copy of such a folder. Kills from outside, at any moment at all: `make crash`.
"""

from __future__ import annotations

import gc
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crashing import CONFIG, World, kill_after, make_world, outcome, states, visible
from thonecls import parallel
from thonecls.errors import ClusterError, ConfigError, FileError, ThoneclsError
from thonecls.files import LOCK, locked
from thonecls.workflow import MapOptions, Running, TrainOptions, TruthFile, map_scene, train_scene

KINDS: dict[str, dict[str, Any]] = {
    "2020": {},
    "2021": {"year": 2021},
    "other": {"threshold": 0.9},
}


pytestmark = pytest.mark.usefixtures("white_pictures")


@pytest.fixture(scope="module", autouse=True)
def quick() -> Iterator[None]:
    """One opinion beside a training, and several windows to a small map."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("thonecls.workflow.crossfit.OPINIONS", ("matched-filter",))
        patch.setattr("thonecls.method.model.MEMORY", 1)
        yield


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return make_world(tmp_path_factory.mktemp("world"))


@pytest.fixture(scope="module")
def run(world: World) -> Path:
    """A training that has ended, with labels 0."""
    world.train(world.here / "run")
    return world.here / "run"


@pytest.fixture(scope="module")
def overwritten(world: World, run: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """What kills leave of that training while one with labels 1 takes its place."""
    folder = tmp_path_factory.mktemp("overwritten")
    shutil.copytree(run, folder / "run")

    def work(_: object) -> None:
        world.train(folder / "run", 1, overwrite=True)

    return states(work, folder / "run", folder)


@pytest.fixture(scope="module")
def maps(world: World, run: Path) -> dict[str, dict[str, Any]]:
    """The outcome of maps of both years, and of one year with another option."""
    for name, options in KINDS.items():
        world.map(run, world.here / "maps" / name, **options)
    return {name: outcome(world.here / "maps" / name) for name in KINDS}


def refused_or(work: Callable[[], object]) -> bool:
    """Whether work was done; else it was refused, in words."""
    try:
        work()
    except ThoneclsError:
        return False
    return True


def begun_anew(state: Path, tmp_path: Path) -> Path:
    """A copy of a state to go on from."""
    copy = tmp_path / state.name
    if copy.exists():
        shutil.rmtree(copy)
    shutil.copytree(state, copy)
    return copy


def test_whatever_a_kill_leaves_of_a_training_is_one_training_or_none(
    world: World, run: Path, overwritten: list[Path], tmp_path: Path
) -> None:
    """Sampled, mapped, reported, and resumed with other options: 30 states and more, each."""
    assert len(overwritten) > 30
    last = overwritten[-1]
    expected = {}
    for name, folder in (("old", run), ("new", last)):
        world.sample(folder, tmp_path / f"{name}.csv")
        world.map(folder, tmp_path / name)
        arrays = (outcome(tmp_path / name)["map.tif"], (tmp_path / f"{name}.csv").read_bytes())
        expected[name] = (*arrays, (folder / "probability.npy").read_bytes())
    assert expected["old"] != expected["new"]
    done = 0
    for number, state in enumerate(overwritten):
        sampled, mapped = tmp_path / f"{number}.csv", tmp_path / f"map{number}"
        begun, whole = ((state / name).exists() for name in (".begun.json", "run.json"))
        assert refused_or(partial(world.sample, state, sampled)) == whole
        if not whole:
            assert not refused_or(partial(world.report, state, truth=False))
            assert begun <= (not refused_or(partial(world.map, state, mapped)))
        else:
            probability = (state / "probability.npy").read_bytes()
            name = "old" if probability == expected["old"][2] else "new"
            assert sampled.read_bytes() == expected[name][1]
            if done in (0, 1, 2, 9):  # the others are the same to the byte, but for pictures
                world.map(state, mapped)
                assert outcome(mapped)["map.tif"] == expected[name][0]
            done += 1
        if begun or whole:
            again = begun_anew(state, tmp_path)
            labels = 1 if begun or name == "new" else 0
            with pytest.raises(FileError, match="with other labels, labelled pixels, seed: choose"):
                world.train(again, 1 - labels, resume=True)
            assert visible(again) == visible(state)
    assert done > 8


def test_a_killed_training_is_resumed_to_the_same_outcome(
    world: World, overwritten: list[Path], tmp_path: Path
) -> None:
    """Killed while the older one was cleared away; and when all but the report was there."""
    expected = outcome(overwritten[-1])
    without_run = [state for state in overwritten if not (state / "run.json").exists()]
    with_begun = [state for state in overwritten if (state / ".begun.json").exists()]
    for state in (without_run[2], with_begun[-2]):
        again = begun_anew(state, tmp_path)
        world.train(again, 1, resume=True)
        assert outcome(again) == expected
        assert not [path.name for path in again.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("follows", ["2020", "2021", "other"])
def test_a_killed_map_is_never_mixed_with_another(
    follows: str, world: World, run: Path, maps: dict[str, dict[str, Any]], tmp_path: Path
) -> None:
    def work(keep: Callable[[], None]) -> None:
        world.map(run, tmp_path / "map", resume=True, on_window=lambda *_: keep())

    kept = states(work, tmp_path / "map", tmp_path)
    assert len(kept) > 40
    # Some, but all of those while windows are written, and those with an ended map not.
    written = [s for s in kept if (s / ".novelty.part/about.json").exists()][:3]
    done = 0
    for state in sorted({*kept[:-2:6], *kept[-9:-2:2], *written}):
        before = visible(state)
        if refused_or(partial(world.map, run, state, resume=True, **KINDS[follows])):
            assert outcome(state) == maps[follows]
            done += 1
        else:
            assert follows != "2020"
            assert visible(state) == before
    assert done >= (10 if follows == "2020" else 2)


def test_a_scene_that_was_replaced_is_not_gone_on_with(
    world: World, run: Path, tmp_path: Path
) -> None:
    """By one of the same name, size and time, even."""
    scene, stopped = tmp_path / "scene.tif", tmp_path / "map"
    shutil.copy2(world.here / "2020/scene.tif", scene)

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        map_scene(run, scene, stopped, options=MapOptions(resume=True), on_window=stop)
    before = scene.stat()
    shutil.copy(world.here / "2021/scene.tif", scene)
    os.utime(scene, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert scene.stat().st_size == before.st_size
    with pytest.raises(FileError, match="unfinished map with other scene content: repeat"):
        map_scene(run, scene, stopped, options=MapOptions(resume=True))
    shutil.copy2(world.here / "2020/scene.tif", scene)
    map_scene(run, scene, stopped, options=MapOptions(resume=True))


def test_a_map_takes_the_place_of_another_all_at_once(
    world: World, run: Path, maps: dict[str, dict[str, Any]], tmp_path: Path
) -> None:
    world.map(run, tmp_path / "map", year=2021)

    def work(_: object) -> None:
        world.map(run, tmp_path / "map", overwrite=True)

    kept = states(work, tmp_path / "map", tmp_path)
    assert len(kept) > 50
    for state in kept:
        found = outcome(state)
        old, new = (
            all(content == maps[year].get(name) for name, content in found.items())
            for year in ("2021", "2020")
        )
        assert old or new, sorted(found)
        assert "map.json" not in found or found in (maps["2021"], maps["2020"])


def test_page_and_figures_of_a_report_never_differ(world: World, run: Path, tmp_path: Path) -> None:
    shutil.copytree(run, tmp_path / "run")

    def work(_: object) -> None:
        world.report(tmp_path / "run", truth=True)

    kept = states(work, tmp_path / "run", tmp_path)
    pages = {state: (state / "report.html").read_text("utf-8") for state in kept}
    assert len(set(pages.values())) == 2
    for state, page in pages.items():
        if (state / "report.json").exists():
            facts = json.loads((state / "report.json").read_text("utf-8"))
            assert (facts["scores"] is not None) == (page == pages[kept[-1]])


def test_a_killed_sample_is_whole_or_not_there(world: World, run: Path, tmp_path: Path) -> None:
    shutil.copytree(run, tmp_path / "run")

    def work(_: object) -> None:
        world.sample(tmp_path / "run")

    kept = states(work, tmp_path / "run", tmp_path)
    expected = outcome(kept[-1])
    assert len(kept) > 3
    for state in kept:
        if not (state / "sample.csv").exists():
            world.sample(state)
        assert outcome(state) == expected
        with pytest.raises(FileError, match="perhaps with answers"):
            world.sample(state)


def test_a_killed_benchmark_goes_on_to_the_same_records(world: World, tmp_path: Path) -> None:
    def work(_: object) -> None:
        world.benchmark(tmp_path / "bench")

    kept = states(work, tmp_path / "bench", tmp_path)
    expected = outcome(kept[-1])
    assert len(kept) > 5
    for state in kept[1::3]:
        world.benchmark(state)
        assert outcome(state) == expected


HOLDER = """
import pathlib, sys, time
from thonecls.files import locked
with locked(pathlib.Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_two_at_once_are_refused_with_the_others_process_and_a_kill_frees_the_folder(
    world: World, run: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(run, folder)
    before = visible(folder)
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(folder)], stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    seconds: tuple[Callable[[], object], ...] = (
        lambda: world.train(folder, overwrite=True),
        lambda: world.train(folder, resume=True),
        lambda: world.map(run, folder, overwrite=True),
        lambda: world.report(folder, truth=True),
        lambda: world.sample(folder),
    )
    for second in seconds:
        with pytest.raises(FileError, match=rf"another process .*process {holder.pid} on "):
            second()
    holder.kill()
    holder.communicate()
    assert visible(folder) == before
    assert (folder / LOCK).exists()  # but nobody holds it
    with locked(folder):
        pass
    assert not (folder / LOCK).exists()


def test_one_waits_for_the_other_where_both_may_write(tmp_path: Path) -> None:
    """As tables of a benchmark do; two locks of one process are as strange to each other."""
    times: list[tuple[float, float]] = []

    def hold() -> None:
        with locked(tmp_path, wait=True):
            began = time.monotonic()
            time.sleep(0.1)
            times.append((began, time.monotonic()))

    threads = [threading.Thread(target=hold) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (_, first), (second, third), (fourth, _) = sorted(times)
    assert first <= second < third <= fourth


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_maps_killed_from_outside_are_resumed_to_the_same_bytes(
    world: World, run: Path, maps: dict[str, dict[str, Any]], tmp_path: Path
) -> None:
    kills = 0
    for number in range(6):
        out = tmp_path / str(number)
        kills += kill_after(0.005 + 0.03 * number, partial(world.map, run, out, resume=True))
        if not (out / "map.json").exists():
            world.map(run, out, resume=True)
        assert outcome(out) == maps["2020"]
    assert kills >= 1


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({"options": {"threshold": 0.9}}, "threshold"),
        ({"options": {"floats": True}}, "floats"),
        ({"options": {"label": "weed"}}, "label"),
        ({"options": {"folds": 2}}, "folds"),
        ({"labels": "labels1.npy"}, "labels, labelled pixels"),
    ],
)
def test_what_a_finished_training_was_not_asked_for_is_refused_by_name(
    change: dict[str, Any], names: str, world: World, run: Path
) -> None:
    options = TrainOptions(**({"folds": 0} | change.get("options", {})))
    labels = world.here / change.get("labels", "labels0.npy")
    with pytest.raises(FileError, match=f"holds a training with other {names}: choose another"):
        train_scene(
            world.here / "cube.npy",
            labels,
            run,
            config=CONFIG,
            options=options,
            running=Running(resume=True),
        )


def test_edited_labels_and_another_scene_of_the_same_name_are_seen(
    world: World, run: Path, tmp_path: Path
) -> None:
    other = make_world(tmp_path)
    shutil.copytree(run, tmp_path / "run")
    for name in ("cube.npy", "labels0.npy"):
        shutil.copy2(world.here / name, tmp_path / name)
    with pytest.raises(FileError, match="other cube, labels: choose"):  # moved, and as it was
        other.train(tmp_path / "run", resume=True)
    world.train(tmp_path / "run", resume=True)
    mask = np.load(tmp_path / "labels0.npy")
    mask[-1, -1] = ~mask[-1, -1]
    np.save(tmp_path / "labels0.npy", mask)
    np.save(tmp_path / "cube.npy", np.load(tmp_path / "cube.npy") * 2)
    with pytest.raises(FileError, match="other cube, scene content, labels, labelled pixels:"):
        other.train(tmp_path / "run", resume=True)


def test_truth_on_resuming_a_finished_training_gives_scores(
    world: World, run: Path, tmp_path: Path
) -> None:
    shutil.copytree(run, tmp_path / "run")
    truth = TruthFile(world.here / "truth.npy")
    world.train(tmp_path / "run", resume=True, truth=truth)
    for name in ("run.json", "report.json"):
        assert json.loads((tmp_path / "run" / name).read_text("utf-8"))["scores"]["f1"] > 0


@pytest.mark.parametrize("name", ["model.safetensors", "probability.npy", "evidence.npz"])
def test_files_of_another_training_are_refused(
    name: str, world: World, run: Path, overwritten: list[Path], tmp_path: Path
) -> None:
    shutil.copytree(run, tmp_path / "run")
    shutil.copy(overwritten[-1] / name, tmp_path / "run" / name)
    commands: tuple[Callable[[], object], ...] = (
        lambda: world.report(tmp_path / "run", truth=False),
        lambda: world.train(tmp_path / "run", resume=True),
        lambda: world.sample(tmp_path / "run"),
    )
    for follows in commands:
        with pytest.raises(FileError, match=rf"{name} is not the one that run.json tells of"):
            follows()
    if name == "model.safetensors":
        with pytest.raises(FileError, match=r"is not the one that run\.json tells of"):
            world.map(tmp_path / "run", tmp_path / "map")


def test_going_on_and_beginning_anew_are_not_said_at_once(world: World, run: Path) -> None:
    with pytest.raises(ConfigError, match="say one of the two"):
        world.train(run, resume=True, overwrite=True)


def test_a_killed_scheduler_ends_a_map_that_can_be_gone_on_with(
    world: World,
    run: Path,
    maps: dict[str, dict[str, Any]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("distributed")
    command = ["-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0"]
    scheduler = subprocess.Popen(
        [sys.executable, *command, "--no-dashboard"], stderr=subprocess.PIPE, text=True
    )
    assert scheduler.stderr is not None
    address = next(line.split()[-1] for line in scheduler.stderr if "Scheduler at:" in line)
    with pytest.raises(ConfigError, match="as Dask is configured here"):
        world.map(run, tmp_path / "map", dask=address.replace("tcp:", "tls:"))
    # Dask's client of that refusal is closed when it is collected; while the next one starts, it
    # would wait for a lock that this one holds.
    gc.collect()
    blow = threading.Timer(0.5, scheduler.kill)  # no worker ever comes: windows are waited for
    connect = parallel._connect

    def connect_and_strike(at: str) -> Any:
        client = connect(at)
        blow.start()
        return client

    monkeypatch.setattr(parallel, "_connect", connect_and_strike)
    try:
        with pytest.raises(ClusterError, match="no longer answers: start it again and repeat"):
            world.map(run, tmp_path / "map", resume=True, dask=address)
    finally:
        scheduler.kill()
        scheduler.communicate()
    world.map(run, tmp_path / "map", resume=True)
    assert outcome(tmp_path / "map") == maps["2020"]
