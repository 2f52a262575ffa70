"""Models by the density ratio: fitted to a scene in seconds, saved, loaded, mapped in tiles."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from thonecls.errors import ConfigError, LabelError
from thonecls.method import store
from thonecls.method.collage import build_pool
from thonecls.method.model import Crossfit, Scorer, load_novelty, save_novelty, score_whole
from thonecls.method.novelty import Novelty
from thonecls.method.store import check_ratio
from thonecls.metrics import evaluate_pu
from thonecls.mosaic import Window
from thonecls.mosaic import windows_of as scenes_of
from thonecls.ratio.cuts import BEYOND, Beyond, beyond_labels, cut_of
from thonecls.ratio.ratio import (
    FAIR_PART,
    FOLDS,
    REACH,
    RULES,
    WIDE,
    WIDTH,
    Around,
    Fitted,
    Look,
    Machine,
    Ratio,
    Rule,
    fit,
    looks_of,
    neighbour_difference,
    score,
    smooth,
    spread_of,
    windows_of,
)
from thonecls.ratio.sampling import around_labels, sample
from thonecls.scene import (
    BandStatistics,
    BoolArray,
    FloatArray,
    Source,
    as_source,
    project,
    whitened_axes,
)
from thonecls.splits import PLACES as LABELLED_BLOCKS
from thonecls.splits import (
    Coverage,
    Folds,
    Labels,
    are_crowded,
    are_solid,
    are_touching,
    blocks_of,
    check_positives,
    coverage_of,
    fold_labels,
    judging_folds,
    place_folds,
    positive_mask,
)
from thonecls.version import __version__, commit

RATIO = "ratio model"  # the kind of its file
COMPONENTS = 60
PIXELS = 20_000  # unlabeled ones that the ratio is fitted to
POSITIVES = 5_000  # labels that it is fitted to at most, and as many known negatives
WINDOWS_OF_SCENE = 256  # that stand for a large scene
INNER = (8, 32)  # rows and columns of such a window that pixels are drawn from: few rows, as each
# row of each band is another place on disk
WHOLE = 2**18  # pixels of a scene that is held whole, and more of one with few bands
FEW_OUT = 10  # folds of labels from all over a scene
FEW_PLACES, LEAST_NEAR = 6, 0.5  # up to so many with labels, single pixels have so much of a say
KNOWS_PLACE = 0.5  # of a say for single pixels: from here on, what windows tell is the place
PLACES = 3  # folds of places that tell whether what lies around a pixel tells the class
ANSWER = 0.3  # of all labels: what a positive answer to a suggestion counts for, from elsewhere
ANSWERED = 2  # such answers: labels no longer come from a patch alone
STEEP = 3.0  # the logit of a pixel that scores as the mean label left out
TILE = 448  # pixels a side


@dataclass(frozen=True, eq=False)
class RatioModel:
    """A density ratio with all it needs to map a scene.

    statistics: of the bands, with the axes that whiten them; cut: the score above which a pixel is
    mapped, where the probability is the threshold, 0.5; difference: of pixels that look alike, as
    `smooth` takes it, 0 in models whose scores are not averaged; the rest as for `Model`.
    """

    machines: tuple[Machine, ...]
    statistics: BandStatistics
    cut: float
    training: dict[str, Any] = field(default_factory=dict)
    wavelengths: tuple[float, ...] | None = None
    novelty: Novelty | None = None
    threshold: float = 0.5
    difference: float = 0.0

    @property
    def bands(self) -> int:
        return len(self.statistics.mean)

    @property
    def halo(self) -> int:
        """How many pixels to each side have a say."""
        window = windows_of(tuple(machine.look for machine in self.machines))[-1]
        return window // 2 + (REACH if self.difference else 0)

    @property
    def tile(self) -> int:
        """The side of a tile that takes little memory."""
        return TILE

    def ready(self, device: torch.device) -> Callable[[FloatArray, BoolArray], FloatArray]:
        """Probabilities (H, W) of a z-scored cube (C, H, W) and its valid pixels, on the CPU."""
        return self.probability

    def probability(self, cube: FloatArray, valid: BoolArray) -> FloatArray:
        """Of the class: 0.5 at the cut, 0.95 where a pixel scores as labels left out do."""
        components, spread = project(cube, self.statistics), spread_of(self.statistics)
        raw = score(self.machines, components, valid, spread)
        raw = smooth(raw, components, valid, spread, self.difference)
        return as_probability(raw, self.cut)

    def score(
        self, cube: Source | NDArray[Any], *, device: str = "auto", tile: int | None = None
    ) -> NDArray[np.float32]:
        """Probability of the target class, (H, W) float32, NaN on nodata; see `Model.score`."""
        return score_whole(self, cube, device, tile)

    def score_windows(
        self, source: Source, *, device: str = "auto", tile: int | None = None
    ) -> Iterator[tuple[slice, slice, NDArray[np.float32]]]:
        """Score a scene of any size window by window; see `Model.score_windows`."""
        return Scorer([self], device=device).all_windows(source, tile)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one safetensors file, whole or not at all. It holds no code."""
        bands = {"mean": self.statistics.mean, "std": self.statistics.std}
        assert self.statistics.axes is not None
        arrays = {f"bands.{n}": a for n, a in (bands | {"axes": self.statistics.axes}).items()}
        for i, machine in enumerate(self.machines):
            arrays[f"machine.{i}.centres"] = machine.centres
            arrays[f"machine.{i}.weights"] = machine.weights
        about: dict[str, Any] = {
            "machines": [
                {"windows": list(m.look.windows), "power": m.look.power, "gamma": m.gamma}
                for m in self.machines
            ],
            "cut": self.cut,
            "training": self.training,
            "wavelengths": self.wavelengths,
            "threshold": self.threshold,
            "difference": self.difference,
        }
        tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
        save_novelty(self.novelty, about, tensors)
        store.save(Path(path), RATIO, about, tensors)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> RatioModel:
        """Read what `save` wrote; refuse a damaged file and one of another version."""
        about, tensors = store.load(Path(path), RATIO)
        check_ratio(Path(path), about, tensors, windows_of(WIDE)[-1])
        bands = {name: t.numpy() for name, t in store.part(tensors, "bands.").items()}
        machines = []
        for i, facts in enumerate(about["machines"]):
            arrays = {n: t.numpy() for n, t in store.part(tensors, f"machine.{i}.").items()}
            look = Look(tuple(facts["windows"]), facts["power"])
            machines.append(Machine(look, arrays["centres"], facts["gamma"], arrays["weights"]))
        wavelengths = about.get("wavelengths")
        return RatioModel(
            tuple(machines),
            BandStatistics(**bands),
            about["cut"],
            about["training"],
            None if wavelengths is None else tuple(wavelengths),
            load_novelty(about, tensors),
            about.get("threshold", 0.5),
            about.get("difference", 0.0),
        )


