"""Try what is to be released, wheel and sdist, by a Python that has the wheel installed.

    python .ci/dist.py dist BUILDER

BUILDER: a Python with hatchling. Says which tag the version asks for.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from importlib.metadata import metadata
from pathlib import Path

WHEEL = ("thonecls/py.typed", "thonecls/cli/__init__.py")
SDIST = ("README.md", "LICENSE", "CITATION.cff", "pyproject.toml", "Makefile", "tests/conftest.py")


def main(folder: Path, builder: Path) -> None:
    """Look into both files, build the wheel again from the sdist, and run the demo."""
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    version = metadata("thonecls")["Version"]
    named = f"thonecls-{version}"
    expect(wheel.name.startswith(f"{named}-py3-none-any"), f"{wheel.name} is not of {version}")
    expect(sdist.name == f"{named}.tar.gz", f"{sdist.name} is not of {version}")
    files = contents(wheel)
    licence = f"{named}.dist-info/licenses/LICENSE"
    for name in (*WHEEL, licence):
        expect(name in files, f"the wheel has no {name}")
    with tarfile.open(sdist) as archive:
        packed = set(archive.getnames())
        for name in SDIST:
            expect(f"{named}/{name}" in packed, f"the sdist has no {name}")
        with tempfile.TemporaryDirectory() as other:
            archive.extractall(other, filter="data")
            run(builder, "-m", "hatchling", "build", "-t", "wheel", cwd=Path(other) / named)
            (again,) = (Path(other) / named / "dist").glob("*.whl")
            expect(contents(again) == files, "the sdist makes another wheel")
    with tempfile.TemporaryDirectory() as elsewhere:  # not where the source lies
        said = run(Path(sys.executable), "-m", "thonecls.cli", "--version", cwd=Path(elsewhere))
        expect(said.strip() == version, f"`thonecls --version` says {said.strip()}")
        told = run(
            Path(sys.executable), "-m", "thonecls.cli", "demo", "--json", cwd=Path(elsewhere)
        )
        scores = json.loads(told)["scores"]
        expect((Path(elsewhere) / "demo-output" / "report.html").exists(), "the demo has no report")
    print(f"{wheel.name} and {sdist.name} are sound; the demo has F1 {scores['f1']:.1f}")
    print(f"tag: v{version}" if "dev" not in version else f"{version} is not for release")


def contents(wheel: Path) -> set[str]:
    """The names in a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def run(python: Path, *words: str, cwd: Path) -> str:
    """What a Python program prints."""
    done = subprocess.run(
        [python.absolute(), *words], cwd=cwd, check=True, stdout=subprocess.PIPE, text=True
    )
    return done.stdout


def expect(holds: bool, words: str) -> None:
    """End with an error unless it holds."""
    if not holds:
        sys.exit(f"error: {words}")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
