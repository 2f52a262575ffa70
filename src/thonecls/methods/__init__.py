"""Every method that the paper compares with, and what a mapper would pick instead."""

from __future__ import annotations

from typing import TYPE_CHECKING

from thonecls.lazy import lazy_exports
from thonecls.methods.catalogue import METHODS, Method, unknown_method

if TYPE_CHECKING:
    from thonecls.methods.procedures import label_spectra as label_spectra
    from thonecls.methods.procedures import resolve_prior as resolve_prior

_HOMES = {
    "label_spectra": "thonecls.methods.procedures",
    "resolve_prior": "thonecls.methods.procedures",
}
__all__ = ["METHODS", "Method", "unknown_method", *_HOMES]
__getattr__, __dir__ = lazy_exports(__name__, _HOMES)