def as_probability(raw: NDArray[Any], cut: float) -> FloatArray:
    """Scores, 1 on the mean label left out, as probabilities."""
    steep = STEEP / max(1 - cut, 0.1)
    return np.asarray(expit(steep * (raw - np.float32(cut))), dtype=np.float32)


def fit_ratio(
    scene: Source | NDArray[Any],
    labels: Labels | ArrayLike,
    *,
    seed: int = 0,
    coverage: Coverage | None = None,
    negatives: BoolArray | None = None,
    answers: BoolArray | None = None,
) -> RatioModel:
    """Fit the density ratio to one scene: seconds, whatever its size.

    scene: a scene, a source, or a (C, H, W) array; labels: `Labels`, of which the positives are
    taken, or positives as an (H, W) mask or (n, 2) row/column pairs. coverage: whether labels come
    from all over the scene ("all"), from a part of it, or from a patch or two; by where they lie,
    and what lies beyond them, unless told. negatives: (H, W) mask of pixels that are known not to
    be the class, if any are; answers: of positives that are answers to suggestions, which count
    for more. The same seed gives the same bits on the same machine.
    """
    model, _ = crossfit_ratio(
        scene, labels, seed=seed, coverage=coverage, negatives=negatives, answers=answers
    )
    return model


def crossfit_ratio(
    scene: Source | NDArray[Any],
    labels: Labels | ArrayLike,
    *,
    seed: int = 0,
    coverage: Coverage | None = None,
    negatives: BoolArray | None = None,
    answers: BoolArray | None = None,
    folds: int = 0,
) -> tuple[RatioModel, Crossfit]:
    """The model of all labels as `fit_ratio` gives it, and labels scored without those near them.

    folds: of places; they take no time worth a word, as a fold changes one vector alone. Of labels
    from all over the scene `FEW_OUT` are made at least: a tenth that is left out is missed little.
    """
    if coverage is not None and coverage not in RULES:
        raise ConfigError(f"'coverage' must be all, part or patch. Got {coverage!r} instead")
    began = time.perf_counter()
    source, rng = as_source(scene), np.random.default_rng(seed)
    every = _positives(labels, source.shape)
    positive = _thinned(every, rng)
    refused = _refused(every, negatives, rng)
    scenes = scenes_of(source)
    found = coverage or _coverage(every, source.shape, scenes, answers)
    crowded = are_crowded(every, source.shape)
    answered = answers is not None and bool(answers.flat[every].any())
    tested = coverage is None and not scenes and not answered
    sparse = tested and found == "patch" and not crowded
    asked = RULES["part" if sparse else found]
    seen = _look(source, positive, refused, windows_of(looks_of(asked)), rng, bool(folds))
    labelled, shape = seen.labelled, source.shape
    places = place_folds(labelled, shape, PLACES, scenes)
    groups = blocks_of(labelled, shape) if crowded else None

    def fit_by(coverage: Coverage, rule: Rule) -> tuple[Fitted, Folds]:
        judging = folds_of(labelled, shape, folds, coverage, seed, scenes)
        weights = _weights(labelled, None if coverage == "all" else answers)
        given = {"folds": judging, "places": places, "weights": weights, "groups": groups}
        left_out = None
        if coverage == "all" and are_solid(every, shape):
            # Within a polygon that is filled a label is found by those beside it.
            left_out = fold_labels(every, shape, FOLDS, rng)[np.searchsorted(every, labelled)]
        return seen.fit(rule, rng, left_out=left_out, **given), judging

    rule, beyond = RULES[found], None
    fitted, folds_ = fit_by(found, asked)
    blocks = len(np.unique(blocks_of(labelled, shape)))
    if tested and (sparse or found != "patch"):
        beyond = _beyond(fitted, seen, shape, groups)
        found, better = rule_by(beyond, found, blocks, fitted)
        if better is not rule:
            rule = better  # its windows are the same
            fitted, folds_ = fit_by(found, rule)
        if found == "patch":
            beyond = None  # it has decided nothing
    goes_on = beyond is not None and beyond.fair is False
    least = LEAST_NEAR if goes_on or blocks <= FEW_PLACES else 0.0
    if rule.near == "labels":  # in clumps they tell little of each other, and places do
        least = fitted.near_share() if are_touching(every, shape) else 0.0
    ratio = fitted.by(rule, least)
    cut = cut_of(ratio, rule)
    training = {
        **_settings(ratio, rule, cut, _why(rule, beyond, told=coverage is not None)),
        "scene": {"bands": source.bands, "rows": shape[0], "columns": shape[1]},
        "positives": len(labelled),
        "negatives": len(next(iter(seen.negative.values()))),
        "unlabeled": len(seen.at),
        "coverage": found,
        **({} if beyond is None else {"beyond": beyond._asdict()}),
        "seconds": round(time.perf_counter() - began, 3),
        "seed": seed,
    }
    model = RatioModel(ratio.machines, seen.statistics, cut, training, difference=seen.difference)
    return model, Crossfit(labelled, folds_.fold, as_probability(ratio.judged, cut))


