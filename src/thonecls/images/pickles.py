"""Pickled batches of images without the danger of pickles: nothing that a file names is run.

A pickle may name any function and have it called. Here the few names that an array of bytes needs
stand for functions of this file; every other name is refused before anything happens.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thonecls.errors import FileError

# What a damaged pickle makes the unpickler raise, besides its own error.
DAMAGE = (
    *(EOFError, AttributeError, IndexError, KeyError, MemoryError, NotImplementedError),
    *(OverflowError, TypeError, ValueError),
)


def read_batch(label: str, content: bytes) -> tuple[NDArray[np.uint8], list[int]]:
    """The array of images and the list of labels of a pickled batch of CIFAR-10.

    label: what errors call the file. Both Python 2, which made the originals, and Python 3 will do.
    """
    try:
        batch = _Unpickler(io.BytesIO(content), encoding="bytes").load()
        if not isinstance(batch, dict):
            raise pickle.UnpicklingError("it holds no dict")
        data, labels = (batch.get(key, batch.get(key.encode())) for key in ("data", "labels"))
        if not isinstance(data, _Array) or not isinstance(labels, list):
            raise pickle.UnpicklingError("it holds no array `data` and list `labels`")
        if any(type(number) is not int for number in labels):
            raise pickle.UnpicklingError("its labels are not all whole numbers")
        return data.as_numpy(), labels
    except (pickle.UnpicklingError, *DAMAGE) as e:
        raise FileError(f"{label} is no pickled batch of CIFAR-10 ({e})") from e


class _Unpickler(pickle.Unpickler):
    """Plain containers, text, numbers and arrays of bytes; nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _NAMES:
            raise pickle.UnpicklingError(
                f"it asks for {module}.{name}, which no array of bytes needs: it may be "
                "malicious, and nothing of it was run"
            )
        return _Name(_NAMES[module, name])


class _Name:
    """What stands for a name of numpy's: can be called, and not changed."""

    __slots__ = ("_function",)

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __call__(self, *arguments: Any) -> Any:
        return self._function(*arguments)

    def __setstate__(self, state: object) -> None:
        raise pickle.UnpicklingError("it tries to change a function")


class _Dtype:
    """Stands for the type of an array, which must be uint8: its state can say nothing new."""

    __slots__ = ()

    def __init__(self, code: str | bytes, *_: object) -> None:
        if code not in ("u1", b"u1"):
            raise pickle.UnpicklingError(f"its array is of type {code!r}, not u1")

    def __setstate__(self, state: object) -> None:
        pass


class _Array:
    """Stands for an array until all of its parts are known."""

    __slots__ = ("_content", "_fortran", "_shape")

    def __init__(self) -> None:
        self.__setstate__((1, (0,), None, False, b""))

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, self._shape, _, self._fortran, self._content = state

    def as_numpy(self) -> NDArray[np.uint8]:
        flat = np.frombuffer(self._content, dtype=np.uint8)
        return flat.reshape(self._shape, order="F" if self._fortran else "C")


def _reconstruct(*_: object) -> _Array:
    return _Array()


def _frombuffer(content: bytes, dtype: _Dtype, shape: tuple[int, ...], order: str) -> _Array:
    array = _Array()
    array.__setstate__((1, shape, dtype, order == "F", content))
    return array


def _encode(text: str, encoding: str) -> bytes:
    """How Python 3 writes bytes in a pickle that Python 2 can read."""
    if encoding != "latin1":
        raise pickle.UnpicklingError(f"it asks for the encoding {encoding!r}, not latin1")
    return text.encode("latin1")


def _refuse(*_: object) -> None:
    raise pickle.UnpicklingError("it calls numpy.ndarray")


_NAMES: dict[tuple[str, str], Callable[..., Any]] = {
    ("_codecs", "encode"): _encode,
    ("numpy", "dtype"): _Dtype,
    ("numpy", "ndarray"): _refuse,  # is named in pickles of arrays, but never called
    ("numpy.core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy._core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy.core.numeric", "_frombuffer"): _frombuffer,
    ("numpy._core.numeric", "_frombuffer"): _frombuffer,
}
