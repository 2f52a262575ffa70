"""The paper's experiments, as far as a machine of two cores gets in hours: docs/results.md.

    python benchmarks/reproduce.py [PART ...] [--jobs 2] [--data-root DATA] [--render-only]

Runs what has no record in benchmarks/records yet, part by part, and puts the tables into
docs/results.md. Killed, the same command goes on; several may run at once. Datasets that are not
there are not run; their tables are drawn from the records all the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import cyclopts
from rich.console import Console

from published import RECORDS, WORK, insert
from thonecls.benchmark import STUDIES, Cell, Results, Study, cells_of, read_results, run_cells
from thonecls.benchmark.figures import draw_study_curves
from thonecls.benchmark.studies import (
    BOARD_PROTOCOLS,
    BRIEF,
    BRIEF_WARMUP,
    METHODS,
    MORE_METHODS,
    RATIO,
    SPECTRAL,
)
from thonecls.benchmark.studies import MORE_RGB as MORE_IMAGES
from thonecls.benchmark.studies import RGB as IMAGES
from thonecls.benchmark.tables import as_markdown, build_table
from thonecls.benchmark.targets import data_of
from thonecls.datasets import data_root as resolve_root
from thonecls.methods import METHODS as CATALOGUE

PAGE = Path("docs/results.md")
FIGURES = Path("docs/figures")
T_HONECLS: dict[str, dict[str, Any]] = {"T-HOneCls": {}}
# At a tenth of the schedule OC gets a tenth of its epochs of cross-entropy, too.
SHORT = {
    label: {**change, "warmup": BRIEF_WARMUP} if change["method"] == "oc" else change
    for label, change in (METHODS | MORE_METHODS).items()
}


@dataclass(frozen=True)
class Part:
    """A table of docs/results.md: a study, for how many seeds, and by what it differs."""

    study: Study
    seeds: int = 1
    change: dict[str, Any] = field(default_factory=dict)
    name: str = ""  # of the study in the paper, if it is one


def _on(study: str, *places: tuple[str, int], **change: Any) -> Part:
    """A study of the paper on other places."""
    return Part(replace(STUDIES[study], places=places), SEEDS, change, name=study)


def _rgb(columns: dict[str, dict[str, Any]]) -> Study:
    """The study on images, on CIFAR-10, with some columns by other names."""
    study = STUDIES["table-rgb"]
    return replace(study, places=study.places[:1], columns=columns)


IP = (("indian-pines", 2), ("indian-pines", 11))
SEEDS = 3  # of studies whose cells take minutes; those that take longer have fewer so far
ELSEWHERE = (("houston-crop", 5), ("enmap-potsdam", 4))
NNPU: dict[str, dict[str, Any]] = {
    "nnPU": {"method": "nnpu", "prior": "true"},
    "nnPU after 15 epochs of cross-entropy": {
        "method": "nnpu",
        "prior": "true",
        "warmup": 15,
        "warmup_loss": "bce",
    },
}
# One that knows places, and some that know spectra alone.
SPATIAL: dict[str, dict[str, Any]] = {
    label: {**change, "protocol": "spatial"}
    for label, change in (T_HONECLS | SPECTRAL).items()
    if label in ("T-HOneCls", "matched-filter", "biased-svm", "maxent", "elkan-noto")
}
# Steps in bfloat16, without which a table of three seeds takes two days. Dist-PU's own 60 epochs in
# each phase and P3MIX's 200 would still take two cores hours each.
HALF = {"precision": "bfloat16"}
RGB: dict[str, dict[str, Any]] = {
    "nnPU": IMAGES["nnPU"] | HALF,
    "PUET": IMAGES["PUET"],
    "variational": IMAGES["variational"] | HALF,
    **STUDIES["views"].columns,  # the Taylor loss, and with two views
    "vPU": IMAGES["vPU"] | HALF,
    **{label: change | HALF for label, change in MORE_IMAGES.items()},
    **{label: IMAGES[label] | HALF for label in ("Taylor, with a teacher", "uPU", "supervised")},
    "Dist-PU, 6 + 6 epochs": {**IMAGES["Dist-PU"], "epochs": 6} | HALF,
    "P3MIX-E, 30 epochs": {**IMAGES["P3MIX-E"], "epochs": 30} | HALF,
    "P3MIX-C, 30 epochs": {**IMAGES["P3MIX-C"], "epochs": 30} | HALF,
}
LABELS = replace(
    STUDIES["labels"],
    columns={
        label.replace("4000", "2000"): {**change, "positives": min(change["positives"], 2000)}
        for label, change in STUDIES["labels"].columns.items()
    },
)

TUNING = ("tuning-scattered", "tuning-half", "tuning-plot", "tuning-polygons")
SMALL = ("indian-pines", "houston-crop", "enmap-potsdam")
FIRST_NETWORKS = ("t-honecls", "nnpu", "vpu", "bce", "gce", "oc", "variational", "taylor", "sce")
LARGE = ("zion", "sentinel2")  # on which some methods take minutes to map


def _tuning(name: str, *datasets: str) -> Part:
    """A study for tuning on some of its scenes; on the large ones two methods."""
    study = STUDIES[name]
    columns = study.columns
    if datasets == LARGE:
        columns = {label: columns[label] for label in ("density-ratio", "matched-filter")}
    places = tuple(place for place in study.places if place[0] in datasets)
    return Part(replace(study, places=places, columns=columns), 3)


def _board(kind: str, *datasets: str) -> Study:
    """The leaderboard's methods of one kind, on some of its scenes."""
    study = STUDIES["leaderboard"]

    def kind_of(change: dict[str, Any]) -> str:
        if CATALOGUE[change["method"]].learning.pace == "at once":
            return "at once"
        return "brief" if "epochs" in change else "published"

    columns = {label: c for label, c in study.columns.items() if kind_of(c) == kind}
    places = tuple(place for place in study.places if place[0] in datasets)
    return replace(study, columns=columns, places=places)


