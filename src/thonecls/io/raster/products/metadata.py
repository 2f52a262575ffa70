"""Metadata in XML, by names without their namespaces."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

from thonecls.errors import FileError

MOST = 2**26  # bytes


def read_xml(path: Path) -> ElementTree.Element:
    """The root of a file of metadata."""
    if (size := path.stat().st_size) > MOST:
        raise FileError(f"{path} has {size:,} bytes, more than any metadata: is it the right file?")
    try:
        return ElementTree.fromstring(path.read_bytes())
    except (OSError, ElementTree.ParseError, ValueError, LookupError) as error:
        raise FileError(
            f"cannot read {path} ({error}): it must be the XML that the product came with"
        ) from error


def local(element: ElementTree.Element) -> str:
    """The name of an element without its namespace."""
    return str(element.tag).rsplit("}", 1)[-1]


def find_all(root: ElementTree.Element, name: str) -> Iterator[ElementTree.Element]:
    """All elements of that name, at any depth."""
    return (element for element in root.iter() if local(element) == name)


def text_of(root: ElementTree.Element, name: str) -> str | None:
    """What stands in the first element of that name; None where there is none, or nothing."""
    element = next(find_all(root, name), None)
    return None if element is None or not element.text else element.text.strip()
