"""Pictures a person wants to see: a scene in false colour, errors, and how training went."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from numpy.typing import NDArray

from thonecls.files import write_atomically
from thonecls.scene import Scene

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