PARTS: dict[str, Part] = {
    "t-honecls-paper": Part(
        Study("T-HOneCls with the paper's schedule", IP, T_HONECLS), 3, name="table-ip-pu"
    ),
    "methods-paper": Part(
        Study("Every network method, the paper's schedule", IP[:1], METHODS | MORE_METHODS),
        name="table-ip-pu",
    ),
    "t-honecls-fast": Part(
        Study(
            "T-HOneCls with FAST, three protocols",
            IP,
            {p: {"protocol": p} for p in ("paper", "resampled", "spatial")},
        ),
        5,
        {"preset": "fast"},
    ),
    "spatial": Part(
        Study("Labels from a fifth of the class's blocks, tests a block away", IP, SPATIAL),
        5,
        {"preset": "fast"},
    ),
    "elsewhere": Part(
        Study("T-HOneCls with FAST on other scenes", ELSEWHERE, T_HONECLS), 3, {"preset": "fast"}
    ),
    "methods-fast": Part(
        Study("Every network method at FAST's length", IP[1:], SHORT),
        SEEDS,
        BRIEF,
    ),
    "nnpu": Part(
        Study("nnPU with the true prior, from the start and after a warm-up", IP[:1], NNPU),
        SEEDS,
        BRIEF,
    ),
    "spectra": Part(Study("Methods on single spectra", IP, SPECTRAL), SEEDS),
    "order": _on("order", IP[0], **BRIEF),
    "kl-teacher": _on("kl-teacher", IP[0], **BRIEF),
    "beta": _on("beta", IP[0], **BRIEF),
    "labels": Part(replace(LABELS, places=IP[1:]), SEEDS, BRIEF, name="labels"),
    "images": Part(_rgb(RGB), SEEDS, name="table-rgb"),
    "views": Part(STUDIES["views"], SEEDS),
    "fashion": Part(STUDIES["fashion"], SEEDS),
    "pavia": Part(
        replace(STUDIES["table-ip-pu"], places=(("pavia-university", 2), ("pavia-university", 8))),
        name="table-ip-pu",
    ),
    "collage": Part(STUDIES["collage"]),
    "density-ratio": Part(
        Study(
            "The density ratio, by where labels come from",
            IP,
            {
                p: {**RATIO["density-ratio"], "protocol": p}
                for p in ("paper", "resampled", "spatial", "half", "plot")
            },
        ),
        5,
        {"preset": "fast"},
    ),
    "density-ratio-elsewhere": Part(
        Study("The density ratio on other scenes", ELSEWHERE, RATIO), 5, {"preset": "fast"}
    ),
    **{name: _tuning(name, *SMALL) for name in TUNING},
    **{f"{name}-large": _tuning(name, *LARGE) for name in TUNING},
    "leaderboard": Part(_board("at once", *SMALL), 3),
    "leaderboard-large": Part(_board("at once", *LARGE)),
    "leaderboard-networks": Part(_board("brief", *SMALL)),
    "leaderboard-published": Part(_board("published", *SMALL)),
}


