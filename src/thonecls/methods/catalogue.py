"""Every method behind one interface: METHODS[name](scene, labels, seed, ...) -> score map.

The cards can be read without torch or scikit-learn: a method loads its procedure when it is called.
"""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from thonecls.errors import ConfigError

if TYPE_CHECKING:
    from thonecls.methods.procedures import PriorChoice, ScoreMap
    from thonecls.scene import Scene
    from thonecls.splits import Labels


@dataclass(frozen=True)
class Method:
    """A way to map one class; call it with a scene, labels and a seed.

    The map is (H, W) float32 in [0, 1], NaN on nodata, and above 0.5 where the class is.
    needs_prior: whether it must be told the share of the class; extra: what to install for it.
    on: what it looks at.
    """

    score: Callable[..., ScoreMap]
    minimises: str
    paper: str
    constants: str = ""
    needs_prior: bool = False
    network: bool = False
    extra: str = ""
    on: str = "single spectra"

    def __call__(
        self,
        scene: Scene,
        labels: Labels,
        seed: int = 0,
        *,
        prior: PriorChoice = None,
        **options: Any,
    ) -> ScoreMap:
        from thonecls.methods.procedures import find_degenerate, resolve_prior

        if self.needs_prior:
            if prior is None and "config" in options:
                prior = options["config"].prior
            options["prior"] = resolve_prior(prior, scene, labels, seed)
        probability = self.score(scene, labels, seed, **options)
        message = find_degenerate(probability, labels.positive)
        if message:
            warnings.warn(message, stacklevel=2)
        return probability


def _score(name: str, *given: Any, **options: Any) -> ScoreMap:
    """The score map by a method's procedure, which is loaded now."""
    from thonecls.methods.procedures import procedure

    return procedure(name)(*given, **options)


def _deep(name: str, minimises: str, paper: str, constants: str = "", **facts: Any) -> Method:
    return Method(
        partial(_score, name), minimises, paper, constants, network=True, on="the scene", **facts
    )


def _spectral(name: str, minimises: str, paper: str, constants: str = "", **facts: Any) -> Method:
    return Method(partial(_score, name), minimises, paper, constants, **facts)


