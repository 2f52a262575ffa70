# SPDX-License-Identifier: GPL-2.0-or-later
"""What users set: which Python has thonecls, in Processing's options."""

from __future__ import annotations

from pathlib import Path

from processing.core.ProcessingConfig import ProcessingConfig, Setting
from qgis.core import QgsApplication

from . import environment

GROUP = "thonecls"
PYTHON = "THONECLS_PYTHON"


def add(icon: object) -> None:
    """Add the settings to Processing's options."""
    ProcessingConfig.settingIcons[GROUP] = icon
    told = "Python that has thonecls, or its environment's folder (empty: as installed here)"
    ProcessingConfig.addSetting(Setting(GROUP, PYTHON, told, "", valuetype=Setting.FILE))
    ProcessingConfig.readSettings()


def remove() -> None:
    """Take them away."""
    ProcessingConfig.removeSetting(PYTHON)


def profile() -> Path:
    """The folder of the user's profile in QGIS."""
    return Path(QgsApplication.qgisSettingsDirPath())


def program() -> Path | None:
    """What runs thonecls; None where it is not installed."""
    setting = str(ProcessingConfig.getSetting(PYTHON) or "")
    return environment.find(setting, profile())
