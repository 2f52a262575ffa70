"""A threshold with a reason, where no negatives are known."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from thonecls import metrics
from thonecls.errors import ConfigError
from thonecls.trust.evidence import all_rates, percent

FloatArray = NDArray[np.float64]
Rule = Literal["auto", "puf", "prevalence"]

FEWEST_MAPPED = 10  # unlabeled pixels, the floor under the share in puF: it favours tiny maps
LEAST_RECALL = 0.5  # of a threshold that puF may choose, for the same reason
NEAR = 0.02  # thresholds this near to the best, relatively, count as equally good


@dataclass(frozen=True)
class Curve:
    """Figures by threshold; precision and F1 are None without a prevalence."""

    thresholds: tuple[float, ...]
    tpr: tuple[float, ...]
    ppp: tuple[float, ...]
    puf: tuple[float, ...]
    floor: float
    precision: tuple[float, ...] | None = None
    f1: tuple[float, ...] | None = None


def threshold_curve(
    held_out: NDArray[Any],
    unlabeled: NDArray[Any],
    *,
    prevalence: float | None = None,
    floor: float | None = None,
) -> Curve:
    """TPR, PPP and puF = TPR² / PPP at a few hundred thresholds; precision and F1 if it can be.

    held_out: (n_p,), unlabeled: (n_u,) finite probabilities. floor: the least PPP that puF divides
    by, 10 / n_u unless told.
    """
    floor = FEWEST_MAPPED / unlabeled.size if floor is None else floor
    parts = np.linspace(0, 1, 101)
    where = (np.quantile(scores, parts) for scores in (held_out, unlabeled))
    thresholds = np.unique(np.concatenate([np.linspace(0, 1, 201), *where]).round(4))
    tpr, ppp = _above(held_out, thresholds), _above(unlabeled, thresholds)
    puf = metrics.puf(tpr, ppp, floor)
    precision, f1, _ = all_rates(tpr, ppp, np.asarray(0 if prevalence is None else prevalence))
    return Curve(
        tuple(thresholds.tolist()),
        tuple(tpr.tolist()),
        tuple(ppp.tolist()),
        tuple(puf.tolist()),
        floor,
        None if prevalence is None else tuple(precision.tolist()),
        None if prevalence is None else tuple(f1.tolist()),
    )


def _above(scores: NDArray[Any], thresholds: FloatArray) -> FloatArray:
    """The share of scores strictly above each threshold, compared as the map compares them."""
    ordered = np.sort(scores)
    below = np.searchsorted(ordered, thresholds.astype(scores.dtype), side="right")
    return np.asarray(1 - below / scores.size)


@dataclass(frozen=True)
class Choice:
    """A threshold, the rule that chose it, and why in words; recall and share are found there."""

    threshold: float
    rule: str
    reason: str
    recall: float
    share: float


def choose_threshold(curve: Curve, prevalence: float | None = None, how: Rule = "auto") -> Choice:
    """A threshold by the largest puF, or by a mapped share like the prevalence.

    auto takes the one of better estimated F1, and puF where no prevalence is known. Of
    thresholds that are about as good, the one nearest to 0.5 is taken.
    """
    if how not in ("auto", "puf", "prevalence"):
        raise ConfigError(f"'how' must be auto, puf or prevalence. Got {how!r} instead")
    if how == "prevalence" and prevalence is None:
        raise ConfigError("the rule 'prevalence' needs one: give a prevalence, or take 'puf'")
    by_puf = _by_puf(curve)
    if prevalence is None or how == "puf":
        return by_puf
    by_prevalence = _by_prevalence(curve, prevalence)
    if how == "prevalence" or by_prevalence.threshold == by_puf.threshold:
        return by_prevalence
    # F1 but for a factor. Not clipped: too high a prevalence must not ask for too large a map.
    best, other = sorted(
        (by_puf, by_prevalence), key=lambda c: -c.recall / (prevalence + c.share + 1e-12)
    )
    why = f"{best.reason}; its estimated F1 is better than at {other.threshold:.4g}"
    rule = "the estimated prevalence" if other.rule == "prevalence" else "puF"
    return replace(best, reason=f"{why}, which {rule} asks for")


def _by_puf(curve: Curve) -> Choice:
    tpr, puf = np.array(curve.tpr), np.array(curve.puf)
    puf[tpr < min(LEAST_RECALL, float(tpr.max()))] = -1
    i = _nearest_to_half(curve, puf >= (1 - NEAR) * puf.max())
    recall, share = curve.tpr[i], curve.ppp[i]
    reason = (
        f"recall² / mapped share is about the largest here: {percent(recall)} of the held-out "
        f"labels are found in {percent(share)} of the pixels"
    )
    return Choice(curve.thresholds[i], "puf", reason, recall, share)


def _by_prevalence(curve: Curve, prevalence: float) -> Choice:
    gap = np.abs(np.array(curve.ppp) - prevalence)
    i = _nearest_to_half(curve, gap <= gap.min() + NEAR * prevalence)
    recall, share = curve.tpr[i], curve.ppp[i]
    reason = (
        f"{percent(share)} of the pixels are mapped here, about as many as the class is "
        f"estimated to cover ({percent(prevalence)})"
    )
    return Choice(curve.thresholds[i], "prevalence", reason, recall, share)


def _nearest_to_half(curve: Curve, good: NDArray[np.bool_]) -> int:
    away = np.where(good, np.abs(np.array(curve.thresholds) - 0.5), np.inf)
    return int(away.argmin())