METHODS: dict[str, Method] = {
    "density-ratio": Method(
        partial(_score, "density-ratio"),
        "squared error of the ratio of densities, in closed form",
        "Kanamori 2009",
        "60 components, windows of up to 13 pixels, cut by labels left out",
        on="windows about a pixel",
    ),
    "t-honecls": _deep(
        "t-honecls",
        "Taylor variational loss + KL to an EMA teacher",
        "Zhao 2023",
        "order 2, β 0.5, α 0.99, clip 6",
    ),
    "taylor": _deep(
        "taylor", "Taylor variational loss, no teacher", "Zhao 2023", "order 2, clip 6"
    ),
    "variational": _deep(
        "variational", "variational loss alone; the paper's tables call it vPU", "Chen 2020"
    ),
    "vpu": _deep(
        "vpu",
        "variational loss + MixUp; epoch by held-out loss; probability over its maximum",
        "Chen 2020",
        "weight 0.3, Beta(0.3, 0.3), 10 % held out, clip 6",
    ),
    "nnpu": _deep(
        "nnpu", "non-negative PU risk", "Kiryo 2017", "sigmoid, β 0, γ 1", needs_prior=True
    ),
    "upu": _deep("upu", "unbiased PU risk", "du Plessis 2015", "sigmoid", needs_prior=True),
    "abs-negative": _deep(
        "abs-negative", "PU risk, |negative part|", "Zhao 2022", "sigmoid", needs_prior=True
    ),
    "oc": _deep(
        "oc",
        "focal positive risk + |negative risk|",
        "Zhao 2022 (HOneCls)",
        "weight 0.3, focus 0.1, 20 epochs of cross-entropy first",
        needs_prior=True,
    ),
    "dist-pu": _deep(
        "dist-pu",
        "label distribution term of Dist-PU",
        "Zhao 2022 (Dist-PU)",
        "sigmoid",
        needs_prior=True,
    ),
    "bce": _deep("bce", "cross-entropy, unlabeled as negatives", "supervised classifier"),
    "mse": _deep("mse", "squared error, unlabeled as negatives", "Ghosh 2017"),
    "gce": _deep("gce", "generalised cross-entropy", "Zhang 2018", "q 0.3"),
    "sce": _deep("sce", "symmetric cross-entropy", "Wang 2019", "0.01 forward, 4 reverse"),
    "tce": _deep("tce", "Taylor cross-entropy of each pixel", "Feng 2020", "order 6"),
    "pan": _deep(
        "pan", "game of a classifier and a P-U discriminator", "Hu 2021", "λ 1e-4, eps 0.01"
    ),
    "pan-reference": _deep(
        "pan-reference",
        "the same with the hinge and sums of its authors' code",
        "Hu 2021",
        "λ 1e-4, eps 0.01",
    ),
    "pan-as-run": _deep(
        "pan-as-run",
        "what the paper's PAN column amounts to: cross-entropy, as `bce`",
        "Zhao 2023",
    ),
    "sam": _spectral("sam", "angle to the mean spectrum", "Kruse 1993", "recall 0.9"),
    "matched-filter": _spectral(
        "matched-filter", "background energy, 1 on the target", "Robey 1992", "recall 0.9"
    ),
    "cem": _spectral(
        "cem", "output energy under a constraint on the target", "Harsanyi 1993", "recall 0.9"
    ),
    "ace": _spectral("ace", "whitened angle to the target", "Kraut 2005", "recall 0.9"),
    "ocsvm": _spectral(
        "ocsvm", "one-class margin around the positives", "Schölkopf 2001", "ν 0.1, recall 0.9"
    ),
    "isolation-forest": _spectral(
        "isolation-forest",
        "isolation depth among the positives",
        "Liu 2008",
        "100 trees, recall 0.9",
    ),
    "biased-svm": _spectral(
        "biased-svm",
        "hinge with two costs, chosen by recall² / share",
        "Liu 2003",
        "at most 1500 unlabeled",
    ),
    "pu-bagging": _spectral(
        "pu-bagging",
        "trees on positives against random unlabeled",
        "Mordelet 2014",
        "100 trees",
        extra="methods",
    ),
    "elkan-noto": _spectral(
        "elkan-noto",
        "P-vs-U classifier over its mean on positives",
        "Elkan 2008",
        "20 % held out",
        extra="methods",
    ),
    "maxent": _spectral(
        "maxent",
        "relative entropy to the background",
        "Phillips 2006",
        "20 MNF components, recall 0.9",
        extra="methods",
    ),
}


def as_markdown() -> str:
    """The catalogue as a table: a card for each method."""
    lines = [
        "| method | minimises | prior | works on | paper | constants |",
        "|---|---|---|---|---|---|",
    ]
    for name, method in METHODS.items():
        prior = "needed" if method.needs_prior else ""
        constants = method.constants + (f"; extra `{method.extra}`" if method.extra else "")
        cells = (f"`{name}`", method.minimises, prior, method.on, method.paper, constants)
        lines.append(f"| {' | '.join(cell.replace('|', '∣') for cell in cells)} |")
    return "\n".join(lines)


def unknown_method(name: str) -> ConfigError:
    """The error for a method that is not in the catalogue, with the one that was perhaps meant.

    >>> str(unknown_method("maxnt"))
    "there is no method 'maxnt', did you mean maxent? See `thonecls methods`"
    """
    near = difflib.get_close_matches(name, METHODS, n=1)
    meant = f", did you mean {near[0]}? See" if near else ": see"
    return ConfigError(f"there is no method {name!r}{meant} `thonecls methods`")
