"""ONE catalogue of methods, for scenes and for images, and what they do; estimators."""

from __future__ import annotations

from typing import TYPE_CHECKING

from thonecls.lazy import lazy_exports
from thonecls.methods.catalogue import IMAGE_METHODS, METHODS, unknown_method
from thonecls.methods.method import Method

if TYPE_CHECKING:
    from thonecls.methods.scenes import label_spectra as label_spectra
    from thonecls.methods.scenes import resolve_prior as resolve_prior

_HOMES = {
    "label_spectra": "thonecls.methods.scenes",
    "resolve_prior": "thonecls.methods.scenes",
}
__all__ = ["IMAGE_METHODS", "METHODS", "Method", "unknown_method", *_HOMES]
__getattr__, __dir__ = lazy_exports(__name__, _HOMES)