@dataclass(frozen=True, eq=False)
class _Seen:
    """What a fit sees of a scene: means over windows of its labels and of pixels from anywhere.

    labelled: flat indices of the positives; at: (n, 2) rows and columns of the pixels from
    anywhere, sampling: how many each of them stands for; around: what lies about the positives, if
    it was asked for.
    """

    positive: dict[int, FloatArray]
    negative: dict[int, FloatArray]
    unlabeled: dict[int, FloatArray]
    labelled: NDArray[np.int64]
    at: NDArray[np.int64]
    sampling: FloatArray | None
    around: Around | None
    difference: float
    statistics: BandStatistics

    def fit(self, rule: Rule, rng: np.random.Generator, **options: Any) -> Fitted:
        """The ratio of its positives to its unlabeled pixels; see `ratio.fit`."""
        return fit(
            self.positive,
            self.unlabeled,
            spread_of(self.statistics),
            rng,
            rule=rule,
            around=self.around,
            negative=self.negative,
            sampling=self.sampling,
            **options,
        )


def _look(
    source: Source,
    positive: NDArray[np.int64],
    refused: NDArray[np.int64],
    windows: list[int],
    rng: np.random.Generator,
    around: bool,
) -> _Seen:
    """Read what a fit sees; positive, refused: flat indices of the class, and of what is not it."""
    margin = windows[-1] // 2
    rows, columns = INNER
    pool = build_pool(
        source,
        positive,
        side=(rows + 2 * margin, columns + 2 * margin),
        components=COMPONENTS,
        rng=rng,
        axes=whitened_axes,
        whole=WHOLE * max(1, COMPONENTS // source.bands),
        windows=WINDOWS_OF_SCENE,
        margin=margin,
        others=refused,
        about=margin + REACH,
    )
    is_class = np.isin(pool.pixels, positive)
    labelled = pool.pixels[is_class]
    if not labelled.size:
        raise LabelError("no positive label lies on a valid pixel: check labels and nodata value")
    of_labels, of_u, at, sampling = sample(pool, PIXELS, windows, rng, is_class)
    of_p, of_n = (
        {w: means[some] for w, means in of_labels.items()} for some in (is_class, ~is_class)
    )
    spread = spread_of(pool.statistics)
    difference = neighbour_difference(pool.parts, spread)
    of_class = pool.only(np.flatnonzero(is_class))
    near = around_labels(of_class, windows, spread, difference) if around else None
    return _Seen(of_p, of_n, of_u, labelled, at, sampling, near, difference, pool.statistics)


def _beyond(
    fitted: Fitted, seen: _Seen, shape: tuple[int, int], groups: NDArray[np.int64] | None
) -> Beyond:
    """Whether the class goes on beyond the labels; a group that tells the same counts once."""
    labels = np.stack(np.divmod(seen.labelled, shape[1]), axis=1)
    count = len(np.unique(seen.labelled if groups is None else groups))
    return beyond_labels(fitted.strict(), seen.at, labels, shape, count, seen.sampling)


def rule_by(
    beyond: Beyond, coverage: Coverage, blocks: int, fitted: Fitted
) -> tuple[Coverage, Rule]:
    """Coverage and rule, by what lies beyond labels that lie so, in so many blocks.

    Where the class goes on, labels come from a part of it, wherever they lie. Where it does not,
    labels in a part of the scene are a fair sample, unless places left out say that windows know
    the place. So are labels that are sparse in a patch, if so little lies beyond them that it needs
    no chance: of a few labels chance would leave anything.
    """
    if coverage == "patch":
        told = beyond.fair and beyond.share <= BEYOND and fitted.near_share() < KNOWS_PLACE
        return ("part", FAIR_PART) if told else (coverage, RULES[coverage])
    if beyond.fair is False:
        return "part", RULES["part"]
    told = beyond.fair and blocks >= LABELLED_BLOCKS
    if coverage == "part" and told and fitted.near_share() < KNOWS_PLACE:
        return coverage, FAIR_PART
    return coverage, RULES[coverage]


def _positives(labels: Labels | ArrayLike, shape: tuple[int, int]) -> NDArray[np.int64]:
    """Flat indices of the labels, in order."""
    if isinstance(labels, Labels):
        positive = labels.positive
    else:
        positive = np.flatnonzero(positive_mask(labels, shape))
    check_positives(positive, shape)
    return np.unique(positive)


def _thinned(pixels: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """All of these pixels; of very many a part."""
    if pixels.size > POSITIVES:
        return np.sort(rng.choice(pixels, POSITIVES, replace=False))
    return pixels


def _refused(
    positive: NDArray[np.int64], negatives: BoolArray | None, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Flat indices of pixels that are known not to be the class; of very many a part."""
    refused = np.empty(0, np.int64) if negatives is None else np.flatnonzero(negatives)
    if np.isin(refused, positive).any():
        raise LabelError("a pixel is marked as the class and as not the class: correct one")
    return _thinned(refused, rng)


def _coverage(
    positive: NDArray[np.int64],
    shape: tuple[int, int],
    scenes: Sequence[Window],
    answers: BoolArray | None,
) -> Coverage:
    """Where labels come from, by where they lie."""
    found = coverage_of(positive, shape, scenes)
    if found == "patch" and answers is not None:
        # Answers are from elsewhere, however few they are beside the labels of a plot.
        return "part" if answers.flat[positive].sum() >= ANSWERED else found
    return found


def _weights(labelled: NDArray[np.int64], answers: BoolArray | None) -> NDArray[np.float32]:
    """What each label counts for; an answer from where no labels come from, a share of all others.

    Of labels from all over, an answer is one more (None).
    """
    weights = np.ones(labelled.size, np.float32)
    if answers is not None:
        answered = answers.flat[labelled]
        weights[answered] = max(1.0, ANSWER * int((~answered).sum()))
    return weights


def _why(rule: Rule, beyond: Beyond | None, told: bool) -> str:
    """In what case a rule was taken, in words."""
    if told:
        return "that is where labels were said to come from"
    if beyond is None or beyond.fair is not False:
        return rule.why
    return f"{beyond.share:.0%} of what is most like the labels lies {beyond.side} all of them"


def _settings(ratio: Ratio, rule: Rule, cut: float, why: str) -> dict[str, Any]:
    """What a model's file tells of how it was fitted."""
    return {
        "config": {
            "components": COMPONENTS,
            "windows": [list(machine.look.windows) for machine in ratio.machines],
            "single_pixels": round(ratio.near, 3),
            "unlabeled": PIXELS,
            "centres": len(ratio.machines[0].centres),
            "width": WIDTH,
            "strengths": list(ratio.strengths),
            "cut": round(cut, 4),
        },
        "threshold_reason": f"{rule.reason}, as {why}",
        "pauc_left_out": _pauc(ratio),
        "recall_left_out": round(float((ratio.held_out > cut).mean()), 4),
        "finished": True,
        "versions": {"thonecls": __version__, "commit": commit(), "numpy": np.__version__},
        "python": platform.python_version(),
    }


def _pauc(ratio: Ratio) -> float | None:
    """How often a label left out of its fold scores above an unlabeled pixel, in percent."""
    known = np.isfinite(ratio.judged)
    if not known.any():
        return None
    return round(evaluate_pu(ratio.judged[known], ratio.unlabeled, weights=ratio.sampling).pauc, 1)


def folds_of(
    pixels: NDArray[np.int64],
    shape: tuple[int, int],
    folds: int,
    coverage: Coverage,
    seed: int,
    scenes: Sequence[Window] = (),
) -> Folds:
    """The folds in which labels, by flat index, are left out; 0 folds: none of use.

    Of labels from all over the scene there are `FEW_OUT` at least. scenes: of a mosaic.
    """
    count = max(folds, FEW_OUT) if coverage == "all" and folds else max(1, folds)
    return judging_folds(pixels, shape, count, coverage, np.random.default_rng(seed), scenes)
