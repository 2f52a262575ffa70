"""Datasets from their public addresses, where they have one."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from thonecls.datasets.catalogue import get_spec
from thonecls.datasets.loading import data_root
from thonecls.errors import FileError
from thonecls.extras import need


def download(name: str, root: Path | None = None) -> None:
    """Fetch the files of a dataset into its own folder under `root`; whole ones stay as they are.

    A file gets its name when it is whole and its checksum, if one is known, is right.
    """
    spec = get_spec(name)
    folder = data_root(root) / name
    if not spec.urls:
        raise FileError(f"{name} has no address to download from into {folder}: {spec.where}")
    pooch = need("pooch", "a download")
    pooch.get_logger().setLevel("WARNING")  # it would tell of every file
    for url, checksum in spec.urls.items():
        file = PurePosixPath(urlsplit(url).path).name
        try:
            pooch.retrieve(url, checksum, fname=file, path=folder)
        except (OSError, ValueError) as e:  # the connection or the disk; the checksum
            raise FileError(
                f"cannot download {url} ({e}): try again later, or get {file} with a browser and "
                f"put it in {folder}"
            ) from e
