"""What files of ours must hold: every fact and array is checked before anything is built from it.

A file may come from a stranger: whatever is in it, the answer is one line, never a traceback, and
never a map from weights that are no numbers.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

MOST_TEXT = 10_000  # characters of a text
MOST_LABEL = 200  # of a class's name
MOST_BANDS = 10_000
MOST_LIST = 1_000_000


class MismatchError(ValueError):
    """A fact or an array that is not what it must be."""


@contextmanager
def refusing(error: type[Exception], what: str, step: str) -> Iterator[None]:
    """A mismatch as an error that names the file and what to do."""
    try:
        yield
    except MismatchError as found:
        raise error(f"{what} ({found}): {step}") from found


class Rule(NamedTuple):
    """What a value must be, in words and as a test; needed: whether it may be missing."""

    words: str
    holds: Callable[[Any], bool]
    needed: bool = True

    @property
    def optional(self) -> Rule:
        """The same for a value that older files do not have."""
        return Rule(self.words, self.holds, needed=False)


def number(low: float = -math.inf, high: float = math.inf, *, above: bool = False) -> Rule:
    """A finite number from low, or above it, to high."""
    words = {
        (False, False): f"a number from {low:g} to {high:g}",
        (True, False): f"a number above {low:g} and at most {high:g}",
        (False, True): f"a number, {low:g} or more",
        (True, True): f"a number above {low:g}",
    }[above, high == math.inf]

    def holds(value: Any) -> bool:
        return is_number(value) and (low < value if above else low <= value) and value <= high

    return Rule("a finite number" if low == -math.inf else words, holds)


def is_number(value: Any) -> bool:
    """Whether a value is a finite number that a float can hold."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) < 1e300  # an int beyond all floats must not overflow later


def whole(low: int, high: int = 2**62) -> Rule:
    """A whole number from low to high."""
    return Rule(
        f"a whole number from {low} to {high}",
        lambda v: isinstance(v, int) and not isinstance(v, bool) and low <= v <= high,
    )


def text(most: int = MOST_TEXT) -> Rule:
    """A text of so many characters."""
    return Rule(
        f"a text of at most {most} characters", lambda v: isinstance(v, str) and len(v) <= most
    )


def of_type(words: str, *kinds: type) -> Rule:
    """A value of one of some types."""
    return Rule(words, lambda v: isinstance(v, kinds))


def listed(each: Rule, most: int = MOST_LIST) -> Rule:
    """A list whose items keep to a rule."""
    return Rule(
        f"a list, each item {each.words}",
        lambda v: isinstance(v, list) and len(v) <= most and all(map(each.holds, v)),
    )


def or_none(rule: Rule) -> Rule:
    """What keeps to a rule, or nothing."""
    return Rule(f"{rule.words}, or null", lambda v: v is None or rule.holds(v), rule.needed)


def check_facts(facts: Any, rules: Mapping[str, Rule]) -> None:
    """Refuse facts of which one breaks its rule, in the words of the settings' own checks."""
    if not isinstance(facts, dict):
        raise MismatchError(f"facts with names are needed. Got {reprlib.repr(facts)} instead")
    for name, rule in rules.items():
        if name not in facts:
            if rule.needed:
                raise MismatchError(f"'{name}' is missing")
            continue
        if not rule.holds(facts[name]):
            raise MismatchError(
                f"'{name}' must be {rule.words}. Got {reprlib.repr(facts[name])} instead"
            )


class Array(NamedTuple):
    """What an array must be: its axes by length or by a name, equal names meaning equal lengths.

    kinds: of its type, as NumPy calls them; low, high: what its values lie between; finite: whether
    NaN is refused; needed: whether it may be missing.
    """

    axes: tuple[int | str, ...]
    kinds: str = "f"
    low: float = -math.inf
    high: float = math.inf
    finite: bool = True
    needed: bool = True


def check_arrays(
    arrays: Mapping[str, NDArray[Any]],
    rules: Mapping[str, Array],
    sizes: Mapping[str, int] | None = None,
) -> dict[str, int]:
    """Refuse arrays of other names, types, shapes or values; returns the lengths of named axes."""
    known = dict(sizes or {})
    if odd := sorted(arrays.keys() - rules.keys()):
        raise MismatchError(f"it has an array {odd[0][:80]!r} that does not belong there")
    for name, rule in rules.items():
        if name not in arrays:
            if rule.needed:
                raise MismatchError(f"its array '{name}' is missing")
            continue
        found = arrays[name]
        wanted = [known.get(axis, axis) if isinstance(axis, str) else axis for axis in rule.axes]
        fits = len(found.shape) == len(wanted) and all(
            isinstance(axis, str) or axis == length
            for axis, length in zip(wanted, found.shape, strict=True)
        )
        if not fits or found.dtype.kind not in rule.kinds:
            axes = ", ".join(map(str, wanted))
            raise MismatchError(
                f"its array '{name}' must be ({axes}) of kind {rule.kinds}. "
                f"Got {tuple(found.shape)} of {found.dtype} instead"
            )
        _check_values(name, found, rule)
        known |= {
            axis: length
            for axis, length in zip(rule.axes, found.shape, strict=True)
            if isinstance(axis, str)
        }
    return known


def _check_values(name: str, found: NDArray[Any], rule: Array) -> None:
    if not found.size or found.dtype.kind == "b":
        return
    # Sums and copies are spared: NaN is neither at least low nor at most high.
    low, high = found.min(), found.max()
    if not rule.finite:
        low, high = np.nanmin(found, initial=np.inf), np.nanmax(found, initial=-np.inf)
        if low > high:  # nothing but NaN
            return
    if not (rule.low <= low and high <= rule.high and (np.isfinite([low, high]).all())):
        must = "finite" if rule.low == -math.inf else f"from {rule.low:g} to {rule.high:g}"
        raise MismatchError(f"the values of its array '{name}' must be {must}. Got {low} to {high}")


