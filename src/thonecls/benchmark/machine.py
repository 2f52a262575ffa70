"""What a result was measured on: the machine, the versions, the memory."""

from __future__ import annotations

import os
import platform
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from thonecls.version import __version__


def machine_facts() -> dict[str, Any]:
    """The hardware and how much of it is used."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "system": platform.system(),
    }


def versions() -> dict[str, str]:
    """The software that figures depend on."""
    packages = {name: version(name) for name in ("torch", "numpy", "scikit-learn")}
    return {"python": platform.python_version(), "thonecls": __version__, **packages}


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def forget_peak() -> None:
    """Start the count of `peak_memory` anew, where the system can."""
    if sys.platform == "linux":
        try:
            Path("/proc/self/clear_refs").write_text("5")
        except OSError:
            return  # not allowed here: the peak is then that of the whole process


def peak_memory() -> int | None:
    """Bytes that this process has held at most; None where the system does not tell."""
    if sys.platform == "linux":
        lines = Path("/proc/self/status").read_text("utf-8").splitlines()
        return next(int(x.split()[1]) * 1024 for x in lines if x.startswith("VmHWM"))
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak if sys.platform == "darwin" else peak * 1024)
