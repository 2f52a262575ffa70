"""A look before any long work: whether scene and labels fit, and what it will cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from thonecls.io.inputs import LabelInput, SceneInput, read_labels, read_scenes
from thonecls.io.options import LabelOptions, SceneOptions
from thonecls.io.raster import RasterSource, find_bad_bands
from thonecls.method.config import FAST, TrainConfig
from thonecls.method.novelty import find_odd
from thonecls.methods import METHODS, Method
from thonecls.methods.costs import in_words, on_cores, usable_cores
from thonecls.places import find_places, spectral_components, unlike_labels
from thonecls.scene import FloatArray, Source, read_all
from thonecls.splits import BLOCK, PLACES, Coverage, blocks_of
from thonecls.workflow.options import TrainOptions, train_command
from thonecls.workflow.spectra import ROWS, find_trouble, sample_spectra, spectra_at
from thonecls.workflow.summaries import CheckSummary, Finding, Status

FEW = 20  # labels: with fewer a map is a guess
SMALL = 25  # blocks of a scene: with fewer it has no elsewhere
REACH: dict[Coverage, str] = {
    "all": "all over the scene: the map is made sharp",
    "part": "in a part of the scene: the map is made lenient, as the class may look different "
    "elsewhere, unless nothing like it lies beyond the labels; if they are a fair sample of the "
    "class wherever it is, say 'coverage' all",
    "patch": "in a patch or two: the map is made with caution; if they are a fair sample of the "
    "class wherever it is, say 'coverage' all",
}
LOOKED_AT = 400  # labels and scene pixels whose spectra are looked at
FEW_PIXELS = 100_000  # of a scene in which every one is looked at for nodata
SCENES = 8  # of several whose rows are looked at
FILL_AT = 5000  # scene pixels that are looked at for a value that means no data


def check_scene(
    scene: Path | Sequence[Path],
    labels: Path | None = None,
    *,
    scene_options: SceneOptions | None = None,
    label_options: LabelOptions | None = None,
    config: TrainConfig = FAST,
    method: str = "density-ratio",
    picture: Path | None = None,
) -> CheckSummary:
    """What can be told in seconds of a scene and its labels; `fit` is False if work would fail.

    config: of a network, where the method is one. picture: a PNG to draw of where labels lie.
    What cannot be read at all is an error, as it is for the other commands.
    """
    opened = read_scenes(scene, scene_options, labels=labels, label_options=label_options)
    rng = np.random.default_rng(0)
    sample = sample_spectra(opened.source, LOOKED_AT, rng)
    findings = [*_check_scene(opened, sample)]
    if trouble := find_trouble(opened, sample_spectra(opened.source, FILL_AT, rng)):
        findings.append(Finding("nodata", trouble, "problem", ("nodata",)))
    if labels is not None:
        marked = read_labels(labels, opened.grid, label_options)
        findings += _check_labels(opened, marked, sample, rng)
        if picture is not None and marked.mask.any():
            from thonecls.maps import Marks  # here: matplotlib would slow every check
            from thonecls.workflow.pictures import draw_labels

            at = np.flatnonzero(marked.mask)
            name = f"{len(opened.parts)} scenes" if opened.parts else opened.path.name
            title = f"{name}, {at.size:,} labels"
            draw_labels(picture, opened, Marks(at, np.full(at.size, np.nan)), title=title)
            findings.append(Finding("picture", str(picture)))
    findings += _check_cost(opened, METHODS[method], config)
    command = None
    if labels is not None:
        options = asdict(scene_options or SceneOptions()) | asdict(label_options or LabelOptions())
        command = train_command(scene, labels, options, METHODS[method], config)
    return CheckSummary(
        str(opened.path), None if labels is None else str(labels), tuple(findings), command
    )


def _check_scene(scene: SceneInput, sample: FloatArray) -> list[Finding]:
    source, grid = scene.source, scene.grid
    rows, columns = grid.shape
    found = [Finding("size", f"{rows:,} rows × {columns:,} columns, {source.bands} bands in use")]
    found += [Finding("product", words) for words in scene.product]
    if grid.parts:
        found = [_check_sizes(scene)]
        words = ", ".join(sorted({part.grid.on_map.crs_name for part in grid.parts}))
        sites = len(grid.sites) or 1
        if sites < len(grid.parts):
            words += f"; laid out as they lie on the ground, in {sites} "
            words += f"{'sites' if sites > 1 else 'site'}"
        found.append(Finding("place", words, _status(grid.georeferenced)))
    elif grid.on_map.georeferenced:
        found.append(Finding("place", grid.describe()))
    else:
        found.append(Finding("place", "no CRS: the map will have none either", "note"))
    if scene.wavelengths:
        low, high = min(scene.wavelengths), max(scene.wavelengths)
        found.append(Finding("wavelengths", f"{low:.0f} to {high:.0f} nm"))
    else:
        words = "not known: a model will match other scenes by the order of bands"
        found.append(Finding("wavelengths", words, "note"))
    found += [Finding("bands left out", words) for words in scene.notes]
    if isinstance(source, RasterSource):
        bad = find_bad_bands(source)
        if bad:
            words = f"{list_bad(bad)}: leave them out with 'drop_bad_bands'"
            found.append(Finding("bad bands", words, "note", ("drop_bad_bands",)))
    return [*found, *_check_values(sample), *_check_nodata(scene)]


def list_bad(bad: Mapping[int, str]) -> str:
    """Bands by number with their reasons, each of which is said once.

    >>> list_bad({3: "dead", 8: "noise", 9: "noise", 10: "noise", 12: "noise"})
    '3 (dead), 8-10 and 12 (noise)'
    """
    listed = []
    for why in dict.fromkeys(bad.values()):
        runs: list[list[int]] = []
        for number in (number for number, reason in bad.items() if reason == why):
            if runs and runs[-1][-1] == number - 1:
                runs[-1].append(number)
            else:
                runs.append([number])
        names = [str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs]
        *first, last = names
        listed.append(f"{', '.join(first)} and {last} ({why})" if first else f"{last} ({why})")
    return ", ".join(listed)


def _check_sizes(scene: SceneInput) -> Finding:
    """How large several scenes are."""
    pixels = sorted(part.grid.shape[0] * part.grid.shape[1] for part in scene.grid.parts)
    words = (
        f"{len(pixels)} scenes of {pixels[0]:,} to {pixels[-1]:,} pixels, {sum(pixels):,} in all"
    )
    return Finding("size", f"{words}, {scene.source.bands} bands in use")


def _check_nodata(scene: SceneInput) -> list[Finding]:
    """The share of the scene without data: of a large one by rows spread over it.

    Of several scenes some are looked at.
    """
    some = (scene.parts or (scene,))[:: -(-max(1, len(scene.parts)) // SCENES)]
    pixels = scene.source.shape[0] * scene.source.shape[1]
    whole = not scene.parts and pixels <= FEW_PIXELS
    share = 1 - float(np.mean([_valid_share(one.source, whole) for one in some]))
    if not share:
        return [Finding("no data", "none" if whole else "none among the sampled rows")]
    return [Finding("no data", f"{'' if whole else 'about '}{100 * share:.2g} % of the scene")]


def _valid_share(source: Source, whole: bool) -> float:
    """The share of the pixels with data: of all, or of rows spread over the scene."""
    if whole:
        return float(read_all(source).valid.mean())
    height, width = source.shape
    rows = range(height // (2 * ROWS), height, -(-height // ROWS))
    parts = [source.read(slice(row, row + 1), slice(0, width)) for row in rows]
    return float(np.mean([part.valid for part in parts]))


def _check_values(sample: FloatArray) -> list[Finding]:
    if not len(sample):
        words = "no valid pixel among those sampled: check 'nodata'"
        return [Finding("values", words, "problem", ("nodata",))]
    low, high = np.percentile(sample, (1, 99))
    words = f"{low:.4g} to {high:.4g} (1st to 99th percentile)"
    if 0 <= high <= 1.6:
        words += ": reflectance as a fraction"
    elif 1.6 < high <= 20000 and low >= -2000:
        words += ": reflectance × 10,000, or radiance; any scale works"
    zero = float((sample == 0).all(axis=1).mean())
    found = [Finding("values", words)]
    if zero > 0.01:
        share = f"{100 * zero:.0f} % of the pixels are 0 in all bands"
        words = f"{share}: if that is no data, say 'nodata' 0"
        found.append(Finding("nodata", words, "note", ("nodata",)))
    return found


def _check_labels(
    scene: SceneInput, labels: LabelInput, sample: FloatArray, rng: np.random.Generator
) -> list[Finding]:
    pixels = np.flatnonzero(labels.mask)
    found = [Finding("labels", words) for words in labels.notes]
    if not pixels.size:  # of several scenes, all may have negatives alone
        words = "no pixel is labelled as the class: mark where it is too"
        return [*found, Finding("labelled pixels", words, "problem")]
    looked = pixels
    if pixels.size > LOOKED_AT:
        looked = np.sort(rng.choice(pixels, LOOKED_AT, replace=False))
    spectra, valid = _spectra(scene, looked)
    missing = int((~valid).sum())
    count = f"{pixels.size:,} pixels are labelled"
    if missing:
        count += f"; of {looked.size} looked at, {missing} lie on nodata and are left out"
    status: Status = "ok"
    if missing == looked.size:
        status, count = "problem", f"all {looked.size} labels looked at lie on nodata"
    elif pixels.size - missing < FEW:
        status = "note"
        count += f": {FEW} or more are better, about 100 work well"
    found.append(Finding("labelled pixels", count, status))
    if valid.any():  # where there are no data nothing is learnt, nor told of where labels lie
        found += _check_spread(np.setdiff1d(pixels, looked[~valid]), scene)
    found += _check_likeness(spectra, sample)
    strange = looked[valid][find_odd(spectra)]
    if strange.size:
        rows, columns = np.divmod(strange[:4], scene.grid.shape[1])
        places = ", ".join(_place_of(scene, r, c) for r, c in zip(rows, columns, strict=True))
        more = f" and {strange.size - 4} more" if strange.size > 4 else ""
        words = (
            f"{strange.size} {'labels have' if strange.size > 1 else 'label has a'} "
            f"{'spectra' if strange.size > 1 else 'spectrum'} unlike the others: {places}{more}"
        )
        found.append(Finding("outliers", words, "note"))
    return found


def _place_of(scene: SceneInput, row: int, column: int) -> str:
    """A pixel in words; of several scenes, in which of them."""
    for part in scene.grid.parts:
        down, across = part.window
        if down.start <= row < down.stop and across.start <= column < across.stop:
            return f"{part.name} row {row - part.row} column {column - part.column}"
    return f"row {row} column {column}"


def _check_likeness(labels: FloatArray, scene: FloatArray) -> list[Finding]:
    """How much of the scene is far from any label in spectrum."""
    if len(labels) < 3 or not len(scene):
        return []
    together = spectral_components(np.concatenate([labels, scene]))
    apart = float(unlike_labels(together[: len(labels)], together[len(labels) :]).mean())
    words = f"{100 * apart:.0f} % of the scene has a spectrum unlike that of any label"
    return [Finding("likeness", words)]


def _check_spread(pixels: NDArray[np.int64], scene: SceneInput) -> list[Finding]:
    """Whether the labels come from so few places that the class is missed in others."""
    rows, columns = scene.grid.shape
    if scene.parts:
        lie = find_places(pixels, scene.grid.shape, scenes=scene.grid.sites)
        words = REACH[lie.coverage].replace("the scene", "the scenes")
        return [Finding("where labels lie", words, _status(lie.coverage == "all"))]
    places = np.unique(blocks_of(pixels, scene.grid.shape)).size
    if rows * columns < SMALL * BLOCK**2:
        return []
    lie = find_places(pixels, scene.grid.shape, north_up=scene.grid.north_up)
    status = _status(lie.coverage == "all")
    found = [Finding("where labels lie", REACH[lie.coverage], status, ("coverage",))]
    if lie.half is not None:
        words = (
            f"the {lie.half} of the scene has no label: what the map is worth there nobody will "
            "know; label the class there too, if it grows there"
        )
        found.append(Finding("halves", words, "note"))
    elif lie.empty:
        words = f"without any label: the {', the '.join(lie.empty)}"
        found.append(Finding("quarters", words, "note"))
    away = f"half of the scene lies farther than {lie.middle:.0f} pixels from any label"
    found.append(Finding("distance", f"{away}, the farthest point {lie.farthest:.0f}"))
    if pixels.size < FEW or places >= PLACES:
        return found
    words = (
        f"all labels lie in {places} place{'s' * (places > 1)} of {BLOCK} × {BLOCK} pixels: the "
        "class may be missed "
        "elsewhere; label it in more parts of the scene, a few pixels in each"
    )
    return [*found, Finding("spread of labels", words, "note")]


def _status(fine: bool) -> Status:
    return "ok" if fine else "note"


def _spectra(scene: SceneInput, pixels: NDArray[np.int64]) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Spectra of the pixels that have data, and which these are."""
    parts = [spectra_at(scene.source, pixels[i : i + 1]) for i in range(pixels.size)]
    valid = np.array([len(part) == 1 for part in parts], dtype=bool)
    kept = [part for part in parts if len(part)]
    return (np.concatenate(kept) if kept else np.empty((0, scene.source.bands), np.float32)), valid


def _check_cost(scene: SceneInput, method: Method, config: TrainConfig) -> list[Finding]:
    """What training with these settings and mapping will take."""
    shapes = [part.grid.shape for part in scene.grid.parts] or [scene.grid.shape]
    pixels = sum(rows * columns for rows, columns in shapes)  # without the gaps of a mosaic
    cores = usable_cores()
    bands, folds = scene.source.bands, TrainOptions().folds
    costs = method.learning.costs(method.name, config, pixels, bands, cores, folds)
    training, mapping, how = costs
    return [
        Finding(
            f"training, {on_cores(cores)}",
            f"about {in_words(training.seconds)}, {training.memory / 1e9:.1f} GB, {how}",
        ),
        Finding(
            f"mapping, {on_cores(cores)}",
            f"about {in_words(mapping.seconds)}, {mapping.memory / 1e9:.1f} GB",
        ),
    ]
