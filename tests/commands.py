"""The command line in this process, as a user runs it, and programs that are not ours."""

from __future__ import annotations

import os
import shutil

import pytest

from thonecls.cli import main


def run(*arguments: object) -> int:
    """The exit code of `thonecls` with these arguments."""
    with pytest.raises(SystemExit) as exit_info:
        main([str(a) for a in arguments])
    code = exit_info.value.code
    assert isinstance(code, int)
    return code


def program(name: str, *others: str) -> str:
    """The path of a program, by its name or another; without it the test is skipped.

    Where the variable THONECLS_REQUIRE names the program, the test fails instead.
    """
    for known in (name, *others):
        if path := shutil.which(known):
            return path
    if name in os.environ.get("THONECLS_REQUIRE", "").split():
        pytest.fail(f"{name} is required, but not installed")
    pytest.skip(f"{name} is not installed")
