"""Scenes by file, pattern, folder, list or STAC on disk: which files are meant, and their names."""

from __future__ import annotations

import glob
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlparse

from thonecls.errors import FileError
from thonecls.io.arrays import ENDINGS as ARRAYS
from thonecls.io.arrays import read_array
from thonecls.io.raster import open_gdal
from thonecls.io.raster.gdal import RASTERS
from thonecls.io.raster.products import COMPANION, METADATA

LIST, STAC = (".txt",), (".json", ".geojson")
CUBES = (".nc", ".nc4", ".h5", ".hdf5", ".he5")
LABELS = (  # of one scene, the first of these is taken
    *(".gpkg", ".shp", ".geojson", ".json", ".fgb", ".kml", ".csv"),
    *(".tif", ".tiff", ".npy", ".npz", ".mat"),
)
MOST = 2**26  # bytes of a list or of STAC's JSON
DEEPEST = 20  # catalogues within catalogues


class Listed(NamedTuple):
    """A scene that is meant, and what it is called among others."""

    name: str
    path: Path


def find_scenes(given: Path | Sequence[Path]) -> list[Listed]:
    """The scenes that a path, or several, stand for, each once and under a name of its own.

    A path is a scene itself; a pattern such as flights/*.tif; a folder of scenes, whose rasters
    have several bands each; a .txt with a scene in each line; or a STAC Item, ItemCollection,
    Collection or Catalog on disk. What is delivered with a scene, such as its masks, is no other.
    """
    paths = [given] if isinstance(given, Path) else list(given)
    found: dict[Path, str] = {}
    for path in paths:
        for name, scene in _expand(path):
            if not scene.exists():  # before others are worked on
                raise FileError(f"there is no file {scene}: check the path")
            found.setdefault(scene, name)
    images = {scene: name for scene, name in found.items() if not COMPANION.fullmatch(scene.name)}
    return _named(images or found)


def is_many(path: Path) -> bool:
    """Whether a path stands for other files by its looks: a pattern, a list, a folder, STAC."""
    return is_list(path) or (_ends(path, STAC) and path.is_file())


def is_list(path: Path) -> bool:
    """Whether a path is a pattern, a list or a folder, as labels of several scenes may be given."""
    if path.exists():
        return path.is_dir() or _ends(path, LIST)
    return glob.has_magic(str(path))


def _ends(path: Path, endings: tuple[str, ...]) -> bool:
    """Whether a file has one of these endings, and is not the metadata of a product, a scene."""
    return path.suffix.lower() in endings and not METADATA.fullmatch(path.name)


def find_labels(path: Path, scenes: Sequence[str]) -> dict[str, Path]:
    """Files of labels by the scene of the same name: tile_7.gpkg belongs to tile_7.tif.

    path: a pattern, a folder, or a .txt with a file in each line. A scene may have none; the scenes
    themselves may lie among the files.
    """
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.is_file())
    elif path.exists():
        files = [scene for _, scene in _lines(path)]
    else:
        files = [scene for _, scene in _glob(path)]
    wanted = set(scenes)
    found: dict[str, Path] = {}
    for file in files:
        if file.suffix.lower() not in LABELS or file.stem not in wanted or _is_cube(file):
            continue
        before = found.get(file.stem)
        if before is None or _rank(file) < _rank(before):
            found[file.stem] = file
    if not found:
        raise FileError(
            f"no file of {path} is called like a scene, as {scenes[0]}.gpkg would be: name the "
            "labels of each scene like it, or give one layer for all"
        )
    return found


def _rank(path: Path) -> int:
    return LABELS.index(path.suffix.lower())


def _is_cube(path: Path) -> bool:
    """Whether a file that is called like a scene is a scene: labels have a single band."""
    if path.suffix.lower() != ".npy":
        return path.suffix.lower() in RASTERS and _has_bands(path)
    try:
        return read_array(path, axes=3).size > 0
    except FileError:
        return False


def _expand(path: Path) -> Iterator[tuple[str, Path]]:
    if path.is_dir():
        yield from _folder(path)
    elif _ends(path, STAC) and path.is_file():
        yield from _stac(path, set(), 0)
    elif _ends(path, LIST) and path.is_file():
        for _, scene in _lines(path):
            yield from _expand(scene)
    elif not path.exists() and glob.has_magic(str(path)):
        yield from _glob(path)
    else:
        yield path.stem, path


def _glob(path: Path) -> Iterator[tuple[str, Path]]:
    names = sorted(glob.glob(str(path), recursive=True))  # noqa: PTH207  # patterns with **
    files = [Path(name) for name in names]
    # Of an ENVI scene the header and the data may both fit: they are one scene.
    files = [file for file in files if file.suffix.lower() != ".hdr" or not _has_data(file, files)]
    if not files:
        raise FileError(f"no file fits {path}: check the folder and the pattern")
    for file in files:
        yield file.stem, file


def _has_data(header: Path, files: Sequence[Path]) -> bool:
    bare = header.with_suffix("")
    return any(
        f != header and f.parent == header.parent and bare in (f, f.with_suffix("")) for f in files
    )


