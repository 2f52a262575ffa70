"""Map one class in hyperspectral imagery from about a hundred positive pixels."""

from importlib.metadata import version

from thonecls.classifier import PUClassifier
from thonecls.config import FAST, PAPER, TrainConfig
from thonecls.estimator import THOneCls
from thonecls.metrics import Scores, evaluate
from thonecls.model import Model
from thonecls.scene import Scene, as_scene
from thonecls.train import fit
from thonecls.trees import PUExtraTreesClassifier

__version__ = version("thonecls")

__all__ = [
    "FAST",
    "PAPER",
    "Model",
    "PUClassifier",
    "PUExtraTreesClassifier",
    "Scene",
    "Scores",
    "THOneCls",
    "TrainConfig",
    "as_scene",
    "evaluate",
    "fit",
]
