"""The report on a map: all that is known of it, and the same in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thonecls.errors import LabelError
from thonecls.metrics import evaluate_pu, puf
from thonecls.places import Places
from thonecls.priors import Prior
from thonecls.trust.agreement import Opinion, Stability, Votes, stability
from thonecls.trust.cautions import (
    Caution,
    Level,
    about_history,
    about_opinions,
    about_places,
    about_precision,
    about_prevalence,
    about_recall,
    about_seeds,
    about_spectra,
)
from thonecls.trust.evidence import (
    BOOTSTRAPS,
    Estimate,
    Prevalence,
    Resamples,
    auc_from_pu,
    estimate_prevalence,
    estimate_rates,
    estimate_recall,
    percent,
    resample,
    span,
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


def assess(
    held_out: NDArray[Any] | None,
    unlabeled: NDArray[Any],
    *,
    rng: np.random.Generator,
    threshold: float = 0.5,
    places: Places | None = None,
    opinions: Sequence[Opinion] = (),
    priors: Sequence[Prior] = (),
    history: Mapping[str, Sequence[float]] | None = None,
    degenerate: str | None = None,
    votes: Votes | None = None,
    covered: float | None = None,
    calibrated: bool = True,
    bootstraps: int = BOOTSTRAPS,
) -> TrustReport:
    """Gather all that is known of a map.

    held_out, unlabeled: 1-D probabilities of positives, each by a model that did not see it, and of
    pixels spread over the scene; NaN is left out. places: where labels lie; opinions: of other
    methods; priors: from spectra; history: of training, by epoch; degenerate: what
    `find_degenerate` said; votes: of maps by several seeds; covered: the share of the scene that is
    mapped, else of the unlabeled; calibrated: whether probabilities can be taken at their word.
    """
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
        positive, rest, draws, threshold=threshold, given=priors, calibrated=calibrated
    )
    share = float((rest > threshold).mean())
    found = None
    if held.size:
        blocks = None if places is None else places.blocks
        found = _judge(held, rest, prevalence, draws, threshold=threshold, rng=rng, blocks=blocks)
    agreement = None if votes is None else stability(votes)
    cautions = (
        *([Caution("degenerate", degenerate, DEGENERATE, "poor")] if degenerate else []),
        *about_places(places, None if found is None else found.recall),
        *_about_held_out(found, threshold, places),
        *about_opinions(opinions, share if covered is None else covered),
        *about_spectra(places),
        *about_history(history or {}),
        *(about_prevalence(prevalence) if places is None or places.coverage == "all" else ()),
        *about_seeds(agreement),
    )
    covered = share if covered is None else covered
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
        tuple(opinions),
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
