"""Figures of the leaderboard: critical-difference diagrams, and cost beside accuracy."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import StrMethodFormatter

from thonecls.benchmark.leaderboard import REFERENCES, Ranking, Standing
from thonecls.benchmark.statistics import cliques
from thonecls.report.plots import CLASS, FALSE, HIT, save_figure

INK = "#010203"  # replaced by the colour of a page's text, light or dark
STYLE: dict[Any, Any] = {
    **{f"{part}.color": INK for part in ("text", "xtick", "ytick")},
    **{"axes.edgecolor": INK, "axes.labelcolor": INK, "font.size": 10.0},
    **{"svg.fonttype": "none", "svg.hashsalt": "thonecls", "figure.facecolor": "none"},
    "axes.facecolor": "none",
}
MARKS = {"windows": ("s", CLASS), "networks": ("^", FALSE), "spectra": ("o", HIT)}
OTHER = ("D", "#7f7f7f")
LINE, LETTER, SCALE = 0.24, 0.08, 3.8  # inches: between names, of a letter, of the ranks
MOST_TICKS = 14  # that have a number


def draw_ranks(ranking: Ranking) -> Figure:
    """The critical-difference diagram of Demšar 2006; bars join what does not differ."""
    with mpl.rc_context(STYLE):
        return _ranks(ranking)


def _ranks(ranking: Ranking) -> Figure:
    standings = ranking.standings
    ranks = [s.rank for s in standings]
    groups = cliques(ranks, ranking.difference)
    half = -(-len(standings) // 2)
    top = 0.9 + 0.12 * len(groups)
    side = 0.8 + LETTER * max(len(s.method) for s in standings)
    first, last = side, side + SCALE
    figure = Figure(figsize=(last + side, top + LINE * half + 0.15))
    axis = figure.add_axes((0, 0, 1, 1))
    high = figure.get_figheight()
    axis.set(xlim=(0, last + side), ylim=(high, 0))
    axis.axis("off")

    def at(rank: float) -> float:
        return first + (rank - 1) / max(1, len(standings) - 1) * (last - first)

    line: dict[str, Any] = {"color": INK, "linewidth": 1.0}
    axis.plot([first, last], [0.7, 0.7], **line)
    every = -(-len(standings) // MOST_TICKS)
    for rank in range(1, len(standings) + 1):
        axis.plot([at(rank)] * 2, [0.63, 0.7], **line)
        if (rank - 1) % every == 0:
            axis.text(at(rank), 0.58, str(rank), ha="center", va="bottom", fontsize=8)
    axis.plot(
        [first, first + ranking.difference / max(1, len(standings) - 1) * (last - first)],
        [0.3, 0.3],
        **{**line, "linewidth": 2.0},
    )
    axis.text(first, 0.25, f"critical difference {ranking.difference:.2f}", va="bottom", fontsize=8)
    for number, (start, end) in enumerate(groups):
        y = 0.83 + 0.12 * number
        axis.plot(
            [at(ranks[start]) - 0.05, at(ranks[end]) + 0.05],
            [y, y],
            color=INK,
            linewidth=3.0,
            solid_capstyle="round",
        )
    for number, one in enumerate(standings):
        left = number < half
        y = top + LINE * (number if left else len(standings) - 1 - number) + 0.1
        axis.plot(
            [at(one.rank), at(one.rank), first - 0.1 if left else last + 0.1],
            [0.7, y, y],
            color=INK,
            linewidth=0.7,
        )
        words = f"{one.method}  {one.rank:.2f}" if left else f"{one.rank:.2f}  {one.method}"
        axis.text(
            first - 0.15 if left else last + 0.15,
            y,
            words,
            va="center",
            ha="right" if left else "left",
            fontsize=9,
            fontweight="bold" if one.method in REFERENCES else "normal",
        )
    return figure


def draw_costs(ranking: Ranking) -> Figure:
    """Mean F1 against core-seconds for a map, with the front that no other method beats in both."""
    with mpl.rc_context(STYLE):
        return _costs(ranking)


def _costs(ranking: Ranking) -> Figure:
    figure = Figure(figsize=(7.6, 4.4), layout="constrained")
    axis = figure.subplots()
    for family in dict.fromkeys(s.family for s in ranking.standings):
        own = [s for s in ranking.standings if s.family == family]
        marker, colour = MARKS.get(family, OTHER)
        axis.scatter(
            [s.cost for s in own],
            [s.f1.mean for s in own],
            marker=marker,
            s=42,
            color=colour,
            label=family,
            zorder=3,
        )
    front = sorted((s for s in ranking.standings if s.on_front), key=lambda s: s.cost)
    axis.plot(
        [s.cost for s in front],
        [s.f1.mean for s in front],
        color=INK,
        linewidth=0.8,
        linestyle="--",
        drawstyle="steps-post",
        zorder=2,
    )
    axis.set_xscale("log")
    axis.set(xlabel="core-seconds for a map, mean", ylabel="F1, percent, mean over classes")
    axis.grid(alpha=0.25, color="#808080")
    axis.spines[["top", "right"]].set_visible(False)
    axis.margins(x=0.2, y=0.1)
    axis.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    _name(axis, ranking.standings)
    if len({s.family for s in ranking.standings}) > 1:
        axis.legend(loc="lower right", fontsize=9, framealpha=0.0, labelcolor=INK)
    return figure


def _name(axis: Axes, standings: tuple[Standing, ...]) -> None:
    """Names beside the points, from the best down; one that would lie on another is left out.

    The table has all of them.
    """
    taken: list[tuple[float, float, float, float]] = []
    figure = axis.get_figure()
    assert isinstance(figure, Figure)
    figure.draw_without_rendering()
    points = [axis.transData.transform((s.cost, s.f1.mean)) for s in standings]
    for x, y in points:
        taken.append((x - 5, y - 5, x + 5, y + 5))
    order = sorted(
        range(len(standings)),
        key=lambda i: (
            standings[i].method not in REFERENCES,
            not standings[i].on_front,
            standings[i].rank,
        ),
    )
    for i in order:
        one, (x, y) = standings[i], points[i]
        wide = 6.1 * len(one.method)
        for dx, dy, side in (
            (5, 6, "left"),
            (8, -16, "left"),
            (-6, 6, "right"),
            (8, -4, "left"),
            (-8, -4, "right"),
            (-8, -16, "right"),
        ):
            low = x + dx if side == "left" else x + dx - wide
            box = (low, y + dy, low + wide, y + dy + 10)
            inside = axis.bbox.x0 <= box[0] and box[2] <= axis.bbox.x1 + 4
            if inside and not any(_meet(box, other) for other in taken):
                taken.append(box)
                axis.annotate(
                    one.method,
                    (one.cost, one.f1.mean),
                    xytext=(dx * 0.72, dy * 0.72),
                    textcoords="offset points",
                    ha=side,
                    fontsize=9,
                    fontweight="bold" if one.method in REFERENCES else "normal",
                )
                break


def _meet(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def as_svg(figure: Figure, title: str) -> str:
    """A figure as it stands inside of a page: text is text, and takes the page's colour."""
    buffer = io.StringIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    with mpl.rc_context(STYLE):
        figure.savefig(buffer, format="svg", transparent=True, metadata=nothing)
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :].replace(INK, "currentColor")
    return svg.replace("<svg ", f'<svg role="img" aria-label="{title}" ', 1)


def save_plain(figure: Figure, path: Path) -> None:
    """A figure as PNG on white, for pages that show it as it is."""
    figure.set_facecolor("white")
    save_figure(figure, path)