# What is told of a training, wherever it is told; older files tell less.
TRAINING = {
    "config": of_type("settings", dict).optional,
    "history": Rule(
        "lists of numbers by name",
        lambda v: (
            isinstance(v, dict)
            and all(
                isinstance(one, list) and all(isinstance(x, int | float) for x in one)
                for one in v.values()
            )
        ),
        needed=False,
    ),
    "label": text(MOST_LABEL).optional,
    "threshold_reason": text().optional,
    "prevalence": number(0, 1).optional,
    "positives": whole(0).optional,
    "unlabeled": whole(0).optional,
    "seed": whole(0).optional,
    "seconds": number(0).optional,
    "finished": of_type("true or false", bool).optional,
    "versions": of_type("versions by name", dict).optional,
    "scene": of_type("facts of a scene", dict).optional,
}
WAVELENGTHS = or_none(listed(number(0, 1e9, above=True), MOST_BANDS))
# Of every kind of model.
SHARED = {
    "training": of_type("facts of a training", dict),
    "wavelengths": WAVELENGTHS.optional,
    "threshold": number(0, 1).optional,
    "usual": number(0, above=True).optional,
}
NETWORK = SHARED | {
    "net": of_type("the settings of a network", dict),
    "ceiling": number(0, 1, above=True).optional,
    "networks": whole(1, 100).optional,
}
NET = {"bands": whole(1, MOST_BANDS), "width": number(0, 16, above=True)}
RATIO = SHARED | {
    "machines": listed(of_type("facts of a machine", dict), 100),
    "cut": number(-1e6, 1e6),
    "difference": number(0, 1e30).optional,
}
SPECTRAL = SHARED | {"method": text(100)}
BANDS = {
    "mean": Array(("bands",)),
    "std": Array(("bands",), low=0.0, high=1e38),
    "axes": Array(("components", "bands"), needed=False),
}
NOVELTY = {
    "axes": Array(("directions", "bands")),
    "centre": Array(("bands",)),
    "scales": Array(("scales",), low=1e-30, high=1e38),
}
SAMPLES = {
    "positive": Array(("positives", "features")),
    "unlabeled": Array(("others", "features")),
    "mean": Array(("bands",)),
    "matrix": Array(("bands", "features")),
}
CHECKPOINT = {
    "fingerprint": text(),
    "epoch": whole(0),
    "step": whole(0),
    "sums": listed(of_type("a number", int, float)),
    "history": listed(listed(of_type("a number", int, float))),
    "seconds": number(0),
}


def _is_scene(value: Any) -> bool:
    """Whether it tells a scene of several: its name, which is a folder's, and its corner."""
    if not isinstance(value, dict) or not isinstance(name := value.get("name"), str):
        return False
    plain = 0 < len(name) <= 255 and not set(name) & set("/\\\0") and name not in (".", "..")
    corner = (value.get("row"), value.get("column"))
    return plain and all(whole(0, 2**40).holds(at) for at in corner)


# What a report is made from, of what run.json holds.
RUN = {
    **dict.fromkeys(("cube", "labels", "out"), text()),
    "method": text(100),
    **dict.fromkeys(("positives", "held_out"), whole(0)),
    "seeds": whole(1),
    **dict.fromkeys(("threshold", "mapped_share"), number(0, 1)),
    "seconds": number(0),
    "notes": listed(text(), 10_000),
    "opinions": listed(text(100), 100),
    "config": of_type("settings", dict),
    "label": text(MOST_LABEL).optional,
    "coverage": Rule("all, part or patch", lambda v: v in ("all", "part", "patch"), needed=False),
    "beyond": Rule(
        "a share, a side and whether labels are a fair sample",
        lambda v: isinstance(v, dict) and v.keys() >= {"share", "side", "fair"},
        needed=False,
    ),
    "warning": text().optional,
    "epochs_done": whole(0).optional,
    "threshold_reason": text().optional,
    "seed": whole(0).optional,
    "target": or_none(whole(-(2**62))).optional,
    "buffer": or_none(number()).optional,
    "all_touched": of_type("true or false", bool).optional,
    **dict.fromkeys(
        (
            *("layer", "where", "crs", "labels_variable", "answers", "negatives", "dataset"),
            "scene_crs",
        ),
        or_none(text()).optional,
    ),
    "scenes": Rule(
        "a list of scenes, each with a name and where it begins",
        lambda v: isinstance(v, list) and len(v) <= MOST_LIST and all(map(_is_scene, v)),
        needed=False,
    ),
    "scores": Rule(
        "numbers by name",
        lambda v: isinstance(v, dict) and all(map(is_number, v.values())),
        needed=False,
    ),
}
EVIDENCE = {
    "labels": Array(("labels",), "i", low=0, high=2**62),
    "fold": Array(("labels",), "i"),
    "crossfit": Array(("labels",), low=0, high=1, finite=False),
    "unlabeled": Array(("models", "pixels"), low=0, high=1, finite=False),
    "rows": Array(("rows",), "i", low=0, high=2**62),
    "columns": Array(("columns",), "i", low=0, high=2**62),
    "opinions": Array(("opinions", "pixels"), low=-1e30, high=1e30, finite=False),
    "unlike": Array(("pixels",), "b"),
    "components": Array(("pixels", "components"), finite=False),
    "label_spectra": Array(("spectra", "bands")),
    "scene_spectra": Array(("seen", "bands")),
    "wavelengths": Array(("wavelengths",), low=0, high=1e9),
    "negatives": Array(("negatives",), "i", low=0, high=2**62, needed=False),
}
