"""Wavelengths as files write them: in lists, in names, in one unit or another."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from thonecls.raster.bands import NUMBER, Band

UNITS = {
    **dict.fromkeys(("nanometers", "nanometer", "nm"), 1.0),
    **dict.fromkeys(("micrometers", "micrometer", "microns", "micron", "um", "µm", "μm"), 1e3),
}
TRUE_COLOUR = (650.0, 560.0, 480.0)  # nm, as red, green and blue
FALSE_COLOUR = (850.0, 660.0, 560.0)  # in which vegetation shows red
NO_UNIT = ("", "unknown", "none")
VECTORS = {  # the names under which HDF5 files keep what they know of their bands
    "wavelength": ("wavelength", "wavelengths"),
    "fwhm": ("fwhm",),
    "bbl": ("bbl", "good_wavelengths"),
}
WITH_UNIT = re.compile(NUMBER + r"\s*(nanometers?|nm|micrometers?|microns?|[uµμ]m)(?![a-z])", re.I)
IN_BRACKETS = re.compile(r"\(" + NUMBER + r"\)\s*$")


def named_wavelength(band: Band, tags: Mapping[str, str]) -> Band:
    """A band with the nm in its name, as in "band 12 (651.3 Nanometers)", or in GDAL's IMAGERY."""
    if found := WITH_UNIT.search(band.name):
        return replace(band, wavelength=float(found[1]) * UNITS[found[2].lower()])
    if (found := IN_BRACKETS.search(band.name)) and float(found[1]) >= 300:
        return replace(band, wavelength=float(found[1]))
    um, width = to_number(tags.get("central_wavelength_um")), to_number(tags.get("fwhm_um"))
    return replace(band, wavelength=um and um * 1e3, fwhm=width and width * 1e3)


def in_nanometres(bands: Sequence[Band], unit: str) -> tuple[Band, ...]:
    """Wavelengths and widths in nm, None in units of another kind; without a unit, size tells."""
    known = [band.wavelength for band in bands if band.wavelength]
    factor = UNITS.get(unit.strip().lower(), 0.0)
    if known and unit.strip().lower() in NO_UNIT:
        factor = 1e3 if max(known) < 100 else 1.0
    return tuple(
        replace(
            band,
            wavelength=round((band.wavelength or 0) * factor, 6) or None,
            fwhm=round((band.fwhm or 0) * factor, 6) or None,
        )
        for band in bands
    )


def nearest_bands(
    wavelengths: Sequence[float] | None, wanted: Sequence[float], within: float = 50.0
) -> tuple[int, ...] | None:
    """Positions of the bands nearest to these wavelengths; None where one is farther than `within`.

    >>> nearest_bands([480.0, 560.0, 660.0, 850.0], [850.0, 665.0]), nearest_bands([480.0], [850.0])
    ((3, 2), None)
    """
    if not wavelengths:
        return None
    found = [min(range(len(wavelengths)), key=lambda i: abs(wavelengths[i] - w)) for w in wanted]
    near = all(abs(wavelengths[i] - w) <= within for i, w in zip(found, wanted, strict=True))
    return tuple(found) if near else None


def to_number(text: str | None) -> float | None:
    """The number that a text is; None where it is none."""
    try:
        return float(text) if text is not None else None
    except ValueError:
        return None
