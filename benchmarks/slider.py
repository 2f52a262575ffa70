"""How many pictures a second the studio's page draws while the cut is moved, and what they cost.

python benchmarks/slider.py                    # 10 Mpx, a window of 1280 x 800 pixels
python benchmarks/slider.py --side 1000

Where a graphics card is missing Chromium draws by software (SwiftShader); with one, `draws` is the
display's rate. `as it is`: where that is too slow, maps are drawn coarser while the cut moves;
`sharp`: they never are. The two take turns, so that other work on the machine slows
both. `main thread` is the time that the page's own code, layout and painting take for a picture,
without the drawing: what a graphics card does not make faster.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from browsing import Server, chromium, open_studio
from studio import write_scene

SECONDS = 3  # of a turn
TURNS = 3

# Each round moves the slider as a hand does, and waits until the map has drawn it.
DRAG = """async ([seconds, sharp]) => {
  const slider = document.querySelector("#cut");
  const { map, motion } = studio.sceneMap;
  const usual = motion.coarse;
  if (sharp) motion.coarse = 1;
  const pass = () => new Promise((done) => { map.once("postrender", done); });
  const began = performance.now();
  let [value, by, pictures, busy] = [20, 1, 0, 0];
  while (performance.now() - began < 1000 * seconds) {
    value += by;
    if (value >= 180 || value <= 20) by = -by;
    const drawn = pass();
    const start = performance.now();
    slider.value = value;
    slider.dispatchEvent(new Event("input", { bubbles: true }));
    await Promise.resolve();
    map.renderSync();
    document.body.getBoundingClientRect();
    busy += performance.now() - start;
    await drawn;
    await new Promise(requestAnimationFrame);
    await new Promise((done) => { setTimeout(done, 0); });
    pictures += 1;
  }
  const rate = (1000 * pictures) / (performance.now() - began);
  motion.coarse = usual;
  const gl = document.createElement("canvas").getContext("webgl2");
  const info = gl.getExtension("WEBGL_debug_renderer_info");
  return {
    rate,
    main: busy / pictures,
    by: gl.getParameter(info.UNMASKED_RENDERER_WEBGL),
  };
}"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--side", type=int, default=3200, help="rows and columns of the scene")
    side = parser.parse_args().side
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        scene = Path(folder) / "scene.tif"
        write_scene(scene, side)
        server = Server(scene, Path(folder) / "project")
        server.start()
        try:
            size = {"width": 1280, "height": 800}
            page = open_studio(browser, server.address, viewport=size)
            page.until("studio.store.state.overview.ready")
            page.click(side // 2, side // 2)
            page.until("Object.keys(studio.store.state.cuts).length > 0")
            page.page.wait_for_timeout(4000)  # until all tiles are there
            page.page.evaluate(DRAG, [1, True])  # shaders are compiled, buffers are there
            found: dict[str, list[dict[str, Any]]] = {"sharp": [], "as it is": []}
            for _ in range(TURNS):
                for name, turns in found.items():
                    page.page.wait_for_timeout(500)  # the hand rests
                    turns.append(page.page.evaluate(DRAG, [SECONDS, name == "sharp"]))
        finally:
            server.stop()
    print(f"{side * side / 1e6:.1f} Mpx, drawn by {found['sharp'][0]['by']}")
    for name, turns in found.items():
        rates = ", ".join(f"{turn['rate']:.1f}" for turn in turns)
        rate, main = (median(turn[key] for turn in turns) for key in ("rate", "main"))
        print(f"{name:<9} draws {rate:.1f} pictures a second ({rates}), main thread {main:.1f} ms")
    print(f"on {os.cpu_count()} cores with a load of {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
