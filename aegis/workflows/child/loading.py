"""Loading of plugin files: exactly the trusted bytes, each file once."""

from __future__ import annotations

import hashlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

PREFIX = "aegis_plugin_"
"""The beginning of the module name of a plugin, so that none replaces another module."""


class NotTrusted(ImportError):
    """The file has changed since it was trusted."""


class TrustedFiles(importlib.abc.MetaPathFinder):
    """Finds the plugins' modules, by name: ``files`` maps it to a path and the digest of its bytes.

    A plugin can import another one as a module of its name.
    """

    def __init__(self, files: Mapping[str, Sequence[str]]) -> None:
        self._files = files

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the spec of a plugin; None for another module."""
        stem = name.removeprefix(PREFIX)
        if path is not None or stem not in self._files:
            return None
        where, digest = self._files[stem]
        return importlib.util.spec_from_file_location(name, where, loader=_Loader(where, digest))


class _Loader(importlib.abc.InspectLoader):
    def __init__(self, path: str, digest: str) -> None:
        self._path, self._digest = path, digest

    def get_code(self, fullname: str) -> CodeType:
        content = Path(self._path).read_bytes()
        if hashlib.sha256(content).hexdigest() != self._digest:
            raise NotTrusted(f"{self._path} has changed since it was trusted")
        code: CodeType = compile(content, self._path, "exec", dont_inherit=True)
        return code

    def get_source(self, fullname: str) -> str | None:
        return None


def load(stem: str, files: Mapping[str, Sequence[str]]) -> ModuleType:
    """Import the plugin ``stem``. Raises any exception of its code."""
    # Last: no plugin replaces a module of the standard library or of an installed package, nor does
    # a directory of the person, which this interpreter has not read (``-E``).
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path += [str(Path(each).absolute()) for each in given if each]
    sys.meta_path.append(TrustedFiles(files))
    return importlib.import_module(f"{PREFIX}{stem}")


def problem_of(error: BaseException, path: str) -> dict[str, Any]:
    """Return why an import failed: a sentence with file and line."""
    line = getattr(error, "lineno", None) if isinstance(error, SyntaxError) else None
    if line is None:
        lines = [
            each.lineno
            for each in traceback.extract_tb(error.__traceback__)
            if each.filename == path
        ]
        line = lines[-1] if lines else None
    what = error.msg if isinstance(error, SyntaxError) else str(error)
    kind = type(error).__name__
    where = f"line {line}: " if line is not None else ""
    if isinstance(error, SystemExit):
        return {"problem": f"{where}it called sys.exit({error.code!r}) while it was imported"}
    return {"problem": f"{where}{kind}: {what}" if what else f"{where}{kind}"}
