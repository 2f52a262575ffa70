"""Run the tests of learning with the arithmetic of several processors, one after the other.

    python tests/isa.py                                # all that this processor can do
    python tests/isa.py --seeds 2 default/SSE41 native

Each setting by itself tells the same as all at once; the last lines tell how each ended, and after
how many seconds.

A setting is the vector instructions of PyTorch's own kernels and those of oneDNN's; NumPy's BLAS
goes with the first. Each takes sums in another order, so that all of them differ in rounding.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time

import torch

# By what PyTorch calls them: the value of ATEN_CPU_CAPABILITY and the core that OpenBLAS takes.
KERNELS = {
    "DEFAULT": ("default", "Nehalem"),
    "AVX2": ("avx2", "Haswell"),
    "AVX512": ("avx512", "SkylakeX"),
}
ONEDNN = ("SSE41", "AVX2", "any")
VARIABLES = ("ATEN_CPU_CAPABILITY", "OPENBLAS_CORETYPE", "ONEDNN_MAX_CPU_ISA")


def settings() -> dict[str, dict[str, str]]:
    """By name, the variables of every setting that this processor can run."""
    known = list(KERNELS)
    best = torch.backends.cpu.get_cpu_capability()
    able = known[: known.index(best) + 1] if best in known else known[:1]
    found = {}
    for aten, blas in (KERNELS[name] for name in able):
        for onednn in ONEDNN:
            values = (aten, blas) if onednn == "any" else (aten, blas, onednn)
            found[f"{aten}/{onednn}"] = dict(zip(VARIABLES, values, strict=False))
    return found


def main() -> int:
    """The number of settings under which a test failed."""
    able = settings()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = ", ".join(able)
    parser.add_argument("settings", nargs="*", help=f"native, or of {names}; else all of these")
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "worksteal"]
    command += ["-m", "learning", "--seeds", str(options.seeds)]
    native = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    ended: dict[str, str] = {}
    for name in options.settings or able:
        if name not in able and name != "native":
            print(f"{name}: not on this processor, which has {names}", flush=True)
            continue
        print(f"{name}, {options.seeds} seeds", flush=True)
        variables = native | able.get(name, {})
        began = time.monotonic()
        code = subprocess.run(command, env=variables, check=False).returncode
        ended[name] = f"{'failed' if code else 'passed'} in {time.monotonic() - began:.0f} s"
    for name, words in ended.items():
        print(f"{name}, {options.seeds} seeds: {words}")
    return sum(words.startswith("failed") for words in ended.values())


if __name__ == "__main__":
    sys.exit(main())
