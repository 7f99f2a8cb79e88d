"""Lets a real SGLang be imported on a machine without a GPU, for tests of the protocol. Text models only.

SGLang imports torchvision, torchaudio and triton wherever it starts, though a text model on a CPU calls none of them.
Here any module below those names exists and any name in it is something harmless. Imported by a .pth file of the
environment, before anything else.
"""

import enum
import importlib
import importlib.abc
import importlib.machinery
import sys
import types
from unittest.mock import MagicMock

ABSENT = ("torchvision", "torchaudio", "triton")
TRITON_PARTS = ("runtime", "language", "compiler", "backends", "testing")
DECORATORS = ("jit", "autotune", "heuristics")


class Absent(types.ModuleType):
    """A module that has whatever it is asked for."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__ = []
        self.__version__ = "0.0.0"

    def __getattr__(self, key: str):
        if key.startswith("__") and key.endswith("__"):
            raise AttributeError(key)
        value = self._make(key)
        setattr(self, key, value)
        return value

    def _make(self, key: str):
        name = self.__name__
        if name == "triton" and key in TRITON_PARTS:
            return importlib.import_module(f"triton.{key}")
        if name == "triton" and key in DECORATORS:
            return _decorate
        if name == "triton.runtime" and key == "driver":
            return _NoDriver()
        if key == "InterpolationMode":
            return enum.Enum(key, "NEAREST NEAREST_EXACT BILINEAR BICUBIC BOX HAMMING LANCZOS")
        if key == "constexpr":
            return type(key, (), {"__init__": lambda self, value=None: setattr(self, "value", value)})
        if key[:1].isupper():
            return type(key, (), {"__init__": lambda self, *args, **kwargs: None})
        return MagicMock(name=f"{name}.{key}")


class _NoDriver:
    @property
    def active(self):
        raise RuntimeError("there is no GPU")


def _decorate(function=None, *args, **kwargs):
    """What a decorator does that does nothing, with or without arguments."""
    return function if callable(function) else lambda inner: inner


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ABSENT:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        return Absent(spec.name)

    def exec_module(self, module):
        return None


if not any(type(finder).__name__ == "Finder" and type(finder).__module__ == __name__ for finder in sys.meta_path):
    sys.meta_path.append(Finder())
