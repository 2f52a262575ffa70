"""The losses of `thonecls.method.losses`, under the short name that stays."""

from thonecls.method.losses import *  # noqa: F403
from thonecls.method.taylor import *  # noqa: F403
