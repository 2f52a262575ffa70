"""What a page may send: exactly these fields, of exactly these types and sizes."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from thonecls.studio.asking import Answer
from thonecls.studio.labels import MOST_STROKE, Kind, Origin

MOST_POINTS = 20_000  # of a lasso or a brush's path
MOST_RADIUS = 500.0  # pixels
MOST_ASKED = 1000  # points of a verification, places of a suggestion

Whole = Annotated[int, Field(ge=-(2**31), le=2**31)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Pair = Annotated[list[Whole], Field(min_length=2, max_length=2)]  # row, column
Point = Annotated[list[Finite], Field(min_length=2, max_length=2)]  # x, y


class Message(BaseModel):
    """What a page sends: exactly these fields, of exactly these types."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Stroke(Message):
    """Pixels to be labelled, by one of three ways to say which."""

    kind: Kind
    origin: Origin = "stroke"
    pixels: Annotated[list[Pair], Field(min_length=1, max_length=MOST_STROKE)] | None = None
    polygon: Annotated[list[Point], Field(max_length=MOST_POINTS)] | None = None
    path: Annotated[list[Point], Field(min_length=1, max_length=MOST_POINTS)] | None = None
    radius: Annotated[float, Field(ge=0, le=MOST_RADIUS, allow_inf_nan=False)] | None = None


class Pixel(Message):
    """A pixel of the scene."""

    row: Whole
    column: Whole


class Cut(Message):
    """A cut, None for the map's own."""

    cut: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] | None


class Changes(Message):
    """Settings that are to change."""

    label: Annotated[str, Field(min_length=1)] | None = None
    auto: bool | None = None
    method: str | None = None


class Training(Message):
    """How to train; what is not said is as in the settings."""

    method: str | None = None
    preset: Literal["fast", "collage", "paper"] | None = None
    coverage: Literal["all", "part", "patch"] | None = None


class Cancel(Message):
    """Whether what was learnt is kept."""

    keep: bool = False


class Size(Message):
    """How many points or places."""

    size: Annotated[int, Field(ge=1, le=MOST_ASKED)] | None = None


class Answered(Message):
    """What a person says of a point."""

    answer: Answer


class Export(Message):
    """Which map to export, None for that of the newest training."""

    map: Annotated[str, Field(max_length=100)] | None = None
