"""A new user at the studio: clicks and seconds from its start to an exported map of one class.

python benchmarks/studio_first.py [--pause 2]

Indian Pines, as `make studio` opens it, in Chromium, by the mouse alone. Ten clicks on corn in
several fields, "Export", "Export": nothing else is touched. pause: seconds before each click, for a
person who looks where the class is.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from browsing import Server, chromium, open_studio
from thonecls.datasets import indian_pines

CLASS, LABELS = 2, 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pause", type=float, default=2.0)
    pause = parser.parse_args().pause
    truth = indian_pines().truth
    rng = np.random.default_rng(0)
    chosen = rng.choice(np.flatnonzero(truth == CLASS), LABELS, replace=False)
    clicks = 0
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        began = time.monotonic()

        def tell(what: str) -> None:
            print(f"{time.monotonic() - began:6.1f} s  {clicks:2d} clicks  {what}", flush=True)

        server = Server(None, Path(folder))
        server.start()
        try:
            studio = open_studio(browser, server.address, viewport={"width": 1280, "height": 800})
            page = studio.page
            tell("the page is there")
            for flat in chosen.tolist():
                page.wait_for_timeout(1000 * pause)
                studio.click(*divmod(flat, truth.shape[1]))
                clicks += 1
                if clicks == 1:
                    studio.until("studio.store.state.layer === 'quick'")
                    tell("a first map")
            studio.until("studio.store.state.layer === 'run'")
            tell("a learnt map, by itself")
            page.wait_for_timeout(1000 * pause)
            page.get_by_role("tab", name="Export").click()
            page.wait_for_timeout(1000 * pause)
            page.locator("#panel-export").get_by_role("button", name="Export").click()
            clicks += 2
            studio.until("studio.store.state.export.ready")
            tell("the map is exported")
            mapped = np.load(Path(studio.state("export.folder")) / "map.npy") == 1
        finally:
            server.stop()
    known = truth > 0
    right = (mapped & (truth == CLASS)).sum()
    f1 = 200 * right / (mapped[known].sum() + (truth == CLASS).sum())
    print(f"F1 {f1:.1f} % over the pixels whose class is known, from {LABELS} labels")
    print(f"on {os.cpu_count()} cores with a load of {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
