"""The command `thonecls benchmark`: its flags, and the order of its steps."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter
from rich.markup import escape

from thonecls.benchmark import Protocol
from thonecls.cli.app import DataRoot, Json, Overrides, Settings, app, errors, given_settings
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
            "its labels. spatial: the same, and tests lie a block away from every label. half: "
            "labels from one side of the class, tests on the other. plot: labels from one compact "
            "patch, tests a block away. polygons: labels from squares of 5×5 pixels. noisy: as "
            "resampled, but one label in twenty is wrong."
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
    left_out: Annotated[
        bool,
        Parameter(
            help="Fit every cell once more without a part of its labels, and record how those are "
            "found: by that a method can be chosen without negatives.",
            negative=(),
        ),
    ] = False,
    dry_run: Annotated[
        bool, Parameter(help="Only show what would be run, for how long.", negative=())
    ] = False,
    render_only: Annotated[
        bool, Parameter(help="Run nothing; write tables and figures again.", negative=())
    ] = False,
    config: Settings = Overrides(),  # noqa: B008  # frozen
    json: Json = False,
) -> int:
    """Run the paper's experiments and show them beside its figures.

    Without a study: lists them. Results are kept one JSON line each in results.jsonl: what is
    finished is never run again, a killed run continues where it was, several runners may share one
    folder. Tables are written as Markdown, LaTeX, CSV and one HTML page, figures as PNG; the study
    leaderboard as one HTML page of all records in the folder.

    Example: thonecls benchmark table-ip-pu --dry-run

    Example: thonecls benchmark order --dataset indian-pines --target 2 --preset fast --seeds 1
    """
    from thonecls.benchmark import Cell, cells_of, find_study, read_results
    from thonecls.benchmark.figures import write_study
    from thonecls.benchmark.run import threads_for
    from thonecls.cli.benchmarking import (
        conclude,
        list_studies,
        name_lost_maps,
        name_missing,
        narrow,
        run_under_bar,
        show_plan,
    )
    from thonecls.datasets import data_root as resolve_root

    if not studies:
        return list_studies(json)
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
    chosen = {name: narrow(find_study(name), dataset, target, method) for name in studies}
    cells = list(
        dict.fromkeys(
            cell
            for study in chosen.values()
            for cell in cells_of(study, seeds=range(seeds), change=change)
        )
    )
    missing = name_missing(cells, root)
    here = [cell for cell in cells if cell.dataset not in missing]
    results = read_results(out)
    for message in results.damaged:
        errors.print(f"[yellow]warning:[/yellow] {escape(message)}")
    wanted = {"failed": not retry, "left_out": left_out}
    if dry_run:
        waiting = [cell for cell in cells if not results.has(cell, **wanted)]
        fits = 2 if left_out else 1
        return show_plan(cells, waiting, results, jobs, threads, json, fits=fits)
    if not render_only:
        if not here:
            raise ConfigError(
                f"none of the study's datasets is in {root}: see `thonecls datasets`, set "
                "--data-root, or run it on another one (--dataset indian-pines --target 2)"
            )
        waiting = [cell for cell in here if not results.has(cell, **wanted)]
        work = {"root": root, "jobs": jobs, "dask": dask, "threads": threads, "retry": retry}
        work |= {"left_out": left_out}
        run_under_bar(waiting, out, quiet=json, **work)
    results = read_results(out)
    written = [
        path
        for name, study in chosen.items()
        for path in write_study(
            name, study, results, out, root=root, seeds=range(seeds), change=change
        )
    ]
    for name, study in chosen.items():
        name_lost_maps(name, study, results, out, seeds=range(seeds), change=change)
    return conclude(cells, results, written, json)
