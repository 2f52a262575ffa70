"""Per-pixel methods on spectra: what a mapper would pick instead of the deep method.

Each learns from the features of labelled and unlabeled pixels, `name(samples, seed, ...)`, and
gives a function that scores features in [0, 1], where above 0.5 means "the class". `SPECTRAL` has
them as `SPECTRAL[name](scene, labels, seed, ...)` too, which gives an (H, W) score map, NaN on
nodata: the rest of the scene is only scored, part by part.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.calibration import CalibratedClassifierCV
from sklearn.covariance import ledoit_wolf
from sklearn.decomposition import PCA
from sklearn.ensemble import IsolationForest
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC, OneClassSVM
from sklearn.tree import DecisionTreeClassifier

from thonecls.errors import ConfigError, LabelError, SceneError
from thonecls.extras import need
from thonecls.images.trees import PUExtraTreesClassifier
from thonecls.metrics import puf
from thonecls.scene import Scene
from thonecls.splits import IntArray, Labels, check_labels

ScoreMap = NDArray[np.float32]
Array = NDArray[np.float64]
Transform = Literal["none", "pca", "mnf"]
Scorer = Callable[[Array], Array]  # features (n, k) -> raw scores (n,)

CHUNK = 8192  # pixels scored at a time, so that memory does not grow with the scene
COMPONENTS = 20  # of PCA and MNF unless told, where the scene has as many bands
TINY = 1e-30  # keeps the division by a norm of 0 finite

# The grid of the biased SVM: gamma in units of `_gamma`, C-, and C+ as a multiple of C-.
GAMMAS = (0.3, 1.0, 3.0)
NEGATIVE_COSTS = (0.1, 1.0, 10.0)
COST_RATIOS = (1.0, 5.0, 20.0, 80.0)
FOLDS = 3  # in which positives are held out


class Learnt(NamedTuple):
    """What a method learnt: score gives values in [0, 1] for features (n, k).

    of_unlabeled: what the unlabeled samples score, where that is another; NaN where it is not.
    """

    score: Scorer
    of_unlabeled: Array | None = None


@dataclass(frozen=True)
class SpectralMethod:
    """A method on single spectra; called with scene, labels and seed it gives a score map.

    fit: of samples and a seed; at_least: how many positives it needs; standard: whether bands are
    z-scored; transform: to components, unless told otherwise.
    """

    fit: Callable[..., Learnt]
    at_least: int = 1
    standard: bool = True
    transform: Transform = "none"

    def learn(
        self,
        scene: Scene,
        labels: Labels,
        *,
        components: int | None = None,
        transform: Transform | None = None,
    ) -> Samples:
        """Checked labels and their features."""
        kind = self.transform if transform is None else transform
        return _learn(
            scene, labels, kind, components, standard=self.standard, at_least=self.at_least
        )

    def __call__(
        self,
        scene: Scene,
        labels: Labels,
        seed: int = 0,
        *,
        components: int | None = None,
        transform: Transform | None = None,
        **options: Any,
    ) -> ScoreMap:
        data = self.learn(scene, labels, components=components, transform=transform)
        learnt = self.fit(data, seed, **options)
        scores = _score(scene, data, learnt.score)
        if learnt.of_unlabeled is not None:
            known = np.isfinite(learnt.of_unlabeled)
            scores.flat[data.others[known]] = learnt.of_unlabeled[known]
        return scores.astype(np.float32)


def spectral_angle(
    data: Samples, seed: int = 0, *, nearest: bool = False, recall: float = 0.9
) -> Learnt:
    """Spectral angle mapper (Kruse et al. 1993): the angle to the mean positive spectrum.

    nearest: the smallest angle to any positive instead. recall: see `scale_scores`.
    """
    if nearest:  # a positive has angle 0 to itself: hold some out
        _need(len(data.positive), 2 * FOLDS)

    def fit(positive: Array) -> Scorer:
        targets = positive if nearest else positive.mean(axis=0, keepdims=True)
        return lambda x: -spectral_angles(x, targets).min(axis=1)

    return _above(data, fit, recall, seed)


def matched_filter(data: Samples, seed: int = 0, *, recall: float = 0.9) -> Learnt:
    """Matched filter: 0 on the mean of the unlabeled pixels, 1 on that of the positives.

    (x - m)ᵀ S⁻¹ (t - m) / (t - m)ᵀ S⁻¹ (t - m), with the background's mean m and covariance S
    from the unlabeled pixels, shrunk as Ledoit and Wolf (2004) do. recall: see `scale_scores`.
    """
    mean = data.unlabeled.mean(axis=0)
    background = spread(data.unlabeled - mean)

    def fit(positive: Array) -> Scorer:
        weights = filter_weights(positive.mean(axis=0) - mean, background)
        return lambda x: (x - mean) @ weights

    return _above(data, fit, recall, seed)


def cem(data: Samples, seed: int = 0, *, recall: float = 0.9) -> Learnt:
    """Constrained energy minimisation (Harsanyi 1993): xᵀ R⁻¹ t / tᵀ R⁻¹ t.

    The filter of least mean energy over the unlabeled pixels that gives 1 on the target t, the
    mean positive; R is their correlation matrix, shrunk as in `matched_filter`. The mean is not
    removed, except by PCA or MNF, after which this is close to `matched_filter`. recall: see
    `scale_scores`.
    """
    background = spread(data.unlabeled)

    def fit(positive: Array) -> Scorer:
        weights = filter_weights(positive.mean(axis=0), background)
        return lambda x: x @ weights

    return _above(data, fit, recall, seed)


def ace(data: Samples, seed: int = 0, *, recall: float = 0.9) -> Learnt:
    """Adaptive coherence estimator (Kraut et al. 2005), with its sign; see `coherence`.

    Background and target are those of `matched_filter`. recall: see `scale_scores`.
    """
    mean = data.unlabeled.mean(axis=0)
    background = spread(data.unlabeled - mean)

    def fit(positive: Array) -> Scorer:
        target = positive.mean(axis=0) - mean
        return lambda x: coherence(x - mean, target, background)

    return _above(data, fit, recall, seed)


def one_class_svm(data: Samples, seed: int = 0, *, nu: float = 0.1, recall: float = 0.9) -> Learnt:
    """One-class SVM (Schölkopf et al. 2001) around the positives, with a Gaussian kernel.

    nu: the share of positives that may lie outside. recall: see `scale_scores`.
    """

    def fit(positive: Array) -> Scorer:
        gamma = _gamma(positive)
        machine = OneClassSVM(nu=nu, gamma=gamma).fit(positive)
        # A sum over the positives: divided by their number, fits to more and to fewer compare. By
        # a matrix product, which is many times faster than libsvm's own loop.
        around, weights = machine.support_vectors_, machine.dual_coef_[0] / len(positive)
        return lambda x: np.asarray(rbf_kernel(x, around, gamma=gamma) @ weights)

    return _above(data, fit, recall, seed)


def isolation_forest(
    data: Samples, seed: int = 0, *, trees: int = 100, recall: float = 0.9
) -> Learnt:
    """Isolation forest (Liu, Ting and Zhou 2008) of the positives. recall: see `scale_scores`."""

    def fit(positive: Array) -> Scorer:
        forest = IsolationForest(n_estimators=trees, random_state=_state(seed)).fit(positive)
        return lambda x: np.asarray(forest.score_samples(x))

    return _above(data, fit, recall, seed)


def biased_svm(data: Samples, seed: int = 0, *, unlabeled: int = 1500) -> Learnt:
    """Biased SVM (Liu et al. 2003): unlabeled pixels count as negatives, errors on them cost less.

    Both costs and the kernel width maximise rec² / q over held-out pixels (Lee and Liu 2003). At
    most `unlabeled` unlabeled pixels are used, drawn by `seed`. The score is the logistic curve
    of the decision value: 0.5 on the machine's own boundary.
    """
    rng = np.random.default_rng(seed)
    drawn = rng.permutation(len(data.unlabeled))[:unlabeled]
    x = np.concatenate([data.positive, data.unlabeled[np.sort(drawn)]])
    y = np.arange(len(x)) < len(data.positive)
    gamma, costs = _choose_costs(x, y, rng)
    machine = QuickSVC(gamma=gamma, class_weight=costs).fit(x, y)
    return Learnt(lambda z: np.asarray(expit(machine.decision_function(z))))


def pu_bagging(data: Samples, seed: int = 0, *, trees: int = 100) -> Learnt:
    """PU bagging (Mordelet and Vert 2014) of trees, by the package `pulearn`.

    Each tree tells the positives from as many unlabeled pixels drawn at random; the score is the
    mean over trees, for an unlabeled pixel over those that did not see it. Its own 0.5 is kept:
    the bags are balanced, and trees give every training positive 1, which places no threshold.
    """
    pulearn = need("pulearn", "pu-bagging")
    x = np.concatenate([data.positive, data.unlabeled])
    y = (np.arange(len(x)) < len(data.positive)).astype(np.int64)
    bags = pulearn.BaggingPuClassifier(
        DecisionTreeClassifier(),
        n_estimators=trees,
        max_samples=min(len(data.positive), len(data.unlabeled)),
        random_state=_state(seed),
    ).fit(x, y)
    # Of the unlabeled: NaN where every bag holds the pixel.
    out_of_bag = bags.oob_decision_function_[len(data.positive) :, 1]
    return Learnt(lambda z: np.asarray(bags.predict_proba(z)[:, 1]), out_of_bag)


def elkan_noto(data: Samples, seed: int = 0) -> Learnt:
    """Elkan and Noto (2008), by the package `pulearn`: P(labelled | x) / P(labelled | positive).

    As in their paper the first is an SVM with Platt's calibration, the second its mean over
    held-out positives. Both kinds weigh alike in the SVM, as few positives would else all lie
    inside the margin. The score is that ratio, cut at 1: it estimates the probability of the
    class itself, so that 0.5 is its natural threshold.
    """
    pulearn = need("pulearn", "elkan-noto")
    x = np.concatenate([data.positive, data.unlabeled])
    y = (np.arange(len(x)) < len(data.positive)).astype(np.int64)
    svm = QuickSVC(gamma=_gamma(x), class_weight="balanced")
    machine = CalibratedClassifierCV(svm, method="sigmoid", cv=3, ensemble=False)
    for draw in np.random.default_rng(seed).integers(2**31, size=50):
        ratio = pulearn.ElkanotoPuClassifier(machine, hold_out_ratio=0.2, random_state=int(draw))
        try:
            ratio.fit(x, y)
            break
        except ValueError as error:  # no positive among the pixels that pulearn drew to hold out
            if "hold-out" not in str(error):
                raise
    else:
        raise LabelError(
            f"no draw holds out one of the {len(data.positive)} positives; label more of them"
        )
    return Learnt(lambda z: np.minimum(ratio.predict_proba(z)[:, 1], 1))


def maxent(data: Samples, seed: int = 0, *, recall: float = 0.9) -> Learnt:
    """MaxEnt (Phillips et al. 2006), by the package `elapid`, on few components.

    Few, as its linear, quadratic and hinge features are many for each. Its log density ratio
    goes through `scale_scores`: with recall=0.9 that is the "10th percentile presence" threshold
    usual for MaxEnt, on held-out positives; its own outputs assume a prevalence.
    """
    elapid = need("elapid", "maxent")

    def fit(positive: Array) -> Scorer:
        model = elapid.MaxentModel(
            feature_types=["linear", "quadratic", "hinge"],
            transform="raw",
            convergence_tolerance=1e-4,
            use_sklearn=True,  # the same solver everywhere, whether or not glmnet is installed
            random_state=_state(seed),
        )
        x = np.concatenate([positive, data.unlabeled])
        model.fit(x, (np.arange(len(x)) < len(positive)).astype(np.int64))
        return lambda z: np.log(np.maximum(model.predict(z), TINY))

    return _above(data, fit, recall, seed)


def pu_extra_trees(data: Samples, seed: int = 0, *, prior: float, trees: int = 100) -> Learnt:
    """PU extra trees (Wilton et al. 2022); the score is the share of trees that vote for the class.

    prior: the share of the class among the unlabeled.
    """
    need("numba", "puet-spectra")
    forest = PUExtraTreesClassifier(float(prior), n_estimators=trees, random_state=_state(seed))
    x = np.concatenate([data.positive, data.unlabeled])
    forest.fit(x.astype(np.float32), np.arange(len(x)) < len(data.positive))
    return Learnt(lambda z: forest.predict_proba(z.astype(np.float32))[:, 1])


def _by_network(loss: str, data: Samples, seed: int = 0, **options: Any) -> Learnt:
    """A small network with a loss, as `fit_network` says."""
    from thonecls.methods.spectral_networks import fit_network  # brings torch

    return fit_network(loss, data, _state(seed), **options)


def scale_scores(raw: Array, positive: Array, scale: float, recall: float = 0.9) -> Array:
    """Scores without a natural threshold as values in [0, 1], by a logistic curve.

    raw: of any shape; positive: (n,), the raw scores of the labelled positives, which the methods
    hold out in turn, as those that they have seen score too high; scale: the standard deviation of
    raw scores of the scene. The curve is 0.5 where a share `recall` of the positives lies above:
    a threshold that needs no negatives. It rises everywhere, so that the ranking of pixels does not
    change.

    >>> scale_scores(np.array([0.0, 1.0, 2.0]), np.array([1.0, 2.0]), 0.8, recall=1.0).round(2)
    array([0.22, 0.5 , 0.78])
    """
    if not 0 < recall <= 1:
        raise ConfigError(f"recall must lie in (0, 1]. Got {recall} instead; try 0.9")
    scale = scale or 1.0
    # A hair lower, so that a positive on the threshold itself is mapped: above 0.5, not equal.
    threshold = np.quantile(positive, 1 - recall) - 1e-6 * scale
    return np.asarray(expit((raw - threshold) / scale))


def spectral_angles(spectra: Array, targets: Array) -> Array:
    """The angle between each spectrum and each target, in radians: (n, k), (m, k) -> (n, m).

    >>> spectral_angles(np.array([[1.0, 0.0]]), np.array([[2.0, 2.0]])).round(4)  # π / 4
    array([[0.7854]])
    """
    lengths = np.outer(np.linalg.norm(spectra, axis=1), np.linalg.norm(targets, axis=1))
    cosines = spectra @ targets.T / np.maximum(lengths, TINY)
    return np.asarray(np.arccos(np.clip(cosines, -1, 1)))


def filter_weights(target: Array, background: Array) -> Array:
    """The linear filter S⁻¹ t / tᵀ S⁻¹ t, which gives 1 on the target: (k,), (k, k) -> (k,)."""
    weights = np.linalg.solve(background, target)
    return np.asarray(weights / max(float(target @ weights), TINY))


def coherence(spectra: Array, target: Array, background: Array) -> Array:
    """The squared cosine to the target after whitening, with the cosine's sign: (n,) in [-1, 1].

    spectra: (n, k) and target: (k,), both without the background's mean; background: (k, k)
    covariance. The sign keeps spectra opposite to the target from scoring like it.
    """
    inverse = np.linalg.inv(background)
    length = np.sqrt(np.einsum("ij,jk,ik->i", spectra, inverse, spectra, optimize=True))
    cosine = spectra @ inverse @ target / np.maximum(length, TINY)
    cosine /= max(float(np.sqrt(target @ inverse @ target)), TINY)
    return np.asarray(np.sign(cosine) * cosine**2)


def _state(seed: int) -> int:
    """A seed as scikit-learn takes it: of 32 bits."""
    return seed % 2**32


def spread(spectra: Array) -> Array:
    """Mean of x xᵀ over spectra (n, k), shrunk so that few pixels and many bands invert."""
    return np.asarray(ledoit_wolf(spectra, assume_centered=True)[0])


def _choose_costs(
    x: Array, y: NDArray[np.bool_], rng: np.random.Generator
) -> tuple[float, dict[bool, float]]:
    """Kernel width and costs of both classes that do best by `puf` over the folds."""
    fold = np.empty(len(x), dtype=np.int64)
    for kind in (y, ~y):  # each fold holds out a like share of both kinds
        fold[kind] = rng.permutation(int(kind.sum())) % FOLDS
    best, chosen = -1.0, (0.0, {True: 1.0, False: 1.0})
    for width in GAMMAS:
        gamma = width * _gamma(x)
        kernel = rbf_kernel(x, gamma=gamma)
        for negative in NEGATIVE_COSTS:
            for ratio in COST_RATIOS:
                costs = {True: negative * ratio, False: negative}
                mapped = np.empty(len(x), dtype=bool)
                for held in range(FOLDS):
                    seen, out = np.flatnonzero(fold != held), np.flatnonzero(fold == held)
                    machine = SVC(kernel="precomputed", class_weight=costs)
                    machine.fit(kernel[np.ix_(seen, seen)], y[seen])
                    mapped[out] = machine.predict(kernel[np.ix_(out, seen)])
                value = float(puf(mapped[y].mean(), mapped[~y].mean(), 1 / (~y).sum()))
                if value > best:
                    best, chosen = value, (gamma, costs)
    return chosen


def _gamma(x: Array) -> float:
    """The kernel width that scikit-learn calls "scale", for features (n, k)."""
    return float(1 / (x.shape[1] * max(x.var(), TINY)))


class QuickSVC(SVC):  # type: ignore[misc]  # scikit-learn has no types
    """An SVC with a Gaussian kernel, its `gamma` a number, that decides by a matrix product.

    Many times faster than libsvm's own loop over pixels and support vectors.
    """

    def decision_function(self, X: Array) -> Array:  # noqa: N803
        """Decision values of two classes: (n, k) -> (n,), above 0 for the second."""
        kernel = rbf_kernel(X, self.support_vectors_, gamma=self.gamma)
        return np.asarray(kernel @ self.dual_coef_[0] + self.intercept_[0])


@dataclass(frozen=True, eq=False)
class Samples:
    """What a method learns from: features of the pixels and the map that made them.

    positive: (n_p, k); unlabeled: (n_u, k) of the flat indices `others`, without the positives;
    features of a spectrum x: (x - mean) @ matrix, with mean (C,) and matrix (C, k).
    """

    positive: Array
    unlabeled: Array
    others: IntArray
    mean: Array
    matrix: Array


def _learn(
    scene: Scene,
    labels: Labels,
    transform: Transform,
    components: int | None,
    *,
    standard: bool = True,
    at_least: int = 1,
) -> Samples:
    """Checked labels and their features; standard=False leaves bands in their own units."""
    check_labels(labels, scene.valid)
    # Sorted, so that the order of the labels has no say.
    pixels = np.unique(labels.positive)
    others = np.setdiff1d(labels.unlabeled, pixels)
    _need(pixels.size, at_least)
    spectra = _spectra(scene, np.concatenate([pixels, others]))
    mean, matrix = _basis(scene, spectra, transform, components, standard)
    features = (spectra - mean) @ matrix
    return Samples(features[: pixels.size], features[pixels.size :], others, mean, matrix)


def _need(positives: int, at_least: int) -> None:
    if positives < at_least:
        raise LabelError(
            f"this method needs at least {at_least} positives. Got {positives} instead; "
            "label more, or take one that works with few, such as sam"
        )


def _spectra(scene: Scene, pixels: IntArray) -> Array:
    """The spectra of pixels by flat index: (n, C)."""
    rows, columns = np.unravel_index(pixels, scene.shape)
    return scene.cube[:, rows, columns].T.astype(np.float64)


def _basis(
    scene: Scene, spectra: Array, transform: Transform, components: int | None, standard: bool
) -> tuple[Array, Array]:
    """Mean (C,) and matrix (C, k) of the features; bands that are constant are left out."""
    if transform not in get_args(Transform):
        raise ConfigError(f"transform must be none, pca or mnf. Got {transform!r} instead")
    mean, std = spectra.mean(axis=0), spectra.std(axis=0)
    varies = std > 1e-6 * np.maximum(np.abs(mean), TINY)  # less is rounding noise
    if not varies.any():
        raise SceneError(
            "every band is constant over the labelled and unlabeled pixels: there is nothing to "
            "tell them apart by; check the scene, or draw more unlabeled pixels"
        )
    matrix = np.diag(1 / np.where(varies, std, 1))[:, varies]
    if transform == "none":
        if components is not None:
            raise ConfigError(
                f"components={components} has no meaning without a transform; "
                "add transform='pca' or 'mnf'"
            )
        return (
            (mean, matrix) if standard else (np.zeros_like(mean), np.diag(varies * 1.0)[:, varies])
        )
    if transform == "mnf":
        matrix = matrix @ _whitening(_noise(scene, matrix))
    most = min(matrix.shape[1], len(spectra))
    count = min(COMPONENTS, most) if components is None else components
    if not 1 <= count <= most:
        raise ConfigError(f"components must lie in 1 to {most} for this scene. Got {count} instead")
    pca = PCA(count, svd_solver="full").fit((spectra - mean) @ matrix)
    return mean, matrix @ pca.components_.T


def _noise(scene: Scene, matrix: Array) -> Array:
    """Noise covariance (k, k): half that of the differences of valid horizontal neighbours."""
    total, count = np.zeros((matrix.shape[1], matrix.shape[1])), 0
    for rows in _row_blocks(scene):
        valid = scene.valid[rows, 1:] & scene.valid[rows, :-1]
        left, right = scene.cube[:, rows, :-1], scene.cube[:, rows, 1:]
        steps = (right[:, valid].T.astype(np.float64) - left[:, valid].T) @ matrix
        total += steps.T @ steps / 2
        count += len(steps)
    if count == 0:
        raise SceneError("MNF needs valid pixels side by side, this scene has none; use 'pca'")
    # Shrunk as by Chen et al. (2010), which needs only the sum: few pairs must not look noiseless.
    noise, bands = total / count, len(total)
    level, power = np.trace(noise) / bands, np.mean(noise**2)
    share = min(1.0, (power + level**2) / max((count + 1) * (power - level**2 / bands), TINY))
    return np.asarray((1 - share) * noise + share * level * np.eye(bands))


def _whitening(noise: Array) -> Array:
    """The matrix (k, k) that makes this noise white."""
    values, vectors = np.linalg.eigh(noise)
    return np.asarray(vectors / np.sqrt(np.maximum(values, max(1e-6 * values[-1], TINY))))


def _above(data: Samples, fit: Callable[[Array], Scorer], recall: float, seed: int) -> Learnt:
    """A method that learns from positives, its threshold from held-out positives."""
    score = fit(data.positive)
    if (n := len(data.positive)) < 2 * FOLDS:
        held_out = score(data.positive)  # too few to spare any
    else:
        fold, held_out = np.random.default_rng(seed).permutation(n) % FOLDS, np.empty(n)
        for k in range(FOLDS):
            held_out[fold == k] = fit(data.positive[fold != k])(data.positive[fold == k])
    scale = float(score(data.unlabeled).std())
    return Learnt(lambda x: scale_scores(score(x), held_out, scale, recall))


def _score(scene: Scene, data: Samples, score: Scorer) -> Array:
    """Scores of all valid pixels, part by part: (H, W), NaN on nodata."""
    scores = np.full(scene.shape, np.nan)
    for rows in _row_blocks(scene):
        valid = scene.valid[rows]
        if valid.any():
            spectra = scene.cube[:, rows][:, valid].T.astype(np.float64)
            scores[rows][valid] = score((spectra - data.mean) @ data.matrix)
    return scores


def _row_blocks(scene: Scene) -> list[slice]:
    """Blocks of whole rows of about `CHUNK` pixels."""
    height, width = scene.shape
    step = max(1, CHUNK // width)
    return [slice(start, min(start + step, height)) for start in range(0, height, step)]


NETWORKS = (
    *("taylor", "vpu", "variational", "nnpu", "upu", "imb-nnpu", "dist-pu", "bce", "ncpu", "lbe"),
    *("pul-cpbf", "p3mix-e"),
)
SPECTRAL = {
    "sam": SpectralMethod(spectral_angle, standard=False),
    "matched-filter": SpectralMethod(matched_filter),
    "cem": SpectralMethod(cem, standard=False),
    "ace": SpectralMethod(ace),
    "ocsvm": SpectralMethod(one_class_svm, at_least=2),
    "isolation-forest": SpectralMethod(isolation_forest, at_least=2),
    "biased-svm": SpectralMethod(biased_svm, at_least=2 * FOLDS),
    "pu-bagging": SpectralMethod(pu_bagging, at_least=2),
    "elkan-noto": SpectralMethod(elkan_noto, at_least=10),
    "maxent": SpectralMethod(maxent, at_least=2 * FOLDS, transform="mnf"),
    **{
        f"{loss}-spectra": SpectralMethod(partial(_by_network, loss), at_least=2)
        for loss in NETWORKS
    },
    "puet-spectra": SpectralMethod(pu_extra_trees, at_least=2),
}
