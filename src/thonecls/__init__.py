"""Map one class in hyperspectral imagery from about a hundred positive pixels.

Importing the package loads nothing heavy: a name loads its module when it is first used.
"""

from typing import TYPE_CHECKING

from thonecls.lazy import lazy_exports
from thonecls.version import __version__

if TYPE_CHECKING:
    from thonecls.classifier import PUClassifier as PUClassifier
    from thonecls.config import COLLAGE as COLLAGE
    from thonecls.config import FAST as FAST
    from thonecls.config import PAPER as PAPER
    from thonecls.config import TrainConfig as TrainConfig
    from thonecls.estimator import THOneCls as THOneCls
    from thonecls.methods.models import load_model as load_model
    from thonecls.metrics import Scores as Scores
    from thonecls.metrics import evaluate as evaluate
    from thonecls.model import Model as Model
    from thonecls.ratio_model import RatioModel as RatioModel
    from thonecls.ratio_model import fit_ratio as fit_ratio
    from thonecls.scene import Scene as Scene
    from thonecls.scene import as_scene as as_scene
    from thonecls.train import fit as fit
    from thonecls.trees import PUExtraTreesClassifier as PUExtraTreesClassifier

_HOMES = {
    "COLLAGE": "thonecls.config",
    "FAST": "thonecls.config",
    "PAPER": "thonecls.config",
    "Model": "thonecls.model",
    "PUClassifier": "thonecls.classifier",
    "PUExtraTreesClassifier": "thonecls.trees",
    "RatioModel": "thonecls.ratio_model",
    "Scene": "thonecls.scene",
    "Scores": "thonecls.metrics",
    "THOneCls": "thonecls.estimator",
    "TrainConfig": "thonecls.config",
    "as_scene": "thonecls.scene",
    "evaluate": "thonecls.metrics",
    "fit": "thonecls.train",
    "fit_ratio": "thonecls.ratio_model",
    "load_model": "thonecls.methods.models",
}
__all__ = ["__version__", *_HOMES]
__getattr__, __dir__ = lazy_exports(__name__, _HOMES)
