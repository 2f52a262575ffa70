"""What tells one piece of work from another, so that neither is taken for the other."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import numpy as np

from thonecls.files import files_below
from thonecls.io.inputs import LabelInput, SceneInput
from thonecls.io.options import LabelOptions, SceneOptions
from thonecls.io.raster.folder import data_file
from thonecls.method.config import TrainConfig
from thonecls.methods import METHODS
from thonecls.workflow.options import TrainOptions

SIDE, WINDOWS = 16, 3  # pixels of the windows that are looked at, and how many down and across


def asked_of_training(
    scene: SceneInput,
    labels: LabelInput,
    config: TrainConfig,
    options: TrainOptions,
    scene_options: SceneOptions | None,
    label_options: LabelOptions | None,
) -> dict[str, Any]:
    """All that a training's outcome depends on, as JSON has it."""
    asked = {
        "cube": [str(one.path.resolve()) for one in scene.parts] or str(scene.path.resolve()),
        "scene content": scene_stamp(scene),
        "labels": str(labels.path.resolve()),
        "labelled pixels": _labels_digest(labels),
        **asdict(scene_options or SceneOptions()),
        **asdict(label_options or LabelOptions()),
        **asdict(options),
        **METHODS[options.method].used_settings(config),
    }
    told: dict[str, Any] = json.loads(json.dumps(asked))
    return told


def scene_stamp(scene: SceneInput) -> list[Any]:
    """What a scene's file shows of being another, or changed: size, time, a digest of windows."""
    if scene.parts:
        return [
            [part.name, scene_stamp(one)]
            for part, one in zip(scene.grid.parts, scene.parts, strict=True)
        ]
    path = scene.path
    files = files_below(path) if path.is_dir() else sorted({path, data_file(path)})
    stats = [file.stat() for file in files]
    digest = hashlib.sha256()
    for rows, columns in _windows(scene.grid.shape):
        part = scene.source.read(rows, columns)
        digest.update(np.where(part.valid, part.cube, 0).astype("<f4").tobytes())
        digest.update(np.packbits(part.valid).tobytes())
    times = [stat.st_mtime_ns // 1000 for stat in stats]  # not all file systems tell less
    return [sum(stat.st_size for stat in stats), max(times), digest.hexdigest()]


def _windows(shape: tuple[int, int]) -> Iterator[tuple[slice, slice]]:
    down, across = (
        np.unique(np.linspace(0, max(0, length - SIDE), WINDOWS).astype(int)).tolist()
        for length in shape
    )
    for row in down:
        for column in across:
            yield slice(row, min(row + SIDE, shape[0])), slice(column, min(column + SIDE, shape[1]))


def _labels_digest(labels: LabelInput) -> str:
    """Of the pixels as they are learnt from, whatever their file is like."""
    digest = hashlib.sha256()
    for mask in (labels.mask, labels.negatives, labels.answers):
        digest.update(b"none" if mask is None else np.packbits(mask).tobytes())
    return digest.hexdigest()


def asked_of_map(scene: SceneInput, options: SceneOptions | None, **others: Any) -> dict[str, Any]:
    """All that a map's windows and files depend on, besides the models, of which its tags tell."""
    return {
        "scene": str(scene.path.resolve()),
        "scene content": scene_stamp(scene),
        **asdict(options or SceneOptions()),
        **others,
    }
