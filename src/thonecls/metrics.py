"""How good a map is, where the truth is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import precision_recall_fscore_support, roc_auc_score

from thonecls.errors import LabelError

EVERYWHERE = 0.97  # of a scene: a map of more says the same everywhere
NOWHERE = 0.1  # of the labels: a map of fewer has not learnt the class
BY_HEART = 0.1  # of the labels: a map with fewer pixels beside them knows only them


@dataclass(frozen=True)
class Scores:
    """Scores against the truth, in percent; `pixels` tested, of which `positives` are true."""

    precision: float
    recall: float
    f1: float
    auc: float
    accuracy: float
    pixels: int
    positives: int


def evaluate(
    probability: NDArray[Any],
    truth: NDArray[np.bool_],
    test: NDArray[np.bool_] | None = None,
    *,
    threshold: float = 0.5,
) -> Scores:
    """Precision, recall, F1, ROC AUC and overall accuracy over the tested pixels.

    probability, truth, test: (H, W). A pixel is mapped where its probability is strictly above
    the threshold. Leave training positives out of `test`. Empty denominators give 0, and AUC is
    NaN where only one class is tested.

    >>> p, t = np.array([[0.9, 0.8, 0.1, 0.5]]), np.array([[True, False, False, True]])
    >>> s = evaluate(p, t)
    >>> s.precision, s.recall, s.f1, s.auc
    (50.0, 50.0, 50.0, 75.0)
    """
    if probability.shape != truth.shape or (test is not None and test.shape != truth.shape):
        raise LabelError(f"the map has shape {probability.shape}, its truth {truth.shape}")
    where = np.isfinite(probability) if test is None else test & np.isfinite(probability)
    scores, wanted = probability[where], truth[where].astype(bool)
    if wanted.size == 0:
        raise LabelError("no pixel is left to test on: check the truth's labelled pixels")
    precision, recall, f1, _ = precision_recall_fscore_support(
        wanted, scores > threshold, average="binary", zero_division=0
    )
    both = bool(wanted.any() and not wanted.all())
    auc = float(roc_auc_score(wanted, scores)) if both else float("nan")
    return Scores(
        100 * float(precision),
        100 * float(recall),
        100 * float(f1),
        100 * auc,
        100 * float(((scores > threshold) == wanted).mean()),
        int(wanted.size),
        int(wanted.sum()),
    )


@dataclass(frozen=True)
class PUScores:
    """What can be said of a map without negatives, in percent but for `puf`.

    recall: of the held-out positives (TPR); share: of the unlabeled pixels that are mapped (PPP);
    puf: recall² / share, proportional to precision × recall (Lee and Liu 2003); pauc: how often a
    positive scores above an unlabeled pixel, π/2 + (1 - π) AUC for a class of share π.
    """

    recall: float
    share: float
    puf: float
    pauc: float


def evaluate_pu(
    positive: NDArray[Any],
    unlabeled: NDArray[Any],
    *,
    threshold: float = 0.5,
    weights: NDArray[Any] | None = None,
) -> PUScores:
    """Scores from the probabilities of held-out positives and of unlabeled pixels, both 1-D.

    weights: of the unlabeled pixels, where they are no uniform sample. puf favours tiny maps: the
    share is counted as at least one unlabeled pixel.

    >>> evaluate_pu(np.array([0.9] * 9 + [0.1]), np.array([0.8] * 2 + [0.2] * 8)).puf
    4.05
    """
    weights = np.ones(unlabeled.shape) if weights is None else weights
    positive, finite = positive[np.isfinite(positive)], np.isfinite(unlabeled)
    unlabeled, weights = unlabeled[finite], weights[finite]
    if not (positive.size and unlabeled.size):
        raise LabelError("held-out positives and unlabeled pixels are needed, at least one each")
    recall = float((positive > threshold).mean())
    share = float(np.average(unlabeled > threshold, weights=weights))
    pauc = float(share_below(positive, unlabeled, weights).mean())
    value = float(puf(recall, share, 1 / unlabeled.size))
    return PUScores(100 * recall, 100 * share, round(value, 12), 100 * pauc)


def share_below(
    scores: NDArray[Any], others: NDArray[Any], weights: NDArray[Any] | None = None
) -> NDArray[np.float64]:
    """The share of the others that score less than each, (n,); those that tie count half.

    weights: of the others, where they are no uniform sample.

    >>> share_below(np.array([0.0, 2.0, 9.0]), np.array([1.0, 2.0, 2.0, 3.0])).tolist()
    [0.0, 0.5, 1.0]
    """
    order = np.argsort(others)
    counts = np.ones(len(order)) if weights is None else weights[order].astype(np.float64)
    below = np.append(0.0, np.cumsum(counts))
    first, last = (np.searchsorted(others[order], scores, side) for side in ("left", "right"))
    return np.asarray((below[first] + below[last]) / (2 * below[-1]))


def puf(
    recall: float | NDArray[np.float64], share: float | NDArray[np.float64], floor: float
) -> NDArray[np.float64]:
    """recall² / share, proportional to precision × recall (Lee and Liu 2003).

    recall: of held-out positives; share: of the unlabeled that are mapped, counted as at least
    `floor`, as a map of almost nothing would win otherwise.

    >>> round(float(puf(0.9, 0.2, 0.01)), 2)
    4.05
    """
    return np.asarray(recall**2 / np.maximum(share, floor))


def find_degenerate(
    probability: NDArray[np.float32],
    positive: NDArray[np.int64],
    threshold: float = 0.5,
    *,
    pixels: float | None = None,
) -> str | None:
    """What is wrong with a map that says (nearly) the same everywhere, and what to try.

    probability: (H, W), NaN on nodata; positive: flat indices of the labelled pixels of the class;
    pixels: how many are mapped in all, where `probability` is but a sample.

    >>> find_degenerate(np.full((4, 4), 0.9, dtype=np.float32), np.array([2]))[:38]
    '100.0 % of the scene is mapped as the '
    """
    mapped = probability > threshold
    share = mapped.sum() / max(1, np.isfinite(probability).sum())
    recall = mapped.flat[positive].mean()
    if share > EVERYWHERE:
        return (
            f"{share:.1%} of the scene is mapped as the class: the map is uninformative. Check the "
            "labels, train longer, or take another method; a class prior that is too large also "
            "does this"
        ).replace("%", " %")
    if recall < NOWHERE:
        return (
            f"{1 - recall:.1%} of the labelled pixels themselves are not mapped: the map is "
            "uninformative. Train longer or at a lower order, or take another method; a class "
            "prior that is too small also does this"
        ).replace("%", " %")
    if (mapped.sum() if pixels is None else pixels) < (1 + BY_HEART) * positive.size:
        return (
            "hardly a pixel is mapped but the labelled ones: they were memorised (overfitting), "
            "unless they are all there is of the class. Train for fewer epochs, or take another "
            "method"
        )
    return None
