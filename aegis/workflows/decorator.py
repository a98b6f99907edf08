"""``workflow``, the decorator of plugins. Imports only the standard library."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

MARK = "__aegis_workflow__"
"""The attribute of a function that is a workflow."""

F = TypeVar("F", bound=Callable[..., Any])


def workflow(function: F) -> F:
    """Make ``async def name(engine, *, …)`` a workflow that ``aegis_run_workflow`` can run.

    The function is returned unchanged. Raises ``TypeError`` for another kind of function.
    """
    name = getattr(function, "__name__", repr(function))
    if not inspect.iscoroutinefunction(function):
        raise TypeError(f"@workflow: {name} must be an async def")
    first, *others = inspect.signature(function).parameters.values() or [None]
    if first is None or first.kind not in (first.POSITIONAL_ONLY, first.POSITIONAL_OR_KEYWORD):
        raise TypeError(f"@workflow: {name} must take the engine as its first parameter")
    for each in others:
        if each is not None and each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD):
            raise TypeError(f"@workflow: {name} must name its parameters, without *{each.name}")
    setattr(function, MARK, True)
    return function
