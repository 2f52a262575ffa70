"""Commands that list what there is: methods, datasets."""

from __future__ import annotations

import json as jsonlib
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from thonecls.cli.app import DataRoot, Json, app
from thonecls.errors import ConfigError
from thonecls.methods import IMAGE_METHODS, METHODS


@app.command
def methods(
    *,
    images: Annotated[
        bool, Parameter(help="List those that work on images instead.", negative=())
    ] = False,
    json: Json = False,
) -> int:
    """List every method that `train --method` takes, or those of the study on images.

    Example: thonecls methods
    """
    catalogue = IMAGE_METHODS if images else METHODS
    if json:
        print(jsonlib.dumps({name: m.card() for name, m in catalogue.items()}))
        return 0
    table = Table(box=None, pad_edge=False)
    table.add_column("method", no_wrap=True)
    for column in ("minimises", "needs prior", "works on", "paper"):
        table.add_column(column)
    for name, m in catalogue.items():
        prior = "yes" if m.needs_prior else ""
        table.add_row(name, m.minimises, prior, m.on, m.paper)
    Console().print(table)
    return 0


@app.command
def datasets(
    name: Annotated[str | None, Parameter(help="One of them; all are listed without it.")] = None,
    *,
    fetch: Annotated[
        bool, Parameter(name="--download", help="Fetch its files into the data root.", negative=())
    ] = False,
    picture: Annotated[
        Path | None, Parameter(help="A PNG to draw of it: scene, ground truth and spectra.")
    ] = None,
    data_root: DataRoot = None,
    json: Json = False,
) -> int:
    """List the datasets with ground truth, scenes and images, and which are on this machine.

    Example: thonecls datasets pavia-university --download

    Example: thonecls datasets indian-pines --picture indian-pines.png
    """
    from thonecls.datasets import DATASETS, download, how_to_get, is_present, load_dataset
    from thonecls.datasets import data_root as resolve_root
    from thonecls.datasets.catalogue import get_spec
    from thonecls.images import IMAGES

    root = resolve_root(data_root)
    if picture is not None and (name is None or name in IMAGES):
        raise ConfigError("say which scene to draw: thonecls datasets NAME --picture FILE.png")
    if name in IMAGES:
        return _show_images(name, root, fetch, json)
    specs = list(DATASETS.values()) if name is None else [get_spec(name)]
    if fetch:
        if name is None:
            raise ConfigError("say which dataset to download: thonecls datasets NAME --download")
        download(name, root)
    if picture is not None:
        from thonecls.benchmark.maps import draw_data

        draw_data(load_dataset(specs[0].name, root), picture)
    if json:
        facts = {
            s.name: {"shape": s.shape, "bands": s.bands, "classes": s.classes, "where": s.where}
            | {"here": is_present(s.name, root)}
            for s in specs
        }
        of_images = {} if name else {n: _image_facts(n, root) for n in IMAGES}
        print(jsonlib.dumps(facts | of_images))
        return 0
    console = Console()
    table = Table("dataset", "title", "size", "here", box=None, pad_edge=False)
    for s in specs:
        size = f"{s.shape[0]} × {s.shape[1]} × {s.bands}"
        table.add_row(s.name, s.title, size, "yes" if is_present(s.name, root) else "")
    for other in () if name else IMAGES:
        facts = _image_facts(other, root)
        size = f"{facts['images']:,} of {' × '.join(map(str, facts['shape']))}"
        table.add_row(other, IMAGES[other].title, size, "yes" if facts["here"] else "")
    console.print(table)
    if name is not None:
        console.print(f"files: {how_to_get(specs[0])}", soft_wrap=True, highlight=False)
        if specs[0].urls:
            console.print("to fetch them now, add --download", highlight=False)
        if picture is not None:
            console.print(f"picture: {escape(str(picture))}", soft_wrap=True, highlight=False)
        for number, title in specs[0].classes.items():
            console.print(f"{number:3d} {title}", highlight=False)
    return 0


def _show_images(name: str, root: Path, fetch: bool, as_json: bool) -> int:
    """One dataset of images."""
    from thonecls.images import IMAGES

    spec, facts = IMAGES[name], _image_facts(name, root)
    if fetch:
        raise ConfigError(f"{name} cannot be fetched by this command: {spec.where}")
    if as_json:
        print(jsonlib.dumps({name: facts}))
        return 0
    console = Console()
    there = "here" if facts["here"] else f"not in {escape(str(root))}"
    console.print(f"{spec.title}: {there}", highlight=False)
    console.print(f"files: {spec.where}", soft_wrap=True, highlight=False)
    for number, title in enumerate(spec.classes):
        positive = "  (positive)" if number in spec.positives else ""
        console.print(f"{number:3d} {title}{positive}", highlight=False)
    return 0


def _image_facts(name: str, root: Path) -> dict[str, Any]:
    from thonecls.images import IMAGES, is_present

    spec = IMAGES[name]
    return {
        "images": sum(spec.train) + sum(spec.test) + spec.unlabeled,
        "shape": spec.shape,
        "classes": dict(enumerate(spec.classes)),
        "where": spec.where,
        "here": is_present(name, root),
    }
