"""Networks of several seeds and folds: trained here one after the other, or all on a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from thonecls.errors import ConfigError
from thonecls.io.inputs import LabelInput, SceneInput, is_raster
from thonecls.method.config import TrainConfig
from thonecls.method.members import checkpoints
from thonecls.method.model import Model
from thonecls.method.novelty import fit_novelty
from thonecls.methods import METHODS
from thonecls.methods.spectral_model import AnyModel
from thonecls.parallel import result_of, run_all, workers
from thonecls.scene import BoolArray, FloatArray, Scene, standardize
from thonecls.workflow.crossfit import control_of, labels_of, parts_without, train_fold
from thonecls.workflow.options import Running, Task, TrainOptions
from thonecls.workflow.run_folder import checkpoint_path, model_path
from thonecls.workflow.spectra import sample_spectra

LOOKED_AT = 5000  # pixels of the scene by which novelty is judged

M = TypeVar("M", bound=AnyModel)


def complete(model: M, task: Task, spectra: FloatArray) -> M:
    """The model with what it must know of its scene to judge another; spectra: (n, C) of it."""
    as_scene_ = Scene(np.ascontiguousarray(spectra.T)[:, None], np.ones((1, len(spectra)), bool))
    usual = fit_novelty(standardize(as_scene_, model.statistics)[:, 0].T)
    training = {**model.training, "label": task.options.label}
    return replace(model, novelty=usual, wavelengths=task.scene.wavelengths, training=training)


def usual_spectra(task: Task) -> FloatArray:
    """Spectra of the scene by which novelty is judged, (n, C)."""
    return sample_spectra(task.scene.source, LOOKED_AT, np.random.default_rng(task.options.seed))


def train_seed(task: Task, index: int, running: Running) -> Model:
    """The network of one seed, saved; one that is there already is not trained again."""
    count, seed = task.options.seeds, task.options.seed + index
    path, kept = model_path(task.out, index, count), checkpoint_path(task.out, index, count)
    if running.resume and path.exists() and not checkpoints(kept):
        return Model.load(path)
    trained = METHODS[task.options.method].train(
        task.scene.source,
        labels_of(task, task.positives, seed),
        config=task.config,
        generator=torch.Generator().manual_seed(seed),
        control=control_of(running, kept, running.on_step),
    )
    model = complete(trained, task, usual_spectra(task))
    model.save(path)  # first of all: the rest can be made again from it
    if model.training["finished"]:
        for file in checkpoints(kept):
            file.unlink()
    return model


def train_on_cluster(task: Task, running: Running) -> None:
    """Train the networks of all seeds and folds on a cluster, each into its file.

    Workers must see the same files. One that dies is replaced: its training goes on from the last
    checkpoint, on whichever worker takes it. What is trained already is left as it is.
    """
    scenes = task.scene.parts or (task.scene,)
    if not all(map(is_raster, scenes)):
        raise ConfigError(
            f"a cluster reads rasters only: save {scenes[0].path.name} as GeoTIFF or ENVI"
        )
    options, source = task.options, task.scene.source
    folds = (
        parts_without(source, task.positives, options.folds, options.seed) if options.folds else {}
    )
    packed = pack(replace(task, out=task.out.resolve()))

    def calls() -> Iterator[tuple[int, Callable[..., None], tuple[Any, ...]]]:
        for index in range(options.seeds):
            yield index, train_packed_seed, (packed, index, alone)
        for number, some in folds.items():
            call = packed, np.flatnonzero(some), number, alone
            yield options.seeds + number, train_packed_fold, call

    total, alone = options.seeds + len(folds), running.alone(resume=True)
    with workers(dask=running.dask) as (pool, room):
        for done, (_, future) in enumerate(run_all(pool, room, calls()), 1):
            result_of(future)
            if running.on_training is not None:
                running.on_training(done, total)


@dataclass(frozen=True, eq=False)
class PackedTask:
    """A task as it is sent to workers: labels by their flat indices, as masks are large."""

    out: Path
    scene: SceneInput
    labels: LabelInput
    masks: dict[str, NDArray[np.int64]]
    config: TrainConfig
    options: TrainOptions

    def unpack(self) -> Task:
        """The task as it was."""
        shape = self.scene.grid.shape
        masks = {name: mask_of(pixels, shape) for name, pixels in self.masks.items()}
        positives = masks["positives"]
        labels = replace(
            self.labels,
            mask=masks["mask"],
            negatives=masks.get("negatives"),
            answers=masks.get("answers"),
        )
        return Task(self.out, self.scene, labels, positives, self.config, self.options)


def pack(task: Task) -> PackedTask:
    """A task for workers."""
    empty = np.empty((0, 0), dtype=bool)
    of_labels = {"mask": task.labels.mask} | {
        name: mask
        for name in ("negatives", "answers")
        if (mask := getattr(task.labels, name)) is not None
    }
    masks = {"positives": task.positives, **of_labels}
    pixels = {name: np.flatnonzero(mask) for name, mask in masks.items()}
    labels = replace(task.labels, mask=empty, negatives=None, answers=None)
    return PackedTask(task.out, task.scene, labels, pixels, task.config, task.options)


def mask_of(pixels: NDArray[np.int64], shape: tuple[int, int]) -> BoolArray:
    """The (H, W) mask of pixels by flat index."""
    mask: BoolArray = np.zeros(shape, dtype=bool)
    mask.flat[pixels] = True
    return mask


def train_packed_seed(packed: PackedTask, index: int, running: Running) -> None:
    """On a worker: the network of a seed, from its checkpoint if another worker began it."""
    train_seed(packed.unpack(), index, running)


def train_packed_fold(
    packed: PackedTask, positive: NDArray[np.int64], number: int, running: Running
) -> None:
    """On a worker: the network that has not seen a fold."""
    task = packed.unpack()
    some = mask_of(positive, task.scene.grid.shape)
    train_fold(task, some, number, torch.get_num_threads(), running)
