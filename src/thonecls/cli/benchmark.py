"""The command `thonecls benchmark`."""

from __future__ import annotations

import json as jsonlib
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from thonecls.benchmark import STUDIES, Cell, Study, cells_of, find_study, read_results, run_cells
from thonecls.benchmark.comparison import metric_name
from thonecls.benchmark.estimate import estimate
from thonecls.benchmark.maps import find_lost_maps
from thonecls.benchmark.places import (
    ALL,
    check_place,
    is_images,
    is_present,
    known_places,
    score_of,
    where_from,
)
from thonecls.benchmark.plan import Protocol
from thonecls.benchmark.rendering import write_study
from thonecls.benchmark.results import Results
from thonecls.benchmark.run import threads_for
from thonecls.cli.app import (
    DataRoot,
    Json,
    Overrides,
    Settings,
    app,
    errors,
    given_settings,
)
from thonecls.costs import in_words
from thonecls.datasets import data_root as resolve_root
from thonecls.errors import ConfigError


@app.command
def benchmark(
    *studies: Annotated[str, Parameter(help="The paper's tables and figures, or ours, to make.")],
    dataset: Annotated[
        str | None, Parameter(help="Another dataset than the study's own; with --target.")
    ] = None,
    target: Annotated[
        list[int] | None, Parameter(help="Classes, by number; may be given several times.")
    ] = None,
    method: Annotated[
        list[str] | None, Parameter(help="Only these columns of the study, by method.")
    ] = None,
    preset: Annotated[
        Literal["paper", "fast"], Parameter(help="The paper's schedule, or the fast one.")
    ] = "paper",
    protocol: Annotated[
        Protocol,
        Parameter(
            help="paper: fixed labels, seeds differ by initialisation. resampled: each seed draws "
            "its labels. spatial: so, and tests lie a block away from every label. half: labels "
            "from one side of the class, tests on the other. plot: labels from one compact patch, "
            "tests a block away."
        ),
    ] = "paper",
    positives: Annotated[
        int | None, Parameter(help="Labelled pixels of the class; else 100, as in the paper.")
    ] = None,
    seeds: Annotated[int, Parameter(help="Repeats, with seeds from 0.")] = 5,
    out: Annotated[
        Path, Parameter(help="Folder of results.jsonl, maps, tables and figures.")
    ] = Path("runs/benchmark"),
    data_root: DataRoot = None,
    jobs: Annotated[int, Parameter(help="Processes at a time on this machine.")] = 1,
    dask: Annotated[
        str | None, Parameter(help="Address of a Dask scheduler to run on instead.")
    ] = None,
    threads: Annotated[
        int | None,
        Parameter(help="CPU threads for each cell; by default the cores shared among the jobs."),
    ] = None,
    retry: Annotated[
        bool, Parameter(help="Run cells again that failed before.", negative=())
    ] = False,
    dry_run: Annotated[
        bool, Parameter(help="Only show what would be run, for how long.", negative=())
    ] = False,
    render_only: Annotated[
        bool, Parameter(help="Run nothing; write tables and figures anew.", negative=())
    ] = False,
    config: Settings = Overrides(),  # noqa: B008  # frozen
    json: Json = False,
) -> int:
    """Run the paper's experiments and show them beside its figures.

    Without a study: lists them. Results are kept one JSON line each in results.jsonl: what is
    finished is never run again, a killed run goes on where it was, several runners may share one
    folder. Tables are written as Markdown, LaTeX, CSV and one HTML page, figures as PNG.

    Example: thonecls benchmark table-ip-pu --dry-run

    Example: thonecls benchmark order --dataset indian-pines --target 2 --preset fast --seeds 1
    """
    if not studies:
        return _list_studies(json)
    if any(number is not None and number < 1 for number in (jobs, seeds, threads, positives)):
        raise ConfigError("--jobs, --seeds, --threads and --positives must be 1 or more")
    root = resolve_root(data_root)
    threads = threads or threads_for(jobs, dask)
    change = {
        **given_settings(config),
        **({"preset": preset} if preset != Cell.preset else {}),
        **({"protocol": protocol} if protocol != Cell.protocol else {}),
        **({"positives": positives} if positives is not None else {}),
    }
    chosen = {name: _narrow(find_study(name), dataset, target, method) for name in studies}
    cells = list(
        dict.fromkeys(
            cell
            for study in chosen.values()
            for cell in cells_of(study, seeds=range(seeds), change=change)
        )
    )
    missing = _name_missing(cells, root)
    here = [cell for cell in cells if cell.dataset not in missing]
    results = read_results(out)
    for message in results.damaged:
        errors.print(f"[yellow]warning:[/yellow] {escape(message)}")
    if dry_run:
        waiting = [cell for cell in cells if not results.has(cell, failed=not retry)]
        return _show_plan(cells, waiting, results, jobs, threads, json)
    if not render_only:
        if not here:
            raise ConfigError(
                f"none of the study's datasets is in {root}: see `thonecls datasets`, set "
                "--data-root, or run it on another one (--dataset indian-pines --target 2)"
            )
        waiting = [cell for cell in here if not results.has(cell, failed=not retry)]
        work = {"root": root, "jobs": jobs, "dask": dask, "threads": threads, "retry": retry}
        _run(waiting, out, quiet=json, **work)
    results = read_results(out)
    written = [
        path
        for name, study in chosen.items()
        for path in write_study(
            name, study, results, out, root=root, seeds=range(seeds), change=change
        )
    ]
    for name, study in chosen.items():
        _name_lost_maps(name, study, results, out, seeds=range(seeds), change=change)
    return _conclude(cells, results, written, json)


