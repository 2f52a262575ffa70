"""Alias of `thonecls.io.vector`, for scripts of earlier versions."""

from thonecls.io.vector import *  # noqa: F403
