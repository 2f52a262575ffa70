"""The steps behind the commands: from files to a run folder, from a model to a map."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from thonecls.arrays import open_scene, read_array, read_positives
from thonecls.checkpoint import EVERY
from thonecls.datasets import indian_pines
from thonecls.errors import ConfigError, FileError
from thonecls.files import check_writable, write_atomically, writing_array
from thonecls.methods import METHODS, deep, label_spectra
from thonecls.metrics import evaluate, find_degenerate
from thonecls.model import Model
from thonecls.priors import ESTIMATORS, Prior
from thonecls.report import Truth, draw_curves, draw_overview
from thonecls.scene import Bands, Scene, Source, read_all
from thonecls.splits import draw_labels, paper_split, positive_mask
from thonecls.train import FAST, Progress, TrainConfig, fit

MODEL, RUN, CHECKPOINT = "model.safetensors", "run.json", "checkpoint.safetensors"
PROBABILITY, MAP = "probability.npy", "map.npy"
STRIP = 64  # rows that are read at a time to look a scene over
PICTURE = 2000  # pixels that a side of the overview shows at most
OnWindow = Callable[[int, int], None]
OnStep = Callable[[Progress], bool | None]


def train_scene(
    cube: Path,
    labels: Path,
    out: Path,
    *,
    config: TrainConfig,
    method: str = "t-honecls",
    estimate_prior: str | None = None,
    seed: int = 0,
    target: int | None = None,
    axis: Bands | None = None,
    cube_variable: str | None = None,
    labels_variable: str | None = None,
    threshold: float = 0.5,
    overwrite: bool = False,
    resume: bool = False,
    checkpoint_every: float = EVERY,
    on_step: OnStep | None = None,
    on_window: OnWindow | None = None,
) -> dict[str, Any]:
    """Train on a scene and its labels; write model, map and pictures to the folder `out`.

    Returns the summary that is also written as run.json. With `resume`, a training that was
    stopped or killed goes on from its last checkpoint, and a finished one is left as it is.
    method: one of `METHODS`, config: its settings (`deep.settings`); one without a network
    writes no model. estimate_prior: how to estimate the class prior where the method needs it.
    """
    check_threshold(threshold)
    check_writable(out)
    if method not in METHODS:
        raise ConfigError(f"there is no method {method!r}: see `thonecls methods`")
    facts = {
        "cube": str(cube),
        "labels": str(labels),
        "target": target,
        "method": method,
        "seed": seed,
        **({"estimate_prior": estimate_prior} if estimate_prior else {}),
    }
    if resume and (out / RUN).exists() and not (out / CHECKPOINT).exists():
        known = {} if estimate_prior else {"config": asdict(config)}
        return _finished_run(out, {**facts, **known})
    if not (resume or overwrite):
        _refuse_to_overwrite(out)
    found = read_positives(labels, target=target, variable=labels_variable)
    source = open_scene(cube, axis=axis, variable=cube_variable, labels=found)
    positives = positive_mask(found, source.shape)
    generator = _generator(seed)
    if estimate_prior is not None:
        if not METHODS[method].needs_prior:
            raise ConfigError(f"{method} needs no class prior: leave out --estimate-prior")
        prior = _priors(source, positives, config, seed, (estimate_prior,))[0]
        config = replace(config, prior=prior.value)
    if not METHODS[method].network:
        return _score_spectra(
            out,
            source,
            positives,
            {**facts, "config": asdict(config)},
            config,
            threshold,
            cube.name,
        )
    if source.shape[0] * source.shape[1] > config.budget:
        _check_finite(source)  # windows alone would find a bad pixel only after training
    model = deep.train(
        method,
        source,
        positives,
        config=config,
        generator=generator,
        on_step=on_step,
        checkpoint=out / CHECKPOINT,
        checkpoint_every=checkpoint_every,
        resume=resume,
    )
    summary = _write_run(
        out,
        model,
        source,
        positives,
        facts,
        title=cube.name,
        threshold=threshold,
        on_window=on_window,
    )
    if summary["finished"]:
        (out / CHECKPOINT).unlink(missing_ok=True)
    return summary


def estimate_priors(
    cube: Path,
    labels: Path,
    *,
    seed: int = 0,
    target: int | None = None,
    axis: Bands | None = None,
    cube_variable: str | None = None,
    labels_variable: str | None = None,
) -> dict[str, Any]:
    """The share of the class in a scene by every estimator, each with its interval."""
    found = read_positives(labels, target=target, variable=labels_variable)
    source = open_scene(cube, axis=axis, variable=cube_variable, labels=found)
    positives = positive_mask(found, source.shape)
    priors = _priors(source, positives, FAST, seed, tuple(ESTIMATORS))
    return {
        "cube": str(cube),
        "labels": str(labels),
        "priors": {p.name: {"value": p.value, "low": p.low, "high": p.high} for p in priors},
    }


def _priors(
    source: Source,
    positives: NDArray[np.bool_],
    config: TrainConfig,
    seed: int,
    names: tuple[str, ...],
) -> list[Prior]:
    """The class prior by some estimators, from the labels and as many unlabeled pixels."""
    unknown = set(names) - set(ESTIMATORS)
    if unknown:
        raise ConfigError(f"no estimator is called {unknown.pop()!r}: {', '.join(ESTIMATORS)}")
    if source.shape[0] * source.shape[1] > config.budget:
        raise ConfigError(
            f"a prior is estimated on at most {config.budget:,} pixels: cut a part from the scene, "
            "raise --budget, or give --prior a number"
        )
    scene = read_all(source)
    labels = draw_labels(positives, scene.valid, config.unlabeled, np.random.default_rng(seed))
    spectra = label_spectra(scene, labels)
    return [ESTIMATORS[name](*spectra, np.random.default_rng(seed)) for name in names]


def map_scene(
    model: Path,
    cube: Path,
    out: Path,
    *,
    axis: Bands | None = None,
    variable: str | None = None,
    threshold: float = 0.5,
    device: str = "auto",
    overwrite: bool = False,
    on_window: OnWindow | None = None,
) -> dict[str, Any]:
    """Map a scene with a saved model into the folder `out`; returns a summary.

    Only one window of the scene is held in memory at a time; `on_window` hears how many of all
    pixels are done.
    """
    check_threshold(threshold)
    check_writable(out)
    if (out / RUN).exists():
        raise FileError(f"{out} holds a training with its own map: choose another --out")
    if (out / MAP).exists() and not overwrite:
        raise FileError(f"{out} holds a map already: choose another --out, or say --overwrite")
    trained = Model.load(model / MODEL if model.is_dir() else model)
    source = open_scene(cube, axis=axis, variable=variable, bands=trained.bands)
    windows = trained.score_windows(source, device=device)  # refuses what does not fit
    written = _write_map(out, source.shape, windows, threshold=threshold, on_window=on_window)
    summary = {"model": str(model), "cube": str(cube), **written}
    _draw_overview(out, source, None, title=cube.name, threshold=threshold)
    write_json(out / "map.json", summary)
    return summary


def _score_spectra(
    out: Path,
    source: Source,
    positives: NDArray[np.bool_],
    facts: dict[str, Any],
    config: TrainConfig,
    threshold: float,
    title: str,
) -> dict[str, Any]:
    """Map, picture and run.json of a method that works on single spectra."""
    began = time.perf_counter()
    scene = read_all(source)
    rng = np.random.default_rng(facts["seed"])
    labels = draw_labels(positives, scene.valid, config.unlabeled, rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a map that says nothing is named in the summary
        probability = METHODS[facts["method"]](scene, labels, facts["seed"])
    whole = slice(0, source.shape[0]), slice(0, source.shape[1])
    summary = {
        **facts,
        "positives": int(labels.positive.size),
        "finished": True,
        "seconds": round(time.perf_counter() - began, 3),
        **_write_map(out, source.shape, [(*whole, probability)], threshold=threshold),
        **_warning(out, positives, threshold),
    }
    _draw_overview(out, source, positives, title=title, threshold=threshold)
    write_json(out / RUN, summary)
    return summary


def demo(
    out: Path,
    *,
    config: TrainConfig,
    target: int = 2,
    positives: int = 100,
    seed: int = 0,
    on_step: OnStep | None = None,
) -> dict[str, Any]:
    """Map one class of Indian Pines from a few labels and compare it with the ground truth."""
    check_writable(out)
    if (out / CHECKPOINT).exists() or "dataset" not in _read_run(out, {"dataset": ""}):
        raise FileError(f"{out} holds a training of your own: choose another --out")
    data = indian_pines()
    split = paper_split(
        data.truth, target, positives=positives, unlabeled=min(config.unlabeled, data.truth.size)
    )
    generator = _generator(seed)
    model = fit(data.scene, split.labels, config=config, generator=generator, on_step=on_step)
    labelled = np.zeros(data.scene.shape, dtype=bool)
    labelled.flat[split.labels.positive] = True
    facts = {"dataset": data.name, "target": target, "class": data.classes[target], "seed": seed}
    return _write_run(
        out,
        model,
        data.scene,
        labelled,
        facts,
        title=f"Indian Pines, {data.classes[target]}",
        rgb=data.rgb,
        truth=Truth(data.truth == target, split.test),
    )


def describe(path: Path, *, variable: str | None = None) -> dict[str, Any]:
    """What a model file, or an array file, holds."""
    if path.is_dir():
        path = path / MODEL
    if path.suffix == ".safetensors":
        model = Model.load(path)
        history = model.training.pop("history", {})
        last = {name: values[-1] for name, values in history.items() if values}
        weights = sum(p.numel() for p in model.net.parameters())
        return {
            "model": str(path),
            "bands": model.bands,
            "weights": weights,
            **model.training,
            "last_epoch": last,
        }
    array = read_array(path, axes=3, variable=variable)
    lowest, highest, bad = np.inf, -np.inf, 0
    for part in array:  # one slice at a time: the cube may be larger than memory
        good = part[np.isfinite(part)]
        bad += part.size - good.size
        if good.size:
            lowest, highest = min(lowest, float(good.min())), max(highest, float(good.max()))
    return {
        "cube": str(path),
        "shape": list(array.shape),
        "type": str(array.dtype),
        "minimum": lowest if bad < array.size else None,
        "maximum": highest if bad < array.size else None,
        "not_finite": bad,
    }


def check_threshold(threshold: float) -> None:
    """Refuse a threshold that is not a probability."""
    if not 0 <= threshold <= 1:
        raise ConfigError(f"'threshold' must be from 0 to 1. Got {threshold!r} instead")


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write JSON, whole or not at all."""
    write_atomically(path, (json.dumps(content, indent=2) + "\n").encode())


