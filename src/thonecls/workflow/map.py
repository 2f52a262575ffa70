"""Mapping scenes with trained models: here, or window by window on a cluster."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thonecls.errors import ConfigError, FileError, ModelError
from thonecls.files import check_writable
from thonecls.io.inputs import SceneInput, is_raster, read_scene
from thonecls.io.options import SceneOptions
from thonecls.io.raster import RasterSource, match_bands
from thonecls.maps import MAP, PROBABILITY, Marks, disk_errors, write_geometry, write_polygons
from thonecls.maps.cogs import plain_text
from thonecls.maps.stac import describe_item
from thonecls.method.frozen import STRIDE
from thonecls.method.model import Scored, Scorer
from thonecls.methods.spectral_model import AnyModel, load_model
from thonecls.mosaic import Mosaic, Window, window_at
from thonecls.parallel import result_of, run_all, workers
from thonecls.scene import NO_DATA, Source
from thonecls.version import software
from thonecls.workflow.layers import Style, writing_layers
from thonecls.workflow.options import MapOptions, asked_of_map
from thonecls.workflow.pictures import draw_overview
from thonecls.workflow.run_folder import (
    GIVEN,
    ITEM,
    MODELS,
    OVERVIEW,
    POLYGONS,
    RUN,
    SUMMARY,
    attempt,
    check_together,
    finished_map,
    is_unfinished,
    making,
    model_files,
    read_map_strips,
    read_novelty_strips,
    read_run,
    refuse_unfinished,
    write_json,
)
from thonecls.workflow.scaling import LOOKED_AT, on_scale
from thonecls.workflow.spectra import sample_spectra
from thonecls.workflow.summaries import MapSummary, summary_of_map

OnWindow = Callable[[int, int], None]
GUESSED = 0.2  # of a scene unlike the training scene: more is worth a word
TILE = 512  # pixels a side of what a cluster's worker scores at a time


@dataclass
class Sample:
    """The probabilities, by each model, of pixels that are asked for while a map is made.

    pixels: flat indices of the scene; values: (models, pixels), NaN on nodata.
    """

    pixels: NDArray[np.int64]
    values: NDArray[np.float32] = field(default_factory=lambda: np.empty((0, 0), np.float32))

    def take(self, part: Scored, width: int) -> None:
        """Pick those pixels that lie in a window of a scene of this width."""
        if len(self.values) != len(part.maps):
            self.values = np.full((len(part.maps), self.pixels.size), np.nan, np.float32)
        rows, columns = np.divmod(self.pixels, width)
        inside = (rows >= part.rows.start) & (rows < part.rows.stop)
        inside &= (columns >= part.columns.start) & (columns < part.columns.stop)
        at = rows[inside] - part.rows.start, columns[inside] - part.columns.start
        self.values[:, inside] = part.maps[:, at[0], at[1]]


def moved(part: Scored, corner: tuple[int, int]) -> Scored:
    """A window of a scene as one of the mosaic in which the scene begins at a corner."""
    rows, columns = (
        slice(side.start + at, side.stop + at)
        for side, at in zip((part.rows, part.columns), corner, strict=True)
    )
    return replace(part, rows=rows, columns=columns)


Skip = Callable[[slice, slice], bool]
Windows = Callable[[Skip], Iterator[Scored]]  # a scene's windows, but for those to be skipped
Site = tuple[Mosaic, tuple[int, int]]  # scenes beside each other, and where one of them begins


def make_map(
    out: Path,
    scene: SceneInput,
    windows: Windows,
    style: Style,
    *,
    layers: tuple[bool, bool] = (False, False),
    on_scored: Callable[[Scored], None] | None = None,
    resume: bool = False,
    on_window: OnWindow | None = None,
) -> dict[str, Any]:
    """Write all layers of a scene as its windows come; returns threshold and mapped share.

    layers: whether there are spread and novelty; on_scored: hears each window.
    """
    rows, columns = scene.grid.shape
    done = 0
    with writing_layers(
        out, scene, style, spread=layers[0], novelty=layers[1], resume=resume
    ) as target:

        def skip(rows: slice, columns: slice) -> bool:
            nonlocal done
            written = resume and target.done(rows, columns)
            done += written * (rows.stop - rows.start) * (columns.stop - columns.start)
            return written

        for part in windows(skip):
            target.write(part)
            if on_scored is not None:
                on_scored(part)
            done += part.probability.size
            if on_window is not None:
                on_window(done, rows * columns)
    if scene.grid.lookup is not None:
        write_geometry(out, scene.grid.lookup)
    valid, mapped = count_mapped(out)
    share = mapped / valid if valid else 0.0
    return {"out": str(out), "threshold": style.threshold, "mapped_share": share}


def count_mapped(out: Path) -> tuple[int, int]:
    """Valid and mapped pixels of the map that was written."""
    valid = mapped = 0
    for strip in read_map_strips(out):
        valid += int((strip != NO_DATA).sum())
        mapped += int((strip == 1).sum())
    return valid, mapped


def threshold_of(models: Sequence[AnyModel], given: float | None) -> tuple[float, str]:
    """Above which probability a pixel is mapped, and where that comes from."""
    if given is not None:
        return given, GIVEN
    threshold = sum(model.threshold for model in models) / len(models)
    if all("prevalence" in model.training for model in models):
        share = sum(model.training["prevalence"] for model in models) / len(models)
        return threshold, (
            f"it maps as much as labels left out of training say the class covers, {share:.2%}"
        )
    return threshold, models[0].training.get("threshold_reason", "as in the paper")


def score_here(
    models: Sequence[AnyModel], scene: SceneInput, device: str, site: Site | None = None
) -> Windows:
    """A scene's windows, scored in this process one at a time; site: what lies beside the scene."""
    scorer = Scorer(models, device=device)
    scorer.check(scene.source)

    def windows(skip: Skip) -> Iterator[Scored]:
        for window in scorer.windows(scene.source.shape):
            if not skip(*window):
                yield _score_in_site(scorer, scene.source, window, site)

    return windows


