"""Scenes and labels from whatever file they are in: arrays, rasters, vector layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from glob import has_magic
from pathlib import Path
from typing import Any

import numpy as np

from thonecls.errors import ConfigError, LabelError, ModelError, NoLabelError, SceneError
from thonecls.io.arrays import ENDINGS as ARRAYS
from thonecls.io.arrays import open_scene, read_positives
from thonecls.io.grid import Grid, Part, places_of
from thonecls.io.listing import Listed, find_labels, find_scenes, is_list, is_many
from thonecls.io.options import LabelOptions, SceneOptions
from thonecls.io.raster import (
    BandChoice,
    RasterSource,
    find_bad_bands,
    match_bands,
    open_raster,
    parse_bands,
    parse_wavelengths,
)
from thonecls.io.vector import (
    PRESENT,
    assign_crs,
    burn_positives,
    burn_truth,
    columns_of,
    count_features,
    is_laid_on,
    is_vector,
    read_label_raster,
    read_labelled,
    read_points,
)
from thonecls.mosaic import lay_out
from thonecls.scene import NO_DATA, BoolArray, Source
from thonecls.splits import positive_mask

CLASSES = {  # columns that tell what a feature is, in lower case
    *("class", "class_name", "classname", "species", "label", "category", "crop", "type"),
    *("land_cover", "landcover", "landuse", "fclass", "art", "klasse", "espece", "especie"),
    *("level", "kind", "cover", "habitat", "material", "taxon", "genus", "vegetation"),
}
MOST_CLASSES = 40  # more are names of single features
VECTOR_ONLY = ("layer", "where", "all_touched", "crs", "buffer")  # options of labels


@dataclass(frozen=True, eq=False)
class SceneInput:
    """A scene that is open; notes: what a person should know about how it was read.

    product: the same, of the product that the scene is of; parts: the scenes of a mosaic, in the
    order of `grid.parts`, none of a single scene.
    """

    path: Path
    source: Source
    grid: Grid
    wavelengths: tuple[float, ...] | None = None
    notes: tuple[str, ...] = ()
    product: tuple[str, ...] = ()
    parts: tuple[SceneInput, ...] = ()


@dataclass(frozen=True, eq=False)
class LabelInput:
    """Positives as an (H, W) mask; notes: what became of the file's features.

    negatives: (H, W), where the class is known not to be, None where nobody said; answers: (H, W),
    those positives that are answers to suggestions.
    """

    path: Path
    mask: BoolArray
    notes: tuple[str, ...] = ()
    negatives: BoolArray | None = None
    answers: BoolArray | None = None


def is_array(path: Path) -> bool:
    """Whether a file holds plain arrays, without georeference."""
    return path.suffix.lower() in ARRAYS


def read_scenes(
    given: Path | Sequence[Path],
    options: SceneOptions | None = None,
    *,
    labels: Path | None = None,
    label_options: LabelOptions | None = None,
) -> SceneInput:
    """Open a scene, or several as one (see `find_scenes`); labels: as for `read_scene`."""
    options = options or SceneOptions()
    listed = [Listed(given.stem, given)] if isinstance(given, Path) and not is_many(given) else None
    listed = listed or find_scenes(given)
    if len(listed) > 1:
        return _open_mosaic(given, listed, options, labels, label_options)
    return read_scene(listed[0].path, options, labels=labels, label_options=label_options)


def read_scene(
    path: Path,
    options: SceneOptions | None = None,
    *,
    labels: Path | None = None,
    label_options: LabelOptions | None = None,
    bands: int | None = None,
) -> SceneInput:
    """Open a scene; only what is needed to know its size is read.

    labels, bands: a file of labels, or the bands of a model, that tell which axis of an array
    holds the bands.
    """
    options = options or SceneOptions()
    if is_array(path):
        return _open_array(path, options, labels, label_options or LabelOptions(), bands)
    choice = BandChoice(
        keep=parse_bands(options.bands) if options.bands else None,
        wavelengths=parse_wavelengths(options.wavelengths) if options.wavelengths else None,
        drop=parse_bands(options.drop_bands) if options.drop_bands else (),
    )
    source = open_raster(
        path,
        bands=choice,
        nodata=options.nodata,
        variable=options.variable,
        axis=options.bands_axis,
        flagged=options.keep_flagged,
    )
    if options.scene_crs is not None:
        source = replace(source, grid=assign_crs(source.grid, options.scene_crs, path.name))
    if options.drop_bad_bands:
        source = source.without(find_bad_bands(source))
    found = source.wavelengths, source.dropped, source.product
    return SceneInput(path, source, source.grid, *found)


def _open_mosaic(
    given: Path | Sequence[Path],
    listed: Sequence[Listed],
    options: SceneOptions,
    labels: Path | None,
    label_options: LabelOptions | None,
) -> SceneInput:
    """Several scenes as one, with the bands of the first, matched by wavelength."""
    each = find_labels(labels, [name for name, _ in listed]) if labels and is_list(labels) else {}
    plain = replace(options, drop_bad_bands=False)
    scenes = [
        read_scene(path, plain, labels=each.get(name), label_options=label_options)
        for name, path in listed
    ]
    scenes = [_matched(scene, scenes[0]) for scene in scenes]
    if options.drop_bad_bands:
        scenes = _without_bad_bands(scenes)
    mosaic = lay_out(
        [scene.source for scene in scenes], places_of([scene.grid for scene in scenes])
    )
    parts = tuple(
        Part(name, scene.grid, *corner)
        for (name, _), scene, corner in zip(listed, scenes, mosaic.corners, strict=True)
    )
    notes = dict.fromkeys(note for scene in scenes for note in scene.notes)
    path = given if isinstance(given, Path) else listed[0].path.parent
    grid = Grid(mosaic.shape, parts=parts)
    return SceneInput(path, mosaic, grid, scenes[0].wavelengths, tuple(notes), parts=tuple(scenes))


def _matched(scene: SceneInput, first: SceneInput) -> SceneInput:
    """A scene with the bands of the first, in their order."""
    one, other = first.source, scene.source
    same = one.bands == other.bands and first.wavelengths == scene.wavelengths
    if same or not isinstance(other, RasterSource):
        return scene  # arrays must have as many bands, or are refused with the others
    try:
        picks, _ = match_bands(
            first.wavelengths, other, bands=one.bands, whose=f"the scene {first.path.name}"
        )
    except ModelError as error:
        raise SceneError(
            f"{scene.path.name} cannot be learnt from together with the others: {error}"
        ) from error
    source = other.blend(picks, first.wavelengths)
    return replace(scene, source=source, wavelengths=source.wavelengths)


def _without_bad_bands(scenes: Sequence[SceneInput]) -> list[SceneInput]:
    """The scenes without the bands that are bad in all of them."""
    sources = [scene.source for scene in scenes if isinstance(scene.source, RasterSource)]
    if len(sources) < len(scenes) or any(source.picks is not None for source in sources):
        raise ConfigError(
            "scenes of different bands have no bad bands in common: name them ('drop_bands')",
            options=("drop_bands",),
        )
    found = [_bad_positions(source) for source in sources]
    bad = reduce(lambda one, other: {i: why for i, why in one.items() if i in other}, found)
    lighter = [
        source.without({source.layers[i].number: why for i, why in bad.items()})
        for source in sources
    ]
    return [
        replace(scene, source=source, wavelengths=source.wavelengths, notes=source.dropped)
        for scene, source in zip(scenes, lighter, strict=True)
    ]


def _bad_positions(source: RasterSource) -> dict[int, str]:
    """Bad bands by their position among those in use, which is the same in matched scenes."""
    bad = find_bad_bands(source)
    return {i: bad[band.number] for i, band in enumerate(source.layers) if band.number in bad}


def _open_array(
    path: Path,
    options: SceneOptions,
    labels: Path | None,
    label_options: LabelOptions,
    bands: int | None,
) -> SceneInput:
    if options.scene_crs is not None:
        raise ConfigError(
            f"{path.name} has no coordinates that could be in {options.scene_crs}: leave out "
            "'scene_crs', or save the scene as a GeoTIFF",
            options=("scene_crs",),
        )
    if options.keep_flagged:
        raise ConfigError(
            f"{path.name} flags no pixel: leave out 'keep_flagged'", options=("keep_flagged",)
        )
    if options.wavelengths:
        raise ConfigError(
            f"{path.name} names no wavelengths: choose bands by number ('bands')",
            options=("bands",),
        )
    if options.drop_bad_bands:
        raise ConfigError(
            f"{path.name} names no wavelengths: name the bad bands ('drop_bands')",
            options=("drop_bands",),
        )
    pixels = None
    if labels is not None and _holds_pixels(labels):
        pixels = read_positives(
            labels, target=label_options.target, variable=label_options.labels_variable
        )
    source = open_scene(
        path,
        axis=options.bands_axis,
        variable=options.variable,
        labels=pixels,
        bands=bands,
        nodata=options.nodata,
    )
    kept = _chosen(options, source.bands)
    if kept is not None:
        source = source.take(kept)
    return SceneInput(path, source, Grid(source.shape))


def _chosen(options: SceneOptions, bands: int) -> list[int] | None:
    """Positions of the bands to use, from 0; None for all."""
    if not (options.bands or options.drop_bands):
        return None
    keep = parse_bands(options.bands) if options.bands else tuple(range(1, bands + 1))
    drop = parse_bands(options.drop_bands) if options.drop_bands else ()
    for number in (*keep, *drop):
        if number > bands:
            raise ConfigError(f"there is no band {number}: the scene has bands 1-{bands}")
    kept = [number - 1 for number in keep if number not in drop]
    if len(kept) < 2:
        raise SceneError(f"{len(kept)} bands are left of {bands}: keep 2 or more")
    return kept


def _holds_pixels(path: Path) -> bool:
    """Whether a file of labels speaks of rows and columns."""
    return is_array(path) or (path.suffix.lower() == ".csv" and not is_vector(path))


def _answer_files(given: str) -> list[Path]:
    """The file of answers, or those of several rounds, by their folder or a pattern."""
    path = Path(given)
    if path.is_dir():
        found = [file for file in path.iterdir() if is_vector(file) or _holds_pixels(file)]
    elif has_magic(path.name) and not path.exists():
        found = [*path.parent.glob(path.name)]
    else:
        return [path]
    if not found:
        raise LabelError(f"no file of answers is called {given}: check the path")
    return sorted(found)


def read_labels(path: Path, grid: Grid, options: LabelOptions | None = None) -> LabelInput:
    """The pixels that a file of labels marks on a scene's grid, whatever its kind.

    Of several scenes, one layer may mark all, or each has a file that is called like it (see
    `find_labels`); scenes may be without any. With the answers and negatives that the options name,
    or that the file itself has in a column `present`.
    """
    options = options or LabelOptions()
    found = _read_marked(path, grid, options)
    mask, notes = found.mask, [*found.notes]
    negatives = np.zeros_like(mask) if found.negatives is None else found.negatives
    answers = None
    if options.answers is not None:
        mask, negatives = mask.copy(), negatives.copy()
        answers = np.zeros_like(mask)
        for file in _answer_files(options.answers):
            points = read_points(file, grid)
            yes, no = (points.pixels[points.present == answer] for answer in (1, 0))
            if not yes.size and not no.size:
                raise LabelError(
                    f"no point of {file} has an answer: write 1 or 0 into its column 'present', "
                    "and save (QGIS keeps edits to itself until then)",
                    options=("answers",),
                )
            answers.flat[yes] |= ~mask.flat[yes]
            mask.flat[yes] = True
            negatives.flat[no] = True
            notes.append(
                f"{file.name}: {len(yes)} points are the class, {len(no)} are not, "
                f"{len(points.pixels) - len(yes) - len(no)} have no answer"
            )
    if options.negatives is not None:
        other = _read_marked(Path(options.negatives), grid, LabelOptions(crs=options.crs))
        negatives = negatives | other.mask
    if both := int((mask & negatives).sum()):
        raise LabelError(
            f"{both} pixels are marked as the class and as not the class: correct the labels, the "
            "answers or the negatives"
        )
    if negatives.any():
        notes.append(f"{int(negatives.sum())} pixels are known not to be the class")
    known = negatives if negatives.any() else None
    return replace(found, mask=mask, notes=tuple(notes), negatives=known, answers=answers)


def _in_scenes(path: Path, grid: Grid, read: Callable[[Path, Grid], Any]) -> list[Any]:
    """What is read for each scene of a mosaic, None where nothing is; all None is an error.

    path: one file for all, or one for each (see `find_labels`).
    """
    each = find_labels(path, [part.name for part in grid.parts]) if is_list(path) else None
    if each is None and _holds_pixels(path):
        raise LabelError(
            f"{path.name} tells rows and columns, but not of which of {len(grid.parts)} scenes: "
            "give a folder with a file for each, called like its scene, or a layer with coordinates"
        )
    found, refused = [], []
    for part in grid.parts:
        file = path if each is None else each.get(part.name)
        try:
            found.append(None if file is None else read(file, part.grid))
        except NoLabelError as error:
            refused.append(error)
            found.append(None)
    if all(one is None for one in found):
        if len(refused) == 1 or all(str(error) == str(refused[0]) for error in refused):
            raise refused[0]
        raise NoLabelError(
            f"{path.name} marks no pixel in any of the {len(found)} scenes. Of the first: "
            f"{refused[0]}",
            options=refused[0].options,
        )
    return found


def _read_marked_in_scenes(path: Path, grid: Grid, options: LabelOptions) -> LabelInput:
    """What one file, or one for each scene, marks in the scenes of a mosaic."""
    found = _in_scenes(path, grid, lambda file, own: _read_marked(file, own, options, few=True))
    mask, negatives = np.zeros((2, *grid.shape), dtype=bool)
    notes: dict[str, None] = {}
    for part, one in zip(grid.parts, found, strict=True):
        if one is not None:
            mask[part.window] = one.mask
            if one.negatives is not None:
                negatives[part.window] = one.negatives
            # How many features lie in which scene would be a line for each.
            notes |= dict.fromkeys(note for note in one.notes if " features: " not in note)
    labelled = sum(bool(mask[part.window].any()) for part in grid.parts)
    words = f"{int(mask.sum()):,} labelled pixels in {labelled} of {len(found)} scenes"
    if labelled < len(found):
        words += f"; the other {len(found) - labelled} serve as unlabeled"
    told = negatives if negatives.any() else None
    return LabelInput(path, mask, (words, *notes), told)


def _read_marked(path: Path, grid: Grid, options: LabelOptions, *, few: bool = False) -> LabelInput:
    """What one file marks, without other files; few: it may mark positives or negatives alone."""
    if grid.parts:
        return _read_marked_in_scenes(path, grid, options)
    if not _on_map(path, grid):
        return _read_onto(path, grid, options, few=few)
    return _carried(_read_onto(path, grid.on_map, options, few=few), grid, few=few)


def _on_map(path: Path, grid: Grid) -> bool:
    """Whether a file marks a map, where the scene is in the geometry of its sensor."""
    if grid.lookup is None or _holds_pixels(path):
        return False
    return is_vector(path) or not is_laid_on(path, Grid(grid.shape))


def _carried(labels: LabelInput, grid: Grid, *, few: bool) -> LabelInput:
    """Labels on a map, carried to the scene's own pixels by its lookup table."""
    assert grid.lookup is not None
    mask = grid.lookup.to_sensor(labels.mask)
    negatives = None if labels.negatives is None else grid.lookup.to_sensor(labels.negatives)
    if not mask.any() and not (few and negatives is not None and negatives.any()):
        raise NoLabelError(
            f"{labels.path.name} marks {int(labels.mask.sum())} pixels of the map, none of which "
            "shows a pixel of the scene: check that the two belong together"
        )
    note = (
        f"{int(labels.mask.sum())} pixels of the map are marked; they show {int(mask.sum())} "
        "pixels of the sensor"
    )
    notes = (*labels.notes, note) if mask.any() else labels.notes
    return replace(labels, mask=mask, negatives=negatives, notes=notes)