def _write_run(
    out: Path,
    model: Model,
    source: Source,
    positives: NDArray[np.bool_],
    facts: dict[str, Any],
    *,
    title: str,
    threshold: float = 0.5,
    rgb: tuple[int, int, int] | None = None,
    truth: Truth | None = None,
    on_window: OnWindow | None = None,
) -> dict[str, Any]:
    """Model, map, pictures and run.json of a finished training; returns what run.json holds."""
    model.save(out / MODEL)  # first of all: the rest can be made again from it
    training = model.training
    windows = model.score_windows(source, device=training["config"]["device"])
    title += f", from {int(positives.sum())} positive labels"
    summary = {
        **facts,
        "positives": training["positives"],
        "epochs_done": len(training["history"]["loss"]),
        **{k: training[k] for k in ("finished", "seconds", "config", "versions")},
        **_write_map(out, source.shape, windows, threshold=threshold, on_window=on_window),
        **_warning(out, positives, threshold),
    }
    if truth is not None:
        probability = np.load(out / PROBABILITY, mmap_mode="r")
        scores = evaluate(probability, truth.of_class, truth.tested, threshold=threshold)
        summary["scores"] = asdict(scores)
        title += (
            f": precision {scores.precision:.1f}, recall {scores.recall:.1f}, F1 {scores.f1:.1f}"
        )
    _draw_overview(out, source, positives, title=title, threshold=threshold, rgb=rgb, truth=truth)
    draw_curves(out / "curves.png", training["history"], title="Training by epoch")
    write_json(out / RUN, summary)
    return summary


