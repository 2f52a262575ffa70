"""All pictures of maps, trainings, scores and spectra."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from numpy.typing import NDArray

from thonecls.files import write_atomically
from thonecls.method.novelty import find_odd
from thonecls.scene import Scene

if TYPE_CHECKING:
    from thonecls.trust import Curve

# Okabe-Ito colours: told apart also without seeing red and green.
CLASS, HIT, FALSE, MISSED = "#0072b2", "#009e73", "#d55e00", "#f0e442"
QUIET, NODATA = "#f4f4f4", "#bbbbbb"
WIDE = 5.2  # inches of a picture: the lettering stays readable at the width of a phone


@dataclass(frozen=True, eq=False)
class Truth:
    """What is known of a scene: (H, W) masks of the class, and of the pixels that are tested."""

    of_class: NDArray[np.bool_]
    tested: NDArray[np.bool_]


def draw_errors(path: Path, mapped: NDArray[np.bool_], truth: Truth) -> None:
    """Save a PNG of where a map, (H, W), is right and where it is wrong."""
    tall = WIDE * float(np.clip(mapped.shape[0] / mapped.shape[1], 0.3, 2.5))
    figure = Figure(figsize=(WIDE, tall + 0.7))
    axis = figure.add_axes((0, 0.7 / (tall + 0.7), 1, tall / (tall + 0.7)))
    kind = np.select([mapped & truth.of_class, mapped, truth.of_class], [1, 2, 3], 0)
    _draw_classes(
        axis,
        np.where(truth.tested, kind, 4),
        [
            (QUIET, "right: other"),
            (HIT, "right: class"),
            (FALSE, "false alarm"),
            (MISSED, "missed"),
            (NODATA, "not tested"),
        ],
    )
    save_figure(figure, path)


def draw_curves(path: Path, history: dict[str, list[float]], *, title: str) -> None:
    """Save a PNG of the training history: losses, consistency and gradient norm by epoch.

    Figures that a method does not have, or that are 0 throughout, are left out.
    """
    known: list[tuple[str, list[tuple[str, str]]]] = [
        ("Loss", [("loss", "total"), ("positive", "positive"), ("unlabeled", "unlabeled")]),
        ("Mean probability of the unlabeled", [("share", "")]),
        ("Consistency with the teacher", [("consistency", "")]),
        ("Gradient norm before clipping", [("gradient_norm", "")]),
    ]
    panels = [
        (name, [line for line in lines if any(history.get(line[0], ()))]) for name, lines in known
    ]
    panels = [(name, lines) for name, lines in panels if lines] or [known[1]]
    figure = Figure(figsize=(3.5 * len(panels), 3.2), layout="constrained")
    figure.suptitle(title, fontsize=12)
    axes = np.atleast_1d(figure.subplots(1, len(panels)))
    for axis, (name, lines) in zip(axes, panels, strict=True):
        for (key, label), colour in zip(lines, (CLASS, HIT, FALSE), strict=False):
            values = history.get(key, [])
            epochs = range(1, len(values) + 1)
            axis.plot(epochs, values, label=label, color=colour, linewidth=1.6)
        axis.set_title(name, fontsize=10)
        axis.set_xlabel("epoch")
        axis.grid(alpha=0.3)
        if len(lines) > 1:
            axis.legend(fontsize=8)
    save_figure(figure, path)


def false_colour(scene: Scene) -> NDArray[np.float32]:
    """The first three bands as (H, W, 3) in 0..1, each stretched from 2nd to 98th percentile."""
    image = np.ones((*scene.shape, 3), dtype=np.float32)
    for i, band in enumerate(scene.cube[:3]):
        low, high = np.percentile(band[scene.valid], (2, 98))
        image[..., i] = np.clip((band - low) / max(float(high - low), 1e-12), 0, 1)
    image[~scene.valid] = 1
    return image


def _draw_classes(axis: Axes, kinds: NDArray[Any], legend: list[tuple[str, str]]) -> None:
    """A map of small whole numbers, each with its colour and name from the legend."""
    palette = np.array([_rgb(colour) for colour, _ in legend], dtype=np.uint8)
    axis.imshow(palette[kinds.astype(np.int64)], interpolation="nearest")
    axis.set(xticks=[], yticks=[])
    present = set(np.unique(kinds).tolist())
    axis.legend(
        handles=[
            Patch(facecolor=colour, edgecolor="#888888", label=label)
            for i, (colour, label) in enumerate(legend)
            if i in present
        ],
        loc="upper center",
        bbox_to_anchor=(0.5, -0.01),
        ncols=3,
        fontsize=9,
        frameon=False,
        handlelength=1.2,
        columnspacing=1.0,
    )


def _rgb(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def save_figure(figure: Figure, path: Path, dpi: int = 130) -> None:
    """Write a figure as PNG, whole or not at all."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=dpi)
    write_atomically(path, buffer.getvalue())


