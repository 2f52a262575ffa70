"""How files are to be read, as people say it: the command line makes its flags from these."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal


def _option(help: str, default: Any = None) -> Any:
    """A field whose help text the command line shows."""
    return field(default=default, metadata={"help": help})


@dataclass(frozen=True)
class SceneOptions:
    """How a scene's file is to be read."""

    bands: str | None = _option("Bands to use, by number from 1, such as 1-50,60.")
    wavelengths: str | None = _option("Bands to use, by wavelength in nm, such as 450-900.")
    drop_bands: str | None = _option("Bands to leave out, by number from 1.")
    drop_bad_bands: bool = _option(
        "Leave out bands that are dead, or in which water vapour absorbs the light.", False
    )
    nodata: float | None = _option("A value that means no data, besides what the file declares.")
    variable: str | None = _option("The array or subdataset, where the file holds several.")
    bands_axis: Literal["first", "last"] | None = _option(
        "Which axis of an array holds the bands; by default told from the labels or the model."
    )
    keep_flagged: bool = _option(
        "Use also the pixels that a product's quality layers flag, such as clouds.", False
    )
    scene_crs: str | None = _option(
        "The scene's CRS, such as EPSG:32633, where its file has coordinates but names no CRS."
    )


@dataclass(frozen=True)
class LabelOptions:
    """How a file of labels is to be read."""

    target: int | None = _option("The class number, in a map of several classes.")
    layer: str | None = _option("The layer, where the file holds several.")
    where: str | None = _option("Which features, such as \"species = 'Lantana'\".")
    all_touched: bool = _option("Label all pixels that a polygon or line touches.", False)
    crs: str | None = _option("The labels' CRS, such as EPSG:4326, whatever the file says.")
    buffer: float | None = _option("Widen the features by a distance, in the scene's units.")
    labels_variable: str | None = _option("The labels' array, where the file holds several.")
    answers: str | None = _option(
        "Points of `thonecls suggest` or `sample` with your answers: 1 in their column present "
        "adds a label, 0 a place where the class is not. Of several rounds: their folder, or a "
        "pattern in quotes."
    )
    negatives: str | None = _option(
        "A file of places where the class is not, if you know some, in any format of labels. A "
        "column present with 0 in a layer of labels does the same."
    )
