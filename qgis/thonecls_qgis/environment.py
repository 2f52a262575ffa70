# SPDX-License-Identifier: GPL-2.0-or-later
"""Where thonecls is installed, and how to install it: in an environment of its own.

Nothing of QGIS is imported here.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from .process import Done, clean_environment, foreign_prefix, run

VARIABLE = "THONECLS_PYTHON"  # names a Python that has thonecls, for tests and administrators
PACKAGE = "thonecls"
TORCH = "https://download.pytorch.org/whl/cpu"  # torch without support of GPUs
NEEDED = (3, 11)  # of Python, by thonecls
NEWEST = 14
FOLDER = Path("thonecls") / "environment"  # in the user's profile of QGIS
MISSING = (
    "thonecls is not installed. Run the algorithm 'Install thonecls' (Processing Toolbox, "
    "thonecls, Setup; it takes a folder of wheels where there is no internet), or name a Python "
    "that has it in Settings, Options, Processing, Providers, thonecls."
)


def python_in(environment: Path) -> Path:
    """The Python of a virtual environment."""
    if sys.platform == "win32":
        return environment / "Scripts" / "python.exe"
    return environment / "bin" / "python"


def find(setting: str, profile: Path, environment: Mapping[str, str] = os.environ) -> Path | None:
    """What runs thonecls: as set by the user, by the variable, as installed here, or by PATH.

    A Python, the folder of its environment, or the program thonecls itself. What somebody has
    named is taken as it is, there or not: another would be a surprise.
    """
    for named in (setting.strip(), environment.get(VARIABLE, "").strip()):
        if named:
            path = Path(named).expanduser()
            return python_in(path) if path.is_dir() else path
    own = python_in(profile / FOLDER)
    if own.exists():
        return own
    found = shutil.which("thonecls", path=environment.get("PATH"))
    return Path(found) if found else None


def launch(program: Path) -> list[str]:
    """The words that start thonecls: by a Python that looks at nothing but its own folders."""
    if program.stem.lower().startswith("thonecls"):
        return [str(program)]
    return [str(program), "-I", "-X", "utf8", "-m", "thonecls.cli"]


def beside_qgis() -> dict[str, str]:
    """The environment of programs that QGIS starts and that are not its own."""
    return clean_environment(os.environ, foreign_prefix())


def candidates() -> Iterator[Path]:
    """Pythons that may make the environment, best first; not all of them need to be there."""
    if sys.platform == "win32":  # where sys.executable is QGIS itself
        yield Path(sys.exec_prefix) / "python.exe"
        yield Path(sys.exec_prefix) / "python3.exe"
    elif sys.platform == "darwin":
        yield Path(sys.exec_prefix) / "bin" / "python3"
    else:
        yield Path(sys.executable)
    names = [f"python3.{minor}" for minor in range(NEWEST, NEEDED[1] - 1, -1)]
    for name in (*names, "python3", "python"):
        if found := shutil.which(name):
            yield Path(found)


def find_python() -> Path | None:
    """A Python that is new enough for thonecls, and can make environments."""
    question = f"import sys, ensurepip, venv; sys.exit(sys.version_info[:2] < {NEEDED})"
    for path in candidates():
        if not path.exists() or not path.stem.lower().startswith("python"):
            continue
        try:
            done = subprocess.run(
                [str(path), "-I", "-c", question],
                env=beside_qgis(),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=30,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            continue
        if done.returncode == 0:
            return path
    return None


def install_words(
    python: Path,
    package: str = PACKAGE,
    *,
    wheels: str | None = None,
    cpu: bool = False,
    upgrade: bool = False,
) -> list[str]:
    """The words that install a package; wheels: a folder to take all files from, without internet.

    package: a name, or the path of a wheel or of a checkout. cpu: a torch without support of GPUs,
    which elsewhere than on Linux is the usual one.
    """
    words = [str(python), "-I", "-X", "utf8", "-m", "pip", "install", "--no-input"]
    words += ["--disable-pip-version-check", "--progress-bar", "off"]
    if wheels:
        words += ["--no-index", "--find-links", wheels]
    elif cpu and sys.platform == "linux":
        words += ["--extra-index-url", TORCH]
    if upgrade:
        words.append("--upgrade")
    return [*words, package]


def install(
    base: Path,
    environment: Path,
    *,
    package: str = PACKAGE,
    wheels: str | None = None,
    cpu: bool = False,
    upgrade: bool = False,
    on_line: Callable[[str], None],
    cancelled: Callable[[], bool],
) -> Path:
    """Make a virtual environment by a Python and install a package there; its own Python.

    An environment that is there is used again. Raises RuntimeError with what went wrong.
    """

    def step(words: list[str], advice: str) -> None:
        done = run(words, environment=beside_qgis(), on_line=on_line, cancelled=cancelled)
        if done.cancelled:
            raise RuntimeError("cancelled; run it again to go on")
        if done.code != 0:
            raise RuntimeError(f"{_last_words(done)}: {advice}")

    python = python_in(environment)
    if not python.exists():
        environment.parent.mkdir(parents=True, exist_ok=True)
        advice = f"can {base} make environments? On Debian and Ubuntu: apt install python3-venv"
        try:
            step([str(base), "-I", "-m", "venv", str(environment)], advice)
        except RuntimeError:
            shutil.rmtree(environment, ignore_errors=True)  # half an environment is none
            raise
    where = (
        f"are its wheel and those of all it needs in {wheels}?"
        if wheels
        else ("without internet, give a folder of wheels (`pip download` fills one)")
    )
    step(install_words(python, package, wheels=wheels, cpu=cpu, upgrade=upgrade), where)
    return python


def _last_words(done: Done) -> str:
    said = [line for line in (*done.out.splitlines(), *done.said) if line.strip()]
    told = [line for line in said if line.upper().startswith("ERROR")] or said[-2:]
    return " ".join(told) or f"it ended with code {done.code}"
