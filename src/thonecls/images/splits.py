"""From labelled images to positive and unlabeled ones."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

import numpy as np

from thonecls.errors import LabelError
from thonecls.images.catalogue import image_spec
from thonecls.images.files import Images
from thonecls.splits import BoolArray, IntArray, Labels


@dataclass(frozen=True, eq=False)
class ImageSplit:
    """Images to learn from, and the truth to test on.

    train: indices of labelled positives, into `Images.train`, and of unlabeled images, into
    `Images.pool`; validation: the same from images that `train` leaves aside, to choose settings
    by; test: (n,) bool, which images of `Images.test` are positive; prior: the share of positives
    among the unlabeled of `train`, None where their classes are not known.
    """

    train: Labels
    validation: Labels
    test: BoolArray
    prior: float | None


def image_split(
    images: Images,
    *,
    positives: Collection[int] | None = None,
    labelled: int | None = None,
    unlabeled: int | None = None,
    validation: int = 100,
    seed: int = 0,
) -> ImageSplit:
    """Positive and unlabeled images by vPU's rule; what is not given is as in `IMAGES`.

    positives: the classes that together are the positive one; labelled: positives with a label,
    as many of each such class; unlabeled: the same share of every class, labelled ones among them,
    or, of a dataset with images of unknown class, any of those; validation: labelled positives to
    validate on, from the images that are left, which are all unlabeled ones to validate on.
    """
    spec = image_spec(images.name)
    chosen = _check_classes(images, spec.positives if positives is None else positives)
    labelled = spec.labelled if labelled is None else labelled
    unlabeled = spec.drawn if unlabeled is None else unlabeled
    _check_counts(images, labelled, unlabeled, validation)
    rng = np.random.default_rng(seed)
    order = {
        number: rng.permutation(np.flatnonzero(images.train_labels == number))
        for number in images.classes
    }
    if images.unlabeled is None:
        shares = _in_proportion(unlabeled, [len(of_class) for of_class in order.values()])
        first, rest = _cut(order, dict(zip(order, shares, strict=True)))
        drawn, left = _joined(first.values()), _joined(rest.values())
        prior = sum(len(first[number]) for number in chosen) / unlabeled
    else:
        pool = rng.permutation(len(images.unlabeled))
        drawn, left = np.sort(pool[:unlabeled]), np.sort(pool[unlabeled:])
        first, rest = _cut(order, dict(zip(chosen, _evenly(labelled, len(chosen)), strict=True)))
        prior = None
    return ImageSplit(
        train=Labels(_take(first, chosen, labelled, "train"), drawn),
        validation=Labels(_take(rest, chosen, validation, "validate"), left),
        test=np.isin(images.test_labels, chosen),
        prior=prior,
    )


def _check_classes(images: Images, positives: Collection[int]) -> list[int]:
    chosen = sorted(set(positives))
    if not chosen or not images.classes.keys() > set(chosen):
        raise LabelError(
            f"the positives must be some of the classes 0 to {len(images.classes) - 1} of "
            f"{images.name}, and not all. Got {', '.join(map(str, chosen)) or 'none'} instead"
        )
    return chosen


def _check_counts(images: Images, labelled: int, unlabeled: int, validation: int) -> None:
    there = len(images.pool)
    if not 1 <= unlabeled <= there:
        raise LabelError(
            f"unlabeled must be 1 to {there}, all that {images.name} has to draw from. "
            f"Got {unlabeled} instead"
        )
    if labelled < 1 or validation < 0:
        raise LabelError(
            "labelled must be at least 1, and validation at least 0. "
            f"Got {labelled} and {validation} instead"
        )


def _evenly(total: int, parts: int) -> list[int]:
    """The total in parts that differ by one at most.

    >>> _evenly(8, 3)
    [3, 3, 2]
    """
    return [total // parts + (part < total % parts) for part in range(parts)]


def _in_proportion(total: int, counts: list[int]) -> list[int]:
    """The total in parts as the counts are to each other, each less than one off.

    >>> _in_proportion(9, [10, 10, 5])
    [4, 3, 2]
    """
    exact = [total * count / sum(counts) for count in counts]
    parts = [int(share) for share in exact]
    by_remainder = sorted(range(len(counts)), key=lambda i: parts[i] - exact[i])
    for i in by_remainder[: total - sum(parts)]:
        parts[i] += 1
    return parts


def _cut(
    order: dict[int, IntArray], sizes: dict[int, int]
) -> tuple[dict[int, IntArray], dict[int, IntArray]]:
    """The first images of every class, and the rest."""
    first = {number: images[: sizes.get(number, 0)] for number, images in order.items()}
    return first, {number: images[sizes.get(number, 0) :] for number, images in order.items()}


def _take(groups: dict[int, IntArray], chosen: list[int], count: int, use: str) -> IntArray:
    """As many images of every chosen class, `count` in all."""
    taken = []
    for number, share in zip(chosen, _evenly(count, len(chosen)), strict=True):
        if len(groups[number]) < share:
            raise LabelError(
                f"{share} labelled images of class {number} to {use} on cannot be drawn from "
                f"{len(groups[number])}: ask for fewer of them, or for "
                f"{'more' if use == 'train' else 'fewer'} unlabeled ones"
            )
        taken.append(groups[number][:share])
    return _joined(taken)


def _joined(indices: Iterable[IntArray]) -> IntArray:
    return np.sort(np.concatenate(list(indices)))
