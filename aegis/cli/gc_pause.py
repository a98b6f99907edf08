"""Imports of verbs that bring much with them, made quicker."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def gc_paused() -> Iterator[None]:
    """Collect no garbage meanwhile: imports make many objects, and hardly one that is garbage.

    It takes a sixth off the time that Trio and the client take to load.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
