"""Figures of the benchmark: curves by epoch; and all files of a study."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, Literal, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from thonecls.benchmark.board_page import write_leaderboard
from thonecls.benchmark.maps import draw_data, draw_study_maps
from thonecls.benchmark.records import Results
from thonecls.benchmark.studies import Study
from thonecls.benchmark.tables import (
    as_csv,
    as_html,
    as_latex,
    as_markdown,
    build_table,
    metric_name,
    runs_of,
)
from thonecls.benchmark.targets import Place, place_name
from thonecls.files import locked, write_atomically
from thonecls.report.plots import CLASS, FALSE, HIT, save_figure

__all__ = ["draw_data", "draw_study_curves", "draw_study_maps"]

# The rest of Okabe and Ito's colours, but for the yellow, which is lost on white. Colours, dashes
# and markers come round after different numbers of lines, so that grey print tells them apart.
COLOURS = (CLASS, FALSE, HIT, "#000000", "#cc79a7", "#e69f00", "#56b4e9")
DASHES = ("-", "--", "-.", ":")
MARKERS = ("o", "s", "^", "D", "v", "x", "P", "*", "<")
AXES = {
    "f1": "F1, percent",
    "positive": "positive loss",
    "loss": "total loss",
    "accuracy": "accuracy, percent",
}
MANY = 5  # labels that one panel can take
ACROSS = 3  # places side by side that need only one panel each

Curves = dict[tuple[Place, str], list[dict[str, list[float]]]]  # by place and label, a seed each


class Panel(NamedTuple):
    """What one panel shows; lines: the label of each line, by its name in the legend."""

    place: Place
    curve: str
    group: str
    lines: dict[str, str]


def draw_study_curves(
    name: str,
    study: Study,
    results: Results,
    path: Path,
    *,
    seeds: Sequence[int],
    change: dict[str, Any] | None = None,
) -> bool:
    """Save a PNG of a study's curves by epoch; False, and no file, if none has been recorded.

    Panels: a row for each place, or a place each. Lines: the mean over seeds, where a run that
    ended early stays at its last value, and each seed thinly. More than a few labels of the form
    "a, b" are split into panels, by a or by b.
    """
    runs = runs_of(study, results, seeds=seeds, change=change)
    curves = {
        key: [r.facts["curves"] for r in of_seeds.values() if "curves" in r.facts]
        for key, of_seeds in runs.items()
    }
    places = [p for p in study.places if any(curves[p, label] for label in study.columns)]
    groups = _groups(list(study.columns))
    if not (places and study.curves):
        return False
    panels, across = _panels(places, study.curves, groups)
    down = -(-len(panels) // across)
    names = list(dict.fromkeys(line for lines in groups.values() for line in lines))
    styles = {line: _style(number) for number, line in enumerate(names)}
    figure = Figure(figsize=(0.6 + 3.1 * across, 0.9 + 2.4 * down), layout="constrained")
    figure.suptitle(study.title, fontsize=12)
    # One scale for panels of one kind side by side.
    scale: Literal["row", "none"] = "row" if len(study.curves) == 1 else "none"
    axes = list(figure.subplots(down, across, squeeze=False, sharey=scale).flat)
    for axis, panel in zip(axes, panels, strict=False):
        _draw_panel(axis, panel, curves, styles)
    for axis in axes[len(panels) :]:
        axis.set_visible(False)
    _add_legend(figure, axes)
    save_figure(figure, path)
    return True


def _groups(labels: list[str]) -> dict[str, dict[str, str]]:
    """Labels by the panel that they belong in: group to {name in the legend: label}.

    Of "a, b" the part with fewer values makes the groups; a label without comma is in all.

    >>> _groups(["x", "a, 1", "b, 1", "c, 1", "a, 2", "b, 2", "c, 2"])["2"]
    {'x': 'x', 'a': 'a, 2', 'b': 'b, 2', 'c': 'c, 2'}
    """
    parts = {label: label.split(", ", 1) for label in labels if ", " in label}
    if len(labels) <= MANY or 2 * len(parts) < len(labels):
        return {"": {label: label for label in labels}}
    values = [list(dict.fromkeys(part[side] for part in parts.values())) for side in (0, 1)]
    by = 1 if len(values[1]) <= len(values[0]) else 0
    return {
        value: {
            parts[label][1 - by] if label in parts else label: label
            for label in labels
            if label not in parts or parts[label][by] == value
        }
        for value in values[by]
    }


def _panels(
    places: list[Place], curves: tuple[str, ...], groups: dict[str, dict[str, str]]
) -> tuple[list[Panel], int]:
    """The panels line by line, and how many stand in a line."""
    panels = [
        Panel(place, curve, group, lines)
        for place in places
        for group, lines in groups.items()
        for curve in curves
    ]
    if len(curves) > 1:
        return panels, len(curves)
    return panels, len(groups) if len(groups) > 1 else min(ACROSS, len(places))


def _style(number: int) -> dict[str, Any]:
    return {
        "color": COLOURS[number % len(COLOURS)],
        "linestyle": DASHES[number % len(DASHES)],
        "marker": MARKERS[number % len(MARKERS)],
    }


def _draw_panel(
    axis: Axes, panel: Panel, curves: Curves, styles: dict[str, dict[str, Any]]
) -> None:
    for line, label in panel.lines.items():
        runs = [run[panel.curve] for run in curves[panel.place, label] if run.get(panel.curve)]
        if not runs:
            continue
        style = styles[line]
        if len(runs) > 1:
            for run in runs:
                axis.plot(range(1, len(run) + 1), run, color=style["color"], lw=0.5, alpha=0.4)
        mean = _mean(runs)
        every = max(1, len(mean) // 6)
        start = list(styles).index(line) * every // len(styles)  # markers beside each other
        axis.plot(
            range(1, len(mean) + 1),
            mean,
            label=line,
            linewidth=1.5,
            markersize=4.5,
            markevery=(min(start, len(mean) - 1), every),
            **style,
        )
    title = place_name(panel.place) + (f"\n{panel.group}" if panel.group else "")
    axis.set_title(title, fontsize=10)
    axis.set_xlabel("epoch", fontsize=9)
    axis.set_ylabel(AXES.get(panel.curve, metric_name(panel.curve)), fontsize=9)
    axis.tick_params(labelsize=8)
    axis.grid(alpha=0.3)


def _mean(runs: list[list[float]]) -> list[float]:
    """By epoch; a run that ended early, its training settled, stays at its last value.

    >>> _mean([[1.0, 2.0], [3.0]])
    [2.0, 2.5]
    """
    longest = max(len(run) for run in runs)
    return [fmean(run[min(epoch, len(run) - 1)] for run in runs) for epoch in range(longest)]


def _add_legend(figure: Figure, axes: list[Axes]) -> None:
    """One legend for all panels, below them."""
    handles = {
        label: handle
        for axis in axes
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)
    }
    lines = -(-len(handles) // int(1 + figure.get_figwidth() / 1.8))
    figure.legend(
        handles.values(),
        handles.keys(),
        loc="outside lower center",
        ncols=-(-len(handles) // lines),
        fontsize=9,
        handlelength=3,
    )


def write_study(
    name: str,
    study: Study,
    results: Results,
    folder: Path,
    *,
    root: Path,
    seeds: Sequence[int],
    change: dict[str, Any],
) -> list[Path]:
    """Write NAME.md, .tex, .csv, .html and its PNGs into the folder; the files written.

    Where another runner is about it, its end is waited for. The leaderboard is one page, of all
    records that there are.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder, wait=True):
        if study.board:
            return [write_leaderboard(results, folder / f"{name}.html")]
        table = build_table(name, study, results, seeds=seeds, change=change)
        stem = folder / name
        figures = []
        if study.curves:
            path = folder / f"{name}-curves.png"
            if draw_study_curves(name, study, results, path, seeds=seeds, change=change):
                figures.append(path)
        if study.maps:
            path = folder / f"{name}-maps.png"
            if draw_study_maps(study, results, folder, root, path, seeds=seeds, change=change):
                figures.append(path)
        forms = {
            ".md": as_markdown(table),
            ".tex": as_latex(table),
            ".csv": as_csv(table),
            ".html": as_html([table], figures),
        }
        for ending, text in forms.items():
            write_atomically(stem.with_suffix(ending), text.encode())
        return [*(stem.with_suffix(ending) for ending in forms), *figures]
