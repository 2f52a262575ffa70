"""How the process keeps memory."""

from __future__ import annotations

import ctypes
import sys

M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4  # of mallopt, in glibc's malloc.h
LARGEST = 2**31 - 1


def keep_freed() -> bool:
    """Keep large blocks for the next use instead of giving them back; False where that is unknown.

    By default glibc maps every block above 32 MB anew, and the system clears its pages: more than
    half of the time of a training step on images. For the whole process, from now on; it will
    hold its largest memory until it ends.
    """
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    return bool(mallopt(M_MMAP_MAX, 0) and mallopt(M_TRIM_THRESHOLD, LARGEST))
