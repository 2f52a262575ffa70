"""What to know before a map without negatives is used: each with the next step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from thonecls.places import Places
from thonecls.trust.agreement import Opinion, Stability
from thonecls.trust.evidence import BOUND, Estimate, Prevalence, percent, span

Level = Literal["good", "check", "poor"]

FEW = 20  # held-out labels: recall 0.9 is then known from 0.7 to 0.97
WIDE = 0.25  # from the low to the high end of recall
UNLIKE = 0.15  # of what is mapped is like no label: with labels from all over, it is less
AGREED = 0.5  # of what either of two methods marks both do: less is another map
LOW_RECALL, NO_RECALL = 0.7, 0.5
LOW_PRECISION, NO_PRECISION = 0.6, 0.3
APART, APART_LEAST = 2.0, 0.005  # estimates of prevalence disagree: high > 2 low + 0.005
BEYOND = 1.25  # times the most that map and recall allow: the estimates contradict them
AGREE = 0.7  # IoU of the maps of two seeds
EPOCHS = 9  # the least whose last third shows a trend
RISE, FALL = 0.05, 0.01  # of a loss over that third; in healthy runs no positive loss rose by 0.04


@dataclass(frozen=True)
class Caution:
    """Something to know before the map is used: a name for programs, words, what to do about it."""

    name: str
    text: str
    step: str
    level: Level = "check"


def about_recall(recall: Estimate | None, labels: int) -> Iterator[Caution]:
    """None held out, few, or a recall that is low or hardly known."""
    if recall is None:
        yield Caution(
            "no-holdout",
            "No label was left out of training, so how much of the class the map finds is not "
            "known.",
            "Train with 3 folds: labels are then left out in turn.",
        )
        return
    low, high = recall.low or 0.0, recall.high or 1.0
    if labels < FEW:
        yield Caution(
            "few-labels",
            f"Only {labels} labels tell how much is found: it may be anything from "
            f"{span(low, high)}.",
            "Label more pixels; about 100, from all over the scene, work well.",
        )
    elif high - low > WIDE:
        yield Caution(
            "wide-recall",
            f"How much of the class is found is only known to lie between "
            f"{span(low, high, ' and ')}.",
            "Label more pixels, in more places.",
        )
    if recall.value < LOW_RECALL:
        yield Caution(
            "low-recall",
            f"The map misses {percent(1 - recall.value)} of labels that it did not learn from.",
            "Add labels of the kinds that are missed.",
            "poor" if recall.value < NO_RECALL else "check",
        )


def about_places(places: Places | None, recall: Estimate | None) -> Iterator[Caution]:
    """Labels that do not stand for the scene."""
    if places is None or places.coverage == "all":
        return
    where = "in a patch or two" if places.coverage == "patch" else "in a part of the scene"
    bare = f"the {places.half} has" if places.half else ""
    if not bare and places.empty:
        bare = f"the {' and the '.join(places.empty)} {'have' if len(places.empty) > 1 else 'has'}"
    found = "" if not bare else f"; {bare} none"
    told = ""
    if recall is not None and places.blocks > 2:
        told = (
            f" Of labels whose whole surroundings were left out of training, "
            f"{percent(recall.value)} were found."
        )
    yield Caution(
        "places",
        f"All labels lie {where}{found}. How much of the class the map finds where nobody labelled "
        f"is not known.{told}",
        "Label the class in other parts of the scene too; `thonecls suggest` shows places worth a "
        "look. If you know that it grows nowhere else, say that labels cover all of it.",
    )


def about_spectra(places: Places | None) -> Iterator[Caution]:
    """A map that marks much that no label looks like."""
    if places is not None and places.unlike is not None and places.unlike > UNLIKE:
        yield Caution(
            "unlike",
            f"{percent(places.unlike)} of what is mapped has a spectrum unlike that of any label.",
            "Look at some of these places; label those that are the class.",
        )


def about_opinions(opinions: Sequence[Opinion], share: float) -> Iterator[Caution]:
    """Other methods that make quite another map of the same labels."""
    if not opinions or max(opinion.agreement for opinion in opinions) >= AGREED:
        return
    first = max(opinions, key=lambda opinion: opinion.agreement)
    yield Caution(
        "opinions",
        f"A second method ({first.method}) marks {percent(first.share)} of the scene with the same "
        f"labels, this map {percent(share)}; of what either marks they share only "
        f"{percent(first.agreement)}.",
        "See below where they differ, and check points of the map: `thonecls sample` draws them.",
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
            "loss fell: the unlabeled pixels drown the labels.",
            "Train for fewer epochs, or at a lower order.",
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
            "the share of the map that is right is a rough guess.",
            "Check points: `thonecls sample` draws them, `thonecls report --verified` reads them.",
        )
    most = next((e.value for e in prevalence.estimates if e.name == BOUND), 1.0)
    if prevalence.clipped and prevalence.median > BEYOND * most:
        yield Caution(
            "contradiction",
            f"The class is estimated to cover {percent(prevalence.median)} of the pixels, but the "
            f"map and its recall leave room for {percent(most)}. The labels may show only the "
            "easy part of the class.",
            "Label more kinds of it.",
        )


def about_precision(precision: Estimate, threshold: float, better: float) -> Iterator[Caution]:
    """Much of the map is wrong; better: the threshold that is suggested instead of this one."""
    if precision.value >= LOW_PRECISION:
        return
    higher = f"Raise the threshold, to {better:.4g} say"
    yield Caution(
        "low-precision",
        f"Only about {percent(precision.value)} of what the map marks is estimated to be right.",
        f"{higher}." if better > threshold else "Check points: `thonecls sample` draws them.",
        "poor" if precision.value < NO_PRECISION else "check",
    )


def about_seeds(agreement: Stability | None) -> Iterator[Caution]:
    """Seeds whose maps differ."""
    if agreement is not None and agreement.iou < AGREE:
        yield Caution(
            "seeds",
            f"Maps by {agreement.seeds} seeds share only {percent(agreement.iou)} of what they "
            "mark.",
            "Do not rely on single patches; label more pixels.",
        )
