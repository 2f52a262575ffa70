"""Two detectors that see the same wavelengths: each is kept once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from thonecls.io.raster.bands import Band


def without_overlap(bands: Sequence[Band], first: int) -> tuple[Band, ...]:
    """The bands of two detectors; those of the `first` ones that the second sees too are bad.

    At its upper end the detector of visible light is the noisier of the two.
    """
    seen = [band.wavelength for band in bands[first:] if band.wavelength and not band.bad]
    lowest = min(seen, default=float("inf"))
    why = f"seen by the second detector too, from {lowest:.0f} nm on"
    return tuple(
        replace(band, bad=True, why=why)
        if i < first and not band.bad and (band.wavelength or 0) >= lowest
        else band
        for i, band in enumerate(bands)
    )