def present(part: Part, root: Path) -> Part | None:
    """The part on the datasets that are there."""
    places = tuple(
        place for place in part.study.places if data_of(place[0]).is_present(place[0], root)
    )
    return replace(part, study=replace(part.study, places=places)) if places else None


def cells(part: Part) -> list[Cell]:
    """All cells of a part; of the leaderboard one method after the other, by mechanisms."""
    found = cells_of(part.study, seeds=range(part.seeds), change=part.change)
    if part.study.board:
        found.sort(key=lambda cell: (cell.seed, *_turn(cell)))
    return found


def _turn(cell: Cell) -> tuple[int, int, int]:
    """When a cell of the leaderboard is run: networks take hours, and some are asked for most."""
    if CATALOGUE[cell.method].learning.pace == "at once":
        return list(CATALOGUE).index(cell.method), 0, 0
    later = cell.method not in FIRST_NETWORKS
    methods = list(dict.fromkeys((*FIRST_NETWORKS, *CATALOGUE)))
    return later, BOARD_PROTOCOLS.index(cell.protocol), methods.index(cell.method)


def render(name: str, part: Part, results: Results) -> Iterator[Path]:
    """The part's table and figure, unless the page shows more cells; the files that changed.

    Of the leaderboard none: its page is that of benchmarks/leaderboard.py.
    """
    if part.study.board:
        return
    options: dict[str, Any] = {"seeds": range(part.seeds), "change": part.change}
    table = build_table(part.name or name, part.study, results, **options)
    if not insert(PAGE, name, as_markdown(table, heading=False)):
        return
    yield PAGE
    figure = FIGURES / f"{name}.png"
    if part.study.curves and draw_study_curves(
        part.name or name, part.study, results, figure, **options
    ):
        yield figure


def main(
    *names: Annotated[str, cyclopts.Parameter(help="Parts to run; all without it.")],
    jobs: int = 2,
    data_root: Path | None = None,
    render_only: bool = False,
) -> None:
    """Run what is missing, then write the tables."""
    root = resolve_root(data_root)
    console = Console()
    unknown = set(names) - PARTS.keys()
    if unknown:
        raise SystemExit(f"no part is called {unknown.pop()}: {', '.join(PARTS)}")
    chosen = {name: PARTS[name] for name in names or PARTS}
    if not render_only:
        here = [part for whole in chosen.values() if (part := present(whole, root)) is not None]
        wanted = list(dict.fromkeys(cell for part in here for cell in cells(part)))

        def on_record(cell: Cell, facts: dict[str, Any]) -> None:
            ended = facts.get("error") or f"{facts['scores'][data_of(cell.dataset).score]:.2f}"
            console.print(f"{cell}: {ended}, {facts['seconds']:.0f} s", highlight=False)

        work: dict[str, Any] = {"jobs": jobs, "threads": 1, "on_record": on_record}
        run_cells(wanted, WORK, records=RECORDS, root=root, **work)
    results = read_results(RECORDS)
    for message in results.damaged:
        console.print(message)
    for name, part in chosen.items():
        done = sum(results.find(cell) is not None for cell in cells(part))
        console.print(f"{name}: {done} of {len(cells(part))} cells")
        for path in render(name, part, results):
            console.print(f"  {path}")


if __name__ == "__main__":
    cyclopts.run(main)
