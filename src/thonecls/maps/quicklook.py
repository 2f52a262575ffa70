"""A picture of a map over its scene, with labels, to look at without a GIS."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from matplotlib.patheffects import withStroke
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray
from rasterio.enums import ColorInterp, Resampling

from thonecls.errors import SceneError
from thonecls.io.lookup import Lookup
from thonecls.io.raster import FALSE_COLOUR, RasterSource, nearest_bands, open_gdal
from thonecls.maps.measure import Measure
from thonecls.maps.styles import RAMP
from thonecls.places import distances, lattice
from thonecls.report.plots import CLASS, MISSED, NODATA, WIDE, false_colour, save_figure
from thonecls.scene import Scene

ACROSS = 70  # labels beside each other, at most, so that the map shows between them
LINES = 3  # of equal distance from labels, about


@dataclass(frozen=True, eq=False)
class Marks:
    """Labels to be drawn: flat indices; found: 1 found when left out, 0 missed, NaN not known."""

    pixels: NDArray[np.int64]
    found: NDArray[Any]


@dataclass(frozen=True, eq=False)
class Backdrop:
    """A scene in false colour, (h, w, 3) in 0..1, and what is known of its place.

    shape: of the scene itself; pixel: width and height of one of its pixels in metres, None where
    that is not known, `aspect` being their ratio then too; turned: whether its rows run north;
    north: whether an arrow can show it; bands: what is shown as red, green and blue.
    """

    image: NDArray[Any]
    shape: tuple[int, int]
    bands: tuple[str, ...]
    pixel: tuple[float, float] | None = None
    aspect: float = 1.0
    turned: bool = False
    north: bool = False


def write_quicklook(
    path: Path,
    source: RasterSource,
    raster: Path | None,
    *,
    title: str = "",
    label: str = "class",
    marks: Marks | None = None,
    side: int = 1400,
) -> None:
    """A PNG of map.tif or probability.tif over the scene in false colour, thinned to `side`.

    raster: None for the scene alone. North is up where the grid is not rotated, with an arrow; a
    bar shows the scale where the CRS tells it.
    """
    backdrop = _backdrop(source, side)
    values, classes = None, True
    if raster is not None:
        values, classes = _read_map(raster, backdrop.shape, backdrop.image.shape)
    if source.grid.lookup is not None and marks is not None:
        places = source.grid.lookup.to_map(marks.pixels)
        marks = Marks(places[places >= 0], marks.found[places >= 0])
    draw_map(path, backdrop, values, classes=classes, title=title, label=label, marks=marks)


def _backdrop(source: RasterSource, side: int) -> Backdrop:
    bands = rgb_bands(source)
    scene = source.preview(bands, side)
    grid = source.grid.on_map
    if source.grid.lookup is not None:
        scene = _on_map(scene, source.grid.lookup, side)
    pixel = Measure.of_grid(grid).pixel(grid)
    a, b, _, d, e, _ = grid.transform[:6]
    width, height = pixel or (float(np.hypot(a, d)), float(np.hypot(b, e)))
    return Backdrop(
        false_colour(scene) if scene.valid.any() else np.ones((*scene.shape, 3)),
        grid.shape,
        name_bands(bands, source.wavelengths),
        pixel,
        height / width,
        turned=pixel is not None and e > 0,
        north=pixel is not None and b == d == 0 and a > 0,
    )


def _on_map(scene: Scene, lookup: Lookup, side: int) -> Scene:
    """A thinned image of a sensor as the map shows it, thinned likewise."""
    step = max(1, -(-max(lookup.grid.shape) // side))
    thin = max(1, -(-max(lookup.shape) // side))  # as the image itself was thinned
    pixels = lookup.table[::step, ::step]
    rows, columns = np.divmod(np.maximum(pixels, 0), lookup.shape[1])
    at = rows // thin, columns // thin
    valid = scene.valid[at] & (pixels >= 0)
    return Scene(np.where(valid, scene.cube[:, at[0], at[1]], 0), valid)


def _read_map(
    raster: Path, shape: tuple[int, int], small: tuple[int, ...]
) -> tuple[NDArray[np.float64], bool]:
    """A map as large as its backdrop, NaN on nodata, and whether it tells classes."""
    with open_gdal(str(raster), raster) as dataset:
        if dataset.shape != shape:
            raise SceneError(
                f"{raster} is {dataset.shape}, the scene {shape}: give the scene it maps"
            )
        classes = ColorInterp.palette in dataset.colorinterp
        how = Resampling.mode if classes else Resampling.average
        part = dataset.read(1, out_shape=small[:2], resampling=how, masked=True)
        return part.astype(np.float64).filled(np.nan) * dataset.scales[0], classes


def draw_map(
    path: Path,
    backdrop: Backdrop,
    values: NDArray[Any] | None,
    *,
    classes: bool = True,
    title: str = "",
    label: str = "class",
    marks: Marks | None = None,
) -> None:
    """A PNG of a map over its scene, with labels, and lines of equal distance from them.

    values: (h, w), 1 the class, or with `classes` False probabilities; NaN on nodata.
    """
    image = backdrop.image[::-1] if backdrop.turned else backdrop.image
    figure, axis = _canvas((image.shape[0], image.shape[1]), backdrop.aspect, title)
    axis.imshow(0.25 + 0.75 * image, aspect="auto", interpolation="nearest")
    missing = False
    if values is not None:
        values = values[::-1] if backdrop.turned else values
        missing = bool(np.isnan(values).any())
        _draw(axis, values, classes)
    handles: list[Artist] = []
    if classes and values is not None:
        handles.append(Patch(facecolor=CLASS, edgecolor="#888888", alpha=0.75, label=label))
    if missing:
        handles.append(Patch(facecolor=NODATA, edgecolor="#888888", label="no data"))
    if marks is not None and marks.pixels.size:
        handles += [*_draw_distance(axis, backdrop, marks), *_draw_marks(axis, backdrop, marks)]
    axis.set(xlim=(-0.5, image.shape[1] - 0.5), ylim=(image.shape[0] - 0.5, -0.5))
    _draw_legend(figure, handles, "" if classes else label)
    _name_bands(figure, backdrop.bands)
    if backdrop.pixel:
        _draw_scale(axis, backdrop.pixel[0] * backdrop.shape[1])
    if backdrop.north:
        _draw_north(axis)
    save_figure(figure, path, dpi=190)


def _draw_distance(axis: Axes, backdrop: Backdrop, marks: Marks) -> list[Artist]:
    """Lines of equal distance from the nearest label, with a handle for the legend."""
    rows, columns = lattice(backdrop.shape)
    away = distances(marks.pixels, backdrop.shape, rows, columns)
    unit = "pixels"
    if backdrop.pixel is not None:
        metres = float(np.mean(backdrop.pixel))
        unit, scale = ("km", metres / 1e3) if away.max() * metres > 2000 else ("m", metres)
        away = away * scale
    levels = [at for at in MaxNLocator(LINES).tick_values(0, away.max()) if 0 < at < away.max()]
    if min(away.shape) < 2 or not levels:
        return []
    if backdrop.turned:
        away = away[::-1]
    size = backdrop.image.shape
    across, down = (
        (line + 0.5) * (size[i] / backdrop.shape[i]) - 0.5 for line, i in ((columns, 1), (rows, 0))
    )
    if backdrop.turned:
        down = (size[0] - 1 - down)[::-1]
    drawn = axis.contour(
        across, down, away, levels, colors="white", linewidths=1.0, linestyles="dashed"
    )
    drawn.set_path_effects([withStroke(linewidth=2.2, foreground="#00000088")])
    for text in axis.clabel(drawn, fmt=lambda value: f"{value:g} {unit}", fontsize=7.5):
        text.set(color="black", path_effects=[withStroke(linewidth=2.5, foreground="white")])
    stroke = [withStroke(linewidth=2.2, foreground="#00000088")]
    line = Line2D([], [], color="white", linestyle="dashed", linewidth=1.0, path_effects=stroke)
    line.set_label("distance from labels")
    return [line]


def _draw_marks(axis: Axes, backdrop: Backdrop, marks: Marks) -> list[Artist]:
    """Labels, thinned to one of each neighbourhood; their handles for the legend."""
    size = backdrop.image.shape
    at = np.stack(np.divmod(marks.pixels, backdrop.shape[1]), axis=1) + 0.5
    at *= np.array(size[:2]) / backdrop.shape
    if backdrop.turned:
        at[:, 0] = size[0] - at[:, 0]
    order = np.random.default_rng(0).permutation(len(at))  # which is drawn does not favour any
    cell = max(size[:2]) / ACROSS
    _, first = np.unique((at[order] // cell).astype(np.int64), axis=0, return_index=True)
    few = order[first]
    kinds = (
        (marks.found == 1, {"c": MISSED, "s": 16}, "label, found when left out"),
        (marks.found == 0, {"c": "white", "s": 26, "marker": "X"}, "label, missed when left out"),
        (~np.isfinite(marks.found), {"c": MISSED, "s": 16, "marker": "s"}, "label"),
    )
    handles: list[Artist] = []
    for chosen, style, name in kinds:
        some = at[few[chosen[few]]] - 0.5
        if len(some):
            look: dict[str, Any] = {"edgecolors": "black", "linewidths": 0.6, "zorder": 3, **style}
            handles.append(axis.scatter(some[:, 1], some[:, 0], label=name, **look))
    return handles


def rgb_bands(source: RasterSource) -> tuple[int, int, int]:
    """Positions of near infrared, red and green, in which vegetation shows red.

    Without wavelengths, or beyond 50 nm of these: the first, middle and last band.
    """
    found = nearest_bands(source.wavelengths, FALSE_COLOUR)
    if found is not None:
        red, green, blue = found
        return red, green, blue
    return 0, source.bands // 2, source.bands - 1


def _canvas(shape: tuple[int, int], aspect: float, title: str) -> tuple[Figure, Axes]:
    """A figure as large as the picture needs, with room for a title and a legend, in inches."""
    ratio = float(np.clip(shape[0] * aspect / shape[1], 0.1, 10))
    wide = WIDE if ratio <= 1.2 else 1.2 * WIDE / ratio
    tall, edge, above, below = wide * ratio, 0.15, 0.45 if title else 0.15, 0.95
    width, height = max(wide, WIDE) + 2 * edge, tall + above + below
    figure = Figure(figsize=(width, height))
    if title:
        at = edge / width, 1 - 0.15 / height
        # A file's name, and that of a class, may hold a $, which is no formula.
        figure.text(*at, title, va="top", fontsize=10.5, weight="bold", parse_math=False)
    left = (width - wide) / 2
    axis = figure.add_axes((left / width, below / height, wide / width, tall / height))
    axis.set(xticks=[], yticks=[])
    return figure, axis


def name_bands(bands: tuple[int, int, int], wavelengths: Sequence[float] | None) -> tuple[str, ...]:
    """Names of what is shown as red, green and blue."""
    if wavelengths is None:
        return tuple(f"band {band + 1}" for band in bands)
    return tuple(f"{wavelengths[band]:.0f} nm" for band in bands)


def _draw(axis: Axes, values: NDArray[Any], classes: bool) -> None:
    """The map over the scene: the class in its colour, or probabilities that fade to clear."""
    layer = np.zeros((*values.shape, 4))
    if classes:
        layer[values == 1] = (*to_rgb(CLASS), 0.6)
    else:
        layer[:] = matplotlib.colormaps[RAMP](np.nan_to_num(values))
        layer[..., 3] = np.clip(np.nan_to_num(values) * 1.5, 0, 0.9)
    layer[np.isnan(values)] = (*to_rgb(NODATA), 1)
    axis.imshow(layer, aspect="auto", interpolation="nearest")


def _name_bands(figure: Figure, names: tuple[str, ...]) -> None:
    """Which bands the picture shows as red, green and blue, below it."""
    width, height = figure.get_size_inches()
    text = f"scene as red, green, blue: {', '.join(names)}"
    figure.text(0.15 / width, 0.08 / height, text, va="bottom", fontsize=8, color="#444444")


def _draw_legend(figure: Figure, handles: list[Artist], probability: str) -> None:
    """What the colours mean, below the picture; probability: of what, if that is shown."""
    width, height = figure.get_size_inches()
    if handles:
        where = 3 if not probability else 4  # matplotlib's lower left and lower right
        box = (0, 0.25 / height, 1, 1)
        legend = figure.legend(
            handles=handles,
            loc=where,
            ncols=2,
            frameon=False,
            fontsize=9,
            bbox_to_anchor=box,
            columnspacing=1.2,
            handletextpad=0.5,
        )
        for text in legend.get_texts():
            text.set_parse_math(False)
    if probability:
        bar = figure.add_axes((0.2 / width, 0.45 / height, 2.2 / width, 0.13 / height))
        bar.imshow(np.linspace(0, 1, 256)[None], cmap=RAMP, aspect="auto", extent=(0, 1, 0, 1))
        bar.set(yticks=[], xticks=[0, 0.25, 0.5, 0.75, 1])
        bar.set_xticklabels(["0", "0.25", "0.5", "0.75", "1"], fontsize=8)
        bar.tick_params(length=2, pad=2)
        words = f"probability of {probability}"
        bar.set_title(words, fontsize=9, loc="left", pad=3, parse_math=False)


def _inches(axis: Axes) -> tuple[float, float]:
    figure, box = axis.get_figure(root=True), axis.get_position()
    assert figure is not None
    width, height = figure.get_size_inches()
    return box.width * float(width), box.height * float(height)


def _draw_scale(axis: Axes, metres: float) -> None:
    """A bar of a round length, up to a quarter of the picture, in its lower right corner."""
    power = 10.0 ** np.floor(np.log10(metres / 4))
    length = max(step * power for step in (1, 2, 5) if step * power <= metres / 4)
    text = f"{length / 1000:g} km" if length >= 1000 else f"{length:g} m"
    share = length / metres
    left, (_, tall) = 0.97 - share, _inches(axis)
    axis.add_patch(
        Rectangle(
            (left, 0.2 / tall),
            share,
            0.07 / tall,
            transform=axis.transAxes,
            facecolor="black",
            edgecolor="white",
            zorder=6,
        )
    )
    axis.text(
        left + share / 2,
        0.3 / tall,
        text,
        transform=axis.transAxes,
        ha="center",
        va="bottom",
        fontsize=9,
        zorder=6,
        path_effects=[withStroke(linewidth=3, foreground="white")],
    )


def _draw_north(axis: Axes) -> None:
    """An arrow to the north, in the upper right corner."""
    wide, tall = _inches(axis)
    across, down = 0.22 / wide, 0.12 / tall
    box = (1 - 2 * across, 1 - 5.3 * down)
    axis.add_patch(  # so that nothing below is read together with it
        Rectangle(
            box,
            2 * across,
            5.3 * down,
            transform=axis.transAxes,
            facecolor="white",
            alpha=0.8,
            zorder=5,
        )
    )
    axis.annotate(
        "N",
        xy=(1 - across, 1 - down),
        xytext=(1 - across, 1 - 3.6 * down),
        xycoords="axes fraction",
        ha="center",
        va="top",
        fontsize=10,
        weight="bold",
        zorder=6,
        arrowprops={"facecolor": "black", "width": 2, "headwidth": 8, "headlength": 8},
    )