def _read_onto(path: Path, grid: Grid, options: LabelOptions, *, few: bool) -> LabelInput:
    """What one file marks on the pixels of a grid."""
    if _holds_pixels(path):
        listed = () if is_array(path) else ("target", "labels_variable")
        _refuse_options(path, options, (*VECTOR_ONLY, *listed))
        found = read_positives(path, target=options.target, variable=options.labels_variable)
        return LabelInput(path, positive_mask(found, grid.shape))
    if not is_vector(path):
        _refuse_options(path, options, (*VECTOR_ONLY, "labels_variable"))
        raster = read_label_raster(path, grid, target=options.target)
        return LabelInput(path, raster.mask, (raster.note,))
    _refuse_options(path, options, ("target", "labels_variable"))
    answered = False
    if options.where is None:
        columns = columns_of(path, options.layer)
        answered = PRESENT in columns
        if not answered:
            _refuse_several(path, columns)
    burn = partial(
        burn_positives,
        path,
        grid,
        layer=options.layer,
        all_touched=options.all_touched,
        crs=options.crs,
        buffer=options.buffer,
    )
    negatives = None
    if answered and count_features(path, options.layer, f"{PRESENT} = 0"):
        try:
            negatives = burn(where=f"{PRESENT} = 0").mask
        except NoLabelError:
            if not few:
                raise
    try:
        burnt = burn(where=f"{PRESENT} = 1" if answered else options.where)
    except NoLabelError:
        if negatives is None or not few:
            raise
        return LabelInput(path, np.zeros(grid.shape, dtype=bool), negatives=negatives)
    kinds = {
        "inside": burnt.inside,
        "outside the scene": burnt.outside,
        "too small to cover a pixel": burnt.missed,
        "without geometry": burnt.empty,
    }
    counts = ", ".join(f"{n} {kind}" for kind, n in kinds.items() if n)
    notes = [f"{burnt.features} features: {counts}", burnt.crs_note]
    if burnt.doubled:
        notes.append(f"{burnt.doubled} points fall on a pixel that is labelled already")
    if burnt.repaired:
        notes.append(f"{burnt.repaired} polygons were invalid and have been repaired")
    if answered:
        notes.append(f"its column {PRESENT} tells where the class is (1) and where it is not (0)")
    return LabelInput(path, burnt.mask, tuple(notes), negatives)


