"""A file system of a few megabytes that a test can fill and free again."""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import pytest


class SmallDisk:
    """A tmpfs mounted at ``path``; skips the test where none can be mounted."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._ballast = path / "ballast"
        self._held: list[BinaryIO] = []
        path.mkdir()
        mount = ["mount", "-t", "tmpfs", "-o", "size=4m,mode=755", "tmpfs", str(path)]
        if subprocess.run(mount, capture_output=True, check=False).returncode:
            pytest.skip("mounting a file system needs root")

    def fill(self) -> None:
        """Not a byte more fits, but into pages that are there.

        To remove a file makes no room: each that is there now is held open.
        """
        for path in self._path.rglob("*"):
            with suppress(FileNotFoundError):  # removed meanwhile
                if path.is_file():  # to open a FIFO would wait
                    self._held.append(path.open("rb"))
        descriptor = os.open(self._ballast, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        for size in (65_536, 1):
            with suppress(OSError):
                while True:
                    os.write(descriptor, bytes(size))
        os.close(descriptor)

    def free(self) -> None:
        """There is room again."""
        self._let_go()
        self._ballast.unlink()

    def close(self) -> None:
        """Unmount it."""
        self._let_go()
        subprocess.run(["umount", str(self._path)], check=True)

    def _let_go(self) -> None:
        while self._held:
            self._held.pop().close()
