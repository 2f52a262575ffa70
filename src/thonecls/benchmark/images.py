"""Cells on images: trained, and scored on the test images."""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from thonecls.benchmark.plan import Cell, config_of
from thonecls.benchmark.records import short_curves
from thonecls.files import write_atomically
from thonecls.images import Images, ImageSplit, image_split
from thonecls.images.data import ItemModel
from thonecls.method.procedure import Control, Progress
from thonecls.methods import IMAGE_METHODS
from thonecls.methods.images import score_by_trees, train_images
from thonecls.metrics import evaluate


def measure_images(cell: Cell, images: Images, checkpoint: Path, kept: Path) -> dict[str, Any]:
    """The scores of a cell on images, and how its training went, accuracy by epoch included.

    checkpoint, kept: files for an unfinished training, and for its accuracy by epoch so far.
    """
    split = split_images(cell, images)
    prior = _prior(cell, split)
    config = config_of(cell, prior)
    began = time.perf_counter()
    if not IMAGE_METHODS[cell.method].network:
        assert prior is not None
        scores = score_by_trees(images, split.train, cell.seed, prior=prior)
        training = {"training_seconds": round(time.perf_counter() - began, 3)}
        return {
            "scores": asdict(evaluate(scores, split.test)),
            "prior": prior,
            "items": len(split.train.unlabeled),
            **training,
        }
    accuracy: list[float] = json.loads(kept.read_text("utf-8")) if kept.exists() else []

    def on_epoch(progress: Progress[ItemModel]) -> None:
        probability = progress.snapshot().score(images.test)
        # A checkpoint may lie before the last figure kept: that epoch comes a second time.
        accuracy[progress.epoch - 1 :] = [round(evaluate(probability, split.test).accuracy, 3)]
        write_atomically(kept, json.dumps(accuracy).encode(), sync=False)

    model = train_images(
        cell.method,
        images,
        split.train,
        cell.seed,
        config=config,
        control=Control(on_epoch, checkpoint=checkpoint, resume=True),
    )
    return {
        "scores": asdict(evaluate(model.score(images.test), split.test)),
        **({"prior": prior} if prior is not None else {}),
        "config": asdict(config),
        "items": len(split.train.unlabeled),
        "training_seconds": model.training["seconds"],
        "curves": {**short_curves(model.training["history"]), "accuracy": accuracy},
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


def _prior(cell: Cell, split: ImageSplit) -> float | None:
    if not IMAGE_METHODS[cell.method].needs_prior:
        return None
    if cell.prior != "true":
        assert cell.prior is not None
        return float(cell.prior)
    # Where the unlabeled images have no class, the share among the test images stands for theirs.
    return float(split.test.mean()) if split.prior is None else split.prior
