"""The only import of tractor in the project.

While tractor's modules are imported, ``sys.modules`` holds a stand-in for ``trio``. They keep it;
afterwards it holds the real one again. Libraries that tractor uses are imported before, so
that they see the real Trio. During the import an empty module also replaces pdbpp, an unwanted
debugger; Trio itself replaces trio_typing; and contextlib replaces async_generator, whose context
managers warn on Python 3.12. The environment variable with which tractor would redirect
``breakpoint()``, here and in child processes, goes to a dictionary of its own.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import inspect
import logging
import os
import pdb
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from typing import Any

import attrs
import trio

from actors.errors import NodeError, NodesNotInstalled
from actors.nodes.compat import needs
from actors.nodes.compat.error_groups import MultiError
from actors.nodes.compat.events import Event, have_truth
from actors.nodes.compat.messaging import MessageTransport
from actors.nodes.compat.network import open_tcp_stream, serve_tcp
from actors.nodes.compat.nursery import LooseNursery
from actors.nodes.compat.process import Process, open_process
from actors.nodes.compat.proxy import ModuleProxy

FROM_CHECKOUT = "uv sync --extra nodes"
BY_PIP = (
    "pip install --no-deps tractor==0.1.0a5 && pip install async-generator tricycle"
    " 'msgspec>=0.19' colorlog wrapt"
)
"""The extra cannot be installed by pip, because tractor names a debugger by a git address."""

STAND_INS: dict[str, Any] = {
    "MultiError": MultiError,
    "open_nursery": lambda **_: LooseNursery(),
    "Event": Event,
    "Process": Process,
    "lowlevel.open_process": open_process,
    "serve_tcp": serve_tcp,
    "open_tcp_stream": open_tcp_stream,
}
"""The stand-ins that tractor gets for these names of Trio, where it needs them."""


@attrs.frozen
class Tractor:
    """The parts of tractor that are used, untyped."""

    api: Any
    entry: Any
    actor: Any
    state: Any


@cache
def load() -> Tractor:
    """Import tractor once, and return the parts that are used.

    Raises ``NodesNotInstalled`` where it is not there, ``NodeError`` where it is one that would not
    go through the authentication.
    """
    proxy = trio_for(sources_of_tractor())
    _import_what_sees_the_real_trio()
    with (
        _in_place_of("trio", proxy),
        _in_place_of("trio_typing", ModuleProxy(trio)),  # of which it wants TaskStatus, Trio's own
        _in_place_of("async_generator", ModuleProxy(contextlib)),
        _in_place_of("pdbpp", _no_debugger()),
    ):
        parts = _import_tractor()
    _settle()
    return parts


def how_to_install(package: Path = Path(__file__)) -> str:
    """Return the command that installs tractor where ``package``, a file of this one, is."""
    if (package.resolve().parents[3] / "pyproject.toml").exists():
        return f"`{FROM_CHECKOUT}` in the checkout"
    return f"`{BY_PIP}`"


def sources_of_tractor() -> list[str]:
    """The sources of the tractor that is installed; ``NodesNotInstalled`` where there is none."""
    try:
        found = importlib.util.find_spec("tractor")
    except ValueError:  # another module has its name
        found = None
    if found is None or found.origin is None:
        raise NodesNotInstalled(
            "Worker processes and other nodes need tractor, which is not installed: run"
            f" {how_to_install()}."
        )
    return [path.read_text("utf-8") for path in sorted(Path(found.origin).parent.glob("*.py"))]


def trio_for(sources: list[str]) -> ModuleType:
    """Return the module that a tractor with these sources gets as ``trio``.

    Raises ``NodeError`` when it would not go through the authentication.
    """
    used = needs.names_used(sources)
    if missing := needs.missing(used):
        raise NodeError(
            f"This tractor does not use trio.{', trio.'.join(sorted(missing))}, by which its"
            f" connections are authenticated: install the one that is pinned: {how_to_install()}."
        )
    names = {name: STAND_INS[name] for name in needs.stand_ins(used, this_trio())}
    lower = {name.split(".")[1]: names.pop(name) for name in list(names) if "." in name}
    return ModuleProxy(trio, lowlevel=ModuleProxy(trio.lowlevel, **lower), **names)


def this_trio() -> needs.Trio:
    """Return which expectations of an old tractor the installed Trio meets."""
    return needs.Trio(
        has_multi_error=hasattr(trio, "MultiError"),
        unwraps_lone_exceptions=_unwraps_lone_exceptions(trio.run),
        events_have_truth=have_truth(),
        processes_can_be_entered=hasattr(trio.Process, "__aenter__"),
    )


def _import_what_sees_the_real_trio() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in ("tricycle", "msgspec"):
            importlib.import_module(name)


def _import_tractor() -> Tractor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import tractor
        import tractor._actor
        import tractor._child
        import tractor._entry
        import tractor._state
    return Tractor(tractor, tractor._entry, tractor._actor, tractor._state)


def _unwraps_lone_exceptions(run: Callable[..., object]) -> bool:
    strict = inspect.signature(run).parameters.get("strict_exception_groups")
    return strict is not None and strict.default is False


def _settle() -> None:
    """Turn off what tractor does to its surroundings, and let it use our messages."""
    import tractor._actor
    import tractor._entry
    import tractor._ipc
    import tractor._mp_fixup_main
    import tractor._root

    use_our_messages(tractor._ipc)
    leave_surroundings_alone(tractor._mp_fixup_main, tractor._root, tractor._entry, tractor._actor)
    for name in list(logging.root.manager.loggerDict):
        if name == "tractor" or name.startswith("tractor."):
            logging.getLogger(name).disabled = True


def use_our_messages(ipc: Any) -> None:
    """Let tractor's module of connections use ours, with bounds; ``NodeError`` if it cannot."""
    if not hasattr(ipc, "MsgpackTCPStream") or not hasattr(ipc, "Channel"):
        raise NodeError(
            "This tractor does not read its messages in a way that can be bounded: install the one"
            f" that is pinned: {how_to_install()}."
        )
    ipc.MsgpackTCPStream = partial(
        MessageTransport,
        encode=ipc.msgspec.msgpack.Encoder().encode,
        decode=ipc.msgspec.msgpack.Decoder().decode,
        closed=ipc.TransportClosed,
    )
    # Not by way of a generator, which would lie about half used whenever a message is rubbish.
    ipc.Channel.__aiter__ = _messages_of


