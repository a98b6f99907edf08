"""Rules of the runtime that can be seen in the sources of both packages."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

pytestmark = pytest.mark.one_python

ROOT = Path(__file__).resolve().parents[1]

ONLY_IN = {
    "threading.Thread": {"actors/slow_steps.py"},
    "threading.Timer": set[str](),
    "trio.lowlevel.start_thread_soon": {"aegis/journal/flusher.py"},
    "trio.lowlevel.spawn_system_task": set[str](),
    "time.sleep": {
        "actors/faults.py",
        "aegis/client/blocking/agent_streams.py",
        "aegis/client/blocking/request_stream.py",  # has no loop to block
        "aegis/client/blocking/session.py",  # nor has this
        "aegis/client/line.py",  # nor has this
        "aegis/cli/background.py",  # nor has a verb
        "aegis/daemon_process.py",  # before the loop begins
        "aegis/journal/segments.py",  # in threads only
    },
    "trio._core": {"actors/simulate.py", "aegis/workflows/child/clock.py"},
    "os.fsync": {
        "aegis/journal/disk.py",
        "aegis/journal/shared_directory.py",  # in threads only
        "aegis/state/state_files.py",
    },
    "os.fdatasync": {"aegis/journal/disk.py"},
}
"""What only these files may touch: threads, tasks outside the tree, blocking, private parts."""


def sources() -> Iterator[tuple[str, str]]:
    for package in ("actors", "aegis"):
        for path in sorted((ROOT / package).rglob("*.py")):
            yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")


def lines_with(text: str, is_wrong: Callable[[ast.AST], bool]) -> list[int]:
    return [node.lineno for node in ast.walk(ast.parse(text)) if is_wrong(node)]  # type: ignore[attr-defined]


def swallows_all(node: ast.AST) -> bool:
    """A handler of everything, an interrupt included, that does not raise it again."""
    if not isinstance(node, ast.ExceptHandler):
        return False
    caught = "BaseException" if node.type is None else ast.unparse(node.type)
    again = isinstance(node.body[-1], ast.Raise) and node.body[-1].exc is None
    return "BaseException" in caught and not again


@cache  # each rule is about the same sources
def names_in(text: str) -> frozenset[str]:
    """All that is named with dots, and every string: a module may be imported by its name."""
    return frozenset(each_name_in(text))


def each_name_in(text: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Attribute):
            yield ast.unparse(node)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def touches(text: str, what: str) -> bool:
    return any(name == what or name.startswith(f"{what}.") for name in names_in(text))


@pytest.mark.long
def test_no_handler_swallows_an_interrupt() -> None:
    found = {path: lines_with(text, swallows_all) for path, text in sources()}
    assert {path: lines for path, lines in found.items() if lines} == {}


def test_there_are_no_hidden_globals() -> None:
    found = {
        path: lines_with(text, lambda node: isinstance(node, ast.Global))
        for path, text in sources()
    }
    assert {path: lines for path, lines in found.items() if lines} == {}


@pytest.mark.parametrize("what", ONLY_IN)
def test_only_its_own_files_touch(what: str) -> None:
    assert {path for path, text in sources() if touches(text, what)} == ONLY_IN[what]


@pytest.mark.parametrize(
    "wrong",
    [
        "try:\n    f()\nexcept:\n    pass",
        "try:\n    f()\nexcept BaseException as error:\n    log(error)",
        "try:\n    f()\nexcept (ValueError, BaseException):\n    raise ValueError",
        "try:\n    f()\nexcept* BaseExceptionGroup:\n    pass",
    ],
)
def test_the_search_finds_who_swallows_all(wrong: str) -> None:
    assert lines_with(wrong, swallows_all) == [3]


@pytest.mark.parametrize(
    "right",
    [
        "try:\n    f()\nexcept Exception:\n    pass",
        "try:\n    f()\nexcept BaseException as error:\n    error.add_note('x')\n    raise",
    ],
)
def test_the_search_lets_pass_who_does_not(right: str) -> None:
    assert lines_with(right, swallows_all) == []


@pytest.mark.parametrize(
    "text",
    [
        "import threading\nthreading.Thread(target=print).start()",
        "from threading import Thread",
        "make = threading.Thread",
    ],
)
def test_the_search_finds_a_thread_however_it_is_named(text: str) -> None:
    assert touches(text, "threading.Thread")
    assert not touches("import threading\nthreading.Lock()", "threading.Thread")


POSSESSIVE_GROUP = re.compile(r"\)(?:[*+?]|\{\d*,?\d*\})\+")


def test_no_pattern_has_a_possessive_group() -> None:
    """Before Python 3.11.5 such a group forgets where a failed alternative began (gh-106052)."""
    found = [
        (path, node.lineno)
        for path, text in sources()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str | bytes)
        and POSSESSIVE_GROUP.search(str(node.value))
        and _is_compiled(text, node)
    ]
    assert found == []


def _is_compiled(text: str, node: ast.Constant) -> bool:
    """Return whether a text is one of a module that compiles patterns, and no docstring."""
    return "re.compile" in text and "\n" not in str(node.value)
