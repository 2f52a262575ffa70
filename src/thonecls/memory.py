"""How the process keeps memory."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager

# Of mallopt, in glibc's malloc.h, and what they are by default.
M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4
TRIMMED, MAPPED = 128 * 1024, 65536
LARGEST = 2**31 - 1


@contextmanager
def keeping_freed() -> Iterator[bool]:
    """Keep large blocks for their next use instead of giving them back; False where unknown.

    By default glibc maps every block above 32 MB anew, and the system clears its pages: more than
    half of the time of a training step on images. For the whole process, which meanwhile holds
    the largest memory that it has needed.
    """
    library = ctypes.CDLL(None) if sys.platform.startswith("linux") else None
    if not hasattr(library, "mallopt"):
        yield False
        return
    assert library is not None
    try:
        yield bool(library.mallopt(M_MMAP_MAX, 0) and library.mallopt(M_TRIM_THRESHOLD, LARGEST))
    finally:
        library.mallopt(M_MMAP_MAX, MAPPED)
        library.mallopt(M_TRIM_THRESHOLD, TRIMMED)
        library.malloc_trim(0)
