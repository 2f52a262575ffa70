# SPDX-License-Identifier: GPL-2.0-or-later
"""The commands of thonecls as Processing shows them: parameters, outputs and their help.

One catalogue, for the forms in QGIS and for the command line. Nothing of QGIS is imported here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

Kind = str  # of a parameter or an output; algorithms.py knows what QGIS calls it

METHODS = (
    "density-ratio", "auto", "t-honecls", "taylor", "variational", "vpu", "nnpu", "upu", "imb-nnpu",
    "abs-negative", "oc", "dist-pu", "bce", "mse", "gce", "sce", "tce", "pan", "pan-reference",
    "pan-as-run", "ncpu", "lbe", "pul-cpbf", "pusb", "pubn", "dist-pu-full", "p3mix-e", "p3mix-c",
    "t-honecls-selected", "sam", "matched-filter", "cem", "ace", "ocsvm", "isolation-forest",
    "biased-svm", "pu-bagging", "elkan-noto", "maxent", "taylor-spectra", "vpu-spectra",
    "variational-spectra", "nnpu-spectra", "upu-spectra", "imb-nnpu-spectra", "dist-pu-spectra",
    "bce-spectra", "ncpu-spectra", "lbe-spectra", "pul-cpbf-spectra", "p3mix-e-spectra",
    "puet-spectra",
)  # fmt: skip


@dataclass(frozen=True)
class Parameter:
    """A parameter of an algorithm; flag: of the command line, "" for a place among its arguments.

    kind: raster, vector, run (a folder of a training), field, text, number, integer, switch,
    choice, crs, folder-out, points-out or page-out. layer_flag: what names the layer of a vector
    file. A switch that is on by default has the flag that turns it off. Parameters without a part
    in the command line have the flag "-".
    """

    name: str
    kind: Kind
    label: str
    help: str
    flag: str = ""
    default: Any = None
    optional: bool = False
    advanced: bool = False
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    parent: str = ""
    layer_flag: str = ""


@dataclass(frozen=True)
class Output:
    """An output of an algorithm: a file in its folder, or a value of the command's JSON.

    kind: raster, vector, file, page, text, number or truth. source: the file's name, or the keys
    that lead to the value, with dots between.
    """

    name: str
    kind: Kind
    label: str
    source: str


@dataclass(frozen=True)
class Command:
    """A command of thonecls, and the algorithm that runs it."""

    name: str
    title: str
    group: str
    summary: str
    help: str
    parameters: tuple[Parameter, ...]
    outputs: tuple[Output, ...]
    progress: bool = False


SCENE = Parameter(
    "SCENE",
    "raster",
    "Scene",
    "The image, with all its bands: a raster layer, or a file that GDAL reads (GeoTIFF, ENVI, "
    "NetCDF, HDF5). It is read from its file; how the layer is drawn does not matter.",
)
LABELS = Parameter(
    "LABELS",
    "vector",
    "Labels",
    "Points, lines or polygons where the class is; a hundred labelled pixels are enough. Take a "
    "few in many parts of the scene. With 'selected features only', a filter, or edits that are "
    "not saved, exactly what you see is used.",
    layer_flag="--layer",
)
FIELD = Parameter(
    "FIELD",
    "field",
    "Field that names the class",
    "Where a layer holds several classes: the field that tells them apart.",
    flag="-",
    optional=True,
    parent="LABELS",
)
VALUE = Parameter(
    "VALUE",
    "text",
    "Value of that field",
    "The class to map, as it is written in the field.",
    flag="-",
    optional=True,
)
WHERE = Parameter(
    "WHERE",
    "text",
    "Filter",
    'Which features are the class, as SQL, such as "species" = \'lantana\' AND "cover" > 30; '
    "instead of field and value.",
    flag="--where",
    optional=True,
    advanced=True,
)
HOW_LABELS = (
    Parameter(
        "ALL_TOUCHED",
        "switch",
        "All pixels that a polygon or line touches",
        "Otherwise those whose centre lies in the polygon.",
        flag="--all-touched",
        default=False,
        advanced=True,
    ),
    Parameter(
        "BUFFER",
        "number",
        "Widen features by",
        "A distance in the units of the scene's CRS.",
        flag="--buffer",
        optional=True,
        advanced=True,
    ),
)
ANSWERS = Parameter(
    "ANSWERS",
    "vector",
    "Answered points",
    "Points of Suggest or Sample whose field 'present' you filled in: 1 adds a label, 0 a place "
    "where the class is not.",
    flag="--answers",
    optional=True,
)
NEGATIVES = Parameter(
    "NEGATIVES",
    "vector",
    "Places where the class is not",
    "If you know some. None are needed.",
    flag="--negatives",
    optional=True,
    advanced=True,
)
HOW_SCENE = (
    Parameter(
        "BANDS",
        "text",
        "Bands to use",
        "By number from 1, such as 1-50,60.",
        flag="--bands",
        optional=True,
        advanced=True,
    ),
    Parameter(
        "WAVELENGTHS",
        "text",
        "Wavelengths to use",
        "In nm, such as 450-900.",
        flag="--wavelengths",
        optional=True,
        advanced=True,
    ),
    Parameter(
        "DROP_BANDS",
        "text",
        "Bands to leave out",
        "By number from 1.",
        flag="--drop-bands",
        optional=True,
        advanced=True,
    ),
    Parameter(
        "DROP_BAD_BANDS",
        "switch",
        "Leave out bad bands",
        "Bands that are dead, or in which water vapour absorbs the light.",
        flag="--drop-bad-bands",
        default=False,
        advanced=True,
    ),
    Parameter(
        "NODATA",
        "text",
        "Value that means no data",
        "Besides what the file declares.",
        flag="--nodata",
        optional=True,
        advanced=True,
    ),
    Parameter(
        "VARIABLE",
        "text",
        "Variable",
        "The array or subdataset, where the file holds several; a layer of one names it by itself.",
        flag="--variable",
        optional=True,
        advanced=True,
    ),
    Parameter(
        "SCENE_CRS",
        "crs",
        "CRS of the scene",
        "Where its file has coordinates but names no CRS.",
        flag="--scene-crs",
        optional=True,
        advanced=True,
    ),
)
HOW_MAP = (
    Parameter(
        "THRESHOLD",
        "number",
        "Threshold",
        "Probability above which a pixel is mapped; by default the model's own.",
        flag="--threshold",
        optional=True,
        advanced=True,
        minimum=0,
        maximum=1,
    ),
    Parameter(
        "MINIMUM_AREA",
        "number",
        "Smallest polygon",
        "In m²; by default the area of 4 pixels. 0 keeps every pixel that stands alone.",
        flag="--minimum-area",
        optional=True,
        advanced=True,
        minimum=0,
    ),
    Parameter(
        "POLYGONS_TOO",
        "switch",
        "Write polygons too",
        "polygons.gpkg, with area and mean probability of each patch.",
        flag="--no-polygons",
        default=True,
        advanced=True,
    ),
    Parameter(
        "FLOATS",
        "switch",
        "Probability as decimals",
        "As float32, not as whole percents.",
        flag="--floats",
        default=False,
        advanced=True,
    ),
)
AGAIN = (
    Parameter(
        "OVERWRITE",
        "switch",
        "Replace what is in the folder",
        "Otherwise a folder that holds a run or a map is refused.",
        flag="--overwrite",
        default=False,
        advanced=True,
    ),
    Parameter(
        "RESUME",
        "switch",
        "Continue what was cancelled",
        "With the same scene, labels and settings, from the last checkpoint to the same result.",
        flag="--resume",
        default=False,
        advanced=True,
    ),
)
EXTRA = Parameter(
    "EXTRA",
    "text",
    "Further options of the command line",
    "As in a terminal, such as --epochs 50 --seeds 5; 'thonecls train --help' lists them.",
    flag="-",
    optional=True,
    advanced=True,
)
LOAD = Parameter(
    "LOAD",
    "switch",
    "Load the results",
    "Add map, probability and polygons to the project, in their colours.",
    flag="-",
    default=True,
)
FOLDER = Parameter(
    "OUTPUT",
    "folder-out",
    "Folder for the results",
    "Made if it does not exist. Keep it: Map, Report, Sample and Suggest work on it.",
    flag="--out",
)
RUN = Parameter(
    "RUN",
    "run",
    "Folder of a training",
    "The folder that Train wrote, with run.json and model.safetensors.",
)
SEED = Parameter(
    "SEED",
    "integer",
    "Seed",
    "Of everything random: same seed, same result.",
    flag="--seed",
    default=0,
    advanced=True,
    minimum=0,
)
POINTS = "points-out"
MAPS = (
    Output("MAP", "raster", "Map", "map.tif"),
    Output("PROBABILITY", "raster", "Probability", "probability.tif"),
    Output("POLYGONS", "vector", "Polygons", "polygons.gpkg"),
    Output("THRESHOLD_USED", "number", "Threshold", "threshold"),
    Output("MAPPED_SHARE", "number", "Share of the scene that is mapped", "mapped_share"),
)
TRUTH = (
    Parameter(
        "TRUTH",
        "vector",
        "Truth",
        "What is known of the scene from elsewhere, for scores in the report only.",
        flag="--truth",
        optional=True,
        advanced=True,
        layer_flag="--truth-layer",
    ),
    Parameter(
        "TRUTH_WHERE",
        "text",
        "Truth: which features are the class",
        'As SQL, such as "present" = 1.',
        flag="--truth-where",
        optional=True,
        advanced=True,
    ),
    Parameter(
        "TRUTH_NEGATIVE",
        "text",
        "Truth: which features are certainly not",
        'As SQL, such as "present" = 0.',
        flag="--truth-negative",
        optional=True,
        advanced=True,
    ),
)

CHECK = Command(
    "check",
    "Check scene and labels",
    "Map one class",
    "Check in seconds whether scene and labels fit, before any long work.",
    "Tells size, position and CRS, labels inside, outside, doubled or on nodata, unusual spectra "
    "among them, bad bands, where labels lie, and what training will take. 'Fit' is false if "
    "something must be mended first; the page of findings says what.",
    (
        SCENE,
        replace(LABELS, optional=True),
        FIELD,
        VALUE,
        WHERE,
        *HOW_LABELS,
        *HOW_SCENE,
        EXTRA,
        Parameter(
            "FINDINGS",
            "page-out",
            "Findings",
            "A page with what was found, and where labels lie.",
            flag="-",
            optional=True,
        ),
    ),
    (
        Output("FIT", "truth", "Scene and labels fit", "fit"),
        Output("COMMAND", "text", "Command that trains on them", "command"),
    ),
)
TRAIN = Command(
    "train",
    "Train and map",
    "Map one class",
    "Learn one class from a few labels, map the scene, and report how far to trust the map.",
    "No negative labels and no class prior are needed. Writes the model, map.tif and "
    "probability.tif with their colours, polygons.gpkg and report.html, which says in one sentence "
    "how far to trust the map and what to do next. The density ratio, the default, takes seconds; "
    "networks on the scene (t-honecls and the other losses) take minutes, and can be continued "
    "after Cancel.",
    (
        SCENE,
        LABELS,
        FIELD,
        VALUE,
        Parameter(
            "NAME",
            "text",
            "Name of the class",
            "For maps and report; by default the value above.",
            flag="--label",
            optional=True,
        ),
        Parameter(
            "METHOD",
            "choice",
            "Method",
            "density-ratio takes seconds and suits most; auto takes another on single spectra "
            "where that finds labels left out clearly better; t-honecls is the network of the "
            "paper.",
            flag="--method",
            default="density-ratio",
            choices=METHODS,
        ),
        Parameter(
            "PRESET",
            "choice",
            "Preset of a network",
            "fast sees the whole scene at every step, collage blocks of it, paper is the published "
            "schedule. By default fast, and collage above 500,000 pixels.",
            flag="--preset",
            optional=True,
            advanced=True,
            choices=("fast", "collage", "paper"),
        ),
        Parameter(
            "COVERAGE",
            "choice",
            "Labels come from",
            "All over the class, a part of the scene, or a patch or two; by default told from "
            "where they lie. Say all if you know that they do: the map is then sharper.",
            flag="--coverage",
            optional=True,
            advanced=True,
            choices=("all", "part", "patch"),
        ),
        ANSWERS,
        NEGATIVES,
        WHERE,
        *HOW_LABELS,
        Parameter(
            "FOLDS",
            "integer",
            "Folds",
            "Parts of the labels, by place, each left out in turn to judge the map by. 0: the map "
            "is not judged. With a network, each is one more training.",
            flag="--folds",
            default=3,
            advanced=True,
            minimum=0,
        ),
        SEED,
        *HOW_MAP,
        *HOW_SCENE,
        *TRUTH,
        *AGAIN,
        EXTRA,
        LOAD,
        FOLDER,
    ),
    (
        *MAPS,
        Output("REPORT", "page", "Report", "report.html"),
        Output("MODEL", "file", "Model", "model.safetensors"),
        Output("VERDICT", "text", "Verdict: good, check or poor", "verdict"),
        Output("WORDS", "text", "Verdict in words", "words"),
    ),
    progress=True,
)
MAP = Command(
    "map",
    "Map another scene",
    "Map one class",
    "Map a scene with a model that Train made; of any size, window by window.",
    "Bands are matched by wavelength, values in another unit are rescaled. Writes map.tif, "
    "probability.tif, novelty.tif (above 1: unlike the training scene, so the map is a guess) and "
    "polygons.gpkg. For many scenes use 'Run as Batch Process'.",
    (
        RUN,
        SCENE,
        *HOW_MAP,
        Parameter(
            "TOLERANCE",
            "number",
            "How far wavelengths may differ",
            "From the model's, in nm; by default half a band.",
            flag="--tolerance",
            optional=True,
            advanced=True,
            minimum=0,
        ),
        Parameter(
            "FORCE",
            "switch",
            "Take values as they are",
            "Even if they look like another unit.",
            flag="--force",
            default=False,
            advanced=True,
        ),
        *HOW_SCENE,
        *AGAIN,
        EXTRA,
        LOAD,
        FOLDER,
    ),
    (
        *MAPS,
        Output("NOVELTY", "raster", "Novelty", "novelty.tif"),
        Output("NOVEL_SHARE", "number", "Share unlike the training scene", "novel_share"),
    ),
    progress=True,
)
REPORT = Command(
    "report",
    "Report",
    "How right is the map?",
    "Write the report of a training again, with scores if truth or checked points are given.",
    "With the points that Sample drew, their field 'present' filled in, the report has precision, "
    "recall and area with intervals that hold, whatever the labels were like.",
    (
        RUN,
        Parameter(
            "VERIFIED",
            "vector",
            "Checked points",
            "The points that Sample drew from this training's map, with your answers in 'present'.",
            flag="--verified",
            optional=True,
        ),
        *(replace(p, advanced=False) for p in TRUTH),
        EXTRA,
    ),
    (
        Output("REPORT", "page", "Report", "report.html"),
        Output("VERDICT", "text", "Verdict: good, check or poor", "verdict.level"),
        Output("WORDS", "text", "Verdict in words", "verdict.words"),
        Output("SUMMARY", "text", "Summary", "summary"),
    ),
)
SAMPLE = Command(
    "sample",
    "Sample points to check",
    "How right is the map?",
    "Draw random points of a map for you to check, on the screen or in the field.",
    "Write 1 into the field 'present' where the class is, 0 where it is not, nothing where you "
    "cannot tell; then Report gives precision, recall and area with intervals.",
    (
        RUN,
        Parameter(
            "SIZE",
            "integer",
            "Points to draw",
            "60 are an afternoon's work.",
            flag="--size",
            default=60,
            minimum=1,
        ),
        SEED,
        Parameter(
            "POINTS", POINTS, "Points", "A new GeoPackage: answers are never written over.", "--out"
        ),
    ),
    (),
)
SUGGEST = Command(
    "suggest",
    "Suggest places worth a look",
    "How right is the map?",
    "Suggest places that may be the class, far from all labels, spread over the scene.",
    "Write 1 into the field 'present' where the class is, 0 where it is not, nothing where you "
    "cannot tell; then Train again with the layer as 'Answered points'. Helps most where labels "
    "come from one part of the scene.",
    (
        RUN,
        Parameter(
            "SIZE",
            "integer",
            "Places to look at",
            "Ask again after each round.",
            flag="--size",
            default=20,
            minimum=1,
        ),
        SEED,
        Parameter(
            "POINTS", POINTS, "Places", "A new GeoPackage: answers are never written over.", "--out"
        ),
    ),
    (),
)
COMMANDS = (CHECK, TRAIN, MAP, REPORT, SAMPLE, SUGGEST)
