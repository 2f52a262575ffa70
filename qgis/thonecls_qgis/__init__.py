# SPDX-License-Identifier: GPL-2.0-or-later
"""thonecls in QGIS: a Processing provider that runs the command line in a Python of its own."""

from __future__ import annotations

from typing import Any


def classFactory(iface: Any) -> Any:  # noqa: N802  # QGIS's name
    """What QGIS calls to get the plugin; iface: None where there is no window."""
    from .plugin import Plugin

    return Plugin(iface)
