"""Where the records behind published tables are, and how tables get into the pages.

Records are committed, so that every table and figure can be drawn again on any machine; what is
large or unfinished (maps, checkpoints) is not. Run the scripts from the repository's root.
"""

from __future__ import annotations

import re
from pathlib import Path

from thonecls.files import write_atomically

RECORDS = Path("benchmarks/records")  # *.jsonl: one line a cell, of `thonecls benchmark`'s kind
SPEED = RECORDS / "speed"  # NAME.json: what a benchmark of speed published last
WORK = Path("runs/benchmark")  # maps and unfinished trainings: not committed
BEGIN, END = "<!-- table: {} -->", "<!-- end of table -->"
COUNTED = re.compile(r"(\d+)(?: of \d+)? cells are run")


def insert(path: Path, name: str, text: str) -> bool:
    """Put a table between its marks in a Markdown file; whether it was put there.

    One of no cells, or of fewer than the page shows, is not: what was run elsewhere, or by an
    earlier version, stands until it is run again.
    """
    content = path.read_text()
    begin = BEGIN.format(name)
    head, rest = content.split(begin)
    standing, tail = rest.split(END, 1)
    new, old = _cells(text), _cells(standing)
    if new is not None and new < max(1, old or 0):
        return False
    write_atomically(path, f"{head}{begin}\n{text}\n{END}{tail}".encode())
    return True


def _cells(table: str) -> int | None:
    """How many cells a table says that it shows; None of one that is not made of cells."""
    found = COUNTED.search(table)
    return int(found[1]) if found else None
