"""The density ratio in closed form: how much likelier a pixel's surroundings are among the labels.

The paper's losses estimate r(x) = p(x | class) / p(x) by a network. Here r is a sum of kernels
around some pixels, and least squares give it at once (uLSIF: Kanamori, Hido and Sugiyama 2009):
the minimum of E_u[r²] / 2 - E_p[r] + λ |r|² / 2 is the solution of one linear system. A pixel is
judged by whitened principal components, averaged over windows about it: nothing farther away than
half a window has a say, so the place cannot be learnt.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.ndimage
from numpy.typing import NDArray

from thonecls.scene import BoolArray, FloatArray
from thonecls.splits import Coverage

# What these numbers rest on: docs/adr/0014-density-ratio.md.
CENTRES = 1000  # unlabeled pixels that kernels lie around
MOST_POSITIVES = 400  # labels that kernels lie around
WIDTH = 0.7  # of the kernel: its gamma times the variance of the features
FOLDS = 5
RANK = 1e-5  # of the largest eigenvalue of a kernel: smaller ones are rounding
CHUNK = 2**13  # pixels that are scored at a time

Array64 = NDArray[np.float64]
IntArray = NDArray[np.int64]


class Look(NamedTuple):
    """What a machine sees of a pixel: means over these windows, in pixels a side.

    power: of a component's standard deviation, by which it is scaled; 0 is white.
    """

    windows: tuple[int, ...]
    power: float


LOOKS = (
    Look((11,), 0.0),
    Look((3, 9), 0.0),
    Look((5, 13), 0.0),
    Look((3, 7, 15), 0.0),
    Look((1, 3, 7), 0.5),
)
WINDOWS = sorted({window for look in LOOKS for window in look.windows})
HALO = WINDOWS[-1] // 2


class Rule(NamedTuple):
    """How freely the ratio may bend (strengths λ, whose solutions are averaged), and the cut.

    cut: a part of the mean score of labels that were left out; fair: whether labels are a fair
    sample of the class, so that they tell how much of the scene it covers. Then the cut lies
    midway between this one and the one that maps so much.
    """

    strengths: tuple[float, ...]
    cut: float
    fair: bool
    reason: str


RULES: dict[Coverage, Rule] = {
    "all": Rule(
        (1e-4, 1e-3),
        0.5,
        True,
        "about halfway between the background and labels left out of training, and by how much "
        "of the scene they say the class covers, as labels lie all over it",
    ),
    "part": Rule(
        (1e-4, 1e-3, 1e-2, 1e-1),
        0.35,
        False,
        "a third of the way from the background to labels left out of training, as a part of the "
        "scene has no labels and the class may look a little different there",
    ),
    "patch": Rule(
        (1e-1,),
        0.4,
        False,
        "0.4 of the way from the background to labels left out of training, by the most cautious "
        "fit, as all labels come from a patch or two",
    ),
}


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


def gaussian_kernel(x: FloatArray, centres: FloatArray, gamma: float) -> FloatArray:
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


def see(means: dict[int, FloatArray], look: Look, spread: FloatArray) -> FloatArray:
    """What a look sees of pixels: (n, k · windows), of means (n, k) by window.

    spread: (k,) the components' standard deviations before they were made white.
    """
    seen = np.concatenate([means[window] for window in look.windows], axis=1)
    if look.power:
        seen = seen * np.tile(spread**look.power, len(look.windows))
    return np.ascontiguousarray(seen, dtype=np.float32)


def solve(means: NDArray[Any], unlabeled: NDArray[Any], strengths: tuple[float, ...]) -> Array64:
    """The least-squares ratio for several sets of positives, each by its mean: (s, f, k).

    means: (f, k), unlabeled: (n, k) features; for every strength λ the w that minimises
    E_u[(w·x)²] / 2 - w·mean + λ |w|² / 2.

    >>> world = np.eye(2)  # two kinds of pixels; positives are of the first, as half of all are
    >>> solve(world[:1], world, (1e-9,)).round(3).tolist()
    [[[2.0, 0.0]]]
    """
    moments = (unlabeled.T @ unlabeled / len(unlabeled)).astype(np.float64)
    values, vectors = np.linalg.eigh(moments)
    along, values = means @ vectors, np.maximum(values, 0)
    return np.stack([(along / (values + strength)) @ vectors.T for strength in strengths])


class Fitted(NamedTuple):
    """Machines whose sum has the mean 1 on labels that are left out.

    held_out: (n_p,) what labels score that are left out at random; by_place: (n_p,) what they
    score in the folds that were given, NaN where no label is left; unlabeled: (n_u,) what others
    score.
    """

    machines: tuple[Machine, ...]
    held_out: Array64
    by_place: Array64
    unlabeled: Array64


def fit(
    positive: dict[int, FloatArray],
    unlabeled: dict[int, FloatArray],
    spread: FloatArray,
    rule: Rule,
    rng: np.random.Generator,
    *,
    places: IntArray | None = None,
    apart: BoolArray | None = None,
) -> Fitted:
    """The ratio of positives to unlabeled pixels; both: means (n, k) over every window.

    places: (n_p,) the fold of each positive, by where it lies; apart: (folds, n_p) which positives
    lie far enough from a fold to be learnt from while it is left out; see `judging_folds`.

    Every look and every strength has its own solution. Those of one strength are added over the
    looks and scaled so that the positives, each scored without its own fold, have the mean 1; then
    the strengths are averaged.
    """
    count = len(positive[WINDOWS[0]])
    folds = min(FOLDS, count)
    fold = rng.permutation(count) % folds
    kept = np.sort(rng.permutation(count)[:MOST_POSITIVES])
    others = len(unlabeled[WINDOWS[0]])
    centres = np.sort(rng.permutation(others)[:CENTRES])
    if places is None or apart is None:
        places, apart = np.zeros(count, np.int64), np.zeros((1, count), dtype=bool)
    # Which positives a solution learns from: all but a fold, all, all that are far from a place.
    learnt = [fold != k if folds > 1 else fold == k for k in range(folds)]
    learnt += [np.ones(count, dtype=bool), *apart]
    held_out, by_place, scores = (
        np.zeros((len(rule.strengths), n)) for n in (count, count, others)
    )
    weights, bases = [], []
    for look in LOOKS:
        of_p, of_u = see(positive, look, spread), see(unlabeled, look, spread)
        around = np.concatenate([of_p[kept], of_u[centres]])
        gamma = WIDTH / max(float(of_u.var(axis=0, dtype=np.float64).sum()), 1e-12)
        basis = _basis(around, gamma)
        p, u = (gaussian_kernel(x, around, gamma) @ basis for x in (of_p, of_u))
        means = np.stack([p[some].sum(axis=0) / max(1, some.sum()) for some in learnt])
        found = solve(means, u, rule.strengths)
        held_out += np.einsum("sij,ij->si", found[:, fold], p)
        by_place += np.einsum("sij,ij->si", found[:, folds + 1 + places], p)
        scores += found[:, folds].astype(np.float32) @ u.T
        weights.append(found[:, folds])
        bases.append((look, around, gamma, basis))
    scale = (np.maximum(held_out.mean(axis=1), 1e-6) * len(rule.strengths))[:, None]
    machines = tuple(
        Machine(
            look,
            around,
            gamma,
            (basis.astype(np.float64) @ (w / scale).sum(axis=0)).astype(np.float32),
        )
        for (look, around, gamma, basis), w in zip(bases, weights, strict=True)
    )
    alone = ~np.array([some.any() for some in apart])
    by_place[:, alone[places]] = np.nan
    summed = [(values / scale).sum(axis=0) for values in (held_out, by_place, scores)]
    return Fitted(machines, *summed)


def _basis(centres: FloatArray, gamma: float) -> FloatArray:
    """The matrix (m, k) that makes kernels around centres orthonormal features (Nyström)."""
    values, vectors = np.linalg.eigh(gaussian_kernel(centres, centres, gamma).astype(np.float64))
    kept = values > RANK * values[-1]
    return np.asarray(vectors[:, kept] / np.sqrt(values[kept]), dtype=np.float32)


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


def by_pixel(image: FloatArray) -> FloatArray:
    """(k, H, W) -> (H · W, k)."""
    return np.ascontiguousarray(image.reshape(len(image), -1).T)