def _name_lost_maps(name: str, study: Study, results: Results, out: Path, **which: Any) -> None:
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


def _list_studies(as_json: bool) -> int:
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


def _narrow(
    study: Study, dataset: str | None, targets: list[int] | None, methods: list[str] | None
) -> Study:
    """The study on other classes, or with some of its columns."""
    if dataset is not None:
        if dataset not in known_places():
            raise ConfigError(f"there is no dataset {dataset!r}: `thonecls datasets` lists them")
        own = [target for name, target in study.places if name == dataset]
        known = own or ([ALL] if is_images(dataset) else [])
        if not (targets or known):
            raise ConfigError(f"say which classes of {dataset} to map: --target NUMBER")
        study = replace(study, places=tuple((dataset, t) for t in targets or known))
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


def _name_missing(cells: list[Cell], root: Path) -> set[str]:
    """The datasets that are not on this machine; each is named, with how to get it."""
    missing = [d for d in dict.fromkeys(c.dataset for c in cells) if not is_present(d, root)]
    for name in missing:
        errors.print(
            f"[yellow]not here:[/yellow] {name} is not in {escape(str(root))}. "
            f"{escape(where_from(name))}",
            soft_wrap=True,
        )
    return set(missing)


def _show_plan(
    cells: list[Cell],
    waiting: list[Cell],
    results: Results,
    jobs: int,
    threads: int,
    as_json: bool,
) -> int:
    """The cells with an estimate of time and memory."""
    estimates = {}
    for cell in waiting:
        estimates[cell] = estimate(cell, threads, results)
    total = sum(e.seconds for e in estimates.values()) / jobs
    if as_json:
        plan = [
            {"cell": c.as_dict(), "seconds": e.seconds, "memory": e.memory}
            for c, e in estimates.items()
        ]
        print(jsonlib.dumps({"cells": len(cells), "waiting": plan, "seconds": total}))
        return 0
    table = Table("cell", "about", "memory", box=None, pad_edge=False)
    for cell, e in estimates.items():
        table.add_row(escape(str(cell)), in_words(e.seconds), f"{e.memory / 1e9:.1f} GB")
    console = Console()
    console.print(table)
    console.print(
        f"{len(waiting)} of {len(cells)} cells are to be run: about {in_words(total)} with "
        f"{jobs} job(s) of {threads} thread(s)"
    )
    return 0


def _run(cells: list[Cell], out: Path, *, quiet: bool, **options: Any) -> None:
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
            name = score_of(cell.dataset)
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


def _conclude(cells: list[Cell], results: Results, written: list[Path], as_json: bool) -> int:
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
