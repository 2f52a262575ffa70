"""Packages that only single commands need: imported when used, or a hint how to get them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from thonecls.errors import ConfigError

EXTRAS = {  # by package; pyproject.toml has their versions
    "distributed": "cluster",
    "elapid": "methods",
    "fastapi": "studio",
    "filelock": "benchmark",
    "jsonschema": "benchmark",
    "numba": "trees",
    "pooch": "data",
    "pulearn": "methods",
    "tensorly": "demo",
    "uvicorn": "studio",
}


def how_to_install(package: str) -> str:
    """The command that installs a package of the extras.

    >>> how_to_install("tensorly")
    "pip install 'thonecls[demo]'"
    """
    return f"pip install 'thonecls[{EXTRAS[package]}]'"


def need(package: str, purpose: str) -> Any:
    """A package of the extras; where it is missing, the error says what for and how to get it."""
    try:
        return import_module(package)
    except ImportError as error:
        raise missing(package, purpose) from error


def missing(package: str, purpose: str) -> ConfigError:
    """The error of a package that is not there."""
    return ConfigError(f"{purpose} needs {package}: {how_to_install(package)}")
