"""Where methods are compared: a class of a scene, or a dataset of images."""

from __future__ import annotations

from pathlib import Path

from thonecls import datasets, images
from thonecls.datasets import DATASETS
from thonecls.errors import ConfigError
from thonecls.images import IMAGES

Place = tuple[str, int]  # a dataset's name and the number of one of its classes
ALL = 0  # the number in a place of images, whose positive class is of several


def known_places() -> list[str]:
    """The names of all datasets."""
    return [*DATASETS, *IMAGES]


def is_images(dataset: str) -> bool:
    """Whether a dataset is one of images, not a scene."""
    return dataset in IMAGES


def score_of(dataset: str) -> str:
    """The score by which methods are compared on a dataset."""
    return "accuracy" if is_images(dataset) else "f1"


def full_title(dataset: str) -> str:
    """A dataset in words."""
    return IMAGES[dataset].title if is_images(dataset) else DATASETS[dataset].title


def place_name(place: Place) -> str:
    """A class as tables name it, such as "Indian Pines 2, Corn-notill"; of images the dataset."""
    dataset, target = place
    title = short_title(dataset)
    return title if is_images(dataset) else f"{title} {target}, {class_name(place)}"


def short_title(dataset: str) -> str:
    """The beginning of its title."""
    return full_title(dataset).partition(",")[0]


def class_name(place: Place) -> str:
    """What the class is called."""
    dataset, target = place
    return "all" if is_images(dataset) else DATASETS[dataset].classes[target]


def check_place(place: Place) -> None:
    """Refuse a class that the dataset does not have."""
    dataset, target = place
    classes = {ALL: "all"} if is_images(dataset) else DATASETS[dataset].classes
    if target not in classes:
        raise ConfigError(
            f"{dataset} has no class {target}: its classes are {min(classes)} to {max(classes)}"
            f" (`thonecls datasets {dataset}`)"
        )


def where_from(dataset: str) -> str:
    """How to get its files."""
    if is_images(dataset):
        return IMAGES[dataset].where
    return datasets.how_to_get(DATASETS[dataset])


def has_published_split(dataset: str) -> bool:
    """Whether files with labels and tests come with the scene."""
    return not is_images(dataset) and bool(DATASETS[dataset].train)


def is_present(dataset: str, root: Path) -> bool:
    """Whether its files are there."""
    if is_images(dataset):
        return images.is_present(dataset, root)
    return datasets.is_present(dataset, root)


def pixels_of(dataset: str) -> int:
    """Pixels of a scene."""
    rows, columns = DATASETS[dataset].shape
    return rows * columns