def _refuse_several(path: Path, columns: dict[str, list[str]]) -> None:
    """No class is mixed with others unseen."""
    for name, values in columns.items():
        # Cut short: a cell may hold a book.
        kinds = sorted({value[:60] for value in values if value not in ("", "None", "nan")})
        if name.lower().rstrip("_0123456789") in CLASSES and 1 < len(kinds) <= MOST_CLASSES:
            listed = ", ".join(kinds[:6]) + (", ..." if len(kinds) > 6 else "")
            one, every = f"{name} = '{kinds[0]}'", f"{name} is not null"
            raise LabelError(
                f"{path.name} holds {len(kinds)} kinds in its column {name!r} ({listed}): pick "
                f"one, such as 'where' \"{one}\", or all by 'where' \"{every}\"",
                options=("where",),
            )


def _refuse_options(path: Path, options: LabelOptions, names: tuple[str, ...]) -> None:
    """No option is ever silently ignored."""
    for name in names:
        if getattr(options, name) not in (None, False):
            flag = f"--{name.replace('_', '-')}"
            raise ConfigError(f"{flag} has no meaning for labels in {path.name}: leave it out")


def read_truth(
    path: Path, grid: Grid, options: LabelOptions | None = None, *, negative: str | None = None
) -> tuple[BoolArray, BoolArray]:
    """What is known of a scene, for evaluation only: where the class is, and what is tested.

    In a map of class numbers, with `target`, all that is labelled is tested. Of a vector layer
    `where` picks the positives and `negative` the others; without it only recall can be told.
    """
    options = options or LabelOptions()
    if grid.parts:
        parts = _in_scenes(
            path, grid, lambda file, own: _read_truth_of_part(file, own, options, negative)
        )
        of_class, tested = np.zeros((2, *grid.shape), dtype=bool)
        for part, found in zip(grid.parts, parts, strict=True):
            if found is not None:
                of_class[part.window], tested[part.window] = found
        return of_class, tested
    if is_vector(path) and not _holds_pixels(path):
        truth = burn_truth(
            path,
            grid.on_map,
            positive_where=options.where,
            negative_where=negative,
            layer=options.layer,
            all_touched=options.all_touched,
            crs=options.crs,
        )
        of_class, known = truth == 1, truth != NO_DATA
        if grid.lookup is None:
            return of_class, known
        return grid.lookup.to_sensor(of_class), grid.lookup.to_sensor(known)
    if negative is not None:
        raise ConfigError(f"{path.name} is no vector layer: leave out what picks its negatives")
    of_class = read_labels(path, grid, options).mask
    if options.target is None:
        return of_class, np.ones(grid.shape, dtype=bool)
    labelled = _labelled(path, grid, options)
    if not labelled.any():
        raise LabelError(f"{path.name} labels no pixel: check that it is the right file")
    return of_class, labelled


