"""The density ratio in closed form: how much likelier a pixel's surroundings are among the labels.

The paper's losses estimate r(x) = p(x | class) / p(x) by a network. Here r is a sum of kernels
around some pixels, and least squares give it at once (uLSIF: Kanamori, Hido and Sugiyama 2009):
the minimum of E_u[r²] / 2 - E_p[r] + λ |r|² / 2 is the solution of one linear system. A pixel is
judged by whitened principal components, averaged over windows about it: nothing farther away than
half a window has a say, so the place cannot be learnt. In a map, scores are averaged over
neighbours that look alike.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.linalg
import scipy.ndimage
from numpy.typing import NDArray

from thonecls.metrics import evaluate_pu, share_below
from thonecls.scene import BandStatistics, BoolArray, FloatArray
from thonecls.splits import Coverage, Folds

# What these numbers rest on: docs/adr/0014-density-ratio.md.
MOST_POSITIVES = 400  # labels that kernels lie around, and as many known negatives
EACH = 16  # of so many unlabeled pixels one has a kernel around it, at most
WIDTH = 0.7  # of the kernel: its gamma times the variance of the features
FOLDS = 5
STRENGTHS = (1e-4, 1e-3, 1e-2, 1e-1)  # λ: how freely the ratio may bend, from very to hardly
NEGATIVES = 1.0  # what known negatives weigh, against all unlabeled pixels
NEAR_FROM, NEAR_WITHIN = 0.05, 0.1  # how much better single pixels are from where they have a say
NEAR_SAYS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)  # that they may have where labels lie all over
FEWEST_FAIR = 20  # labels that tell how much of a scene the class covers
LEAST = 1e-3  # of the mean score of labels left out, which scores are divided by
ROUNDING = 1e-6  # of the sum of a kernel's eigenvalues: smaller ones are rounding
CHUNK = 2**10  # pixels whose kernels are taken at a time: these stay in the cache
REACH = 4  # pixels to each side over which scores are averaged where neighbours look alike
LEADING = 8  # components by which it is told how alike they look
STRICT = (1e-4, 1e-3)  # strengths of fits that call little the class but what labels tell
LIKE = 0.5  # of what labels left out score: more is taken for the class
RARE = 0.1  # of λ: a class that covers a smaller share is too rare for so large a λ

Array64 = NDArray[np.float64]


class Look(NamedTuple):
    """What a machine sees of a pixel: means over these windows, in pixels a side.

    power: of a component's standard deviation, by which it is scaled; 0 is white.
    """

    windows: tuple[int, ...]
    power: float


# What a machine looks at: single pixels, fields, and what lies around fields.
NEAR = (Look((1,), 0.5), Look((3,), 0.5), Look((1,), 1.0))
MIDDLE = (
    Look((11,), 0.0),
    Look((3, 9), 0.0),
    Look((5, 13), 0.0),
    Look((3, 7, 15), 0.0),
    Look((1, 3, 7), 0.5),
)
WIDE = (Look((21,), 0.0), Look((5, 21), 0.0), Look((3, 9, 31), 0.0), Look((7, 15, 31), 0.0))


class Rule(NamedTuple):
    """What the ratio looks at, how freely it may bend, and where it is cut.

    looks: beside `NEAR`, which have a say by how well they find labels of whole places that were
    left out (near "places"), labels left out at random ("labels"), or none; strengths: some of
    `STRENGTHS`, over which solutions are averaged; centres: unlabeled pixels that kernels lie
    around. cut: a part of the mean score of labels that were left out, or how it is found: "fair"
    where labels are a fair sample of the class (`fair_cut`), "gap" where they are not (`gap_cut`).
    reason: where that is, in words; why: in what case, unless it is told otherwise.
    """

    looks: tuple[Look, ...]
    strengths: tuple[float, ...]
    near: Literal["places", "labels"] | None
    centres: int
    cut: float | Literal["fair", "gap"]
    reason: str
    why: str


RULES: dict[Coverage, Rule] = {
    "all": Rule(
        MIDDLE + WIDE,
        (1e-4, 1e-3),
        "labels",  # places left out say little where every place has labels
        1000,
        "fair",
        "about halfway between the background and labels left out of training, and by how much "
        "of the scene they say the class covers",
        "labels lie all over the scene",
    ),
    "part": Rule(
        MIDDLE + WIDE,
        STRENGTHS,
        "places",
        600,
        "gap",
        "where the map hardly grows any more, between a third and two thirds of the way from the "
        "background to labels left out of training",
        "a part of the scene has no labels",
    ),
    "patch": Rule(
        MIDDLE,
        (1e-1,),
        None,
        600,
        0.4,
        "0.4 of the way from the background to labels left out of training, by a cautious fit",
        "all labels come from a patch or two",
    ),
}

# Where labels lie in a part of the scene, and hardly anything like them lies beyond: that is where
# the class is, and they are a fair sample of it.
FAIR_PART = RULES["all"]._replace(
    near=None,
    cut=0.4,
    reason="0.4 of the way from the background to labels left out of training",
    why="hardly anything like the labels lies beyond the outermost of them",
)


def looks_of(rule: Rule) -> tuple[Look, ...]:
    """All that a rule may look at."""
    return rule.looks + NEAR if rule.near else rule.looks


def windows_of(looks: tuple[Look, ...]) -> list[int]:
    """The windows that these look through, the smallest first."""
    return sorted({window for look in looks for window in look.windows})


@dataclass(frozen=True, eq=False)
class Machine:
    """r as Σ weights · exp(-gamma |x - centre|²), x being what its look sees of a pixel.

    centres: (m, d) float32; weights: (m,) float32.
    """

    look: Look
    centres: FloatArray
    gamma: float
    weights: FloatArray

    def __call__(self, seen: FloatArray) -> FloatArray:
        """(n, d) -> (n,)."""
        return np.asarray(gaussian_kernel(seen, self.centres, self.gamma) @ self.weights)


def gaussian_kernel(x: NDArray[Any], centres: NDArray[Any], gamma: float) -> NDArray[Any]:
    """exp(-gamma |x - c|²): (n, d), (m, d) -> (n, m).

    >>> x = np.array([[0.0], [2.0]], dtype=np.float32)
    >>> gaussian_kernel(x, x[:1], 0.5).round(3).tolist() == [[1.0], [np.float32(0.135)]]
    True
    """
    squares = x @ (-2 * centres.T)
    squares += np.einsum("ij,ij->i", x, x)[:, None]
    squares += np.einsum("ij,ij->i", centres, centres)
    np.maximum(squares, 0, out=squares)  # rounding must not make a distance negative
    squares *= -np.float32(gamma)
    return np.asarray(np.exp(squares, out=squares))


def window_means(components: FloatArray, valid: BoolArray, window: int) -> FloatArray:
    """Means of (k, H, W), 0 on nodata, over the valid pixels of a window about each pixel.

    Beyond the edge there is nothing, as on nodata; without a valid pixel the mean is 0.

    >>> image = np.arange(9, dtype=np.float32).reshape(1, 3, 3)
    >>> window_means(image, np.ones((3, 3), bool), 3)[0, 1].tolist()
    [3.5, 4.0, 4.5]
    """
    if window == 1:
        return components

    def total(images: NDArray[Any]) -> Array64:
        size = (1, window, window)
        mean = scipy.ndimage.uniform_filter(images, size, output=np.float64, mode="constant")
        return np.asarray(mean * window**2)

    count = np.maximum(np.rint(total(valid[None].astype(np.float64))), 1)
    return (total(components) / count).astype(np.float32)


def means_at(
    components: FloatArray, valid: BoolArray, windows: list[int], pixels: NDArray[np.int64]
) -> dict[int, FloatArray]:
    """`window_means` at some pixels alone, by flat index: (n, k) for every window.

    Sums over windows are differences of sums over all that lies above and to the left, which are
    taken once: what a window costs does not depend on the size of the image.
    """
    count, rows, columns = components.shape
    sums = np.zeros((rows + 1, columns + 1, count + 1))
    sums[1:, 1:, :count] = np.where(valid, components, 0).transpose(1, 2, 0)
    sums[1:, 1:, count] = valid
    np.cumsum(sums, axis=0, out=sums)
    np.cumsum(sums, axis=1, out=sums)
    row, column = np.divmod(pixels, columns)
    found = {}
    for window in windows:
        half = window // 2
        top, bottom = np.maximum(row - half, 0), np.minimum(row + half + 1, rows)
        left, right = np.maximum(column - half, 0), np.minimum(column + half + 1, columns)
        total = sums[bottom, right] - sums[top, right] - sums[bottom, left] + sums[top, left]
        inside = np.maximum(np.rint(total[:, count:]), 1)
        found[window] = (total[:, :count] / inside).astype(np.float32)
    return found


def see(means: dict[int, FloatArray], look: Look, spread: FloatArray) -> FloatArray:
    """What a look sees of pixels: (n, k · windows), of means (n, k) by window.

    spread: (k,) the components' standard deviations before they were made white.
    """
    seen = np.concatenate([means[window] for window in look.windows], axis=1)
    if look.power:
        seen = seen * np.tile(spread**look.power, len(look.windows))
    return np.ascontiguousarray(seen, dtype=np.float32)


def spread_of(statistics: BandStatistics) -> FloatArray:
    """Standard deviations of the components before the axes made them white: (k,)."""
    assert statistics.axes is not None
    return np.asarray(1 / np.linalg.norm(statistics.axes, axis=1), dtype=np.float32)


def solve(
    means: NDArray[Any],
    unlabeled: NDArray[Any],
    strengths: tuple[float, ...],
    negative: NDArray[Any] | None = None,
) -> Array64:
    """The least-squares ratio for several sets of positives, each by its mean: (s, f, k).

    means: (f, k), unlabeled: (n, k) features; for every strength λ the w that minimises
    E_u[(w·x)²] / 2 - w·mean + λ |w|² / 2. negative: (m, k) of pixels that are not the class; then
    γ E_n[(w·x)²] / 2 is added, γ being `NEGATIVES`: a ratio that is to be 0 there.

    >>> world = np.eye(2)  # two kinds of pixels; positives are of the first, as half of all are
    >>> solve(world[:1], world, (1e-9,)).round(3).tolist()
    [[[2.0, 0.0]]]
    """
    moments = (unlabeled.T @ unlabeled / len(unlabeled)).astype(np.float64)
    if negative is not None and len(negative):
        moments += NEGATIVES * (negative.T @ negative / len(negative)).astype(np.float64)
    diagonal, solved = np.diag_indices_from(moments), []
    for strength in strengths:
        system = moments.copy()
        system[diagonal] += strength
        factor = scipy.linalg.cho_factor(system, lower=True, overwrite_a=True)
        solved.append(scipy.linalg.cho_solve(factor, means.T.astype(np.float64)).T)
    return np.stack(solved)


class Around(NamedTuple):
    """Neighbours of labels, over which `smooth` would average the scores there.

    means: (n · m, k) over every window, of m neighbours of each of n labels; weights: (n, m), of
    which each row adds up to 1.
    """

    means: dict[int, FloatArray]
    weights: FloatArray


class Fitted(NamedTuple):
    """Solutions for every look and every strength of `STRENGTHS`, by which rules choose.

    Each is scaled so that labels left out at random score 1 on average. Of l looks and s strengths:
    held_out: (l, s, n_p) what these score; judged: (l, s, n_p) what labels score in the folds that
    were given, averaged over what lies around them if that was told, NaN where no label is left;
    by_place: the same in folds of whole places, not averaged; unlabeled: (l, s, n_u) what others
    score. sampling: (n_u,) how many pixels of the scene each of these stands for, 1 on average;
    None where all stand for as many. groups: (n_p,) of labels that tell the same, None where each
    tells on its own.
    """

    kernels: tuple[tuple[Look, FloatArray, float], ...]  # of a look: centres and gamma
    weights: tuple[Array64, ...]  # of a look: (s, centres)
    held_out: Array64
    judged: Array64
    by_place: Array64
    unlabeled: NDArray[np.floating[Any]]
    sampling: FloatArray | None = None
    groups: NDArray[np.int64] | None = None

    def by(self, rule: Rule, least_near: float = 0.0) -> Ratio:
        """The mean of a rule's solutions, and of those that look at single pixels.

        The latter, where a rule has them, have the say that labels left out give them, but
        `least_near` at least.
        """
        share, near = self._says(rule.looks, rule.strengths), 0.0
        if rule.near:
            single = self._says(NEAR, STRENGTHS)
            if rule.near == "places":
                near = max(least_near, self.near_share())
            else:
                near = max(least_near, self._near_say(share, single))
            share = (1 - near) * share + near * single
        machines = tuple(
            Machine(look, centres, gamma, (part @ weights).astype(np.float32))
            for (look, centres, gamma), weights, part in zip(
                self.kernels, self.weights, share, strict=True
            )
            if part.any()
        )
        held_out, judged, others = (
            np.einsum("ls,lsn->n", share, part)
            for part in (self.held_out, self.judged, self.unlabeled)
        )
        strengths = tuple(np.array(STRENGTHS)[share.any(axis=0)].tolist())
        return Ratio(machines, held_out, judged, others, near, self.sampling, strengths)

    def _says(self, looks: tuple[Look, ...], strengths: tuple[float, ...]) -> Array64:
        """What each solution weighs in the mean of some looks: (l, s), the sum is 1."""
        numbers = [i for i, (look, _, _) in enumerate(self.kernels) if look in looks]
        chosen = self._able(numbers, strengths)
        share = np.zeros(self.held_out.shape[:2])
        share[np.ix_(numbers, chosen)] = 1 / (len(numbers) * len(chosen))
        return share

    def _near_say(self, wide: Array64, single: Array64) -> float:
        """The say of single pixels, up to a half, with which labels left out are found best.

        wide, single: what solutions weigh in the mean of either. How well a label is found: the
        share of the unlabeled pixels that score less. Of the says that are as good as the best one,
        within two standard errors, it is the least; with few labels it is none.
        """
        left, others = (
            [np.einsum("ls,lsn->n", share, part) for share in (wide, single)]
            for part in (self.held_out, self.unlabeled)
        )
        found = np.stack(
            [
                share_below(
                    (1 - say) * left[0] + say * left[1],
                    (1 - say) * others[0] + say * others[1],
                    self.sampling,
                )
                for say in NEAR_SAYS
            ]
        )
        lost = found[found.mean(axis=1).argmax()] - found
        if self.groups is not None:
            own = [self.groups == group for group in np.unique(self.groups)]
            lost = np.stack([lost[:, some].mean(axis=1) for some in own], axis=1)
        count = lost.shape[1]
        if count < FEWEST_FAIR:
            return 0.0
        error = lost.std(axis=1, ddof=1) / np.sqrt(count)
        return NEAR_SAYS[int(np.argmax(lost.mean(axis=1) <= 2 * error))]

    def _able(self, looks: list[int], strengths: tuple[float, ...]) -> list[int]:
        """Which of these strengths tell a class as rare as this from what looks like it.

        The penalty outweighs what other pixels say unless they are a share of about λ of the scene.
        So where the map of a strength covers far less, what else is in it was never held against
        it: the largest strength that covers `RARE` λ or more is the last to have a say. A label
        alone is scored by what has learnt it, which tells nothing of the class: then all have.
        """
        if self.held_out.shape[-1] < 2:
            return [STRENGTHS.index(strength) for strength in strengths]
        scores = self.unlabeled[looks].mean(axis=0)
        mapped = np.average(scores > LIKE, axis=1, weights=self.sampling)
        able = [i for i, strength in enumerate(STRENGTHS) if mapped[i] >= RARE * strength]
        last = max(able, default=0)
        return [i for i in map(STRENGTHS.index, strengths) if i <= last] or [last]

    def strict(self) -> NDArray[np.floating[Any]]:
        """What unlabeled pixels score by windows about them and the `STRICT` fits: (n_u,)."""
        windows = [i for i, (look, _, _) in enumerate(self.kernels) if look not in NEAR]
        chosen = [STRENGTHS.index(strength) for strength in STRICT]
        return np.asarray(self.unlabeled[np.ix_(windows, chosen)].mean(axis=(0, 1)))

    def near_share(self) -> float:
        """How much of a say single pixels have, from 0 to 1, by labels of places left out.

        Where single pixels find such labels better than fields do, by how often a label scores
        above an unlabeled pixel, what lies around a pixel tells the place and not the class.
        """
        found = []
        for kind in (MIDDLE, NEAR):
            share = self._says(kind, STRENGTHS)
            left, others = (
                np.einsum("ls,lsn->n", share, part) for part in (self.by_place, self.unlabeled)
            )
            if not np.isfinite(left).any():
                return 0.0
            found.append(evaluate_pu(left, others, weights=self.sampling).pauc / 100)
        return float(np.clip((found[1] - found[0] - NEAR_FROM) / NEAR_WITHIN, 0, 1))


class Ratio(NamedTuple):
    """Machines whose sum has the mean 1 on labels that are left out; else as `Fitted`, (n,) each.

    near: how much of a say single pixels have; strengths: those that have a say.
    """

    machines: tuple[Machine, ...]
    held_out: Array64
    judged: Array64
    unlabeled: Array64
    near: float
    sampling: FloatArray | None = None
    strengths: tuple[float, ...] = ()


def fit(
    positive: dict[int, FloatArray],
    unlabeled: dict[int, FloatArray],
    spread: FloatArray,
    rng: np.random.Generator,
    *,
    rule: Rule,
    folds: Folds | None = None,
    places: Folds | None = None,
    around: Around | None = None,
    negative: dict[int, FloatArray] | None = None,
    weights: FloatArray | None = None,
    sampling: FloatArray | None = None,
    groups: NDArray[np.int64] | None = None,
    left_out: NDArray[np.int64] | None = None,
) -> Fitted:
    """The ratio of positives to unlabeled pixels; both: means (n, k) over every window of a rule.

    folds: of the positives, for `judged`, with what lies `around` them if it is told; places: for
    `by_place`; negative: means of pixels that are known not to be the class; weights: (n_p,) of the
    positives, 1 each unless told; sampling: (n_u,) of the unlabeled pixels, and groups: (n_p,) of
    the positives, as in `Fitted`. left_out: (n_p,) the fold, of `FOLDS`, in which each positive is
    left out; at random unless told.
    """
    count, others = (len(next(iter(means.values()))) for means in (positive, unlabeled))
    fold = rng.permutation(count) % min(FOLDS, count) if left_out is None else left_out
    parts = int(fold.max()) + 1
    kept = np.sort(rng.permutation(count)[:MOST_POSITIVES])
    centres = np.sort(rng.permutation(others)[: min(rule.centres, -(-others // EACH))])
    nothing = Folds(np.zeros(count, np.int64), np.zeros((1, count), dtype=bool))
    judging, by_place = folds or nothing, places or nothing
    # Which positives a solution learns from: all but a part, all, all that are apart from a fold.
    learnt = [fold != k if parts > 1 else fold == k for k in range(parts)]
    learnt += [np.ones(count, dtype=bool), *judging.apart, *by_place.apart]
    share = np.ones(count, np.float32) if weights is None else weights / weights.mean()
    root = None if sampling is None else np.sqrt(sampling)[:, None]
    refused = np.arange(0 if negative is None else len(next(iter(negative.values()))))
    if refused.size > MOST_POSITIVES:
        refused = np.sort(rng.permutation(refused)[:MOST_POSITIVES])
    solved: list[tuple[Array64, ...]] = []
    kernels = []
    buffer: FloatArray | None = None
    for look in looks_of(rule):
        of_p, of_u = see(positive, look, spread), see(unlabeled, look, spread)
        of_n = of_p[:0] if negative is None else see(negative, look, spread)
        middles = np.concatenate([of_p[kept], of_n[refused], of_u[centres]])
        gamma = WIDTH / max(_variance(of_u, sampling), 1e-12)
        basis = _basis(middles, gamma)
        p, n = (_features(x, middles, gamma, basis) for x in (of_p, of_n))
        # The largest array by far: its memory is taken once, for all looks.
        u = buffer = _features(of_u, middles, gamma, basis, buffer)
        smoothed = p
        if around is not None:
            near = gaussian_kernel(see(around.means, look, spread), middles, gamma)
            near = near.reshape(*around.weights.shape, -1)
            smoothed = np.einsum("nm,nmc->nc", around.weights, near) @ basis
        means = np.stack([share[some] @ p[some] / max(share[some].sum(), 1e-6) for some in learnt])
        if root is not None:
            u *= root  # what a pixel stands for counts for its square
        found = solve(means, u, STRENGTHS, n)
        first = parts + 1 + len(judging.apart)
        held_out, judged, left = (
            np.einsum("sij,ij->si", found[:, which], of_labels)
            for which, of_labels in (
                (fold, p),
                (parts + 1 + judging.fold, smoothed),
                (first + by_place.fold, p),
            )
        )
        scale = np.maximum((held_out * share).mean(axis=1, keepdims=True), LEAST)
        scores = found[:, parts].astype(np.float32) @ u.T
        if root is not None:
            scores /= root[:, 0]
        solution = found[:, parts] @ basis.T.astype(np.float64)
        solved.append(tuple(x / scale for x in (solution, held_out, judged, left, scores)))
        kernels.append((look, middles, gamma))
    solutions, *arrays = zip(*solved, strict=True)
    held_out, judged, left, scores = (np.stack(array) for array in arrays)
    for part, given in ((judged, judging), (left, by_place)):
        alone = ~np.array([some.any() for some in given.apart])
        part[..., alone[given.fold]] = np.nan
    return Fitted(
        tuple(kernels), tuple(solutions), held_out, judged, left, scores, sampling, groups
    )


def _variance(seen: FloatArray, sampling: FloatArray | None) -> float:
    """The sum of the variances of what is seen: (n, d)."""
    if sampling is None:
        return float(seen.var(axis=0, dtype=np.float64).sum())
    weights = sampling.astype(np.float64)
    mean = np.average(seen, axis=0, weights=weights)
    return float(np.average(np.square(seen - mean), axis=0, weights=weights).sum())


def _basis(centres: FloatArray, gamma: float) -> FloatArray:
    """The matrix (m, m) that makes kernels around centres orthonormal features (Nyström).

    By Cholesky's factor: any other root, such as the eigenvectors', turns the features alone, and
    neither the least squares nor the length of a solution knows of that.
    """
    exact = centres.astype(np.float64)  # far from 0 rounding to half as many digits would show
    kernel = gaussian_kernel(exact, exact, gamma)
    kernel[np.diag_indices_from(kernel)] += ROUNDING * len(centres)
    return np.asarray(np.linalg.inv(np.linalg.cholesky(kernel)).T, dtype=np.float32, order="C")


def _features(
    seen: FloatArray,
    centres: FloatArray,
    gamma: float,
    basis: FloatArray,
    out: FloatArray | None = None,
) -> FloatArray:
    """Kernels around centres as orthonormal features: (n, d) -> (n, m), into `out` if given."""
    found = np.empty((len(seen), len(centres)), np.float32) if out is None else out
    for start in range(0, len(seen), CHUNK):
        part = slice(start, start + CHUNK)
        np.matmul(gaussian_kernel(seen[part], centres, gamma), basis, out=found[part])
    return found


def score(
    machines: tuple[Machine, ...], components: FloatArray, valid: BoolArray, spread: FloatArray
) -> FloatArray:
    """The sum of the machines for every pixel of (k, H, W) components: (H, W)."""
    sizes = {window for machine in machines for window in machine.look.windows}
    means = {size: by_pixel(window_means(components, valid, size)) for size in sizes}
    scores = np.zeros(valid.size, np.float32)
    for start in range(0, valid.size, CHUNK):
        part = slice(start, start + CHUNK)
        here = {size: mean[part] for size, mean in means.items()}
        for machine in machines:
            scores[part] += machine(see(here, machine.look, spread))
    return scores.reshape(valid.shape)


def neighbour_difference(
    parts: Iterable[tuple[FloatArray, BoolArray]], spread: FloatArray
) -> float:
    """How much pixels differ from those beside them: the median over parts of a scene.

    parts: white components (k, H, W) and their valid pixels. The difference is the squared distance
    in the `LEADING` components, each with its own `spread`; 0 where no two pixels lie side by side.
    """
    found = []
    for components, valid in parts:
        leading = _leading(components, spread)
        squares = np.square(leading[:, :, 1:] - leading[:, :, :-1]).sum(axis=0)
        found.append(squares[valid[:, 1:] & valid[:, :-1]])
    together = np.concatenate(found) if found else np.empty(0)
    return float(np.median(together)) if together.size else 0.0


def smooth(
    scores: FloatArray,
    components: FloatArray,
    valid: BoolArray,
    spread: FloatArray,
    difference: float,
) -> FloatArray:
    """Scores (H, W) averaged over neighbours that look alike: a joint bilateral filter.

    Within `REACH` pixels a neighbour weighs exp(-d / difference), d being its squared distance as
    in `neighbour_difference`: a field is averaged over, what lies beyond its edge has no say.

    >>> field = np.array([[[0.0, 0.0, 9.0, 9.0]]], dtype=np.float32)
    >>> scores = np.array([[0.0, 1.0, 0.0, 0.5]], dtype=np.float32)
    >>> smooth(scores, field, np.ones((1, 4), bool), np.ones(1, np.float32), 0.5).tolist()
    [[0.5, 0.5, 0.25, 0.25]]
    """
    if difference <= 0:
        return scores
    leading = _leading(components, spread)
    total = np.where(valid, scores, 0).astype(np.float32)
    known = total.copy()
    weight = valid.astype(np.float32)
    rows, columns = valid.shape
    for down in range(REACH + 1):
        for across in range(-REACH, REACH + 1):
            if (down, across) <= (0, 0) or down >= rows or abs(across) >= columns:
                continue  # the other half of the neighbours is the same pairs, seen from them
            here = slice(0, rows - down), slice(max(0, -across), columns - max(0, across))
            there = slice(down, rows), slice(max(0, across), columns - max(0, -across))
            squares = np.square(leading[:, *here] - leading[:, *there]).sum(axis=0)
            alike = np.exp(squares * np.float32(-1 / difference))
            for one, other in ((here, there), (there, here)):
                share = alike * valid[other]
                total[one] += share * known[other]
                weight[one] += share
    return np.where(valid, total / np.maximum(weight, np.float32(1e-30)), scores)


def neighbours_of(
    pixels: NDArray[np.int64],
    components: FloatArray,
    valid: BoolArray,
    spread: FloatArray,
    difference: float,
) -> tuple[NDArray[np.int64], FloatArray]:
    """Every other neighbour over which `smooth` averages at some pixels, and its weight: (n, m).

    pixels: by flat index. A neighbour that has no data or lies beyond the edge weighs nothing.
    """
    reach = np.arange(-REACH, REACH + 1, 2)
    size = np.array(valid.shape)[:, None, None]
    away = np.stack(np.meshgrid(reach, reach, indexing="ij")).reshape(2, 1, -1)
    at = np.stack(np.divmod(pixels, valid.shape[1]))[:, :, None] + away
    inside = ((at >= 0) & (at < size)).all(axis=0)
    row, column = np.clip(at, 0, size - 1)
    leading = _leading(components, spread).reshape(min(LEADING, len(components)), -1)
    flat = row * valid.shape[1] + column
    squares = np.square(leading[:, flat] - leading[:, pixels, None]).sum(axis=0)
    alike = np.exp(-squares / max(difference, 1e-30)) * (
        inside & valid.flat[flat].reshape(flat.shape)
    )
    return flat, (alike / alike.sum(axis=1, keepdims=True)).astype(np.float32)


def _leading(components: FloatArray, spread: FloatArray) -> FloatArray:
    """The first white components, each with its own spread again."""
    return np.ascontiguousarray(components[:LEADING] * spread[:LEADING, None, None])


def by_pixel(image: FloatArray) -> FloatArray:
    """(k, H, W) -> (H · W, k)."""
    return np.ascontiguousarray(image.reshape(len(image), -1).T)
