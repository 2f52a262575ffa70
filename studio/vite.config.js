// Builds the page into the Python package: plain files with steady names, nothing inlined, so that
// they obey `default-src 'self'` and a rebuild of the same source changes nothing.

import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { defineConfig } from "vite";

const HERE = import.meta.dirname;
const SOURCES = ["index.html", "package-lock.json", "vite.config.js", "public", "src"];

function filesIn(path) {
  const entries = readdirSync(path, { withFileTypes: true });
  return entries.flatMap((entry) => (entry.isDirectory() ? filesIn(join(path, entry.name)) : [join(path, entry.name)]));
}

/** A hash of all that the page is built from; tests/studio compares it with the sources. */
function sourceHash() {
  const files = SOURCES.flatMap((name) => (name.includes(".") ? [join(HERE, name)] : filesIn(join(HERE, name))));
  const hash = createHash("sha256");
  for (const file of files.map((path) => relative(HERE, path).replaceAll("\\", "/")).sort()) {
    hash.update(`${file}\0`).update(readFileSync(join(HERE, file))).update("\0");
  }
  return hash.digest("hex");
}

/** The licences of what is in the bundle, which they ask to be kept with it. */
function licences(names) {
  return [...names].sort().map((name) => {
    const folder = join(HERE, "node_modules", name);
    const { version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    const file = ["LICENSE", "LICENSE.md", "LICENSE.txt", "license"].map((f) => join(folder, f)).find(existsSync);
    const text = file ? readFileSync(file, "utf8").trim() : `Licence: ${license}`;
    return `${name} ${version} (${license})\n\n${text}\n`;
  });
}

function record() {
  return {
    name: "record",
    apply: "build",
    generateBundle(_, bundle) {
      const names = new Set(["@fontsource-variable/inter"]);
      for (const chunk of Object.values(bundle)) {
        for (const id of chunk.moduleIds ?? []) {
          const found = /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(id.replaceAll("\\", "/"));
          if (found) names.add(found[1]);
        }
      }
      const rule = `\n${"-".repeat(78)}\n\n`;
      this.emitFile({ type: "asset", fileName: "licences.txt", source: licences(names).join(rule) });
      this.emitFile({ type: "asset", fileName: "built-from.txt", source: `${sourceHash()}\n` });
    },
  };
}

export default defineConfig({
  root: HERE,
  base: "./",
  plugins: [record()],
  build: {
    outDir: join(HERE, "../src/thonecls/studio/page"),
    emptyOutDir: true,
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: false,
    chunkSizeWarningLimit: 900,
    rolldownOptions: {
      output: { entryFileNames: "studio.js", chunkFileNames: "[name].js", assetFileNames: "[name][extname]" },
    },
  },
});
