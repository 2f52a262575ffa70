"""Print the map of the rooms for CONTRIBUTING.md, from the first line of every module.

python .ci/rooms.py
"""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "thonecls"


def first_line(path: Path) -> str:
    """Of a module's docstring."""
    return (ast.get_docstring(ast.parse(path.read_text("utf-8"))) or "").partition("\n")[0]


def layers() -> list[list[str]]:
    """The rooms from top to bottom, those of one layer together; from pyproject.toml."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    contract = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    return [layer.replace("|", " ").replace(":", " ").split() for layer in contract]


def room_map() -> str:
    """Every room with its modules, as Markdown."""
    lines = []
    for number, layer in enumerate(layers(), 1):
        for name in layer:
            room = SOURCE / name
            if not room.is_dir():
                lines.append(f"{number}. `{name}.py`: {first_line(room.with_suffix('.py'))}")
                continue
            lines.append(f"{number}. **`{name}/`**: {first_line(room / '__init__.py')}")
            lines += [
                f"   - `{path.relative_to(room).as_posix()}`: {first_line(path)}"
                for path in sorted(room.rglob("*.py"))
                if path.name != "__init__.py" or path.parent != room
            ]
    return "\n".join(lines)


if __name__ == "__main__":
    print(room_map())
