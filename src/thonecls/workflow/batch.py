"""Mapping many scenes with one model: what is finished is skipped, what fails stops no other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from thonecls.errors import ClusterError
from thonecls.io.listing import find_scenes
from thonecls.io.options import SceneOptions
from thonecls.workflow.map import OnWindow, map_scene
from thonecls.workflow.options import MapOptions
from thonecls.workflow.summaries import MapSummary


@dataclass(frozen=True)
class Outcome:
    """What became of one scene of many: its map, or why there is none."""

    name: str
    scene: Path
    summary: MapSummary | None = None
    error: Exception | None = None


def map_scenes(
    model: Path,
    scenes: Path | Sequence[Path],
    out: Path,
    *,
    options: MapOptions | None = None,
    scene_options: SceneOptions | None = None,
    on_scene: Callable[[str, int, int], OnWindow | None] | None = None,
) -> Iterator[Outcome]:
    """Map scenes one after the other, each into out/NAME; yields what became of each.

    scenes: files, patterns, folders, lists or STAC on disk (see `find_scenes`). With `resume` in
    the options, maps that are finished are left as they are. An error is told in the outcome, and
    the next scene is mapped; only a lost cluster ends it all. on_scene: hears name, number and
    count of the scene that begins, and may return what is to hear of its windows.
    """
    listed = find_scenes(scenes)
    for number, (name, path) in enumerate(listed, 1):
        on_window = None if on_scene is None else on_scene(name, number, len(listed))
        try:
            summary = map_scene(
                model,
                path,
                out / name,
                options=options,
                scene_options=scene_options,
                on_window=on_window,
            )
        except ClusterError:
            raise
        except Exception as error:  # of foreign libraries, of any kind: the others can be mapped
            yield Outcome(name, path, error=error)
        else:
            yield Outcome(name, path, summary)
