"""Count the shape of a tree: modules, layers, lines, functions, import cycles.

And the files that a command goes through: `python .ci/shape.py [TREE] -- train scene.tif ...`
runs `thonecls train ...` with the TREE's code and lists which of its files ran.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterator
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import FrameType

MOST_PARAMETERS = 6


def modules(root: Path) -> dict[str, Path]:
    """Every module of the package by its dotted name."""
    source = root / "src"
    return {
        ".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__"): path
        for path in sorted((source / "thonecls").rglob("*.py"))
    }


def functions(tree: ast.Module) -> Iterator[tuple[str, int, int]]:
    """Name, lines and parameters (`self` and `cls` apart) of each function."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            given = node.args
            names = [one.arg for one in given.posonlyargs + given.args + given.kwonlyargs]
            names += [one.arg for one in (given.vararg, given.kwarg) if one]
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            yield node.name, length, len([name for name in names if name not in ("self", "cls")])


def imported(tree: ast.Module, package: str, known: set[str], *, later: bool) -> set[str]:
    """Modules of the package that one imports: at its top, or (later) inside functions too."""
    found = set()
    for node in _run(tree, later=later):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package.split(".")[: len(package.split(".")) - node.level + 1]
            start = (
                ".".join([*base, node.module or ""]).strip(".") if node.level else node.module or ""
            )
            for alias in node.names:
                inner = f"{start}.{alias.name}"
                found.add(inner if inner in known else start)
    return found & known


def _run(tree: ast.AST, *, later: bool) -> Iterator[ast.AST]:
    """Nodes that run, not those for the type checker: when a module is imported, or later too."""
    for node in ast.iter_child_nodes(tree):
        typing = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        if not typing and (later or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)):
            yield node
            yield from _run(node, later=later)


def cycles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Groups of modules that import each other, by their reach in both directions."""
    reach = {name: _reach(name, graph) for name in graph}
    groups = {frozenset(b for b in reach[a] if a in reach[b]) for a in graph if a in reach[a]}
    return sorted(sorted(group) for group in groups)


def _reach(start: str, graph: dict[str, set[str]]) -> set[str]:
    """Every module that a module imports, directly or by others."""
    seen: set[str] = set()
    ahead = list(graph[start])
    while ahead:
        name = ahead.pop()
        if name not in seen:
            seen.add(name)
            ahead += graph[name]
    return seen


def count(root: Path) -> None:
    """Print the figures of a tree."""
    paths = modules(root)
    trees = {name: ast.parse(path.read_text("utf-8")) for name, path in paths.items()}
    lines = {name: len(path.read_text("utf-8").splitlines()) for name, path in paths.items()}
    settings = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))
    layers = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    every = [(f"{m}.{n}", size, many) for m, t in trees.items() for n, size, many in functions(t)]
    print(f"modules {len(paths)}, layers {len(layers)}, lines {sum(lines.values()):,}")
    print(
        f"functions {len(every)}, of them with more than {MOST_PARAMETERS} parameters:",
        sum(many > MOST_PARAMETERS for _, _, many in every),
    )
    for name, _, many in sorted(every, key=lambda one: -one[2])[:8]:
        print(f"  {many} {name}")
    print("longest functions:", sum(size > 40 for _, size, _ in every), "with more than 40 lines")
    for name, size, _ in sorted(every, key=lambda one: -one[1])[:8]:
        print(f"  {size} {name}")
    for later in (False, True):
        graph = {
            name: imported(
                trees[name],
                name if paths[name].stem == "__init__" else name.rpartition(".")[0],
                set(paths),
                later=later,
            )
            - {name}
            for name in paths
        }
        where = "imports inside functions too" if later else "imports at the top"
        print(f"import cycles ({where}): {cycles(graph) or 'none'}")
    for path in sorted((root / "src" / "thonecls" / "method").glob("*.py")):
        print(f"  {len(path.read_text('utf-8').splitlines()):5} method/{path.name}")


def walk(root: Path, arguments: list[str]) -> None:
    """Run a command of the tree's code, and print which of its files ran a function."""
    source = str(root / "src")
    sys.path.insert(0, source)
    ran: dict[str, int] = {}

    def note(frame: FrameType, event: str, _: object) -> None:
        name = frame.f_code.co_filename
        # A function, not the body of a module or a class that is being made.
        if event == "call" and name.startswith(source) and frame.f_code.co_flags & CO_OPTIMIZED:
            ran.setdefault(name, len(ran))

    from thonecls.cli import main

    sys.setprofile(note)
    try:
        main(arguments)
    except SystemExit:
        pass
    finally:
        sys.setprofile(None)
    loaded = [name for name in sys.modules if name.partition(".")[0] == "thonecls"]
    print(f"loaded {len(loaded)} modules, of which {len(ran)} files ran a function:")
    print(*(Path(name).relative_to(source) for name in ran), sep="\n")


if __name__ == "__main__":
    words = sys.argv[1:]
    cut = words.index("--") if "--" in words else len(words)
    tree = Path(words[0] if cut else Path(__file__).parents[1]).resolve()
    if words[cut + 1 :]:
        walk(tree, words[cut + 1 :])
    else:
        count(tree)
