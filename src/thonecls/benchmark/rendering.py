"""All files of a study: its table in four forms, its figures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from thonecls.benchmark.figures import draw_study_curves, draw_study_maps
from thonecls.benchmark.records import Results
from thonecls.benchmark.studies import Study
from thonecls.benchmark.tables import as_csv, as_html, as_latex, as_markdown, build_table
from thonecls.files import locked, write_atomically


def write_study(
    name: str,
    study: Study,
    results: Results,
    folder: Path,
    *,
    root: Path,
    seeds: Sequence[int],
    change: dict[str, Any],
) -> list[Path]:
    """Write NAME.md, .tex, .csv, .html and its PNGs into the folder; the files written.

    Where another runner is about it, its end is waited for.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder, wait=True):
        table = build_table(name, study, results, seeds=seeds, change=change)
        stem = folder / name
        figures = []
        if study.curves:
            path = folder / f"{name}-curves.png"
            if draw_study_curves(name, study, results, path, seeds=seeds, change=change):
                figures.append(path)
        if study.maps:
            path = folder / f"{name}-maps.png"
            if draw_study_maps(study, results, folder, root, path, seeds=seeds, change=change):
                figures.append(path)
        forms = {
            ".md": as_markdown(table),
            ".tex": as_latex(table),
            ".csv": as_csv(table),
            ".html": as_html([table], figures),
        }
        for ending, text in forms.items():
            write_atomically(stem.with_suffix(ending), text.encode())
        return [*(stem.with_suffix(ending) for ending in forms), *figures]
