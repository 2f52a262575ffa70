"""Commands that list what there is: methods, datasets."""

from __future__ import annotations

import json as jsonlib
from dataclasses import fields
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console
from rich.table import Table

from thonecls.cli.app import DataRoot, Json, app
from thonecls.datasets import DATASETS, download, is_present
from thonecls.datasets import data_root as resolve_root
from thonecls.datasets.catalogue import get_spec
from thonecls.errors import ConfigError
from thonecls.methods import METHODS


@app.command
def methods(*, json: Json = False) -> int:
    """List every method that `train --method` takes.

    Example: thonecls methods
    """
    if json:
        cards = {
            name: {f.name: getattr(m, f.name) for f in fields(m) if f.name != "score"}
            for name, m in METHODS.items()
        }
        print(jsonlib.dumps(cards))
        return 0
    table = Table(box=None, pad_edge=False)
    table.add_column("method", no_wrap=True)
    for column in ("minimises", "needs prior", "works on", "paper"):
        table.add_column(column)
    for name, m in METHODS.items():
        prior = "yes" if m.needs_prior else ""
        table.add_row(name, m.minimises, prior, "scene" if m.network else "spectra", m.paper)
    Console().print(table)
    return 0


@app.command
def datasets(
    name: Annotated[str | None, Parameter(help="One of them; all are listed without it.")] = None,
    *,
    fetch: Annotated[
        bool, Parameter(name="--download", help="Fetch its files into the data root.", negative=())
    ] = False,
    data_root: DataRoot = None,
    json: Json = False,
) -> int:
    """List the datasets with ground truth, and which of them are on this machine.

    Example: thonecls datasets pavia-university --download
    """
    root = resolve_root(data_root)
    specs = list(DATASETS.values()) if name is None else [get_spec(name)]
    if fetch:
        if name is None:
            raise ConfigError("say which dataset to download: thonecls datasets NAME --download")
        download(name, root)
    if json:
        facts = {
            s.name: {"shape": s.shape, "bands": s.bands, "classes": s.classes, "where": s.where}
            | {"here": is_present(s.name, root)}
            for s in specs
        }
        print(jsonlib.dumps(facts))
        return 0
    console = Console()
    table = Table("dataset", "scene", "rows × columns × bands", "here", box=None, pad_edge=False)
    for s in specs:
        size = f"{s.shape[0]} × {s.shape[1]} × {s.bands}"
        table.add_row(s.name, s.title, size, "yes" if is_present(s.name, root) else "")
    console.print(table)
    if name is not None:
        console.print(f"files: {specs[0].where}", soft_wrap=True, highlight=False)
        for number, title in specs[0].classes.items():
            console.print(f"{number:3d} {title}", highlight=False)
    return 0
