"""The report on a map: all that is known of it, what to know before it is used, and in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from thonecls.errors import LabelError
from thonecls.metrics import evaluate_pu, puf
from thonecls.places import Places
from thonecls.priors import Prior
from thonecls.trust.evidence import (
    BOOTSTRAPS,
    BOUND,
    Estimate,
    Opinion,
    Prevalence,
    Resamples,
    Stability,
    Votes,
    auc_from_pu,
    estimate_prevalence,
    estimate_rates,
    estimate_recall,
    percent,
    resample,
    span,
    stability,
)
from thonecls.trust.thresholds import Choice, Curve, choose_threshold, threshold_curve

DEGENERATE = "Check the labels and the nodata value with `thonecls check`, and train again."


@dataclass(frozen=True)
class HeldOut:
    """What labels tell, each scored by a model that did not learn from it.

    puf: recall² / mapped share; pauc: how often a label scores above an unlabeled pixel, auc:
    above a true negative, as estimated; suggested: a threshold by the curve, which need not be
    the one in use.
    """

    labels: int
    recall: Estimate
    precision: Estimate
    f1: Estimate
    fpr: Estimate
    puf: float
    pauc: float
    auc: float
    curve: Curve
    suggested: Choice


@dataclass(frozen=True)
class TrustReport:
    """What can be said of a map without negatives; None where it is not known.

    share: of the unlabeled that is mapped; covered: of the whole scene, where that was counted.
    """

    threshold: float
    unlabeled: int
    share: float
    covered: float
    prevalence: Prevalence
    held_out: HeldOut | None
    stability: Stability | None
    cautions: tuple[Caution, ...]
    places: Places | None = None
    opinions: tuple[Opinion, ...] = ()

    @property
    def level(self) -> Level:
        """The gravest of the cautions; good without any."""
        levels = {caution.level for caution in self.cautions}
        return "poor" if "poor" in levels else "check" if levels else "good"

    @property
    def step(self) -> str:
        """The one thing to do next: about the gravest caution, or else the first."""
        by_weight = sorted(self.cautions, key=lambda caution: caution.level != "poor")
        return by_weight[0].step if by_weight else ""

    @property
    def elsewhere(self) -> bool:
        """Whether the class may be where no label tells of it, so that recall is not known."""
        return self.places is not None and self.places.coverage != "all"

    @property
    def vague(self) -> bool:
        """Whether labels left out may not speak for the map: no recall is given then."""
        names = {caution.name for caution in self.cautions}
        return self.elsewhere or bool(names & {"opinions", "unlike"})

    @property
    def rough(self) -> bool:
        """Whether what depends on the prevalence is hardly more than a guess."""
        return any(caution.name in ("prevalence", "contradiction") for caution in self.cautions)


@dataclass(frozen=True)
class Circumstances:
    """What is known of a map beside its scores.

    places: where labels lie; opinions: of other methods; priors: from spectra; history: of
    training, by epoch; degenerate: what `find_degenerate` said; votes: of maps by several seeds;
    covered: the share of the scene that is mapped, else of the unlabeled; calibrated: whether
    probabilities can be taken at their word.
    """

    places: Places | None = None
    opinions: Sequence[Opinion] = ()
    priors: Sequence[Prior] = ()
    history: Mapping[str, Sequence[float]] = field(default_factory=dict)
    degenerate: str | None = None
    votes: Votes | None = None
    covered: float | None = None
    calibrated: bool = True


def assess(
    held_out: NDArray[Any] | None,
    unlabeled: NDArray[Any],
    known: Circumstances | None = None,
    *,
    rng: np.random.Generator,
    threshold: float = 0.5,
    bootstraps: int = BOOTSTRAPS,
) -> TrustReport:
    """Gather all that is known of a map.

    held_out, unlabeled: 1-D probabilities of positives, each by a model that did not see it, and of
    pixels spread over the scene; NaN is left out.
    """
    known = known or Circumstances()
    places, calibrated = known.places, known.calibrated
    held, rest = (
        np.empty(0) if scores is None else scores[np.isfinite(scores)]
        for scores in (held_out, unlabeled)
    )
    if rest.size == 0:
        raise LabelError("a map is judged by its unlabeled pixels. Got none; draw some thousands")
    positive = held if held.size else None
    draws = resample(
        positive,
        rest,
        rng=rng,
        threshold=threshold,
        bootstraps=bootstraps,
        calibrated=calibrated,
    )
    prevalence = estimate_prevalence(
        positive, rest, draws, threshold=threshold, given=known.priors, calibrated=calibrated
    )
    share = float((rest > threshold).mean())
    found = None
    if held.size:
        blocks = None if places is None else places.blocks
        found = _judge(held, rest, prevalence, draws, threshold=threshold, rng=rng, blocks=blocks)
    covered = share if known.covered is None else known.covered
    agreement = None if known.votes is None else stability(known.votes)
    cautions = (
        *(
            [Caution("degenerate", known.degenerate, DEGENERATE, "poor")]
            if known.degenerate
            else []
        ),
        *about_places(places, None if found is None else found.recall),
        *_about_held_out(found, threshold, places),
        *about_opinions(known.opinions, covered),
        *about_spectra(places),
        *about_history(known.history),
        *(about_prevalence(prevalence) if places is None or places.coverage == "all" else ()),
        *about_seeds(agreement),
    )
    return TrustReport(
        threshold,
        rest.size,
        share,
        covered,
        prevalence,
        found,
        agreement,
        cautions,
        places,
        tuple(known.opinions),
    )


def _judge(
    held_out: NDArray[Any],
    unlabeled: NDArray[Any],
    prevalence: Prevalence,
    draws: Resamples,
    *,
    threshold: float,
    rng: np.random.Generator,
    blocks: int | None,
) -> HeldOut:
    """What the held-out labels tell; blocks: the places that they come from."""
    recall = estimate_recall(held_out, threshold, places=blocks)
    share = float((unlabeled > threshold).mean())
    precision, f1, fpr = estimate_rates(recall.value, share, prevalence, draws, rng=rng)
    curve = threshold_curve(held_out, unlabeled, prevalence=prevalence.value)
    pauc = evaluate_pu(held_out, unlabeled, threshold=threshold).pauc / 100
    return HeldOut(
        labels=held_out.size,
        recall=recall,
        precision=precision,
        f1=f1,
        fpr=fpr,
        puf=float(puf(recall.value, share, curve.floor)),
        pauc=pauc,
        auc=auc_from_pu(pauc, prevalence.value),
        curve=curve,
        suggested=choose_threshold(curve, prevalence.value),
    )


def _about_held_out(
    found: HeldOut | None, threshold: float, places: Places | None
) -> Iterator[Caution]:
    if found is None:
        yield from about_recall(None, 0)
        return
    if places is not None and places.coverage != "all":
        return  # what labels tell holds for their part of the scene alone
    yield from about_recall(found.recall, found.labels)
    yield from about_precision(found.precision, threshold, found.suggested.threshold)


def summarise(report: TrustReport, area: str = "") -> str:
    """What the map finds and how much of it is right, in a sentence or two.

    area: of what is mapped, in words, where it is known.
    """
    if any(caution.name == "degenerate" for caution in report.cautions):
        return (
            f"The map is uninformative: it covers {percent(report.covered)} of the scene. Do not "
            "use it."
        )
    found = report.held_out
    if report.share == 0 and report.covered == 0:
        return f"The map marks nothing: no probability is above {report.threshold:.4g}."
    share = f"{percent(report.covered)} of the scene{f' ({area})' if area else ''}"
    covers = f"The map covers {share}"
    half = None if report.places is None else report.places.half
    if found is None:
        return (
            f"{covers}. How much of the class it finds, and how much of what it marks is right, "
            "is not known, because no label was left out of training."
        )
    recall, precision = found.recall, found.precision
    if report.vague:
        why = "labels come from a part of the scene only"
        why += f" (the {half} has none)" if half else ""
        if not report.elsewhere:
            other = any(caution.name == "opinions" for caution in report.cautions)
            why = "much of what it marks looks like no label"
            why = "other methods make quite another map of the same labels" if other else why
            why += f"; of labels left out of training it finds {percent(recall.value)}"
        return (
            f"{covers}. How much of the class it finds, and how much of what it marks is right, is "
            f"not known, because {why}."
        )
    right = f"{_of_marked(precision)} of what it marks is estimated to be right"
    if report.rough:
        right = (
            "how much of what it marks is right is only guessed at, "
            f"{span(precision.low, precision.high)}"
        )
    return (
        f"The map finds {_about(recall.value)} ({span(recall.low, recall.high)}) of the "
        f"class, by labels left out of training, and covers {share}; {right}."
        + (f" The {half} of the scene has no label." if half else "")
    )


def _of_marked(precision: Estimate) -> str:
    if precision.low is None:
        return _about(precision.value)
    low, high = span(precision.low, precision.high, " and ").split(" and ")
    return _about(precision.value) if f"{low} %" == high else f"between {low} and {high}"


def _about(value: float) -> str:
    text = percent(value)
    return f"about {text}" if text[0].isdigit() else text


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
    lie = f"All labels lie {where}{found}."
    if places.fair is False:
        lie = f"The class seems to go on beyond the outermost labels{found}."
    elif places.fair:
        lie += " Hardly anything like them lies beyond, so the map takes them for a fair sample."
    yield Caution(
        "places",
        f"{lie} How much of the class the map finds where nobody labelled is not known.{told}",
        "Label the class in other parts of the scene too; `thonecls suggest` shows places worth a "
        "look. If you know that it grows nowhere else, train again with the coverage 'all'.",
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
