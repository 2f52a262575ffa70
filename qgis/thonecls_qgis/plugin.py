# SPDX-License-Identifier: GPL-2.0-or-later
"""The plugin as QGIS loads it: the provider, a menu, and a word where thonecls is missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from qgis.core import Qgis, QgsApplication
from qgis.PyQt.QtGui import QIcon
from qgis.PyQt.QtWidgets import QAction, QPushButton

from . import settings
from .provider import Provider

MENU = "thonecls"
ICON = str(Path(__file__).with_name("icon.svg"))
INSTALL = "thonecls:install"


class Plugin:
    """Adds the provider to Processing; in a window, also menu and message."""

    def __init__(self, iface: Any) -> None:
        self.iface = iface
        self.provider: Provider | None = None
        self.actions: list[Any] = []

    def initProcessing(self) -> None:  # noqa: N802
        """Add the provider; all that qgis_process asks for."""
        self.provider = Provider()
        QgsApplication.processingRegistry().addProvider(self.provider)

    def initGui(self) -> None:  # noqa: N802
        """Add the provider, the menu's entries, and a button where thonecls is missing."""
        self.initProcessing()
        self._add("Install or update thonecls…", self.install)
        self._add("Settings…", self.show_settings)
        if settings.program() is None:
            self.offer()

    def unload(self) -> None:
        """Take everything away again."""
        for action in self.actions:
            self.iface.removePluginMenu(MENU, action)
        self.actions.clear()
        if self.provider is not None:
            QgsApplication.processingRegistry().removeProvider(self.provider)
            self.provider = None

    def offer(self) -> None:
        """Say that thonecls is missing, with a button that installs it."""
        bar = self.iface.messageBar()
        message = bar.createMessage("thonecls", "The plugin needs the Python package thonecls.")
        button = QPushButton("Install…", message)
        button.clicked.connect(self.install)
        message.layout().addWidget(button)
        bar.pushWidget(message, Qgis.Warning)

    def install(self) -> None:
        """Open the form of the algorithm that installs thonecls."""
        import processing

        self.iface.messageBar().clearWidgets()
        processing.execAlgorithmDialog(INSTALL, {})

    def show_settings(self) -> None:
        """Open Processing's options, where a Python that has thonecls can be named."""
        self.iface.showOptionsDialog(self.iface.mainWindow(), "processingOptions")

    def _add(self, title: str, act: Any) -> None:
        action = QAction(QIcon(ICON), title, self.iface.mainWindow())
        action.triggered.connect(lambda *_: act())
        self.iface.addPluginToMenu(MENU, action)
        self.actions.append(action)
