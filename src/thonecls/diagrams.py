"""Diagrams beside a map: scores, thresholds and spectra, as PNG."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from thonecls.novelty import find_odd
from thonecls.report import CLASS, FALSE, HIT
from thonecls.trust import Curve

REST = "#7f7f7f"  # of the unlabeled and the scene
SIZE = (5.2, 3.4)  # inches: the lettering stays readable at the width of a phone
BINS = 25
BAND = (5, 95)  # percentiles that a band of spectra spans
MOST_ODD = 10  # lines that are drawn
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
        groups.append((held_out, CLASS, "held-out labels"))
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
        (100 * np.array(curve.tpr), CLASS, "-", "held-out labels found (TPR)"),
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
    for spectra, colour, name in ((scene, REST, "scene"), (labels, CLASS, "labels")):
        low, high = np.percentile(spectra, BAND, axis=0)
        place, mean, low, high = _broken(
            x[order], spectra.mean(axis=0)[order], low[order], high[order]
        )
        axis.fill_between(place, low, high, color=colour, alpha=0.25, lw=0)
        axis.plot(place, mean, color=colour, lw=1.8, label=f"{name}: mean, 5 to 95 %")
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
    holes = np.flatnonzero(steps > GAP * np.median(steps)) + 1 if steps.size else np.empty(0, int)
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
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=160)
    return buffer.getvalue()
