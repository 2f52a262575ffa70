"""What to know before a map without negatives is used: each with the next step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from thonecls.trust.evidence import BOUND, Estimate, Prevalence, percent, span
from thonecls.trust.stability import Stability

Level = Literal["good", "check", "poor"]

FEW = 20  # held-out labels: recall 0.9 is then known from 0.7 to 0.97
WIDE = 0.25  # from the low to the high end of recall
GAP = 0.2  # by which recall on the labels trained on may exceed that on the held-out ones
LOW_RECALL, NO_RECALL = 0.7, 0.5
LOW_PRECISION, NO_PRECISION = 0.6, 0.3
APART, APART_LEAST = 2.0, 0.005  # estimates of prevalence disagree: high > 2 low + 0.005
BEYOND = 1.25  # times the most that map and recall allow: the estimates contradict them
AGREE = 0.7  # IoU of the maps of two seeds
EPOCHS = 9  # the least whose last third shows a trend
RISE, FALL = 0.05, 0.01  # of a loss over that third; in healthy runs no positive loss rose by 0.04


@dataclass(frozen=True)
class Caution:
    """Something to know before the map is used: a name for programs, words with the next step."""

    name: str
    text: str
    level: Level = "check"


def about_recall(recall: Estimate | None, labels: int) -> Iterator[Caution]:
    """None held out, few, or a recall that is low or hardly known."""
    if recall is None:
        yield Caution(
            "no-holdout",
            "No labels were held out, so how much of the class the map finds is not known. Keep "
            "some labels out of the training, best whole fields of them.",
        )
        return
    low, high = recall.low or 0.0, recall.high or 1.0
    if labels < FEW:
        yield Caution(
            "few-labels",
            f"Only {labels} labels were held out: recall may be anything from "
            f"{span(low, high)}. Label more pixels, or hold out more of them.",
        )
    elif high - low > WIDE:
        yield Caution(
            "wide-recall",
            f"Recall is only known to lie between {span(low, high, ' and ')}. Label more pixels, "
            "or hold out more of them.",
        )
    if recall.value < LOW_RECALL:
        yield Caution(
            "low-recall",
            f"The map misses {percent(1 - recall.value)} of the held-out labels. Lower the "
            "threshold, train longer, or add labels of the kinds that are missed.",
            "poor" if recall.value < NO_RECALL else "check",
        )


def about_training(recall: Estimate, trained: float | None) -> Iterator[Caution]:
    """Labels learnt by heart: recall on those trained on is far above that on the others."""
    if trained is not None and trained - recall.value > GAP and trained > (recall.high or 1.0):
        yield Caution(
            "memorised",
            f"The map finds {percent(trained)} of the labels it was trained on, but only "
            f"{percent(recall.value)} of those held out: it knows the labels, not the class. "
            "Label more places, or train for fewer epochs.",
        )


def about_history(history: Mapping[str, Sequence[float]]) -> Iterator[Caution]:
    """Unlabeled domination: the positive loss rises while the total still falls."""
    positive, total = (list(history.get(name, ())) for name in ("positive", "loss"))
    if min(len(positive), len(total)) < EPOCHS:
        return
    if _trend(positive) > RISE and _trend(total) < -FALL:
        yield Caution(
            "domination",
            "Over the last third of the training the loss of the labels rose while the total "
            "loss fell: the unlabeled pixels drown the labels. Train for fewer epochs, or at a "
            "lower order.",
        )


def _trend(values: Sequence[float]) -> float:
    """The change over the last third, by a straight line; 0 where noise is as large."""
    last = np.asarray(values, dtype=np.float64)[-(len(values) // 3) :]
    epochs = np.arange(last.size)
    slope, start = np.polyfit(epochs, last, 1)
    change = float(slope * last.size)
    noise = float((last - slope * epochs - start).std())
    return change if abs(change) > 2 * noise else 0.0


def about_prevalence(prevalence: Prevalence) -> Iterator[Caution]:
    """Estimates that differ strongly, or are more than the map leaves room for."""
    low, high = prevalence.low, prevalence.high
    if high > APART * low + APART_LEAST:
        yield Caution(
            "prevalence",
            f"Estimates of how much of the scene is the class differ, from {span(low, high)}, so "
            "the share of the map that is right is a rough guess. Compare them with what you know "
            "of the area.",
        )
    most = next((e.value for e in prevalence.estimates if e.name == BOUND), 1.0)
    if prevalence.clipped and prevalence.median > BEYOND * most:
        yield Caution(
            "contradiction",
            f"The class is estimated to cover {percent(prevalence.median)} of the pixels, but the "
            f"map and its recall leave room for {percent(most)}. The labels may show only the "
            "easy part of the class: label more kinds of it, or lower the threshold.",
        )


def about_precision(precision: Estimate, threshold: float, better: float) -> Iterator[Caution]:
    """Much of the map is wrong; better: the threshold that is suggested instead of this one."""
    if precision.value >= LOW_PRECISION:
        return
    raise_it = f"Raise the threshold, to {better:.4g} say" if better > threshold else "Train longer"
    yield Caution(
        "low-precision",
        f"Only about {percent(precision.value)} of what the map marks is estimated to be "
        f"right. {raise_it}, or label more varied places of the class.",
        "poor" if precision.value < NO_PRECISION else "check",
    )


def about_seeds(agreement: Stability | None) -> Iterator[Caution]:
    """Seeds whose maps differ."""
    if agreement is not None and agreement.iou < AGREE:
        yield Caution(
            "seeds",
            f"Maps by {agreement.seeds} seeds share only {percent(agreement.iou)} of what they "
            "mark. Do not rely on single patches: average the seeds, or label more pixels.",
        )
