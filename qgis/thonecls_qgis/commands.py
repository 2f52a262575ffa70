# SPDX-License-Identifier: GPL-2.0-or-later
"""From values of a form to the words of a command, and from its answers to words for people.

Nothing of QGIS is imported here.
"""

from __future__ import annotations

import html
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .catalogue import CHECK, COMMANDS, Command


@dataclass(frozen=True)
class File:
    """A layer as a file: its path, and what names the layer or the cube in it."""

    path: str
    layer: str | None = None


def arguments(command: Command, values: Mapping[str, Any]) -> list[str]:
    """The words after `thonecls`, for values by the names of parameters; None is left out.

    Layers are given as `File`. Field and value become a filter; see `where_equal`.
    """
    places: list[str] = []
    flags: list[str] = []
    for parameter in command.parameters:
        value = values.get(parameter.name)
        if parameter.flag == "-" or value is None or value == "":
            continue
        if parameter.kind == "switch":
            if bool(value) != parameter.default:
                flags.append(parameter.flag)
            continue
        text = value.path if isinstance(value, File) else str(value)
        if parameter.flag:
            # In one word: a value may begin with a dash.
            flags.append(f"{parameter.flag}={text}")
        else:
            places.append(text)
        if isinstance(value, File) and value.layer:
            flag = "--variable" if parameter.kind == "raster" else parameter.layer_flag
            flags.append(f"{flag}={value.layer}")
    flags += shlex.split(values.get("EXTRA") or "")
    flags.append("--json")
    if command.progress:
        flags.append("--progress=json")
    return [command.name, *places, *flags]


def where_equal(field: str, value: str, numeric: bool) -> str:
    """SQL for features whose field has a value.

    >>> print(where_equal("species", "king's crown", False), where_equal("code", " 3 ", True))
    "species" = 'king''s crown' "code" = 3
    """
    name = '"' + field.replace('"', '""') + '"'
    if numeric:
        float(value)  # a number, or an error: it stands in SQL as it is
        return f"{name} = {value.strip()}"
    return f"{name} = '" + value.replace("'", "''") + "'"


def subdataset(source: str) -> File:
    """The file and the cube of GDAL's name for a part of a file; else the file itself.

    >>> subdataset('NETCDF:"/a/scene 1.nc":reflectance')
    File(path='/a/scene 1.nc', layer='reflectance')
    >>> subdataset('HDF5:"C:/a.h5"://SITE/Reflectance'), subdataset("/a/b.tif")
    (File(path='C:/a.h5', layer='SITE/Reflectance'), File(path='/a/b.tif', layer=None))
    """
    match = re.fullmatch(r'\w+:"(?P<path>[^"]+)":/*(?P<layer>.+)', source)
    match = match or re.fullmatch(r"(NETCDF|HDF5):(?P<path>.+\.\w+):/*(?P<layer>.+)", source)
    return File(match["path"], match["layer"]) if match else File(source)


def reword(message: str, command: Command) -> str:
    """A message of the command line, with the labels of the forms in place of flags.

    >>> reword('pick one, such as --where "a = 1"; or say --no-data', CHECK)
    'pick one, such as ‘Filter’: "a = 1"; or say --no-data'
    """
    shown = [p for other in (*COMMANDS, command) for p in other.parameters]  # its own count most
    labels = {parameter.flag: parameter.label for parameter in shown}
    for flag in sorted((flag for flag in labels if len(flag) > 2), key=len, reverse=True):
        pattern = re.escape(flag) + r"(?![\w-])"
        message = re.sub(pattern + r"(?= [\"'\w])", f"‘{labels[flag]}’:", message)
        message = re.sub(pattern, f"‘{labels[flag]}’", message)
    return message


def value_at(told: Mapping[str, Any], keys: str) -> Any:
    """A value in nested JSON, None where there is none.

    >>> value_at({"verdict": {"level": "good"}}, "verdict.level"), value_at({}, "a.b")
    ('good', None)
    """
    found: Any = told
    for key in keys.split("."):
        found = found.get(key) if isinstance(found, Mapping) else None
    return found


def findings_page(told: Mapping[str, Any], picture: str | None) -> str:
    """What a check found, as a page for Processing's results; picture: a PNG in base64."""
    marks = {"ok": "✓", "note": "!", "problem": "✕"}
    rows = "\n".join(
        f"<tr><td>{marks[f['status']]}</td><td>{_plain(f['subject'])}</td>"
        f"<td>{_plain(reword(f['words'], CHECK))}</td></tr>"
        for f in told["findings"]
        if f["subject"] != "picture"
    )
    verdict = "Scene and labels fit." if told["fit"] else "This will not work yet: see ✕."
    shown = f'<p><img src="data:image/png;base64,{picture}" width="640"></p>' if picture else ""
    return (
        '<!DOCTYPE html>\n<html><head><meta charset="utf-8"><title>thonecls check</title></head>\n'
        f"<body><h2>{verdict}</h2>\n<table cellpadding='4'>\n{rows}\n</table>\n{shown}</body>"
        "</html>\n"
    )


def _plain(text: str) -> str:
    return html.escape(text, quote=False)


def help_page(command: Command) -> str:
    """The help of an algorithm, as QGIS shows it beside the form."""
    items = "".join(
        f"<h3>{_plain(p.label)}</h3><p>{_plain(p.help)}</p>" for p in command.parameters
    )
    return f"<p>{_plain(command.summary)}</p><p>{_plain(command.help)}</p>{items}"
