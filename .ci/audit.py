"""Known weaknesses and licences of what is installed: told in CI's output, which fails for neither.

    python .ci/audit.py PYTHON

Weaknesses by pip-audit, if PYTHON has it and it reaches its database; licences from the packages'
own metadata. Those that ask for more than a mention are listed by name.
"""

from __future__ import annotations

import importlib.metadata
import json
import re
import subprocess
import sys
from collections import Counter

PATIENCE = 120  # seconds
# Licences under which our own could not stand, if their code were a part of ours.
STRICT = re.compile(r"\b(A?GPL|GNU (Affero )?General Public)", re.I)
LESSER = re.compile(r"LGPL|Lesser|Library General", re.I)
SHORT = {
    "Apache": r"Apache",
    "BSD": r"BSD|0BSD",
    "MIT": r"\bMIT\b|Expat",
    "MPL": r"MPL|Mozilla",
    "PSF": r"PSF|Python Software",
    "LGPL": r"LGPL|Lesser",
    "GPL": r"GPL|General Public",
    "ISC": r"\bISC\b",
    "HPND": r"HPND|Historical",
    "Unlicense": r"Unlicense|public domain",
}


def weaknesses(python: str) -> str:
    """What pip-audit says of the versions in constraints.txt; python: the one that has it."""
    options = ["--progress-spinner", "off", "--disable-pip", "--no-deps", "--format", "json"]
    command = [python, "-m", "pip_audit", *options, "-r", "constraints.txt"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
        packages = json.loads(done.stdout)["dependencies"]
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"weaknesses: pip-audit could not be run ({str(error)[-200:]}): nothing is known"
    except (ValueError, KeyError):
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        return f"weaknesses: pip-audit could not ask its database ({last[:200]}): nothing is known"
    known = [package for package in packages if "skip_reason" not in package]
    if not known:
        return "weaknesses: pip-audit's database is out of reach from here: nothing is known"
    told = [f"weaknesses: pip-audit knows {len(known)} of {len(packages)} packages"]
    for package in known:
        for weakness in package["vulns"]:
            mended = ", ".join(weakness["fix_versions"]) or "no version yet"
            told.append(
                f"  {package['name']} {package['version']}: {weakness['id']}, mended in {mended}"
            )
    return "\n".join(told) + ("" if len(told) > 1 else "; none has a known weakness")


def licence(package: importlib.metadata.Distribution) -> str:
    """What a package says of its licence: the expression, the classifiers, or the first line."""
    about = package.metadata
    named = [c.split(" :: ")[-1] for c in about.get_all("Classifier") or [] if "License ::" in c]
    text = about.get("License-Expression") or "; ".join(named) or about.get("License") or "unknown"
    return str(text).strip().splitlines()[0][:100]


def kinds(text: str) -> str:
    """The families of licences that a text names.

    >>> kinds("Apache-2.0 OR BSD-3-Clause"), kinds("my own")
    ('Apache, BSD', 'other')
    """
    found = [name for name, words in SHORT.items() if re.search(words, text, re.I)]
    if "LGPL" in found and "GPL" in found:
        found.remove("GPL")
    return ", ".join(found) or "other"


def licences() -> str:
    """How many packages have which licence, and those worth a look."""
    packages = {p.metadata["Name"]: licence(p) for p in importlib.metadata.distributions()}
    counts = Counter(map(kinds, packages.values())).most_common()
    told = [f"licences of {len(packages)} packages: " + "; ".join(f"{n} {k}" for k, n in counts)]
    for name, text in sorted(packages.items()):
        if STRICT.search(text) and not LESSER.search(text):
            told.append(f"  {name}: {text} (not to be copied from, nor shipped with us)")
        elif kinds(text) == "other":
            told.append(f"  {name}: {text}")
    return "\n".join(told)


if __name__ == "__main__":
    print(licences())
    print(weaknesses(sys.argv[1]))
