"""The plugin installs a package from a folder of wheels, without internet."""

from __future__ import annotations

import base64
import hashlib
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from thonecls_qgis.environment import find_python, install, install_words


def write_wheel(folder: Path) -> None:
    """A wheel of a package `tiny` that says hello."""
    about = "tiny-1.0.dist-info"
    files = {
        "tiny.py": "print('hello')\n",
        f"{about}/METADATA": "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = ""
    for name, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=")
        record += f"{name},sha256={digest.decode()},{len(text)}\n"
    with zipfile.ZipFile(folder / "tiny-1.0-py3-none-any.whl", "w") as wheel:
        for name, text in {**files, f"{about}/RECORD": f"{record}{about}/RECORD,,\n"}.items():
            wheel.writestr(name, text)


def test_a_package_is_installed_from_a_folder_of_wheels(tmp_path: Path) -> None:
    wheels = tmp_path / "Räder 1"
    wheels.mkdir()
    write_wheel(wheels)
    target = tmp_path / "Profil ä" / "thonecls" / "environment"
    said: list[str] = []

    def install_it(package: str) -> Path:
        return install(
            Path(sys.executable),
            target,
            package=package,
            wheels=str(wheels),
            on_line=said.append,
            cancelled=lambda: False,
        )

    python = install_it("tiny")
    done = subprocess.run([python, "-I", "-m", "tiny"], capture_output=True, text=True, check=True)
    assert done.stdout == "hello\n"
    with pytest.raises(RuntimeError, match=r"(?s)absent.*are its wheel and those of all it needs"):
        install_it("absent")
    assert python.exists()  # what was there stays


def test_a_python_that_makes_no_environment_is_told_and_leaves_nothing(tmp_path: Path) -> None:
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho 'no module named venv' >&2\nexit 1\n")
    broken.chmod(0o755)
    with pytest.raises(RuntimeError, match=r"no module named venv: can .* make environments"):
        install(broken, tmp_path / "env", on_line=lambda line: None, cancelled=lambda: False)
    assert not (tmp_path / "env").exists()


def test_an_offline_install_asks_no_index() -> None:
    words = install_words(Path("/a/python"), wheels="/räder 1", cpu=True, upgrade=True)
    assert words[-5:] == ["--no-index", "--find-links", "/räder 1", "--upgrade", "thonecls"]
    assert "--extra-index-url" not in words
    assert "--no-index" not in install_words(Path("/a/python"))


def test_a_python_that_is_new_enough_is_found() -> None:
    assert find_python() is not None  # the one that runs the tests is
