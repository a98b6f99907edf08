"""A module that is another one but for a few names."""

from __future__ import annotations

from types import ModuleType


class ModuleProxy(ModuleType):
    """Looks like ``real``; each of ``names`` is what is given for it."""

    def __init__(self, real: ModuleType, **names: object) -> None:
        super().__init__(real.__name__, real.__doc__)
        self.__dict__.update(names)
        self.__spec__ = real.__spec__
        self._real = real

    def __getattr__(self, name: str) -> object:
        return getattr(self._real, name)
