"""A picture of a map over its scene, to look at without a GIS."""

from __future__ import annotations

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
from numpy.typing import NDArray
from rasterio.enums import ColorInterp, Resampling

from thonecls.errors import SceneError
from thonecls.maps.measure import Measure
from thonecls.maps.styles import RAMP
from thonecls.raster import RasterSource, open_gdal
from thonecls.report import CLASS, MISSED, NODATA, false_colour, save_figure

DOTS = 2000  # labels that are drawn at most, about


def write_quicklook(
    path: Path,
    source: RasterSource,
    raster: Path,
    *,
    title: str = "",
    label: str = "class",
    positives: NDArray[np.bool_] | None = None,
    side: int = 1400,
) -> None:
    """A PNG of map.tif or probability.tif over the scene in false colour, thinned to `side`.

    positives: (H, W) labels, drawn as dots. North is up where the grid is not rotated, with an
    arrow; a bar shows the scale where the CRS tells it.
    """
    scene = source.preview(rgb_bands(source), side)
    with open_gdal(str(raster), raster) as dataset:
        if dataset.shape != source.shape:
            raise SceneError(
                f"{raster} is {dataset.shape}, the scene {source.shape}: give the scene it maps"
            )
        classes = ColorInterp.palette in dataset.colorinterp
        how = Resampling.mode if classes else Resampling.average
        part = dataset.read(1, out_shape=scene.shape, resampling=how, masked=True)
        values = part.astype(np.float64).filled(np.nan) * dataset.scales[0]
        pixel = Measure.of(dataset.crs).pixel(source.grid)
    backdrop = false_colour(scene) if scene.valid.any() else np.ones((*scene.shape, 3))
    bands = rgb_bands(source)
    at = np.argwhere(positives if positives is not None else np.zeros((1, 1), dtype=bool)) + 0.5
    at *= np.array(scene.shape) / source.shape
    a, b, _, d, e, _ = source.grid.transform
    if pixel and e > 0:  # rows run north
        backdrop, values = backdrop[::-1], values[::-1]
        at[:, 0] = scene.shape[0] - at[:, 0]
    width, height = pixel or (np.hypot(a, d), np.hypot(b, e))
    figure, axis = _canvas(scene.shape, float(height / width), title)
    _draw(axis, backdrop, values, classes)
    if len(at):
        few = at[:: max(1, len(at) // DOTS)]
        axis.scatter(
            few[:, 1] - 0.5, few[:, 0] - 0.5, s=9, c=MISSED, edgecolors="black", linewidths=0.4
        )
        axis.set(xlim=(-0.5, values.shape[1] - 0.5), ylim=(values.shape[0] - 0.5, -0.5))
    _draw_legend(figure, classes, bool(np.isnan(values).any()), label, bool(len(at)))
    _name_bands(figure, source, bands)
    if pixel:
        _draw_scale(axis, pixel[0] * source.shape[1])
    if pixel and b == d == 0 and a > 0:
        _draw_north(axis)
    save_figure(figure, path)


def rgb_bands(source: RasterSource) -> tuple[int, int, int]:
    """Positions of near infrared, red and green, in which vegetation shows red.

    Without wavelengths, or beyond 50 nm of these: the first, middle and last band.
    """
    wanted = np.array([850.0, 660.0, 560.0])
    if source.wavelengths is not None:
        away = np.abs(np.asarray(source.wavelengths) - wanted[:, None])
        if (away.min(axis=1) <= 50).all():
            red, green, blue = away.argmin(axis=1).tolist()
            return red, green, blue
    return 0, source.bands // 2, source.bands - 1


def _canvas(shape: tuple[int, int], aspect: float, title: str) -> tuple[Figure, Axes]:
    """A figure as large as the picture needs, with room for a title and a legend, in inches."""
    ratio = float(np.clip(shape[0] * aspect / shape[1], 0.1, 10))
    wide = 8.0 if ratio <= 1.2 else 9.6 / ratio
    tall, edge, above, below = wide * ratio, 0.15, 0.45 if title else 0.15, 0.7
    width, height = max(wide, 4.5) + 2 * edge, tall + above + below
    figure = Figure(figsize=(width, height))
    if title:
        at = edge / width, 1 - 0.15 / height
        # A file's name, and that of a class, may hold a $, which is no formula.
        figure.text(*at, title, va="top", fontsize=12, weight="bold", parse_math=False)
    left = (width - wide) / 2
    axis = figure.add_axes((left / width, below / height, wide / width, tall / height))
    axis.set(xticks=[], yticks=[])
    return figure, axis


def _draw(axis: Axes, backdrop: NDArray[Any], values: NDArray[np.float64], classes: bool) -> None:
    """The map over the scene: the class in its colour, or probabilities that fade to clear."""
    layer = np.zeros((*values.shape, 4))
    if classes:
        layer[values == 1] = (*to_rgb(CLASS), 0.6)
    else:
        layer[:] = matplotlib.colormaps[RAMP](np.nan_to_num(values))
        layer[..., 3] = np.clip(np.nan_to_num(values) * 1.5, 0, 0.9)
    layer[np.isnan(values)] = (*to_rgb(NODATA), 1)
    axis.imshow(0.25 + 0.75 * backdrop, aspect="auto", interpolation="nearest")
    axis.imshow(layer, aspect="auto", interpolation="nearest")


def _name_bands(figure: Figure, source: RasterSource, bands: tuple[int, int, int]) -> None:
    """Which bands the picture shows as red, green and blue, below it at the right."""
    names = [f"band {band + 1}" for band in bands]
    if source.wavelengths is not None:
        names = [f"{source.wavelengths[band]:.0f} nm" for band in bands]
    width, height = figure.get_size_inches()
    text = f"scene as red, green, blue: {', '.join(names)}"
    figure.text(1 - 0.15 / width, 0.1 / height, text, ha="right", va="bottom", fontsize=8)


def _draw_legend(
    figure: Figure, classes: bool, missing: bool, label: str, labelled: bool = False
) -> None:
    """What the colours mean, below the picture."""
    width, height = figure.get_size_inches()
    handles: list[Artist] = []
    if classes:
        handles.append(Patch(facecolor=CLASS, edgecolor="#888888", label=label))
    if missing:
        handles.append(Patch(facecolor=NODATA, edgecolor="#888888", label="no data"))
    if labelled:
        dot = Line2D([], [], color=MISSED, marker="o", linestyle="", markersize=5, label="labels")
        dot.set(markeredgecolor="black", markeredgewidth=0.5)
        handles.append(dot)
    if handles:
        where = 3 if classes else 4  # matplotlib's lower left and lower right
        legend = figure.legend(handles=handles, loc=where, ncols=3, frameon=False, fontsize=10)
        for text in legend.get_texts():
            text.set_parse_math(False)
    if not classes:
        bar = figure.add_axes((0.2 / width, 0.25 / height, 2.2 / width, 0.13 / height))
        bar.imshow(np.linspace(0, 1, 256)[None], cmap=RAMP, aspect="auto", extent=(0, 1, 0, 1))
        bar.set(yticks=[], xticks=[0, 0.25, 0.5, 0.75, 1])
        bar.set_xticklabels(["0", "0.25", "0.5", "0.75", "1"], fontsize=8)
        bar.tick_params(length=2, pad=2)
        words = f"probability of {label}"
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
            0.09 / tall,
            transform=axis.transAxes,
            facecolor="black",
            edgecolor="white",
        )
    )
    axis.text(
        left + share / 2,
        0.34 / tall,
        text,
        transform=axis.transAxes,
        ha="center",
        va="bottom",
        fontsize=10,
        path_effects=[withStroke(linewidth=3, foreground="white")],
    )


def _draw_north(axis: Axes) -> None:
    """An arrow to the north, in the upper right corner."""
    wide, tall = _inches(axis)
    across, down = 0.3 / wide, 0.15 / tall
    axis.annotate(
        "N",
        xy=(1 - across, 1 - down),
        xytext=(1 - across, 1 - 4 * down),
        xycoords="axes fraction",
        ha="center",
        va="top",
        fontsize=12,
        weight="bold",
        path_effects=[withStroke(linewidth=3, foreground="white")],
        arrowprops={
            "facecolor": "black",
            "edgecolor": "white",
            "width": 3,
            "headwidth": 11,
            "headlength": 11,
        },
    )
