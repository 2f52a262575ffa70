"""The oldest versions that pyproject.toml allows, as constraints for pip.

    python .ci/lowest.py > lowest.txt
    pip install -c lowest.txt -e '.[dev,all]'

The tools of developers are left out: only what users install must work with its lower bound.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path
from typing import Any

TOOLS = ("dev", "docs", "all")  # extras without packages of users, and the others together


def lowest(project: dict[str, Any]) -> list[str]:
    """A pin for each requirement of `[project]`, sorted by name; one without `>=` is an error.

    >>> lowest({"dependencies": ["numpy>=2.0", "h5py>=3.11,<4"], "optional-dependencies": {}})
    ['h5py==3.11', 'numpy==2.0']
    """
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"]]
    wanted += [line for name, lines in extras.items() if name not in TOOLS for line in lines]
    pins = {}
    for line in wanted:
        match = re.fullmatch(r"([\w.-]+)>=([\w.]+)(,.*)?", line.replace(" ", ""))
        if match is None:
            raise ValueError(f"a requirement needs a lower bound, name>=version. Got {line!r}")
        pins[match[1].lower()] = f"{match[1]}=={match[2]}"
    return [pins[name] for name in sorted(pins)]


if __name__ == "__main__":
    file = Path(sys.argv[1] if len(sys.argv) > 1 else "pyproject.toml")
    print(*lowest(tomllib.loads(file.read_text("utf-8"))["project"]), sep="\n")