def _read_run(out: Path, default: dict[str, Any]) -> dict[str, Any]:
    """What run.json in a folder holds, or the default where there is none."""
    if not (out / RUN).exists():
        return default
    try:
        found: dict[str, Any] = json.loads((out / RUN).read_text())
    except (OSError, ValueError) as error:
        raise FileError(f"cannot read {out / RUN} ({error}): choose another --out") from error
    return found


def _finished_run(out: Path, wanted: dict[str, Any]) -> dict[str, Any]:
    """The summary of a training that has ended, if it is the one that is wanted."""
    found = _read_run(out, {})
    differ = [name for name, value in wanted.items() if found.get(name) != value]
    if differ:
        raise FileError(
            f"{out} holds a training with other {', '.join(differ)}: choose another --out, "
            "or say --overwrite"
        )
    return found


def _check_finite(source: Source) -> None:
    """Read all of a scene once; a bad value is refused by the reading."""
    for start in range(0, source.shape[0], STRIP):
        source.read(slice(start, min(start + STRIP, source.shape[0])), slice(0, source.shape[1]))


def _generator(seed: int) -> torch.Generator:
    if not 0 <= seed < 2**63:
        raise ConfigError(f"'seed' must be from 0 to 2^63 - 1. Got {seed} instead")
    return torch.Generator().manual_seed(seed)


