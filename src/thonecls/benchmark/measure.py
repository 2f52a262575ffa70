"""Measuring a cell: its labels, its training, its map, and the scores of that."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thonecls.benchmark.paper import PAPER_PRIORS
from thonecls.benchmark.plan import Cell, config_of
from thonecls.benchmark.records import NAME, short_curves
from thonecls.datasets import Dataset, load_dataset
from thonecls.errors import FileError, LabelError
from thonecls.files import write_atomically, writing_array
from thonecls.images import Images, ImageSplit, image_split, load_images
from thonecls.method.progress import Control, Progress
from thonecls.methods import IMAGE_METHODS, METHODS, resolve_prior
from thonecls.methods.method import Scored, Trial
from thonecls.metrics import evaluate, evaluate_pu, find_degenerate
from thonecls.priors import bbe
from thonecls.scene import NO_DATA
from thonecls.splits import PROTOCOLS, Split, coverage_of, fixed_split, judging_folds
from thonecls.trust.thresholds import CUTS

CURVES = 200_000  # pixels: of a larger scene F1 is not measured after every epoch
LEFT_OUT, LEAST_LEFT = 4, 10  # parts of the labels, and labels that must remain to learn from
STEPS = 254  # of a probability in stored maps, which are uint8


class Curve:
    """A score after every epoch, on disk beside the checkpoint of an unfinished training."""

    def __init__(self, folder: Path, cell: Cell, name: str) -> None:
        self.checkpoint, self.path = kept_files(folder, cell)
        self.name = name
        self.values: list[float] = (
            json.loads(self.path.read_text("utf-8")) if self.path.exists() else []
        )

    def control(self, score: Callable[[Any], float] | None) -> Control[Any]:
        """A training that goes on where it was; score: of its model so far."""

        def on_epoch(progress: Progress[Any]) -> None:
            if score is not None:
                # A checkpoint may lie before the last figure kept: that epoch comes a second time.
                self.values[progress.epoch - 1 :] = [round(score(progress.snapshot()), 3)]
                write_atomically(self.path, json.dumps(self.values).encode(), sync=False)

        return Control(on_epoch, checkpoint=self.checkpoint, resume=True)

    def facts(self, found: Scored) -> dict[str, Any]:
        """How the training went, for a record."""
        facts: dict[str, Any] = {"training_seconds": found.seconds}
        if found.history is not None:
            facts["curves"] = {**short_curves(found.history), self.name: self.values}
        return facts


def kept_files(folder: Path, cell: Cell) -> tuple[Path, Path]:
    """Where an unfinished cell keeps its training and its score by epoch."""
    return folder / "work" / f"{cell.id}.checkpoint", folder / "work" / f"{cell.id}.curve"


def split_of(cell: Cell, data: Dataset, unlabeled: int) -> Split:
    """The labels and tests of a cell."""
    valid = data.scene.valid
    published = _published(cell, data)
    if published is not None:
        return fixed_split(*published, cell.target, unlabeled=unlabeled, valid=valid)
    seed = {} if cell.protocol == "paper" else {"seed": cell.seed}
    return PROTOCOLS[cell.protocol](
        data.truth,
        cell.target,
        positives=cell.positives,
        unlabeled=unlabeled,
        valid=valid,
        **seed,
    )


def _published(cell: Cell, data: Dataset) -> tuple[NDArray[np.uint8], NDArray[np.uint8]] | None:
    """The labels and tests that came with the scene, where a cell takes those."""
    if cell.protocol != "paper" or cell.positives != Cell.positives:
        return None
    return None if data.train is None or data.test is None else (data.train, data.test)


def measure_scene(cell: Cell, root: Path, folder: Path, left_out: bool) -> Iterator[dict[str, Any]]:
    """The scores of a cell on a scene, and how its training went, F1 by epoch included.

    left_out: then also how labels are found that a second fit does not see.
    """
    data = load_dataset(cell.dataset, root)
    split = split_of(cell, data, config_of(cell).unlabeled)
    prior = _prior(cell, data, split)
    config = config_of(cell, prior)
    of_class = data.truth == cell.target
    curve = Curve(folder, cell, "f1")

    def f1(model: Any) -> float:
        probability = model.score(data.scene, device=config.device)
        return evaluate(probability, of_class, split.test).f1

    control = curve.control(f1 if of_class.size <= CURVES else None)
    found = METHODS[cell.method].measure(
        Trial(data.scene, split.labels, cell.seed, config, control)
    )
    probability, threshold = found.probability, found.threshold
    unlabeled = probability.flat[split.labels.unlabeled]
    pu = evaluate_pu(probability[split.test & of_class], unlabeled, threshold=threshold)
    warning = find_degenerate(probability, split.labels.positive, threshold)
    _store_map(map_path(folder, cell), probability)
    yield {
        "scores": asdict(evaluate(probability, of_class, split.test, threshold=threshold)),
        "threshold": threshold,
        "pu": asdict(pu),
        "cuts": _at_cuts(probability, of_class, split),
        **({"prior": prior} if prior is not None else {}),
        **({"warning": warning} if warning else {}),
        "config": asdict(config),
        "pixels": int(of_class.size),
        "split": "published" if _published(cell, data) else "drawn",
        **curve.facts(found),
    }
    if left_out:
        yield {"left_out": find_left_out(cell, data)}


def _at_cuts(
    probability: NDArray[np.float32], of_class: NDArray[np.bool_], split: Split
) -> dict[str, dict[str, float]]:
    """The same map at thresholds that any method can take: from its unlabeled pixels alone."""
    unlabeled = probability.flat[split.labels.unlabeled]
    found = {}
    for name, cut in CUTS.items():
        threshold = cut(unlabeled[np.isfinite(unlabeled)])
        scores = asdict(evaluate(probability, of_class, split.test, threshold=threshold))
        found[name] = {"threshold": threshold} | {
            m: scores[m] for m in ("precision", "recall", "f1")
        }
    return found


def find_left_out(cell: Cell, data: Dataset) -> dict[str, float] | None:
    """Criteria without negatives, from labels that a second fit does not see; None if it cannot be.

    A part of the labels is left out, as far from the others as the class is that is to be found:
    whole places, unless labels lie all over the scene. They, and the unlabeled pixels, are scored
    by what is learnt from the rest. `prior` is what these scores say of the class's share (BBE).
    """
    split = split_of(cell, data, config_of(cell).unlabeled)
    prior = _prior(cell, data, split)
    labels, shape = split.labels, data.scene.shape
    coverage = coverage_of(labels.positive, shape)
    rng = np.random.default_rng(cell.seed)
    fold, apart = judging_folds(labels.positive, shape, LEFT_OUT, coverage, rng)
    order = np.argsort([-(fold == k).sum() for k in range(len(apart))], kind="stable")
    usable = [int(k) for k in order if apart[k].sum() >= LEAST_LEFT]
    if not usable:
        return None
    held_out = labels.positive[fold == usable[0]]
    known = replace(labels, positive=labels.positive[apart[usable[0]]])
    method = METHODS[cell.method]
    options: dict[str, Any] = {"prior": prior} if method.needs_prior else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            probability = method(
                data.scene, known, cell.seed, config=config_of(cell, prior), **options
            )
        except LabelError:  # it needs more labels than are left
            return None
    scores = [probability.flat[pixels] for pixels in (held_out, labels.unlabeled)]
    positive, unlabeled = (x[np.isfinite(x)] for x in scores)
    return {**asdict(evaluate_pu(positive, unlabeled)), "prior": min(1.0, bbe(positive, unlabeled))}


def _prior(cell: Cell, data: Dataset, split: Split) -> float | None:
    """The class prior as a number, for the methods that need it.

    "paper" is KM2's estimate: the paper's own where it has one, else ours.
    """
    if not METHODS[cell.method].needs_prior:
        return None
    if cell.prior == "true":
        return float((data.truth == cell.target).sum() / data.scene.valid.sum())
    if cell.prior == "paper":
        known = PAPER_PRIORS.get(cell.dataset, {}).get(cell.target)
        return known or resolve_prior("km2", data.scene, split.labels, cell.seed)
    return resolve_prior(cell.prior, data.scene, split.labels, cell.seed)


def measure_images(
    cell: Cell, root: Path, folder: Path, left_out: bool
) -> Iterator[dict[str, Any]]:
    """The scores of a cell on images, and how its training went, accuracy by epoch included."""
    images = load_images(cell.dataset, root)
    split = split_images(cell, images)
    prior = _share(cell, split)
    curve = Curve(folder, cell, "accuracy")

    def accuracy(model: Any) -> float:
        return evaluate(model.score(images.test), split.test).accuracy

    config = config_of(cell, prior)
    found = IMAGE_METHODS[cell.method].measure(
        Trial(images, split.train, cell.seed, config, curve.control(accuracy))
    )
    yield {
        "scores": asdict(evaluate(found.probability, split.test)),
        **({"prior": prior} if prior is not None else {}),
        **({"config": asdict(found.config)} if found.config else {}),
        "items": len(split.train.unlabeled),
        **curve.facts(found),
    }


def split_images(cell: Cell, images: Images) -> ImageSplit:
    """Which images a cell learns from."""
    return image_split(
        images,
        labelled=cell.positives,
        unlabeled=config_of(cell).unlabeled,
        validation=0,  # nothing is chosen by it
        seed=cell.seed if cell.protocol == "resampled" else 0,
    )


def _share(cell: Cell, split: ImageSplit) -> float | None:
    if not IMAGE_METHODS[cell.method].needs_prior:
        return None
    if cell.prior != "true":
        assert cell.prior is not None
        return float(cell.prior)
    # Where the unlabeled images have no class, the share among the test images stands for theirs.
    return float(split.test.mean()) if split.prior is None else split.prior


def _store_map(path: Path, probability: NDArray[np.float32]) -> None:
    with writing_array(path, np.uint8, probability.shape) as stored:
        stored[:] = np.where(np.isfinite(probability), np.rint(probability * STEPS), NO_DATA)


def map_path(folder: Path, cell: Cell) -> Path:
    """Where a cell's record leaves its map."""
    return folder / "maps" / f"{cell.id}.npy"


def load_map(folder: Path, cell: Cell) -> NDArray[np.float32]:
    """The probabilities that a cell's record left, to 1/254; NaN on nodata."""
    path = map_path(folder, cell)
    if not path.exists():
        raise FileError(
            f"there is no map of {cell} in {path.parent}: take the cell's line out of "
            f"{folder / NAME}, and it is run again"
        )
    stored = np.load(path)
    return np.where(stored == NO_DATA, np.nan, stored / np.float32(STEPS)).astype(np.float32)


# By what a dataset holds.
MEASURES = {"scene": measure_scene, "images": measure_images}
