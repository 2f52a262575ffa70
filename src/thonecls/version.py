"""Which code this is: version and commit, for models, maps and records."""

from __future__ import annotations

import functools
import os
import subprocess
from pathlib import Path

__version__ = "0.2.0.dev0"  # the only place: pyproject.toml reads it from here
UNKNOWN = "unknown"


@functools.cache
def commit(root: Path = Path(__file__).parents[2]) -> str:
    """The commit that a source tree stands at, "unknown" of an installed package.

    With "-modified" where the code differs from that commit. Asks git, once in a process.
    """
    if not (root / ".git").exists():  # else git would find whatever repository lies around it
        return UNKNOWN
    try:
        head = _git(root, "rev-parse", "HEAD")
        changed = _git(root, "status", "--porcelain", "--", "src")
    except (OSError, subprocess.SubprocessError):
        return UNKNOWN
    return f"{head[:12]}{'-modified' if changed else ''}"


def software() -> str:
    """Name, version and commit in one line, as files carry it."""
    return f"thonecls {__version__} ({commit()})"


def _git(root: Path, *words: str) -> str:
    """What git answers; variables that point it to another repository are left out."""
    environment = {name: value for name, value in os.environ.items() if name[:4] != "GIT_"}
    answer = subprocess.run(
        ["git", "-C", str(root), *words],
        capture_output=True,
        text=True,
        check=True,
        timeout=10,
        env=environment,
    )
    return answer.stdout.strip()
