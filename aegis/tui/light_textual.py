"""Textual, imported without its parts that no screen of the interface has.

``textual.types`` collects names for type checkers, and imports trees, selects and directory trees
for them; ``platformdirs`` finds the directory of downloads for one method. Both take a tenth of the
import of Textual, which is most of the start. Each has a stand-in meanwhile; a later import gets
the module itself.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any


class _Types(ModuleType):
    """The stand-in of ``textual.types``: the types that Textual needs itself."""

    def __getattr__(self, name: str) -> Any:
        from textual import _types

        return getattr(_types, name)


class _Directories(ModuleType):
    """The stand-in of ``platformdirs``."""

    @staticmethod
    def user_downloads_path() -> Path:
        """Return the directory of the module itself."""
        import platformdirs

        return platformdirs.user_downloads_path()


def import_textual() -> None:
    """Import ``textual.app``, unless it is imported."""
    stand_ins = {
        each.__name__: each
        for each in (_Types("textual.types"), _Directories("platformdirs"))
        if each.__name__ not in sys.modules
    }
    sys.modules.update(stand_ins)
    try:
        import textual.app  # noqa: F401 -- for what it imports
    finally:
        for name in stand_ins:
            del sys.modules[name]
