"""The data themselves: the scene, its classes and their spectra."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure, SubFigure
from matplotlib.patches import Patch
from numpy.typing import NDArray

from thonecls.datasets import Dataset
from thonecls.report.plots import QUIET, false_colour, save_figure
from thonecls.scene import Scene

# Okabe and Ito's eight, then those that lie farthest from all before them and from the background,
# in OKLab. A scene with more classes than colours repeats them.
CLASS_COLOURS = (
    *("#0072b2", "#009e73", "#d55e00", "#f0e442", "#cc79a7", "#e69f00", "#56b4e9", "#000000"),
    *("#8b00ff", "#5d002e", "#00005d", "#ff00e8", "#00ff00", "#172e00", "#0000e8", "#17ffd1"),
    *("#a2008b", "#ff0074", "#745d46", "#5d2ea2", "#a28bff", "#00b900"),
)


class Spectrum(NamedTuple):
    """Mean and standard deviation of a class in each band: (C,); its number of pixels."""

    mean: NDArray[np.float64]
    std: NDArray[np.float64]
    pixels: int


def draw_data(data: Dataset, path: Path) -> bool:
    """Save a PNG of a dataset: false colour, ground truth, and each class's mean spectrum ± std.

    False, and no file, if no valid pixel has a class.
    """
    spectra = _spectra(data)
    if not spectra:
        return False
    colours = {
        number: CLASS_COLOURS[i % len(CLASS_COLOURS)] for i, number in enumerate(sorted(spectra))
    }
    across = min(4, len(spectra))
    down = -(-len(spectra) // across)
    rows, columns = data.scene.shape
    stacked = columns > 0.75 * rows  # scene above truth, rather than beside it
    tall = max(5.4 if stacked else 4.0, 1.4 * down + 0.6)
    room = (tall / 2 if stacked else tall) - 0.5
    maps = (1 if stacked else 2) * float(np.clip(room * columns / rows, 1.5, 5)) + 2.1
    lines = 1.9 * across + 0.5
    figure = Figure(figsize=(maps + lines, tall), layout="constrained")
    figure.suptitle(data.name, fontsize=12)
    left, right = figure.subfigures(1, 2, squeeze=False, width_ratios=(maps, lines)).flat
    _draw_maps(left, data, colours, (2, 1) if stacked else (1, 2))
    _draw_spectra(right, data, spectra, colours, (down, across))
    save_figure(figure, path)
    return True


def show_scene(data: Dataset) -> NDArray[np.uint8]:
    """The scene in false colour: (H, W, 3)."""
    shown = Scene(data.scene.cube[list(data.rgb)], data.scene.valid)
    return np.rint(255 * false_colour(shown)).astype(np.uint8)


def _spectra(data: Dataset) -> dict[int, Spectrum]:
    """Of every class that has a valid pixel."""
    spectra = {}
    for number in data.classes:
        inside = (data.truth == number) & data.scene.valid
        if inside.any():
            pixels = data.scene.cube[:, inside]
            mean = pixels.mean(axis=1, dtype=np.float64)
            spectra[number] = Spectrum(mean, pixels.std(axis=1, dtype=np.float64), inside.sum())
    return spectra


def _draw_maps(
    figure: SubFigure, data: Dataset, colours: dict[int, str], shape: tuple[int, int]
) -> None:
    """Scene and ground truth, and the legend of the classes."""
    scene, truth = figure.subplots(*shape)
    scene.imshow(show_scene(data))
    scene.set_title("Scene in false colour", fontsize=10)
    painted = np.full((*data.truth.shape, 3), to_rgb(QUIET))
    for number, colour in colours.items():
        painted[data.truth == number] = to_rgb(colour)
    truth.imshow(painted, interpolation="nearest")
    truth.set_title("Ground truth", fontsize=10)
    for axis in (scene, truth):
        axis.set_xticks([])
        axis.set_yticks([])
    handles = [
        Patch(fc=colour, ec="#888888", label=f"{number} {data.classes[number]}")
        for number, colour in colours.items()
    ]
    handles.append(Patch(fc=QUIET, ec="#888888", label="no class"))
    figure.legend(handles=handles, loc="outside right center", fontsize=8, frameon=False)


def _draw_spectra(
    figure: SubFigure,
    data: Dataset,
    spectra: dict[int, Spectrum],
    colours: dict[int, str],
    shape: tuple[int, int],
) -> None:
    """A panel for each class, the means of all behind it in grey."""
    figure.suptitle("Mean spectrum ± standard deviation", fontsize=10)
    axes = figure.subplots(*shape, sharex=True, sharey=True, squeeze=False)
    bands = np.arange(1, data.scene.bands + 1)
    means = np.array([[*spectrum.mean, np.nan] for spectrum in spectra.values()])  # NaN: a gap
    for axis in axes.flat[len(spectra) :]:
        axis.set_visible(False)
    for axis, (number, spectrum) in zip(axes.flat, sorted(spectra.items()), strict=False):
        axis.plot(np.tile([*bands, 0], len(means)), means.ravel(), color="#dddddd", linewidth=0.5)
        low, high = spectrum.mean - spectrum.std, spectrum.mean + spectrum.std
        axis.fill_between(bands, low, high, color=colours[number], alpha=0.5, linewidth=0)
        axis.plot(bands, spectrum.mean, color="black", linewidth=1.1)  # light colours need an edge
        axis.plot(bands, spectrum.mean, color=colours[number], linewidth=0.7)
        name = data.classes[number]
        short = name if len(name) < 22 else f"{name[:20]}…"
        axis.set_title(f"{number} {short}\n{spectrum.pixels} pixels", fontsize=8)
        axis.tick_params(labelsize=7)
    figure.supxlabel("band", fontsize=9)
    figure.supylabel("value", fontsize=9)
