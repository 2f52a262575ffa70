"""Map one class in hyperspectral imagery from about a hundred positive pixels.

Importing the package loads nothing heavy: a name loads its module when it is first used.
"""

from typing import TYPE_CHECKING

from thonecls.lazy import lazy_exports
from thonecls.version import __version__

if TYPE_CHECKING:
    from thonecls.images.trees import PUExtraTreesClassifier as PUExtraTreesClassifier
    from thonecls.method.config import COLLAGE as COLLAGE
    from thonecls.method.config import FAST as FAST
    from thonecls.method.config import PAPER as PAPER
    from thonecls.method.config import TrainConfig as TrainConfig
    from thonecls.method.fit import fit as fit
    from thonecls.method.model import Model as Model
    from thonecls.methods.classifier import PUClassifier as PUClassifier
    from thonecls.methods.estimator import THOneCls as THOneCls
    from thonecls.methods.spectral_model import load_model as load_model
    from thonecls.metrics import Scores as Scores
    from thonecls.metrics import evaluate as evaluate
    from thonecls.ratio.model import RatioModel as RatioModel
    from thonecls.ratio.model import fit_ratio as fit_ratio
    from thonecls.scene import Scene as Scene
    from thonecls.scene import as_scene as as_scene

_HOMES = {
    "COLLAGE": "thonecls.method.config",
    "FAST": "thonecls.method.config",
    "PAPER": "thonecls.method.config",
    "Model": "thonecls.method.model",
    "PUClassifier": "thonecls.methods.classifier",
    "PUExtraTreesClassifier": "thonecls.images.trees",
    "RatioModel": "thonecls.ratio.model",
    "Scene": "thonecls.scene",
    "Scores": "thonecls.metrics",
    "THOneCls": "thonecls.methods.estimator",
    "TrainConfig": "thonecls.method.config",
    "as_scene": "thonecls.scene",
    "evaluate": "thonecls.metrics",
    "fit": "thonecls.method.fit",
    "fit_ratio": "thonecls.ratio.model",
    "load_model": "thonecls.methods.spectral_model",
}
__all__ = ["__version__", *_HOMES]
__getattr__, __dir__ = lazy_exports(__name__, _HOMES)
