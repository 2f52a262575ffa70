"""The steps of `thonecls benchmark`, and how they are shown."""

from __future__ import annotations

import json as jsonlib
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from thonecls.benchmark import STUDIES, Cell, Study, cells_of, run_cells
from thonecls.benchmark.maps import find_lost_maps
from thonecls.benchmark.records import Results
from thonecls.benchmark.run import estimate
from thonecls.benchmark.tables import metric_name
from thonecls.benchmark.targets import ALL, check_place, data_of, known_places
from thonecls.cli.app import errors
from thonecls.errors import ConfigError
from thonecls.methods.costs import in_words


def name_lost_maps(name: str, study: Study, results: Results, out: Path, **which: Any) -> None:
    """Say what a figure of maps leaves out."""
    lost = find_lost_maps(study, results, out, **which) if study.maps else []
    if lost:
        maps, lines = escape(str(out / "maps")), escape(str(out / "results.jsonl"))
        errors.print(
            f"[yellow]left out of {name}:[/yellow] {len(lost)} cells, such as "
            f"{escape(str(lost[0]))}, are done, but their maps are not in {maps}: take their lines "
            f"out of {lines} to run them again",
            soft_wrap=True,
        )


def list_studies(as_json: bool) -> int:
    """The studies, with their sizes."""
    if as_json:
        print(jsonlib.dumps({name: study.title for name, study in STUDIES.items()}))
        return 0
    table = Table(box=None, pad_edge=False)
    for column in ("study", "what", "cells a seed", "datasets"):
        table.add_column(column)
    for name, study in STUDIES.items():
        of = ", ".join(dict.fromkeys(dataset for dataset, _ in study.places))
        table.add_row(name, study.title, str(len(cells_of(study, seeds=[0]))), of)
    Console().print(table)
    return 0


def narrow(
    study: Study, dataset: str | None, targets: list[int] | None, methods: list[str] | None
) -> Study:
    """The study on other classes, or with some of its columns."""
    if dataset is not None:
        if dataset not in known_places():
            raise ConfigError(f"there is no dataset {dataset!r}: `thonecls datasets` lists them")
        own = [target for name, target in study.places if name == dataset]
        known = own or [target for target in data_of(dataset).classes if target == ALL]
        if not (targets or known):
            raise ConfigError(f"say which classes of {dataset} to map: --target NUMBER")
        study = replace(study, places=tuple((dataset, t) for t in targets or known))
        if not own:  # nothing is known of what takes how long there
            study = replace(study, only={})
        for place in study.places:
            check_place(place)
    elif targets:
        study = replace(study, places=tuple(p for p in study.places if p[1] in targets))
    if methods and study.places:
        by_label = {label: study.cell(study.places[0], label).method for label in study.columns}
        for method in methods:
            if method not in by_label.values():
                raise ConfigError(
                    f"the study has no column of {method!r}: take one of "
                    f"{', '.join(dict.fromkeys(by_label.values()))}"
                )
        kept = {label: c for label, c in study.columns.items() if by_label[label] in methods}
        study = replace(study, columns=kept)
    if not (study.places and study.columns):
        raise ConfigError("nothing is left of the study: check --target and --method")
    return study


def name_missing(cells: list[Cell], root: Path) -> set[str]:
    """The datasets that are not on this machine; each is named, with how to get it."""
    missing = [
        d for d in dict.fromkeys(c.dataset for c in cells) if not data_of(d).is_present(d, root)
    ]
    for name in missing:
        errors.print(
            f"[yellow]not here:[/yellow] {name} is not in {escape(str(root))}. "
            f"{escape(data_of(name).where)}",
            soft_wrap=True,
        )
    return set(missing)


def show_plan(
    cells: list[Cell],
    waiting: list[Cell],
    results: Results,
    jobs: int,
    threads: int,
    as_json: bool,
    *,
    fits: int = 1,
) -> int:
    """The total first, then a line for each dataset and method; as JSON, every cell.

    fits: how often each cell is fitted.
    """
    estimates = {}
    for cell in waiting:
        cost = estimate(cell, threads, results)
        estimates[cell] = cost._replace(seconds=fits * cost.seconds)
    total = sum(e.seconds for e in estimates.values()) / jobs
    if as_json:
        plan = [
            {"cell": c.as_dict(), "seconds": e.seconds, "memory": e.memory}
            for c, e in estimates.items()
        ]
        print(jsonlib.dumps({"cells": len(cells), "waiting": plan, "seconds": total}))
        return 0
    console = Console()
    console.print(
        f"[bold]{len(waiting)} of {len(cells)} cells are to be run: about {in_words(total)}[/bold] "
        f"with {_count(jobs, 'job')} of {_count(threads, 'thread')}",
        soft_wrap=True,
    )
    if not waiting:
        return 0
    table = Table("dataset", "method", "cells", "about", "memory", box=None, pad_edge=False)
    for (dataset, method), group in _by_method(waiting).items():
        seconds = sum(estimates[cell].seconds for cell in group) / jobs
        memory = max(estimates[cell].memory for cell in group)
        table.add_row(dataset, method, str(len(group)), in_words(seconds), f"{memory / 1e9:.1f} GB")
    console.print(table)
    console.print("every cell: --dry-run --json", highlight=False)
    return 0


def _by_method(cells: list[Cell]) -> dict[tuple[str, str], list[Cell]]:
    groups: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        groups.setdefault((cell.dataset, cell.method), []).append(cell)
    return groups


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def run_under_bar(cells: list[Cell], out: Path, *, quiet: bool, **options: Any) -> None:
    """Run the cells under a bar."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(compact=True, elapsed_when_finished=True),
    )
    # Cells take minutes: the time left is reckoned from all of them, not from the last seconds.
    with Progress(*columns, console=errors, disable=quiet, speed_estimate_period=1e9) as bar:
        task = bar.add_task("", total=len(cells))

        def on_start(cell: Cell) -> None:
            bar.update(task, description=escape(str(cell)))

        def on_record(cell: Cell, facts: dict[str, Any]) -> None:
            name = data_of(cell.dataset).score
            ended = (
                f"{metric_name(name)} {facts['scores'][name]:.2f}"
                if "scores" in facts
                else facts["error"]
            )
            bar.console.print(f"{escape(str(cell))}: {escape(ended)}", soft_wrap=True)
            bar.advance(task)

        def on_skip(cell: Cell) -> None:
            bar.advance(task)

        run_cells(cells, out, on_start=on_start, on_record=on_record, on_skip=on_skip, **options)


def conclude(cells: list[Cell], results: Results, written: list[Path], as_json: bool) -> int:
    """What was done, what failed, and where the tables are."""
    done = [cell for cell in cells if results.find(cell) is not None]
    failed = {
        str(cell): str(results.records[cell.id].facts["error"])
        for cell in cells
        if cell.id in results.records and not results.records[cell.id].done
    }
    if as_json:
        files = [str(path) for path in written]
        summary = {"cells": len(cells), "done": len(done), "failed": failed, "written": files}
        print(jsonlib.dumps(summary))
        return 0
    console = Console()
    for cell, error in failed.items():
        console.print(f"[yellow]failed:[/yellow] {escape(cell)}: {escape(error)}", soft_wrap=True)
    again = "; --retry runs the failed ones again" if failed else ""
    console.print(f"{len(done)} of {len(cells)} cells are done{again}")
    for path in written:
        console.print(str(path), soft_wrap=True, highlight=False)
    return 0
