"""Class priors from spectra: the share of the unlabeled that is positive.

Two families, both with a bootstrap interval: kernel mean embeddings (KM1, KM2: Ramaswamy, Scott
and Tewari 2016) and the best bin of classifier scores (BBE: Garg et al. 2021). On spectra all of
them lean high, for classes that look alike count as one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from threadpoolctl import threadpool_limits

from thonecls.errors import ConfigError, LabelError

FloatArray = NDArray[np.float64]

MOST_UNLABELED = 4000  # more are subsampled: the kernel estimates look at every pair
MOST_POSITIVE = 1000
LEVELS = (5.0, 95.0)  # percentiles of the bootstrap: a 90 % interval

WIDTHS = 10.0 ** np.array([-1.0, -0.5, 0.0, 0.5, 1.0])  # of the kernel, times the median distance
LAMBDAS = (1.0, 8.0)  # the search; the prior is 1 - 1 / lambda, so 0.875 at most
STEP = 0.02  # of the forward difference
GRID_WIDTH = 0.04  # where the reference stops its bisection
FINE_WIDTH = 1e-3
COLUMNS = 400  # kernel columns that are looked at
RANK = 150  # directions kept of them: on Indian Pines priors within 0.01 of those at rank 600
BOOTSTRAP_RANK = 40  # enough for the spread around an estimate
BOOTSTRAP_WIDTH = 0.06
FLOOR = 1e-5  # least own part of a point, so that the equations stay well posed
TOLERANCE = 1e-5  # of a distance; a slope is then good to 1e-3

COMPONENTS = 40  # principal components for the linear classifier
SPLITS = 5  # one split into two halves is a lottery with 100 positives


class Prior(NamedTuple):
    """An estimate with its 90 % bootstrap interval (NaN without a bootstrap)."""

    name: str
    value: float
    low: float
    high: float


def km(
    positive: NDArray[Any],
    unlabeled: NDArray[Any],
    *,
    rng: np.random.Generator,
    grid: bool = False,
    bootstraps: int = 20,
) -> tuple[Prior, Prior]:
    """KM1 and KM2: mixture proportions by kernel mean embedding.

    positive: (n_p, d), unlabeled: (n_u, d) z-scored spectra. Let d(lambda) be the distance from
    lambda mean_U + (1 - lambda) mean_P to the convex hull of all points in the kernel's space: it
    stays near 0 until lambda = 1 / (1 - prior), then rises. The prior is where its slope passes a
    threshold, found by bisection; grid=True stops as early as the authors' code, whose values lie
    7 / 256 apart in lambda. The interval moves the two means and keeps the hull.
    """
    # numpy and scipy each bring a BLAS of their own; taking turns at small matrices, their threads
    # wait for each other for two thirds of the time.
    with threadpool_limits(1, user_api="blas"):
        return _km(*_checked(positive, unlabeled, rng), rng, grid, bootstraps)


def _km(
    positive: FloatArray,
    unlabeled: FloatArray,
    rng: np.random.Generator,
    grid: bool,
    bootstraps: int,
) -> tuple[Prior, Prior]:
    """`km` of checked spectra."""
    counts = len(unlabeled), len(positive)
    kernel = _factorize(np.concatenate([unlabeled, positive]), counts)
    means = np.repeat(1 / counts[0], counts[0]), np.repeat(1 / counts[1], counts[1])
    values = _crossings(_Curve(kernel, *means), None if grid else FINE_WIDTH)
    if not bootstraps:
        return Prior("km1", values[0], np.nan, np.nan), Prior("km2", values[1], np.nan, np.nan)
    coarse = kernel.keep(BOOTSTRAP_RANK)
    center = _crossings(_Curve(coarse, *means), BOOTSTRAP_WIDTH)
    moved = []
    for _ in range(bootstraps):
        of_u, of_p = (rng.multinomial(mean.size, mean) / mean.size for mean in means)
        moved.append(_crossings(_Curve(coarse, of_u, of_p), BOOTSTRAP_WIDTH))
    # The coarse kernel shifts all estimates alike: only the spread around its own is used.
    spread = np.percentile(moved, LEVELS, axis=0) - center
    low, high = np.clip(np.array(values) + spread, 0, 1 - 1 / LAMBDAS[1]).tolist()
    return Prior("km1", values[0], low[0], high[0]), Prior("km2", values[1], low[1], high[1])


def bbe(
    positive_scores: NDArray[Any],
    unlabeled_scores: NDArray[Any],
    *,
    delta: float = 0.1,
    weights: NDArray[Any] | None = None,
) -> float:
    """The best-bin estimate from held-out scores: q_u(c) / q_p(c) at the best threshold c.

    positive_scores: (n_p,), unlabeled_scores: (n_u,), higher for positives; q is the share of
    scores at or above c. The best c minimises an upper confidence bound of the ratio, at level
    delta: q_u / q_p + (1.01 / q_p) (√(ln(4/delta) / 2n_u) + √(ln(4/delta) / 2n_p)). weights: of
    the unlabeled scores, where they are no uniform sample.

    >>> bbe(np.full(50, 2.0), np.array([2.0] * 30 + [1.0] * 70))
    0.3
    """
    order = np.argsort(unlabeled_scores)
    positive, unlabeled = np.sort(positive_scores), unlabeled_scores[order]
    # Between two positive scores q_p stands still and q_u falls: the best c is a positive score.
    # Each counts once, with all that tie with it.
    thresholds = np.unique(positive)
    q_p = 1 - np.searchsorted(positive, thresholds) / positive.size
    below = np.searchsorted(unlabeled, thresholds)
    if weights is None:
        q_u = (unlabeled.size - below) / unlabeled.size
    else:
        total = np.append(0.0, np.cumsum(weights[order], dtype=np.float64))
        q_u = 1 - total[below] / total[-1]
    slack = sum(np.sqrt(np.log(4 / delta) / (2 * n)) for n in (unlabeled.size, positive.size))
    ratio = q_u / q_p
    return float(ratio[np.argmin(ratio + 1.01 / q_p * slack)])


def estimate_bbe(
    positive: NDArray[Any],
    unlabeled: NDArray[Any],
    *,
    rng: np.random.Generator,
    bootstraps: int = 200,
) -> Prior:
    """BBE on the scores of a linear classifier, positive against unlabeled.

    positive: (n_p, d), unlabeled: (n_u, d) spectra. Each half is scored by the discriminant fitted
    on the other; the estimate is the mean over a few such splits, and the interval resamples the
    scores of them all.
    """
    positive, unlabeled = _checked(positive, unlabeled, rng, least=4)  # a half has a covariance
    components = _principal_components(np.concatenate([positive, unlabeled]))
    scores = [_cross_fit(components, len(positive), rng) for _ in range(SPLITS)]
    value = float(np.mean([bbe(p, u) for p, u in scores]))
    if not bootstraps:
        return Prior("bbe", value, np.nan, np.nan)
    moved = []
    for i in range(bootstraps):
        p, u = scores[i % SPLITS]
        moved.append(bbe(rng.choice(p, p.size), rng.choice(u, u.size)))
    low, high = np.percentile(moved, LEVELS).tolist()
    return Prior("bbe", value, low, high)


def _checked(
    positive: NDArray[Any], unlabeled: NDArray[Any], rng: np.random.Generator, least: int = 2
) -> tuple[FloatArray, FloatArray]:
    """Both as float64, of the same bands, enough and not too many."""
    checked = []
    for name, spectra, fewest, most in (
        ("positive", positive, least, MOST_POSITIVE),
        ("unlabeled", unlabeled, 10, MOST_UNLABELED),
    ):
        array = np.asarray(spectra, dtype=np.float64)
        if array.ndim != 2 or array.shape[1] == 0:
            raise LabelError(
                f"{name} spectra form a pixels × bands array. Got shape {array.shape} instead; "
                "pick the labelled pixels and put the bands last"
            )
        if len(array) < fewest:
            raise LabelError(
                f"a prior needs at least {fewest} {name} spectra. Got {len(array)} instead; "
                "give more pixels"
            )
        if not np.isfinite(array).all():
            raise LabelError(f"{name} spectra hold NaN or infinite values: leave those pixels out")
        if len(array) > most:
            array = array[rng.choice(len(array), most, replace=False)]
        checked.append(array)
    if checked[0].shape[1] != checked[1].shape[1]:
        raise LabelError(
            f"positive spectra have {checked[0].shape[1]} bands, unlabeled {checked[1].shape[1]}: "
            "take both from the same scene"
        )
    return checked[0], checked[1]


@dataclass(frozen=True, eq=False)
class _Kernel:
    """A kernel matrix as factor @ factor.T + diag(own): (n, r) and (n,), n_u unlabeled first.

    What the factor misses of a point is kept as the point's own part, so the diagonal is exact:
    noise in many bands, which no low rank holds, is nearly all of this kind.
    """

    factor: FloatArray
    own: FloatArray

    def keep(self, rank: int) -> _Kernel:
        """Only the leading directions."""
        return _kernel(self.factor[:, :rank])

    def norm(self, weights: FloatArray) -> float:
        """Length in the kernel's space of Σ weights_i phi(x_i)."""
        return float(np.sqrt(((weights @ self.factor) ** 2).sum() + self.own @ weights**2))


