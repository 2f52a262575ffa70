"""Memory that is kept between steps."""

from __future__ import annotations

import subprocess
import sys

import pytest

from thonecls import memory

SCRIPT = """
import resource, numpy
from contextlib import nullcontext
from thonecls.memory import keeping_freed
def use():
    for _ in range(5):
        numpy.ones(20_000_000, dtype=numpy.float32)
def resident():
    return int(open("/proc/self/statm").read().split()[1])
start = resident()
with keeping_freed() if {keep} else nullcontext(True) as known:
    assert known
    use()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    use()
    print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
assert resident() - start < 5000  # pages: all was given back in the end
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="of glibc")
def test_large_blocks_are_not_mapped_anew() -> None:
    """By the pages that the system had to bring in: none where blocks are kept."""
    faults = {}
    for keep in (False, True):
        command = [sys.executable, "-c", SCRIPT.format(keep=keep)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        faults[keep] = int(done.stdout)
    assert faults[True] < 0.1 * faults[False]


def test_elsewhere_nothing_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    with memory.keeping_freed() as known:
        assert not known
