"""Alias of `thonecls.io.inputs`, for scripts of earlier versions."""

from thonecls.io.inputs import *  # noqa: F403
