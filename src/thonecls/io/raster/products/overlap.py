"""Two detectors that see the same wavelengths: each is kept once."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from thonecls.io.raster.bands import Band


def without_overlap(bands: Sequence[Band], first: Collection[int]) -> tuple[Band, ...]:
    """The bands of two detectors; those of the first that the second sees too are bad.

    first: positions of the first detector's bands. At its upper end, that of visible light is the
    noisier of the two.
    """
    others = [band for i, band in enumerate(bands) if i not in first]
    seen = [band.wavelength for band in others if band.wavelength and not band.bad]
    lowest = min(seen, default=float("inf"))
    why = f"seen by the second detector too, from {lowest:.0f} nm on"
    return tuple(
        replace(band, bad=True, why=why)
        if i in first and not band.bad and (band.wavelength or 0) >= lowest
        else band
        for i, band in enumerate(bands)
    )
