"""The command line in this process, as a user runs it."""

from __future__ import annotations

import pytest

from thonecls.cli import main


def run(*arguments: object) -> int:
    """The exit code of `thonecls` with these arguments."""
    with pytest.raises(SystemExit) as exit_info:
        main([str(a) for a in arguments])
    code = exit_info.value.code
    assert isinstance(code, int)
    return code
