"""Distribution maps: where each method is right, where it is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from numpy.typing import NDArray

from thonecls.benchmark.plan import Cell, config_of
from thonecls.benchmark.records import Record, Results
from thonecls.benchmark.run import load_map, map_path, split_of
from thonecls.benchmark.scenes import show_scene
from thonecls.benchmark.studies import Study
from thonecls.benchmark.tables import runs_of
from thonecls.benchmark.targets import Place, is_present, place_name
from thonecls.datasets import Dataset, load_dataset
from thonecls.report.plots import CLASS, FALSE, HIT, MISSED, NODATA, QUIET, save_figure

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
        if is_present(place[0], root)
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
