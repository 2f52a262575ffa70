"""Pictures of scenes: the data themselves, and maps of where each method is right and wrong."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure, SubFigure
from matplotlib.patches import Patch
from numpy.typing import NDArray

from thonecls.benchmark.measure import load_map, map_path, split_of
from thonecls.benchmark.plan import Cell, config_of
from thonecls.benchmark.records import Record, Results
from thonecls.benchmark.studies import Study
from thonecls.benchmark.tables import runs_of
from thonecls.benchmark.targets import Place, data_of, place_name
from thonecls.datasets import Dataset, load_dataset
from thonecls.report.plots import (
    CLASS,
    FALSE,
    HIT,
    MISSED,
    NODATA,
    QUIET,
    false_colour,
    save_figure,
)
from thonecls.scene import Scene

Picture = NDArray[np.uint8]  # (H, W, 3)

KINDS = {
    QUIET: "other, rightly",
    HIT: "class, rightly",
    FALSE: "false alarm",
    MISSED: "missed",
    NODATA: "not tested",
    CLASS: "class in the ground truth",
}
PALETTE: Picture = np.rint([255 * np.array(to_rgb(colour)) for colour in KINDS]).astype(np.uint8)
ACROSS = 10  # panels in a line: even, so that best and median stay together
WIDE, GAP, HEAD, ABOVE, BELOW = 1.25, 0.1, 0.3, 0.45, 0.6  # inches, of panels and round them


class Panel(NamedTuple):
    """A picture and its title."""

    title: str
    picture: Picture


class Map(NamedTuple):
    """A run whose map is drawn; title: its column, which of its runs it is, and its F1."""

    title: str
    cell: Cell


def draw_study_maps(
    study: Study,
    results: Results,
    folder: Path,
    root: Path,
    path: Path,
    *,
    seeds: Sequence[int],
    change: dict[str, Any] | None = None,
) -> bool:
    """Save a PNG of a study's maps; False, and no file, if there is none in the results' folder.

    For each place: scene, ground truth, and of each column the run with the best and that with
    the median F1 (the lower of two). Runs whose map is not in the folder are left out, see
    `find_lost_maps`, and so are datasets whose files are not in `root`.
    """
    runs = runs_of(study, results, seeds=seeds, change=change)
    maps = {
        place: [m for label in study.columns for m in _choose(folder, label, runs[place, label])]
        for place in study.places
        if data_of(place[0]).is_present(place[0], root)
    }
    drawn = [place for place in maps if maps[place]]
    blocks = []
    for dataset, places in groupby(drawn, key=lambda place: place[0]):
        data = load_dataset(dataset, root)
        blocks += [(place_name(p), _panels(data, p, folder, maps[p])) for p in places]
    if not blocks:
        return False
    save_figure(_lay_out(study.title, blocks), path)
    return True


def find_lost_maps(
    study: Study,
    results: Results,
    folder: Path,
    *,
    seeds: Sequence[int],
    change: dict[str, Any] | None = None,
) -> list[Cell]:
    """The cells of a study that are done but whose map is not in the folder."""
    runs = runs_of(study, results, seeds=seeds, change=change)
    cells = (record.cell for of_seeds in runs.values() for record in of_seeds.values())
    return [cell for cell in cells if not map_path(folder, cell).exists()]


def _choose(folder: Path, label: str, runs: dict[int, Record]) -> list[Map]:
    """The best and the median of a column's runs; of a single one, that."""
    found = [
        (record.facts["scores"]["f1"], record.cell)
        for record in runs.values()
        if map_path(folder, record.cell).exists()
    ]
    found.sort(key=lambda run: run[0])
    if not found:
        return []
    chosen = {"best, ": found[-1], "median, ": found[(len(found) - 1) // 2]}
    if len(found) == 1:
        chosen = {"": found[0]}
    return [Map(f"{label}\n{which}F1 {f1:.2f}", cell) for which, (f1, cell) in chosen.items()]


def _panels(data: Dataset, place: Place, folder: Path, maps: list[Map]) -> list[Panel]:
    """All panels of a place."""
    of_class = data.truth == place[1]
    truth = np.where(of_class, _kind(CLASS), np.where(data.truth > 0, _kind(QUIET), _kind(NODATA)))
    return [
        Panel("scene\nin false colour", show_scene(data)),
        Panel("ground truth\n", _paint(truth)),
        *(
            Panel(title, _paint(_errors(data, cell, load_map(folder, cell))))
            for title, cell in maps
        ),
    ]


def _errors(data: Dataset, cell: Cell, probability: NDArray[np.float32]) -> NDArray[np.int64]:
    """The kind of each pixel; labels, and what has no truth, are not tested."""
    tested = split_of(cell, data, config_of(cell).unlabeled).test & np.isfinite(probability)
    of_class, mapped = data.truth == cell.target, probability > 0.5
    kinds = np.select(
        [mapped & of_class, mapped, of_class], [_kind(HIT), _kind(FALSE), _kind(MISSED)]
    )
    return np.where(tested, kinds, _kind(NODATA))


def _kind(colour: str) -> int:
    return list(KINDS).index(colour)


def _paint(kinds: NDArray[Any]) -> Picture:
    return np.asarray(PALETTE[kinds])


def _lay_out(title: str, blocks: list[tuple[str, list[Panel]]]) -> Figure:
    """Blocks below each other, each of lines of panels in its scene's form."""
    across = min(ACROSS, max(len(panels) for _, panels in blocks))
    talls = [_tall(panels[0].picture) for _, panels in blocks]
    lines = [-(-len(panels) // across) for _, panels in blocks]
    heights = [HEAD + n * (tall + ABOVE) for n, tall in zip(lines, talls, strict=True)]
    width, height = across * (WIDE + GAP) + GAP, HEAD + sum(heights) + BELOW
    figure = Figure(figsize=(width, height))
    figure.suptitle(title, fontsize=12, y=1 - 0.08 / height, va="top")
    top = height - HEAD
    for (name, panels), tall, used in zip(blocks, talls, heights, strict=True):
        figure.text(
            GAP / width, (top - 0.2) / height, name, fontsize=10, fontweight="bold", va="center"
        )
        for number, panel in enumerate(panels):
            line, column = divmod(number, across)
            left, base = GAP + column * (WIDE + GAP), top - HEAD - (line + 1) * (tall + ABOVE)
            place = (left / width, base / height, WIDE / width, tall / height)
            axis = figure.add_axes(place, xticks=[], yticks=[])
            axis.imshow(panel.picture)
            axis.set_title(panel.title, fontsize=8, pad=3)
        top -= used
    handles = [Patch(fc=colour, ec="#888888", label=name) for colour, name in KINDS.items()]
    figure.legend(handles=handles, loc="lower center", ncols=3, fontsize=8, frameon=False)
    return figure


def _tall(picture: Picture) -> float:
    """The height of a panel, in inches; very long scenes become narrower instead."""
    return WIDE * float(np.clip(picture.shape[0] / picture.shape[1], 0.3, 2.5))


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