def _score_in_site(scorer: Scorer, source: Source, window: Window, site: Site | None) -> Scored:
    """A window of a scene, with what lies beside it in other scenes of its site."""
    if site is None:
        return scorer.score(source, *window)
    mosaic, corner = site
    whole = [
        slice(
            (side.start + at) // STRIDE * STRIDE,
            min(length, -(-(side.stop + at) // STRIDE) * STRIDE),
        )
        for side, at, length in zip(window, corner, mosaic.shape, strict=True)
    ]
    scored = moved(scorer.score(mosaic, whole[0], whole[1]), (-corner[0], -corner[1]))
    return _cropped(scored, window)


def _cropped(scored: Scored, window: Window) -> Scored:
    """A part of a window that was scored."""
    rows, columns = (
        slice(side.start - own.start, side.stop - own.start)
        for side, own in zip(window, (scored.rows, scored.columns), strict=True)
    )
    novelty = None if scored.novelty is None else scored.novelty[rows, columns]
    return Scored(*window, scored.maps[:, rows, columns], novelty)


def score_on_cluster(
    paths: Sequence[Path], scene: SceneInput, device: str, dask: str, site: Site | None = None
) -> Windows:
    """A scene's windows, scored by the workers of a cluster, which must see the same files.

    site: what lies beside the scene.
    """
    if not is_raster(scene):
        raise ConfigError(
            f"a cluster reads rasters only: save {scene.path.name} as GeoTIFF or ENVI"
        )
    scorer = _scorer(_stamped(paths), device)
    scorer.check(scene.source)
    if site is not None:  # workers are sent no more of it than they need
        mosaic, corner = site
        site = mosaic.near(window_at(corner, scene.source.shape), scorer.halo + STRIDE), corner

    def windows(skip: Skip) -> Iterator[Scored]:
        cuts = (w for w in scorer.windows(scene.source.shape, TILE) if not skip(*w))
        stamped = _stamped(paths)
        calls = ((w, score_window, (stamped, scene.source, *w, device, site)) for w in cuts)
        with workers(dask=dask) as (pool, room):
            for _, future in run_all(pool, room, calls):
                yield result_of(future)

    return windows


def score_window(
    models: tuple[tuple[str, int], ...],
    source: Source,
    rows: slice,
    columns: slice,
    device: str,
    site: Site | None = None,
) -> Scored:
    """One window, scored by models that are loaded once in a process."""
    return _score_in_site(_scorer(models, device), source, (rows, columns), site)


def _stamped(paths: Sequence[Path]) -> tuple[tuple[str, int], ...]:
    """Files with the time they were written, so that a new one is not taken for the old."""
    return tuple((str(path.resolve()), path.stat().st_mtime_ns) for path in paths)


@lru_cache(maxsize=2)
def _scorer(models: tuple[tuple[str, int], ...], device: str) -> Scorer:
    return Scorer([load_model(path) for path, _ in models], device=device)


def map_scene(
    model: Path,
    scene: Path,
    out: Path,
    *,
    options: MapOptions | None = None,
    scene_options: SceneOptions | None = None,
    on_window: OnWindow | None = None,
) -> MapSummary:
    """Map a scene with a saved model, or with all models of a run, into the folder `out`.

    Bands are matched by wavelength where both sides know them. Only one window of the scene is
    held in memory at a time; `on_window` hears how many of all pixels are done.
    """
    options = options or MapOptions()
    check_writable(out)
    with making(out):
        if (out / RUN).exists() or is_unfinished(out) or any(out.glob(MODELS)):
            raise FileError(
                f"{out} holds a training with its own map: choose another 'out'", options=("out",)
            )
        if (out / SUMMARY).exists() and not (options.overwrite or options.resume):
            raise FileError(
                f"{out} holds a map already: choose another 'out', or say 'overwrite'",
                options=("out", "overwrite"),
            )
        refuse_unfinished(model)
        paths = model_files(model)
        models = [load_model(path) for path in paths]
        if model.is_dir():
            check_together(model, read_run(model, {}), models_only=True)
        opened = read_scene(scene, scene_options, bands=models[0].bands)
        opened = match(opened, models[0], options.tolerance)
        style, reason = _style(scene, opened, models, paths, options, scene_options)
        asked = json.loads(json.dumps({**(style.origin or {}), **tags_of(paths)}))
        if (out / SUMMARY).exists() and options.resume and not options.overwrite:
            return summary_of_map(finished_map(out, asked))
        sample = sample_spectra(opened.source, LOOKED_AT, np.random.default_rng(0))
        ready, words = on_scale(models, sample, force=options.force)
        if words and options.dask is not None:
            raise ModelError(f"{words}: map it without a cluster, or give it in the model's unit")
        models, opened = ready, replace(opened, notes=(*opened.notes, *([words] if words else [])))
        facts = _map_into(out, opened, models, paths, options, style, on_window)
        summary = {"model": str(model), "cube": str(scene), **facts}
        summary |= {"threshold_reason": reason, "asked": asked}
        with disk_errors(out):
            write_json(out / SUMMARY, summary)
    return summary_of_map(summary)


def _style(
    scene: Path,
    opened: SceneInput,
    models: list[AnyModel],
    paths: list[Path],
    options: MapOptions,
    scene_options: SceneOptions | None,
) -> tuple[Style, str]:
    """How a map is written, all that tells it from others included, and why its threshold."""
    cut, reason = threshold_of(models, options.threshold)
    label = label_of(models[0])
    kept = ("floats", "minimum_area", "polygons", "tolerance", "force", "device")
    origin = asked_of_map(
        opened,
        scene_options,
        threshold=cut,
        label=label,
        **{name: getattr(options, name) for name in kept},
    )
    tags = {**tags_of(paths), "scene": scene.name}
    return Style(cut, options.floats, label, tags, origin), reason


def _map_into(
    out: Path,
    opened: SceneInput,
    models: list[AnyModel],
    paths: list[Path],
    options: MapOptions,
    style: Style,
    on_window: OnWindow | None,
) -> dict[str, Any]:
    """Layers, polygons and picture of a scene that is open; what its summary tells of them."""
    score = (
        score_here(models, opened, options.device)
        if options.dask is None
        else score_on_cluster(paths, opened, options.device, options.dask)
    )
    layers = len(models) > 1, models[0].novelty is not None
    with disk_errors(out):
        made = make_map(
            out, opened, score, style, layers=layers, resume=options.resume, on_window=on_window
        )
        more = finish(
            out,
            opened,
            label=style.label,
            minimum_area=options.minimum_area,
            polygons=options.polygons,
            facts={"threshold": style.threshold, **(style.tags or {})},
        )
        notes = [*opened.product, *opened.notes, *more.pop("notes", [])]
        return {"notes": notes, **made, **_guessed(out), **more}


def _guessed(out: Path) -> dict[str, Any]:
    """How much of a map is a guess: the share of pixels unlike the training scene."""
    known = novel = 0
    for strip in read_novelty_strips(out):
        known += int(np.isfinite(strip).sum())
        novel += int((strip > 1).sum())
    if not known:
        return {}
    share = novel / known
    found: dict[str, Any] = {"novel_share": round(share, 4)}
    if share > GUESSED:
        found["warning"] = (
            f"{100 * share:.0f} % of the scene is unlike the scene that the model was trained on: "
            "there the map is a guess (the layer novelty shows where). Train on this scene, "
            "or on one like it"
        )
    return found


def match(scene: SceneInput, model: AnyModel, tolerance: float | None = None) -> SceneInput:
    """The scene with the model's bands, in the model's order."""
    if not isinstance(scene.source, RasterSource):
        return scene
    picks, message = match_bands(
        model.wavelengths, scene.source, bands=model.bands, tolerance=tolerance
    )
    source = scene.source.blend(picks, model.wavelengths)
    notes = (*scene.notes, message)
    return replace(scene, source=source, wavelengths=source.wavelengths, notes=notes)


def finish(
    out: Path,
    scene: SceneInput,
    *,
    label: str,
    minimum_area: float | None = None,
    polygons: bool = True,
    marks: Marks | None = None,
    learnt_from: int | None = None,
    picture: bool = True,
    facts: Mapping[str, Any] | None = None,
) -> dict[str, list[str]]:
    """Polygons, picture and STAC Item of a map in the folder; for its summary, what to add.

    That is notes on what was left out, and problems: what failed.

    marks: labels to be drawn; learnt_from: how many of them were of use; facts: for the Item.
    """
    words: list[str] = []
    title = f"{len(scene.parts)} scenes" if scene.parts else scene.path.name
    if learnt_from is not None:
        title = f"{label} in {title}, from {learnt_from:,} labels"
    problems: list[str] = []
    if picture:
        with attempt(OVERVIEW, problems):
            draw_overview(out, scene, title=title, label=label, marks=marks)
    if isinstance(scene.source, RasterSource) and polygons:
        with attempt(POLYGONS, problems):
            made = write_polygons(
                out / MAP, out / PROBABILITY, out / POLYGONS, minimum_area=minimum_area
            )
            words += [made.words] if made.words else []
    else:
        (out / POLYGONS).unlink(missing_ok=True)  # of another map in this folder
    (out / ITEM).unlink(missing_ok=True)
    if isinstance(scene.source, RasterSource) and scene.grid.on_map.georeferenced:
        with attempt(ITEM, problems):
            item = describe_item(
                out,
                scene.grid.on_map,
                name=scene.path.stem,
                title=f"{label} in {scene.path.name}",
                properties={"label": label, **(facts or {})},
                scene=scene.path,
            )
            write_json(out / ITEM, item)
    found = {"notes": words, "problems": problems}
    return {name: told for name, told in found.items() if told}


def label_of(model: AnyModel) -> str:
    """What the class is called."""
    return plain_text(str(model.training.get("label", "class")))


def tags_of(paths: Sequence[Path]) -> dict[str, Any]:
    """What a map's files say of how they were made; paths: its models, if it has any."""
    if not paths:
        return {"software": software()}
    digest = hashlib.sha256()
    for path in paths:
        digest.update(path.read_bytes())
    return {"software": software(), "model_sha256": digest.hexdigest()}
