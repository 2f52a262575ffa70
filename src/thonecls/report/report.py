"""One page about one map: what it shows, how far to trust it, and how to make it again."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup, escape

from thonecls.metrics import Scores
from thonecls.report.plots import (
    draw_disagreement,
    draw_novelty,
    draw_probability,
    draw_scores,
    draw_spectra,
    draw_thresholds,
)
from thonecls.trust import (
    BOUND,
    Estimate,
    HeldOut,
    Level,
    Stability,
    TrustReport,
    Verification,
    percent,
    span,
)

__all__ = [
    "Confusion",
    "Picture",
    "Report",
    "Verdict",
    "as_json",
    "confusion",
    "draw_disagreement",
    "draw_novelty",
    "draw_probability",
    "draw_scores",
    "draw_spectra",
    "draw_thresholds",
    "judge",
    "render",
    "summarise_points",
]

WORDS: dict[Level, tuple[str, str]] = {
    "good": ("✓", "Looks sound"),
    "check": ("!", "Check before use"),
    "poor": ("✕", "Do not rely on it"),
}
GOOD, POOR = 0.8, 0.5  # F1 by checked points
WIDE = 0.5  # from the low to the high end of an interval
SURE = 0.5  # the least that precision and recall may be, by their intervals, of a good map
PICTURES = ("maps", "panels", "spectra", "curves", "errors")
FIRST = 3  # reasons beside the verdict; the others stand below
ESTIMATORS = {  # of prevalence: name and how it is found
    "mean-probability": ("Mean probability", "of the unlabeled pixels, taken at their word"),
    "best-bin": ("Best bin (BBE)", "the purest scores, of labels left out against unlabeled"),
    BOUND: ("Mapped share ÷ recall", "at most so much, as if nothing were mapped wrongly"),
    "km1-of-spectra": ("KM1 on spectra", "kernel means; leans high"),
    "km2-of-spectra": ("KM2 on spectra", "kernel means; leans high"),
    "bbe-of-spectra": ("BBE on spectra", "a linear classifier's purest scores; leans high"),
}


@dataclass(frozen=True)
class Verdict:
    """How far to trust a map, in a sentence, why, and the one thing to do next."""

    level: Level
    reasons: tuple[str, ...] = ()
    words: str = ""
    step: str = ""


@dataclass(frozen=True)
class Picture:
    """A PNG and the caption that says what it shows."""

    caption: str
    png: bytes = field(repr=False)


@dataclass(frozen=True)
class Report:
    """All that a page tells; what is empty or None is left out of it.

    maps, panels, spectra, curves, errors: pictures, most of them by the `draw_` functions; area: of
    what is mapped, in words; verified: what checked points tell; facts: scene, labels,
    model, threshold, versions, date by name; command: that makes the map again; scores: against
    the truth, where it was given; warnings: besides the verdict's reasons.
    """

    title: str
    summary: str
    verdict: Verdict
    facts: Mapping[str, object] = field(default_factory=dict)
    command: str = ""
    maps: tuple[Picture, ...] = ()
    trust: TrustReport | None = None
    scores: Scores | None = None
    spectra: tuple[Picture, ...] = ()
    curves: tuple[Picture, ...] = ()
    settings: Mapping[str, object] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    panels: tuple[Picture, ...] = ()
    area: str = ""
    verified: Verified | None = None
    errors: tuple[Picture, ...] = ()


@dataclass(frozen=True)
class Verified:
    """What checked points tell, and the hectares of the scene, where they are known."""

    found: Verification
    hectares: float | None = None


@dataclass(frozen=True)
class Confusion:
    """Pixels by truth and map."""

    hits: int
    misses: int
    false_alarms: int
    rejections: int


def judge(trust: TrustReport, verified: Verified | None = None) -> Verdict:
    """The verdict that a trust report leads to, or, better, points that somebody checked."""
    if verified is not None:
        return _by_points(verified.found)
    calm = "Labels left out of training are found, and another method makes about the same map."
    words = {
        "good": "The map looks right.",
        "check": "The map may be right; check it before use.",
        "poor": "The map is not right: do not rely on it.",
    }
    if trust.elsewhere and trust.level == "check":
        words["check"] = "Nobody can tell from these labels how right the map is."
    step = trust.step or "Check points, if much hangs on the map: `thonecls sample` draws them."
    weighty = sorted(trust.cautions, key=lambda caution: caution.level != "poor")
    reasons = tuple(caution.text for caution in weighty) or (calm,)
    return Verdict(trust.level, reasons, words[trust.level], step)


def _by_points(found: Verification) -> Verdict:
    """What checked points say of a map outweighs all else."""
    precision, recall = found.precision.value, found.recall.value
    f1 = 2 * precision * recall / max(precision + recall, 1e-12)
    low = min(found.precision.low or 0.0, found.recall.low or 0.0)
    level: Level = "poor" if f1 < POOR else "good" if f1 >= GOOD and low >= SURE else "check"
    words = {
        "good": "The map is right, by points that were checked.",
        "check": "The map is right in part, by points that were checked.",
        "poor": "The map is mostly wrong, by points that were checked.",
    }
    steps = {
        "good": "Use the map, and give the area with its interval.",
        "check": "Draw and check more points, or label what is missed and train again.",
        "poor": "Add the checked points to the labels as answers and train again.",
    }
    reason = (
        f"{found.answered} of {found.asked} points have an answer, {found.present} of them are the "
        "class."
    )
    return Verdict(level, (reason,), words[level], steps[level])


def summarise_points(verified: Verified) -> str:
    """What checked points tell, in a sentence; where hectares are known, with the area in them."""
    found = verified.found
    shares = found.area.value, found.area.low or 0.0, found.area.high or 1.0
    area = f"{_valued(found.area)} of the scene"
    if verified.hectares is not None:
        value, low, high = (share * verified.hectares for share in shares)
        area = f"{hectares(value, 2)} ({_ha(low, 2)} to {hectares(high, 2)})"
    return (
        f"The map finds {_valued(found.recall)} of the class, and {_valued(found.precision)} of "
        f"what it marks is right; the class covers {area}. Intervals hold the truth 19 times in 20."
    )


def _valued(estimate: Estimate) -> str:
    low, high = estimate.low or 0.0, 1.0 if estimate.high is None else estimate.high
    if high - low > WIDE:  # one number would say more than is known
        return f"between {span(low, high, ' and ')}"
    return f"{percent(estimate.value)} ({span(low, high)})"


def confusion(scores: Scores) -> Confusion:
    """The four counts behind the scores.

    >>> confusion(Scores(50.0, 50.0, 50.0, 75.0, 50.0, pixels=4, positives=2))
    Confusion(hits=1, misses=1, false_alarms=1, rejections=1)
    """
    hits = round(scores.recall / 100 * scores.positives)
    right = round(scores.accuracy / 100 * scores.pixels)
    others = scores.pixels - scores.positives
    return Confusion(hits, scores.positives - hits, others - (right - hits), right - hits)


def render(report: Report) -> str:
    """The report as one HTML page that needs no other file and runs no script."""
    environment = Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined
    )
    environment.filters.update(
        data_uri=_data_uri, percent=percent, shown=_shown, unbroken=_unbroken, coded=_coded
    )
    template = (files("thonecls.report") / "report.html").read_text(encoding="utf-8")
    trust = report.trust
    return environment.from_string(template).render(
        report=report,
        sign=WORDS[report.verdict.level][0],
        word=WORDS[report.verdict.level][1],
        reasons=report.verdict.reasons[:FIRST],
        noticed=(*report.verdict.reasons[FIRST:], *report.warnings),
        numbers=[] if trust is None else list_numbers(trust),
        estimates=[] if trust is None else [_estimate(e) for e in trust.prevalence.estimates],
        confusion=None if report.scores is None else confusion(report.scores),
        checked=[] if report.verified is None else _of_points(report.verified),
    )


def as_json(report: Report) -> dict[str, Any]:
    """The report for programs, without its pictures; `json.dumps` takes it as it is."""
    names = (part.name for part in fields(report) if part.name not in PICTURES)
    found = {name: _plain(getattr(report, name)) for name in names}
    if report.scores is not None:
        found["confusion"] = _plain(confusion(report.scores))
    if report.trust is not None:
        found["trust"]["level"] = report.trust.level
    return found


class Number(NamedTuple):
    """A figure of the trust section; low and high in percent draw its interval."""

    name: str
    value: str
    text: str
    interval: str = ""
    at: float | None = None
    low: float = 0.0
    high: float = 0.0


def list_numbers(trust: TrustReport) -> list[Number]:
    """The figures of the trust section, each with half a sentence that explains it."""
    prevalence = trust.prevalence
    whole = Estimate("prevalence", prevalence.value, prevalence.low, prevalence.high)
    count = len(prevalence.estimates)
    several = f"; lowest to highest of {count} estimates" if count > 1 else ""
    known = trust.held_out is not None and not trust.vague
    return [
        *(_of_labels(trust.held_out, rough=trust.rough) if known and trust.held_out else []),
        Number("Mapped", percent(trust.covered), "of the scene is marked as the class"),
        _ranged("Prevalence", whole, f"of the scene is estimated to be the class{several}"),
        *([] if trust.stability is None else _of_seeds(trust.stability)),
    ]


def _of_labels(held_out: HeldOut, *, rough: bool) -> list[Number]:
    doubt = "a guess, as the prevalence is" if rough else "too high where other things look alike"
    return [
        _ranged(
            "Recall",
            held_out.recall,
            f"of {held_out.labels} labels are found by models that did not learn from them",
        ),
        _ranged(
            "Precision",
            held_out.precision,
            f"of what is mapped is estimated to be right; {doubt}",
        ),
        _ranged("F1", held_out.f1, "recall and precision in one number, as estimated"),
        _ranged("False alarms", held_out.fpr, "of all other pixels are estimated to be mapped"),
        Number(
            "AUC",
            percent(held_out.auc),
            "is how often the class scores above something else, as estimated",
        ),
        Number("puF", f"{held_out.puf:.3g}", "recall² ÷ mapped share, to compare maps of a scene"),
    ]


def _of_points(verified: Verified) -> list[Number]:
    """The figures that checked points give."""
    found = verified.found
    numbers = [
        _ranged("Recall", found.recall, "of the class is mapped"),
        _ranged("Precision", found.precision, "of what is mapped is the class"),
        _ranged("Cover", found.area, "of the scene is the class"),
    ]
    if verified.hectares is not None:
        value, low, high = (
            (share or 0.0) * verified.hectares
            for share in (found.area.value, found.area.low, found.area.high)
        )
        text = "is the area of the class, as estimated from the points"
        interval = f"{_ha(low, 2)} to {hectares(high, 2)}"
        numbers.append(Number("Area", hectares(value, 2), text, interval))
    return numbers


def hectares(value: float, digits: int = 3) -> str:
    """An area for people, to so many digits.

    >>> hectares(12345.6), hectares(3.14159), hectares(0.012), hectares(82.4, 2)
    ('12,300 ha', '3.14 ha', '0.012 ha', '82 ha')
    """
    return f"{_ha(value, digits)} ha"


def _ha(value: float, digits: int) -> str:
    if value <= 0:
        return "0"
    digits = digits - 1 - math.floor(math.log10(value))
    text = f"{round(value, digits):,.{max(0, digits)}f}"
    return text.rstrip("0").rstrip(".") if digits > 0 else text


def _of_seeds(agreement: Stability) -> list[Number]:
    return [
        Number(
            "Agreement",
            percent(agreement.iou),
            f"of what one of {agreement.seeds} seeds marks another marks as well (IoU)",
        ),
        Number("Contested", percent(agreement.contested), "of the pixels depend on the seed"),
    ]


def _ranged(name: str, estimate: Estimate, text: str) -> Number:
    """A figure with its interval, if it has one."""
    low, high, value = estimate.low, estimate.high, estimate.value
    if low is None or high is None or low == high:
        return Number(name, percent(value), text)
    ends = (round(100 * end, 2) for end in (value, low, high))
    return Number(name, percent(value), text, span(low, high), *ends)


def _estimate(estimate: Estimate) -> tuple[str, str, str, str]:
    """Name, value, interval and origin of an estimate of prevalence."""
    name, origin = ESTIMATORS.get(estimate.name, (estimate.name, ""))
    known = estimate.low is not None and estimate.high is not None
    interval = span(estimate.low, estimate.high) if known else ""
    return name, percent(estimate.value), interval, origin


def _data_uri(png: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(png).decode()


def _unbroken(text: str) -> str:
    """A number and its percent sign stay on one line."""
    return text.replace(" %", "\N{NO-BREAK SPACE}%")


def _coded(text: str) -> Markup:
    """Words with commands between backticks, as HTML."""
    parts = [escape(part) for part in _unbroken(text).split("`")]
    whole = Markup("")
    for i, part in enumerate(parts):
        whole += Markup("<code>{}</code>").format(part) if i % 2 else part
    return whole


def _shown(value: object) -> str:
    """A setting or fact as text: numbers short, what is not set as a dash."""
    if value is None or value == "":
        return "–"
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, float | np.floating):
        return f"{value:.6g}"
    if isinstance(value, list | tuple):
        return ", ".join(_shown(part) for part in value)
    return str(value)


def _plain(value: Any) -> Any:
    """Nested values as JSON knows them; what is no number is null, other objects are text."""
    if is_dataclass(value) and not isinstance(value, type):
        return _plain(asdict(value))
    if isinstance(value, Mapping):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, np.generic | np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, str | int) else str(value)