def _folder(folder: Path) -> Iterator[tuple[str, Path]]:
    """The scenes in a folder; one of bands, or a product with its metadata, is a scene itself."""
    files = sorted(f for f in folder.iterdir() if f.is_file() and not f.name.startswith("."))
    headers = {f.with_suffix("") for f in files if f.suffix.lower() == ".hdr"}
    endings = (*(ending for ending in RASTERS if ending), *CUBES, *ARRAYS)
    # A file without an ending is a scene only if an ENVI header belongs to it.
    scenes = [f for f in files if f.suffix.lower() in endings or (not f.suffix and f in headers)]
    product = any(f.suffix.lower() == ".xml" and not f.name.endswith(".aux.xml") for f in files)
    if len(scenes) == 1 and scenes[0].suffix.lower() in CUBES and not product:
        yield scenes[0].stem, scenes[0]
        return
    if len(scenes) < 2 or product or not all(map(_has_bands, scenes)):
        yield folder.name, folder
        return
    for file in scenes:
        yield file.stem, file


def _has_bands(path: Path) -> bool:
    """Whether a file holds a cube rather than a band of one."""
    if path.suffix.lower() in (*CUBES, *ARRAYS):
        return True
    try:
        with open_gdal(str(path), path) as raster:
            return bool(raster.count > 1)
    except FileError:
        return False


def _lines(path: Path) -> Iterator[tuple[str, Path]]:
    """The paths in a list, relative to where it lies, but for empty lines and those after #."""
    text = _read(path)
    lines = [line.strip() for line in text.splitlines()]
    found = [path.parent / line for line in lines if line and not line.startswith("#")]
    if not found:
        raise FileError(f"{path} lists no file: write one path a line")
    for scene in found:
        yield scene.stem, scene


def _read(path: Path) -> str:
    try:
        if path.stat().st_size > MOST:
            raise FileError(f"{path} has more than {MOST:,} bytes: is it a list of scenes?")
        return path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"cannot read {path} ({error}): give a text in UTF-8") from error


def _stac(path: Path, seen: set[Path], depth: int) -> Iterator[tuple[str, Path]]:
    """Scenes of a STAC file and of those that it links to as items and children."""
    if path.resolve() in seen or depth > DEEPEST:
        return
    seen.add(path.resolve())
    facts = _facts(path)
    kind = facts.get("type")
    if kind == "Feature":
        yield _item(facts, path)
    elif kind == "FeatureCollection":
        for item in _dicts(facts.get("features")):
            yield _item(item, path)
    elif kind in ("Collection", "Catalog"):
        for link in _dicts(facts.get("links")):
            if link.get("rel") in ("item", "items", "child"):
                yield from _stac(_on_disk(link.get("href"), path), seen, depth + 1)
    else:
        raise FileError(
            f"{path} is no STAC Item, ItemCollection, Collection or Catalog, by its type {kind!r}: "
            "give a scene, a pattern, a folder or a .txt with a scene in each line"
        )


def _facts(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(_read(path))
    except (ValueError, RecursionError) as error:
        raise FileError(f"{path} is no JSON ({error}): give STAC as it was written") from error
    if not isinstance(found, dict):
        raise FileError(f"{path} is no STAC: it must be a JSON object")
    return found


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _item(item: dict[str, Any], path: Path) -> tuple[str, Path]:
    """An item's name and its scene: its one asset of data, or the one with several bands."""
    assets = item.get("assets")
    known = (
        {k: a for k, a in assets.items() if isinstance(a, dict)} if isinstance(assets, dict) else {}
    )
    data = {k: a for k, a in known.items() if "data" in (a.get("roles") or ())}
    rasters = data or {k: a for k, a in known.items() if _is_scene(a)}
    if len(rasters) > 1:
        several = {k: a for k, a in rasters.items() if _count_bands(a) > 1}
        rasters = several or rasters
    name = str(item.get("id", path.stem))
    if len(rasters) != 1:
        which = ", ".join(rasters or known) or "none"
        raise FileError(
            f"the STAC item {name} in {path.name} must have one asset with the role data. It has: "
            f"{which}; list the scenes' files in a .txt instead"
        )
    (asset,) = rasters.values()
    # An id may hold slashes, and becomes the name of a folder.
    return "".join(c if c.isalnum() or c in "-_." else "_" for c in name), _on_disk(
        asset.get("href"), path
    )


def _is_scene(asset: dict[str, Any]) -> bool:
    ending = Path(str(asset.get("href", ""))).suffix.lower()
    return bool(ending) and ending in (*RASTERS, *CUBES, *ARRAYS)


def _count_bands(asset: dict[str, Any]) -> int:
    return max(len(_dicts(asset.get(name))) for name in ("bands", "eo:bands", "raster:bands"))


def _on_disk(href: Any, path: Path) -> Path:
    """Where a link leads, seen from the file that has it; servers are not asked."""
    parts = urlparse(href if isinstance(href, str) else "")
    if not parts.path or (parts.scheme not in ("", "file") and len(parts.scheme) > 1):
        raise FileError(
            f"{path.name} links to {str(href)[:200]!r}, which is no file on this disk: copy it "
            "here, and link to the copy"
        )
    if parts.scheme == "file":
        return Path(unquote(parts.path))
    return path.parent / str(href)


def _named(found: dict[Path, str]) -> list[Listed]:
    """Each scene with a name that no other has: its own, or with that of its folder before it."""
    names = list(found.values())
    listed = [
        Listed(name if names.count(name) == 1 else f"{path.absolute().parent.name}-{name}", path)
        for path, name in found.items()
    ]
    once: set[str] = set()
    for name, path in listed:
        if name.lower() in once:  # not all file systems tell them apart
            raise FileError(f"several scenes are called {name}: rename {path}")
        once.add(name.lower())
    return listed
