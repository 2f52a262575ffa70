"""A threshold with a reason, where no negatives are known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, expit, logit

from thonecls import metrics
from thonecls.errors import ConfigError
from thonecls.trust.evidence import all_rates, percent

FloatArray = NDArray[np.float64]
Rule = Literal["auto", "puf", "prevalence"]

FEWEST_MAPPED = 10  # unlabeled pixels, the floor under the share in puF: it favours tiny maps
LEAST_RECALL = 0.5  # of a threshold that puF may choose, for the same reason
NEIGHBOURS = 3  # that mutual information is estimated by
CANDIDATES = 100  # thresholds that are compared by it
SATURATED = 1e-6  # a probability nearer to 0 or 1 counts as this near
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


def tmi_threshold(unlabeled: NDArray[Any]) -> float:
    """The threshold of NTC-tMI (Teisseyre et al. 2025): that which tells most of the scores.

    Of thresholds between the lowest and the highest log-odds, the one whose yes or no shares most
    information with them, as Ross (2014) estimates it from the `NEIGHBOURS` nearest scores of the
    same side. That is nearly the entropy of yes and no: the threshold lies where scores are sparse,
    but never far from their median. It needs no labels, and suits classes of about half of the
    scene.

    unlabeled: (n,) finite probabilities; under a dozen of them have their median.

    >>> low, high = np.linspace(0.1, 0.2, 30), np.linspace(0.8, 0.9, 30)
    >>> bool(0.2 <= tmi_threshold(np.concatenate([low, high])) <= 0.8)
    True
    """
    clipped = np.clip(np.asarray(unlabeled, dtype=np.float64), SATURATED, 1 - SATURATED)
    z, k = np.sort(logit(clipped)), NEIGHBOURS
    if z.size < 4 * k or z[0] == z[-1]:
        return float(np.median(clipped))
    candidates = np.linspace(z[k], z[-1 - k], CANDIDATES)
    told = [_information(z, int(below)) for below in np.searchsorted(z, candidates, "right")]
    return float(expit(candidates[int(np.argmax(told))]))


def _information(z: FloatArray, below: int) -> float:
    """What sorted scores share with which are the lowest `below`; a side too small shares none."""
    n, k = z.size, NEIGHBOURS
    if min(below, n - below) <= k:
        return -np.inf
    # Only scores beside the threshold have neighbours on its other side that are as near.
    crowd = 0.0
    for i in range(below - k, below + k):
        low, high = (0, below) if i < below else (below, n)
        own = np.sort(np.abs(z[max(low, i - k) : min(high, i + k + 1)] - z[i]))
        reach = own[k]  # the first is the score itself
        first, after = np.searchsorted(z, z[i] - reach), np.searchsorted(z, z[i] + reach, "right")
        crowd += digamma(max(k, after - first - 1)) - digamma(k)
    sides = sum(part / n * digamma(part) for part in (below, n - below))
    return float(digamma(n) - sides - crowd / n)


def mean_threshold(unlabeled: NDArray[Any]) -> float:
    """The threshold above which lies a share of the scores as large as their mean.

    It marks as many pixels as the probabilities themselves expect.

    >>> scores = np.array([0.9, 0.6, 0.2, 0.1, 0.1, 0.1, 0.0, 0.0])  # of which two are expected
    >>> int((scores > mean_threshold(scores)).sum())
    2
    """
    scores = np.asarray(unlabeled, dtype=np.float64)
    return float(np.quantile(scores, 1 - scores.mean()))


# Thresholds from unlabeled scores alone, for any method.
CUTS: dict[str, Callable[[NDArray[Any]], float]] = {"tmi": tmi_threshold, "mean": mean_threshold}
