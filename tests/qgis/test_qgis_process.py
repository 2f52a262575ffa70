"""Programs that the plugin runs: a clean environment, progress, an end with all they started."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from thonecls_qgis import environment
from thonecls_qgis.environment import find, launch, python_in
from thonecls_qgis.process import Bar, Done, clean_environment, failure_of, result_of, run

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="groups of processes are POSIX")
# A program with a child, both of which do not end when asked; it tells their numbers.
STUBBORN = """
import json, os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import signal, time; "
                          "signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"])
print(json.dumps({"stage": "train", "done": 1, "total": 4}), file=sys.stderr, flush=True)
print(os.getpid(), child.pid, file=sys.stderr, flush=True)
time.sleep(600)
"""


def never() -> bool:
    return False


def test_what_belongs_to_qgis_is_not_passed_on() -> None:
    given = {
        "PATH": "/usr/bin:/opt/QGIS/bin:/home/ä b/bin",
        "HOME": "/home/ä b",
        "PYTHONHOME": "/opt/QGIS",
        "PYTHONPATH": "/opt/QGIS/python",
        "GDAL_DATA": "/opt/QGIS/gdal",
        "GDAL_CACHEMAX": "512",
        "PROJ_LIB": "/opt/QGIS/proj",
        "QT_PLUGIN_PATH": "/opt/QGIS/qt",
        "LD_LIBRARY_PATH": "/opt/QGIS/lib",
        "HTTPS_PROXY": "http://proxy",
    }
    kept = clean_environment(given, "/opt/qgis", separator=":")
    assert kept.pop("PYTHONUTF8") == kept.pop("PYTHONNOUSERSITE") == "1"
    assert kept.pop("PYTHONUNBUFFERED") == "1"
    assert kept == {
        "PATH": "/usr/bin:/home/ä b/bin",
        "HOME": "/home/ä b",
        "GDAL_CACHEMAX": "512",
        "HTTPS_PROXY": "http://proxy",
    }


def test_folders_of_qgis_leave_the_path_on_windows_too() -> None:
    given = {"Path": r"C:\OSGeo4W\bin;C:\OSGeo4W\apps\Qt5\bin;C:\Windows;C:\OSGeo4Whatever"}
    kept = clean_environment(given, r"C:\OSGEO4W", separator=";")
    assert kept["Path"] == r"C:\Windows;C:\OSGeo4Whatever"


def test_a_program_is_heard_and_its_result_returned(tmp_path: Path) -> None:
    folder = tmp_path / "Prüfung 1"
    folder.mkdir()
    code = (
        "import json, os, sys; print('Grüße', sys.argv[1], file=sys.stderr);"
        "print(json.dumps({'out': sys.argv[1], 'home': os.environ.get('PYTHONHOME')}))"
    )
    heard: list[str] = []
    done = run(
        [sys.executable, "-X", "utf8", "-c", code, str(folder)],
        environment=clean_environment(dict(os.environ, PYTHONHOME="/nowhere")),
        on_line=heard.append,
        cancelled=never,
    )
    assert (done.code, done.cancelled) == (0, False)
    assert heard == [f"Grüße {folder}"]
    assert result_of(done) == {"out": str(folder), "home": None}
    assert failure_of(done) is None


@POSIX
def test_cancel_ends_a_program_with_all_that_it_started() -> None:
    heard: list[str] = []
    bar = Bar()
    begun = time.monotonic()

    def hear(line: str) -> None:
        if bar.hear(line) is None:
            heard.append(line)

    done = run(
        [sys.executable, "-c", STUBBORN],
        environment=dict(os.environ),
        on_line=hear,
        cancelled=lambda: bool(heard),
        patience=0.3,
    )
    assert done.cancelled
    assert done.code == -signal.SIGKILL
    assert bar.percent > 0
    assert time.monotonic() - begun < 60  # not the ten minutes of the program
    deadline = time.monotonic() + 10
    for number in map(int, heard[0].split()):
        while is_alive(number):
            assert time.monotonic() < deadline, "a process outlived its group"
            time.sleep(0.05)


@POSIX
def test_a_failure_of_the_listener_leaves_no_program_behind() -> None:
    numbers: list[int] = []

    def hear(line: str) -> None:
        if not line.startswith("{"):
            numbers.extend(map(int, line.split()))
            raise RuntimeError("the window was closed")

    with pytest.raises(RuntimeError, match="window"):
        run([sys.executable, "-c", STUBBORN], environment=dict(os.environ), on_line=hear,
            cancelled=never, patience=0.1)  # fmt: skip
    deadline = time.monotonic() + 10
    while any(map(is_alive, numbers)):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def is_alive(number: int) -> bool:
    """A process that is neither gone nor waiting for its parent to take note."""
    try:
        os.kill(number, 0)
        status = Path(f"/proc/{number}/stat")
        return not (status.exists() and status.read_text().rpartition(")")[2].split()[0] == "Z")
    except (ProcessLookupError, FileNotFoundError):
        return False


def test_the_bar_never_goes_back() -> None:
    bar = Bar()
    seen = []
    for stage, done, total in (
        ("train", 0, 10),
        ("train", 5, 10),
        ("train", 10, 10),
        ("judge", 0, 3),
        ("judge", 1.5, 3),
        ("train", 3, 10),  # another network
        ("map", 0, 100),
        ("map", 100, 100),
        ("map", 0, 0),
    ):
        assert bar.hear(json.dumps({"stage": stage, "done": done, "total": total}))
        seen.append(bar.percent)
    assert seen == sorted(seen)
    assert (seen[1], seen[2], seen[-1]) == (27.5, 55.0, 97.0)
    for other in ("", "null", "3", "a warning", '{"stage": "map"}', '{"stage": 1, "done": "x"}'):
        assert bar.hear(other) is None


def test_failures_are_told_in_words() -> None:
    assert failure_of(Done(2, '{"error": "no label"}\n', (), False)) == "no label"
    assert (
        failure_of(Done(2, '{"fit": false}\n', (), False)) is None
    )  # a check that found a problem
    progress = '{"stage": "map", "done": 1, "total": 2}'
    said = failure_of(Done(1, "", ("Traceback", progress, "MemoryError"), False))
    assert said == "thonecls ended with code 1: Traceback MemoryError"
    assert "out of memory" in str(failure_of(Done(-9, "", (), False)))


def test_thonecls_is_found_where_somebody_named_it_first(tmp_path: Path) -> None:
    profile = tmp_path / "Profil ä"
    nowhere = {"PATH": str(tmp_path)}
    assert find("", profile, nowhere) is None
    own = python_in(profile / environment.FOLDER)
    own.parent.mkdir(parents=True)
    own.touch()
    assert find("", profile, nowhere) == own
    assert find("", profile, {environment.VARIABLE: "/b/python"}) == Path("/b/python")
    assert find(" /a/python ", profile, {environment.VARIABLE: "/b/python"}) == Path("/a/python")
    assert find(str(profile), profile, nowhere) == python_in(profile)  # an environment's folder


def test_a_python_or_the_program_itself_is_started() -> None:
    assert launch(Path("/a/bin/thonecls")) == ["/a/bin/thonecls"]
    assert launch(Path("/a/bin/python"))[0] == "/a/bin/python"
    assert launch(Path("/a/bin/python"))[-2:] == ["-m", "thonecls.cli"]
