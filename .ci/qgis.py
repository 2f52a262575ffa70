"""Pack the QGIS plugin into a zip that QGIS installs.

    python .ci/qgis.py dist [REPOSITORY EMAIL]

REPOSITORY and EMAIL: the public address of the code and of its maintainers, which QGIS's plugin
repository asks for; without them the zip can be installed from QGIS, but not be published.
"""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

PLUGIN = Path(__file__).parents[1] / "qgis" / "thonecls_qgis"
ENDINGS = (".py", ".svg", ".txt")
SINCE = (1980, 1, 1, 0, 0, 0)  # the same files make the same zip


def main(folder: Path, repository: str = "", email: str = "") -> Path:
    """Write the zip; its path."""
    about = (PLUGIN / "metadata.txt").read_text("utf-8")
    version = next(line for line in about.splitlines() if line.startswith("version=")).split("=")[1]
    if repository:
        address = repository.rstrip("/")
        about += f"repository={address}\ntracker={address}/issues\nhomepage={address}\n"
    about = about.replace("email=\n", f"email={email}\n")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{PLUGIN.name}-{version}.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(PLUGIN.iterdir()):
            if file.suffix in ENDINGS or file.name == "LICENSE":
                text = about if file.name == "metadata.txt" else file.read_text("utf-8")
                entry = zipfile.ZipInfo(f"{PLUGIN.name}/{file.name}", SINCE)
                entry.compress_type = zipfile.ZIP_DEFLATED
                entry.external_attr = 0o644 << 16
                archive.writestr(entry, text)
    return path


if __name__ == "__main__":
    print(main(Path(sys.argv[1]), *sys.argv[2:4]))