REST = "#7f7f7f"  # of the unlabeled and the scene
SIZE = (5.2, 3.4)  # inches: the lettering stays readable at the width of a phone
BINS = 25
BAND = (5, 95)  # percentiles that a band of spectra spans
MOST_ODD = 10  # lines that are drawn
BELOW = 0.72  # inches for a legend of two lines
FEW_BANDS = 30  # fewer are drawn as dots, and lines between them all
GAP = 3.0  # times the usual step of wavelength: bands are missing there


def draw_scores(
    held_out: NDArray[Any] | None, unlabeled: NDArray[Any], *, threshold: float = 0.5
) -> bytes:
    """Histograms of probability: held-out positives against unlabeled pixels, both finite.

    Small shares are drawn larger (by the square root), for the middle holds few pixels.
    """
    figure, axis = _figure("Probability", "Share of the pixels (%)")
    edges = np.linspace(0, 1, BINS + 1).tolist()
    groups = [(unlabeled, REST, "unlabeled pixels")]
    if held_out is not None:
        groups.append((held_out, CLASS, "labels left out"))
    for scores, colour, name in groups:
        weights = np.full(scores.size, 100 / scores.size)
        axis.hist(scores, edges, weights=weights, color=colour, alpha=0.35)
        axis.hist(scores, edges, weights=weights, color=colour, histtype="step", lw=1.6, label=name)
    _mark(axis, threshold, "threshold")
    axis.set_yscale("function", functions=(lambda y: np.sqrt(np.maximum(y, 0)), np.square))
    axis.set_yticks([tick for tick in (0, 1, 5, 20, 50, 100) if tick <= axis.get_ylim()[1]])
    axis.set_xlim(0, 1)
    return _finish(figure, axis)


def draw_thresholds(curve: Curve, *, threshold: float, suggested: float | None = None) -> bytes:
    """TPR, PPP and puF, of its largest, against the threshold; the chosen one is marked."""
    figure, axis = _figure("Threshold", "%")
    puf = 100 * np.array(curve.puf) / max(*curve.puf, 1e-12)
    for values, colour, style, name in (
        (100 * np.array(curve.tpr), CLASS, "-", "labels left out that are found (TPR)"),
        (100 * np.array(curve.ppp), REST, "-", "pixels mapped (PPP)"),
        (puf, HIT, "--", "TPR² / PPP, of its largest (puF)"),
    ):
        axis.plot(curve.thresholds, values, color=colour, ls=style, lw=1.8, label=name)
    _mark(axis, threshold, "in use")
    if suggested is not None and suggested != threshold:
        _mark(axis, suggested, "suggested", style=":")
    axis.set_xlim(0, 1)
    axis.set_ylim(0, 103)
    return _finish(figure, axis)


def draw_spectra(
    labels: NDArray[Any],
    scene: NDArray[Any],
    *,
    wavelengths: NDArray[Any] | None = None,
    unit: str = "nm",
) -> bytes:
    """Mean and 5 to 95 % band of the labelled pixels and of the scene; odd labels as thin lines.

    labels: (n, C), scene: (m, C) finite spectra, of some thousand pixels drawn from it;
    wavelengths: (C,) in `unit`, else bands are numbered from 1.
    """
    known = wavelengths is not None
    figure, axis = _figure(f"Wavelength ({unit})" if known else "Band", "Value in the scene")
    x = np.arange(1.0, labels.shape[1] + 1) if wavelengths is None else np.asarray(wavelengths)
    order = np.argsort(x)
    dot = "o" if x.size < FEW_BANDS else ""
    for spectra, colour, name in ((scene, REST, "scene"), (labels, CLASS, "labels")):
        low, high = np.percentile(spectra, BAND, axis=0)
        place, mean, low, high = _broken(
            x[order], spectra.mean(axis=0)[order], low[order], high[order]
        )
        axis.fill_between(place, low, high, color=colour, alpha=0.25, lw=0)
        text = f"{name}: mean, 5 to 95 %"
        axis.plot(place, mean, color=colour, lw=1.8, marker=dot, ms=4, label=text)
    odd = find_odd(labels)
    for i, spectrum in enumerate(labels[odd[:MOST_ODD]]):
        place, line = _broken(x[order], spectrum[order])
        axis.plot(
            place, line, color=FALSE, lw=0.7, label=f"odd labels: {odd.size}" if i == 0 else None
        )
    return _finish(figure, axis)


