"""What the disk refuses, in true words."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from thonecls.errors import FileError
from thonecls.files import write_refused
from thonecls.maps import disk_errors


@pytest.mark.parametrize(
    ("number", "full"),
    [
        (errno.ENOSPC, True),
        (errno.EDQUOT, True),
        (errno.EFBIG, True),
        (errno.EACCES, False),
        (errno.ENOENT, False),
        (errno.EISDIR, False),
        (errno.EIO, False),
    ],
)
def test_a_disk_is_called_full_only_where_it_is(number: int, full: bool) -> None:
    error = OSError(number, "so it says")
    words = str(write_refused(Path("out"), error))
    assert words.startswith("cannot write to out")
    assert "so it says" in words
    assert ("free disk space" in words) == full


def test_a_file_that_is_missing_is_not_for_want_of_space(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="No such file") as caught, disk_errors(tmp_path):
        (tmp_path / ".map.npy.part").replace(tmp_path / "map.npy")
    assert "disk space" not in str(caught.value)
