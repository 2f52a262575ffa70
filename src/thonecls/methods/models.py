"""Models of every kind, from their files."""

from __future__ import annotations

import os
from pathlib import Path

from thonecls.errors import ModelError
from thonecls.method import store
from thonecls.method.model import KIND, Model
from thonecls.methods.spectral_model import SPECTRA, SpectralModel
from thonecls.ratio.model import RATIO, RatioModel

AnyModel = Model | RatioModel | SpectralModel


def load_model(path: str | os.PathLike[str]) -> AnyModel:
    """A model of any kind, from its file."""
    kind = store.kind_of(Path(path), KIND)
    if kind == RATIO:
        return RatioModel.load(path)
    if kind == SPECTRA:
        return SpectralModel.load(path)
    if kind in (KIND, None):
        return Model.load(path)
    raise ModelError(f"{path} is a {kind}, where a model is needed: name a model's file")