def _broken(x: NDArray[Any], *lines: NDArray[Any]) -> list[NDArray[np.float64]]:
    """Lines with a NaN where bands are missing, so that nothing is drawn across the gap."""
    steps = np.diff(x)
    holes = np.empty(0, int)
    if x.size >= FEW_BANDS:
        holes = np.flatnonzero(steps > GAP * np.median(steps)) + 1
    middles = (x[holes] + x[holes - 1]) / 2
    broken = [np.insert(np.asarray(line, dtype=np.float64), holes, np.nan) for line in lines]
    return [np.insert(np.asarray(x, dtype=np.float64), holes, middles), *broken]


def _figure(across: str, up: str) -> tuple[Figure, Axes]:
    figure = Figure(figsize=SIZE, layout="constrained")
    axis = figure.subplots()
    axis.set_xlabel(across)
    axis.set_ylabel(up)
    axis.grid(alpha=0.3)
    axis.spines[["top", "right"]].set_visible(False)
    return figure, axis


def _mark(axis: Axes, threshold: float, name: str, style: str = "-") -> None:
    axis.axvline(threshold, color=FALSE, ls=style, lw=1.4, label=f"{name}: {threshold:.4g}")


def _finish(figure: Figure, axis: Axes) -> bytes:
    """The figure as PNG, its legend above the axes, where it hides nothing."""
    handles, _ = axis.get_legend_handles_labels()
    figure.legend(handles=handles, loc="outside upper left", ncols=2, fontsize=9, frameon=False)
    return _png(figure)


def _png(figure: Figure) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=160)
    return buffer.getvalue()


def draw_probability(probability: NDArray[Any], *, aspect: float = 1.0) -> bytes:
    """Probabilities (h, w) of a thinned scene, NaN on nodata."""
    figure, axis = _panel(probability.shape, aspect)
    image = axis.imshow(
        probability, vmin=0, vmax=1, cmap="viridis", aspect="auto", interpolation="nearest"
    )
    height = figure.get_size_inches()[1]
    place = figure.add_axes((0.2, 0.4 / height, 0.6, 0.14 / height))
    bar = figure.colorbar(image, cax=place, orientation="horizontal")
    bar.ax.tick_params(labelsize=9)
    return _png(figure)


def draw_novelty(
    mapped: NDArray[Any], unlike: NDArray[Any], novel: NDArray[Any], *, aspect: float = 1.0
) -> bytes:
    """Where a map (h, w) rests on spectra like those of labels, and where not.

    mapped: 1, 0, and NaN on nodata; unlike: spectra unlike any label's; novel: unlike the scene.
    """
    kinds = np.select([(mapped == 1) & ~unlike, mapped == 1, novel], [1, 2, 3], 0)
    legend = (
        (QUIET, "not mapped"),
        (CLASS, "mapped, like a label"),
        (FALSE, "mapped, unlike any label"),
        (MISSED, "not mapped, unlike the scene"),
        (NODATA, "no data"),
    )
    return _draw_kinds(np.where(np.isfinite(mapped), kinds, 4), legend, aspect, columns=2)


def draw_disagreement(
    mapped: NDArray[Any], other: NDArray[Any], name: str, *, aspect: float = 1.0
) -> bytes:
    """Where two maps (h, w) of one scene differ; mapped, other: 1, 0, and NaN on nodata."""
    kinds = np.select([(mapped == 1) & (other == 1), mapped == 1, other == 1], [1, 2, 3], 0)
    legend = (
        (QUIET, "neither"),
        (HIT, "both"),
        (CLASS, "this map only"),
        (FALSE, f"{name} only"),
        (NODATA, "no data"),
    )
    known = np.isfinite(mapped) & np.isfinite(other)
    return _draw_kinds(np.where(known, kinds, 4), legend, aspect, columns=3)


def _draw_kinds(
    kinds: NDArray[Any], legend: tuple[tuple[str, str], ...], aspect: float, *, columns: int
) -> bytes:
    """A picture of small whole numbers, each with its colour and name from the legend."""
    figure, axis = _panel(kinds.shape, aspect)
    palette = np.array([to_rgb(colour) for colour, _ in legend])
    axis.imshow(palette[kinds], aspect="auto", interpolation="nearest")
    present = set(np.unique(kinds).tolist())
    handles = [
        Patch(facecolor=colour, edgecolor="#888888", label=text)
        for number, (colour, text) in enumerate(legend)
        if number in present
    ]
    figure.legend(handles=handles, loc="lower center", ncols=columns, fontsize=9, frameon=False)
    return _png(figure)


def _panel(shape: tuple[int, ...], aspect: float) -> tuple[Figure, Axes]:
    """A picture of a scene, with room below; aspect: the height of a pixel over its width."""
    tall = float(np.clip(SIZE[0] * shape[0] * aspect / shape[1], 1.6, 8.0))
    height = tall + BELOW
    figure = Figure(figsize=(SIZE[0], height))
    axis = figure.add_axes((0.004, BELOW / height, 0.992, tall / height * 0.995))
    axis.set(xticks=[], yticks=[])
    return figure, axis
