"""Every method that the paper compares with, and what a mapper would pick instead."""

from __future__ import annotations

from thonecls.methods import deep
from thonecls.methods.catalogue import METHODS, Method, label_spectra, resolve_prior

__all__ = ["METHODS", "Method", "deep", "label_spectra", "resolve_prior"]
