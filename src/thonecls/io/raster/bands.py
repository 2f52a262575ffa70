"""The bands of a file: what is known of each, their wavelengths, and which of them to use."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from thonecls.errors import ConfigError

NUMBER = r"(\d+(?:\.\d+)?)"  # as people and files write wavelengths


@dataclass(frozen=True)
class Band:
    """What a file says of one band: number from 1, wavelength and fwhm in nm.

    A value is raw · scale + offset, and missing where raw is `nodata`; bad: the file says so, and
    `why`.
    """

    number: int
    name: str
    wavelength: float | None = None
    fwhm: float | None = None
    scale: float = 1.0
    offset: float = 0.0
    nodata: float | None = None
    bad: bool = False
    alpha: bool = False
    why: str = "marked bad in the file (bbl)"


@dataclass(frozen=True)
class BandChoice:
    """Which bands of a file to use; without any setting all but those the file marks bad.

    keep, drop: numbers from 1; wavelengths: ranges in nm; bad: use also what the file marks bad.
    """

    keep: tuple[int, ...] | None = None
    wavelengths: tuple[tuple[float, float], ...] | None = None
    drop: tuple[int, ...] = ()
    bad: bool = False

    def split(self, bands: Sequence[Band]) -> tuple[tuple[Band, ...], tuple[str, ...]]:
        """The bands to use, in the file's order, and words on those left out."""
        for number in (*(self.keep or ()), *self.drop):
            if not 1 <= number <= len(bands):
                raise ConfigError(f"there is no band {number}: the file has bands 1-{len(bands)}")
        if self.wavelengths and any(b.wavelength is None and not b.alpha for b in bands):
            raise ConfigError(
                "bands cannot be chosen by wavelength, for the file names none: choose them by "
                f"number, 1-{len(bands)}, or add the wavelengths to the file"
            )
        reasons = {band.number: self._reason(band) for band in bands}
        kept = tuple(band for band in bands if not reasons[band.number])
        return kept, dropped_words(bands, {n: reason for n, reason in reasons.items() if reason})

    def _reason(self, band: Band) -> str | None:
        """Why a band is left out; None keeps it."""
        if band.alpha:
            return "an alpha channel, read as nodata mask"
        if band.number in self.drop or (self.keep is not None and band.number not in self.keep):
            return "not chosen"
        if self.wavelengths is not None and not any(
            low <= (band.wavelength or 0) <= high for low, high in self.wavelengths
        ):
            return "outside the wavelengths chosen"
        return band.why if band.bad and not self.bad else None


def parse_bands(text: str) -> tuple[int, ...]:
    """Band numbers from words such as "1-50,60": from 1, both ends included, as GDAL counts.

    >>> parse_bands("1-3, 7")
    (1, 2, 3, 7)
    """
    numbers: list[int] = []
    for part in text.split(","):
        found = re.fullmatch(r"\s*(\d{1,5})\s*(?:-\s*(\d{1,5})\s*)?", part)
        if not found or not 1 <= int(found[1]) <= int(found[2] or found[1]):
            raise ConfigError(f"bands are numbers from 1, such as 1-50,60; got {text!r}")
        numbers += range(int(found[1]), int(found[2] or found[1]) + 1)
    return tuple(dict.fromkeys(numbers))


def parse_wavelengths(text: str) -> tuple[tuple[float, float], ...]:
    """Ranges in nm from words such as "450-900,1000-1300".

    >>> parse_wavelengths("450-900, 1000-1300.5")
    ((450.0, 900.0), (1000.0, 1300.5))
    """
    ranges = []
    for part in text.split(","):
        found = re.fullmatch(rf"\s*{NUMBER}\s*-\s*{NUMBER}\s*", part)
        if not found or float(found[1]) > float(found[2]):
            raise ConfigError(
                f"wavelengths are ranges in nm, such as 450-900,1000-1300; got {text!r}"
            )
        if float(found[2]) < 100:
            raise ConfigError(f"wavelengths are in nm; got {text!r}: write 450-900, not 0.45-0.9")
        ranges.append((float(found[1]), float(found[2])))
    return tuple(ranges)


def dropped_words(bands: Sequence[Band], reasons: Mapping[int, str]) -> tuple[str, ...]:
    """Words on bands left out, neighbours with the same reason together."""
    runs: list[tuple[list[Band], str]] = []
    for band in bands:
        if (reason := reasons.get(band.number)) is None:
            continue
        if runs and runs[-1][1] == reason and runs[-1][0][-1].number == band.number - 1:
            runs[-1][0].append(band)
        else:
            runs.append(([band], reason))
    return tuple(f"{_span(run)}: {reason}" for run, reason in runs)


def _span(run: Sequence[Band]) -> str:
    first, last = run[0], run[-1]
    numbers = f"band {first.number}" if first is last else f"bands {first.number}-{last.number}"
    if first.wavelength is None or last.wavelength is None:
        return numbers
    waves = dict.fromkeys((f"{first.wavelength:.1f}", f"{last.wavelength:.1f}"))
    return f"{numbers} ({'-'.join(waves)} nm)"


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
