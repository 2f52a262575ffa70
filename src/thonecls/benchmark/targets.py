"""Where methods are compared: a class of a scene, or a dataset of images."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any, Literal

from thonecls import datasets, images
from thonecls.datasets import DATASETS
from thonecls.errors import ConfigError
from thonecls.images import IMAGES
from thonecls.methods import IMAGE_METHODS, METHODS, Method

Place = tuple[str, int]  # a dataset's name and the number of one of its classes
ALL = 0  # the number in a place of images, whose positive class is of several


@dataclass(frozen=True)
class BenchmarkData:
    """A dataset that methods are compared on; what tells scenes from images is said here alone.

    on: what it holds; classes: by number; score: by which methods are compared; size: pixels, or
    values of an image; methods: those that can be run on it; where: how to get its files;
    published: whether files with labels and tests come with it; allowed: values of a cell's fields
    and settings, where not all are; prior: the one that the paper used; positives: labels, where
    not the usual number.
    """

    name: str
    on: Literal["scene", "images"]
    title: str
    classes: Mapping[int, str]
    score: str
    size: int
    methods: Mapping[str, Method]
    where: str
    is_present: Callable[[str, Path], bool]
    published: bool = False
    allowed: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    prior: Literal["paper", "true"] = "paper"
    positives: int | None = None


def data_of(dataset: str) -> BenchmarkData:
    """What is known of a dataset, by its name; of one that is not known, that it is a scene."""
    if dataset in IMAGES:
        spec = IMAGES[dataset]
        return BenchmarkData(
            dataset,
            "images",
            spec.title,
            {ALL: "all"},
            "accuracy",
            prod(spec.shape),
            IMAGE_METHODS,
            spec.where,
            images.is_present,
            allowed={"target": (ALL,), "preset": ("paper",), "protocol": ("paper", "resampled")},
            prior="true",
            positives=spec.labelled,
        )
    scene = DATASETS.get(dataset)
    return BenchmarkData(
        dataset,
        "scene",
        scene.title if scene else dataset,
        scene.classes if scene else {},
        "f1",
        prod(scene.shape) if scene else 0,
        METHODS,
        datasets.how_to_get(scene) if scene else "",
        datasets.is_present,
        published=bool(scene and scene.train),
    )


def known_places() -> list[str]:
    """The names of all datasets."""
    return [*DATASETS, *IMAGES]


def place_name(place: Place) -> str:
    """A class as tables name it, such as "Indian Pines 2, Corn-notill"; of images the dataset."""
    dataset, target = place
    title = short_title(dataset)
    return title if target == ALL else f"{title} {target}, {class_name(place)}"


def short_title(dataset: str) -> str:
    """The beginning of its title."""
    return data_of(dataset).title.partition(",")[0]


def class_name(place: Place) -> str:
    """What the class is called."""
    dataset, target = place
    return data_of(dataset).classes[target]


def check_place(place: Place) -> None:
    """Refuse a class that the dataset does not have."""
    dataset, target = place
    classes = data_of(dataset).classes
    if target not in classes:
        raise ConfigError(
            f"{dataset} has no class {target}: its classes are {min(classes)} to {max(classes)}"
            f" (`thonecls datasets {dataset}`)"
        )