def _kernel(factor: FloatArray) -> _Kernel:
    """A kernel of unit diagonal from its factor."""
    return _Kernel(factor, np.maximum(1 - (factor**2).sum(axis=1), 0))


def _best_gamma(points: FloatArray, counts: tuple[int, int]) -> float:
    """1 / (2 width²) of the width that sets the two means furthest apart."""
    points = points.astype(np.float32)  # enough to choose by, and half the time
    lengths = (points**2).sum(axis=1)
    squared = np.maximum(lengths[:, None] + lengths - 2 * points @ points.T, 0)
    np.fill_diagonal(squared, 0)
    median = float(np.median(squared))
    if median == 0:
        raise LabelError("half of the spectra are identical: leave out pixels without data")
    gammas = (1 / (2 * median * WIDTHS**2)).tolist()
    difference = np.repeat([1 / counts[0], -1 / counts[1]], counts)
    return float(
        max(gammas, key=lambda g: difference @ np.exp(squared * np.float32(-g)) @ difference)
    )


def _factorize(points: FloatArray, counts: tuple[int, int]) -> _Kernel:
    """The Gaussian kernel of the points: pivoted Cholesky, cut to the leading directions."""
    points = points - points.mean(axis=0)  # small numbers: distances lose less to rounding
    gamma = _best_gamma(points, counts)
    n = len(points)
    rank = min(n, max(RANK, 150_000 // n))  # a small problem can afford more
    rows = np.zeros((min(n, max(COLUMNS, rank)), n))
    left = np.ones(n)
    lengths = (points**2).sum(axis=1)
    pivot = int(lengths.argmin())  # all are equal at first: let the order of points not decide
    for k in range(len(rows)):
        if left[pivot] < 1e-6:
            rows = rows[:k]
            break
        squared = lengths + lengths[pivot] - 2 * points @ points[pivot]
        column = np.exp(-gamma * np.maximum(squared, 0))
        rows[k] = (column - rows[:k, pivot] @ rows[:k]) / np.sqrt(left[pivot])
        left = np.maximum(left - rows[k] ** 2, 0)
        pivot = int(left.argmax())
    _, directions = np.linalg.eigh(rows @ rows.T)
    return _kernel(np.ascontiguousarray(rows.T @ directions[:, ::-1][:, :rank]))


@dataclass(eq=False)
class _Curve:
    """d(lambda) for one pair of means, given as weights on the unlabeled and positive points."""

    kernel: _Kernel
    unlabeled: FloatArray
    positive: FloatArray
    known: dict[float, float] = field(default_factory=dict)

    def target(self, of_unlabeled: float, of_positive: float) -> FloatArray:
        return np.concatenate([of_unlabeled * self.unlabeled, of_positive * self.positive])

    def distance(self, at: float) -> float:
        if at not in self.known:
            target = self.target(at, 1 - at)
            self.known[at] = self.kernel.norm(target - _project(self.kernel, target))
        return self.known[at]

    def slope(self, at: float, step: float = STEP) -> float:
        return (self.distance(at + step) - self.distance(at)) / step


def _crossings(curve: _Curve, width: float | None) -> tuple[float, float]:
    """KM1 and KM2: the priors where the slope of the curve passes their thresholds.

    width: of the bisection, refined by interpolation; None for the reference's grid.
    """
    apart = curve.kernel.norm(curve.target(1, -1))
    second = 0.8 * curve.slope(1.0, 0.05) + 0.2 * apart
    first = 1 / np.sqrt(min(curve.unlabeled.size, curve.positive.size))
    if first > 0.9 * apart:  # so few points that the slope would hardly reach it
        first = second
    return _crossing(curve, first, width), _crossing(curve, second, width)


def _crossing(curve: _Curve, threshold: float, width: float | None) -> float:
    """The prior 1 - 1 / lambda where the slope, which never falls, passes one threshold."""
    left, right = LAMBDAS
    while right - left > (width or GRID_WIDTH):
        middle = (left + right) / 2
        if curve.slope(middle) > threshold:
            right = middle
        else:
            left = middle
    if width is None:
        return 1 - 2 / (left + right)
    return 1 - 1 / float(
        np.interp(threshold, [curve.slope(left), curve.slope(right)], [left, right])
    )


def _project(kernel: _Kernel, target: FloatArray) -> FloatArray:
    """Weights of the point of the convex hull that is nearest to Σ target_i phi(x_i).

    Mehrotra's predictor-corrector interior-point method. It begins feasible and stays so, so that
    weights @ slack is the duality gap of half the squared distance; a step solves one system of
    the factor's rank.
    """
    factor, own = kernel.factor, np.maximum(kernel.own, FLOOR)
    n = len(target)
    v = np.full(n, 1 / n)
    pull = factor @ ((v - target) @ factor) + own * (v - target)
    slack = pull - pull.min() + pull.std() + TOLERANCE
    for _ in range(100):
        gap = v @ slack
        if 2 * gap <= TOLERANCE * max(kernel.norm(target - v), TOLERANCE):
            break
        system = _System(factor, own, v, slack)
        step, slack_step = system.steps(-v * slack)
        size = _longest(v, step, slack, slack_step)
        ahead = (v + size * step) @ (slack + size * slack_step)
        center = (ahead / gap) ** 3 * gap / n
        step, slack_step = system.steps(center - v * slack - step * slack_step)
        size = 0.995 * _longest(v, step, slack, slack_step)
        v, slack = v + size * step, slack + size * slack_step
    return np.asarray(v / v.sum())


class _System:
    """The linear equations of one interior-point step, by the Woodbury identity."""

    def __init__(
        self, factor: FloatArray, own: FloatArray, v: FloatArray, slack: FloatArray
    ) -> None:
        self.v, self.slack = v, slack
        self.root = np.sqrt(own + slack / v)
        self.scaled = factor / self.root[:, None]
        inner = self.scaled.T @ self.scaled  # a matrix with itself: half the products
        inner[np.diag_indices_from(inner)] += 1
        self.inner = cho_factor(inner, overwrite_a=True, check_finite=False)
        self.shift = self.solve(np.ones(len(v)))

    def solve(self, right: FloatArray) -> FloatArray:
        right = right / self.root
        part = cho_solve(self.inner, right @ self.scaled, check_finite=False)
        return np.asarray((right - self.scaled @ part) / self.root)

    def steps(self, change: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Steps of v and slack that change v × slack by `change`; the sum of v stays."""
        free = self.solve(change / self.v)
        step = free - free.sum() / self.shift.sum() * self.shift
        return step, (change - self.slack * step) / self.v


def _longest(v: FloatArray, step: FloatArray, slack: FloatArray, slack_step: FloatArray) -> float:
    """The longest step, at most 1, that keeps both from turning negative."""
    return float(1 / max(1.0, (-step / v).max(), (-slack_step / slack).max()))


def _principal_components(points: FloatArray) -> FloatArray:
    """The leading components, each of unit variance: (n, at most COMPONENTS)."""
    centered = points - points.mean(axis=0)
    variances, directions = np.linalg.eigh(centered.T @ centered / len(points))
    if variances[-1] <= 0:
        raise LabelError("all spectra are identical: leave out pixels without data")
    variances, directions = variances[-COMPONENTS:], directions[:, -COMPONENTS:]
    kept = variances > 1e-10 * variances[-1]
    return np.asarray(centered @ directions[:, kept] / np.sqrt(variances[kept]))


def _cross_fit(
    components: FloatArray, positives: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Held-out scores of the positives, which come first, and of the unlabeled."""
    label = np.arange(len(components)) < positives
    # Halves of each kind by themselves: both models see positives.
    half = np.concatenate([rng.permutation(n) % 2 for n in (positives, (~label).sum())])
    scores = np.zeros(len(components))
    for side in (0, 1):
        model = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto", priors=[0.5, 0.5])
        model.fit(components[half != side], label[half != side])
        scores[half == side] = model.decision_function(components[half == side])
    return scores[:positives], scores[positives:]


def estimate_priors(
    names: Sequence[str],
    positive: NDArray[Any],
    unlabeled: NDArray[Any],
    *,
    seed: int = 0,
    interval: bool = True,
) -> list[Prior]:
    """The priors by some of `ESTIMATORS`, in the order of the names; interval: bootstrap them.

    positive: (n_p, d), unlabeled: (n_u, d) z-scored spectra. What two estimators share is found
    once.
    """
    check_estimators(names)
    options = {} if interval else {"bootstraps": 0}
    found: dict[str, Prior] = {}
    for name in names:
        if name not in found:
            rng = np.random.default_rng(seed)
            priors = ESTIMATORS[name](positive, unlabeled, rng=rng, **options)
            found.update((prior.name, prior) for prior in priors)
    return [found[name] for name in names]


ESTIMATORS: dict[str, Callable[..., Iterable[Prior]]] = {
    "km1": km,
    "km2": km,
    "bbe": lambda *spectra, **options: [estimate_bbe(*spectra, **options)],
}


def usable(prior: Prior) -> float:
    """The value of an estimate that a method is to work with."""
    if not 0 < prior.value < 1:
        raise ConfigError(
            f"{prior.name} estimates a class prior of {prior.value:g}, with which nothing can be "
            "trained: give a number, or take another estimator"
        )
    return prior.value


def check_estimators(names: Iterable[str]) -> None:
    """Refuse names that are not in `ESTIMATORS`."""
    unknown = [name for name in names if name not in ESTIMATORS]
    if unknown:
        raise ConfigError(
            f"no estimator of the prior is called {unknown[0]!r}: "
            f"take one of {', '.join(ESTIMATORS)}"
        )