def _read_truth_of_part(
    path: Path, grid: Grid, options: LabelOptions, negative: str | None
) -> tuple[BoolArray, BoolArray]:
    """What is known of a scene of several, in which the class need not be."""
    layer = is_vector(path) and not _holds_pixels(path)
    if layer and options.where is not None and negative is not None:
        return _burn_either(path, grid, options, options.where, negative)
    try:
        return read_truth(path, grid, options, negative=negative)
    except NoLabelError:
        if layer:
            raise
        nowhere: BoolArray = np.zeros(grid.shape, dtype=bool)
        labelled = _labelled(path, grid, options)
        return nowhere, labelled if options.target is not None else ~nowhere


def _burn_either(
    path: Path, grid: Grid, options: LabelOptions, positive: str, negative: str
) -> tuple[BoolArray, BoolArray]:
    """Where the class is and what is tested; positives or negatives may be missing, not both.

    A pixel that holds both is not tested.
    """
    masks, missing = [], []
    for where in (positive, negative):
        mask: BoolArray = np.zeros(grid.on_map.shape, dtype=bool)
        try:
            mask = burn_positives(
                path,
                grid.on_map,
                layer=options.layer,
                where=where,
                all_touched=options.all_touched,
                crs=options.crs,
            ).mask
        except NoLabelError as error:
            missing.append(error)
        masks.append(mask if grid.lookup is None else grid.lookup.to_sensor(mask))
    if len(missing) == 2:
        raise missing[0]
    yes, no = masks
    return yes & ~no, yes ^ no


def _labelled(path: Path, grid: Grid, options: LabelOptions) -> BoolArray:
    """Where a map of class numbers has one."""
    if is_array(path):
        found = read_positives(path, variable=options.labels_variable)
        return np.asarray(found != 0).reshape(grid.shape)
    if grid.lookup is None or not _on_map(path, grid):
        return read_labelled(path, Grid(grid.shape) if grid.lookup else grid)
    return grid.lookup.to_sensor(read_labelled(path, grid.on_map))


def is_raster(scene: SceneInput) -> bool:
    """Whether maps of the scene are written as georeferenced rasters."""
    return isinstance(scene.source, RasterSource)
