"""Versions with the hashes of the files that pip would install, from its report.

    pip install --dry-run --ignore-installed --no-deps --report FILE -r constraints.txt
    python .ci/lock.py FILE > constraints.lock

The hashes are those of one platform's files. torch is left without: its file differs by machine.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

DIFFERS = {"torch"}  # by machine: for its CPU, or for one GPU or another


def lines(report: dict[str, list[dict[str, dict[str, dict[str, dict[str, str]]]]]]) -> list[str]:
    """A line for each package, sorted by name."""
    found = {}
    for item in report["install"]:
        about = item["metadata"]
        name, version = str(about["name"]), str(about["version"]).partition("+")[0]
        hashes = item["download_info"]["archive_info"]["hashes"]
        words = [f"{name}=={version}"]
        if name not in DIFFERS:
            words += [f"--hash={kind}:{value}" for kind, value in sorted(hashes.items())]
        found[name.lower()] = " ".join(words)
    return [found[name] for name in sorted(found)]


if __name__ == "__main__":
    print("# The files behind constraints.txt, for CPython 3.11 on Linux, x86-64: `make lock`.")
    print(*lines(json.loads(Path(sys.argv[1]).read_text("utf-8"))), sep="\n")