def _refuse_to_overwrite(out: Path) -> None:
    if (out / CHECKPOINT).exists():
        raise FileError(
            f"{out} holds an unfinished training: say --resume to go on with it, or --overwrite"
        )
    if (out / MODEL).exists() or (out / RUN).exists():
        raise FileError(
            f"{out} holds a model or a map already: choose another --out, or say --overwrite"
        )


def _write_map(
    out: Path,
    shape: tuple[int, int],
    windows: Iterable[tuple[slice, slice, NDArray[np.float32]]],
    *,
    threshold: float,
    on_window: OnWindow | None = None,
) -> dict[str, Any]:
    """probability.npy and map.npy (uint8: 1 class, 0 other, 255 nodata), window by window."""
    total, done, valid, mapped = shape[0] * shape[1], 0, 0, 0
    with (
        writing_array(out / PROBABILITY, np.float32, shape) as probability,
        writing_array(out / MAP, np.uint8, shape) as classes,
    ):
        for rows, columns, part in windows:
            known, above = np.isfinite(part), part > threshold
            probability[rows, columns] = part
            classes[rows, columns] = np.where(known, above, 255)
            done, valid, mapped = done + part.size, valid + known.sum(), mapped + above.sum()
            if on_window is not None:
                on_window(done, total)
    share = float(mapped / valid) if valid else 0.0
    return {"out": str(out), "threshold": threshold, "mapped_share": share}


def _warning(out: Path, positives: NDArray[np.bool_], threshold: float) -> dict[str, str]:
    """A word on a map that says the same everywhere, if it does."""
    probability = np.load(out / PROBABILITY, mmap_mode="r")
    message = find_degenerate(probability, np.flatnonzero(positives), threshold)
    return {"warning": message} if message else {}


def _draw_overview(
    out: Path,
    source: Source,
    positives: NDArray[np.bool_] | None,
    *,
    title: str,
    threshold: float,
    rgb: tuple[int, int, int] | None = None,
    truth: Truth | None = None,
) -> None:
    """overview.png; of a large scene every n-th row and column is shown."""
    step = -(-max(source.shape) // PICTURE)
    probability = np.load(out / PROBABILITY, mmap_mode="r")
    if positives is not None and step > 1:
        small = np.zeros((-(-source.shape[0] // step), -(-source.shape[1] // step)), dtype=bool)
        rows, columns = np.nonzero(positives)
        small[rows // step, columns // step] = True
        positives = small
    last = source.bands - 1
    bands = rgb or (last * 3 // 4, last // 2, last // 4)
    draw_overview(
        out / "overview.png",
        _thumbnail(source, step, bands),
        positives,
        np.asarray(probability[::step, ::step]),
        title=title,
        threshold=threshold,
        truth=truth,
    )


def _thumbnail(source: Source, step: int, bands: tuple[int, int, int]) -> Scene:
    """Three bands of every n-th row and column, read a few rows at a time."""
    cubes, valids = [], []
    strip = max(step, STRIP // step * step)
    for start in range(0, source.shape[0], strip):
        rows = slice(start, min(start + strip, source.shape[0]))
        part = source.read(rows, slice(0, source.shape[1]))
        cubes.append(part.cube[list(bands), ::step, ::step])
        valids.append(part.valid[::step, ::step])
    return Scene(np.concatenate(cubes, axis=1), np.concatenate(valids, axis=0))
