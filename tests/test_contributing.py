"""CONTRIBUTING: its map of the rooms is that of the tree."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_map_of_the_rooms_is_that_of_the_tree() -> None:
    made = subprocess.run(
        [sys.executable, ROOT / ".ci/rooms.py"], capture_output=True, encoding="utf-8", check=True
    ).stdout
    shown = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    begin, end = "<!-- rooms -->\n", "<!-- end of rooms -->"
    written = shown.partition(begin)[2].partition(end)[0]
    assert written == made, "run python .ci/rooms.py, and put its output into CONTRIBUTING.md"