def _messages_of(channel: Any) -> Any:
    return channel.msgstream


def leave_surroundings_alone(fixup_main: Any, root: Any, entry: Any, actor: Any) -> None:
    """Keep these modules of tractor from what they would do to the process, where they would."""
    # A worker would run the program of its parent again, as ``__mp_main__``.
    _replace(fixup_main, "_mp_figure_out_main", dict)
    # PYTHONBREAKPOINT is set for this process and all that it starts.
    _replace(root, "os", ModuleProxy(os, environ={}))
    # Directories of modules, tractor's among them, are added to the path of imports.
    _replace(actor, "sys", ModuleProxy(sys, path=[]))
    _replace(entry, "get_console_log", _no_console)
    if hasattr(root, "log"):
        _replace(root, "log", ModuleProxy(root.log, get_console_log=_no_console))


def _replace(module: Any, name: str, stand_in: object) -> None:
    if hasattr(module, name):
        setattr(module, name, stand_in)


def _no_console(level: str | None = None) -> None:
    """tractor would give its logger a handler that writes to standard error."""


def _no_debugger() -> ModuleType:
    stub = ModuleType("pdbpp")
    stub.__dict__.update(Pdb=pdb.Pdb, DefaultConfig=object, xpm=lambda: None)
    return stub


@contextlib.contextmanager
def _in_place_of(name: str, stand_in: ModuleType) -> Iterator[None]:
    before = sys.modules.get(name)
    sys.modules[name] = stand_in
    try:
        yield
    finally:
        if before is None:
            del sys.modules[name]
        else:
            sys.modules[name] = before
