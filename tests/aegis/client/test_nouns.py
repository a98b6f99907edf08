"""The methods of both clients, held against the one command set."""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

import attrs
import pytest
import trio

from actors.codec import resolved_fields
from aegis.client import blocking, nouns
from aegis.client.blocking import agents as blocking_agents
from aegis.client.blocking import canvases as blocking_canvases
from aegis.client.blocking import daemon as blocking_daemon
from aegis.client.blocking import groups as blocking_groups
from aegis.client.blocking import inboxes as blocking_inboxes
from aegis.client.blocking import queues as blocking_queues
from aegis.client.blocking import requests as blocking_requests
from aegis.client.blocking import terminals as blocking_terminals
from aegis.client.blocking import workflows as blocking_workflows
from aegis.client.blocking import workspaces as blocking_workspaces
from aegis.client.blocking.client import BlockingClient
from aegis.client.client import Client
from aegis.client.nouns import (
    agents,
    canvases,
    daemon,
    groups,
    inboxes,
    queues,
    requests,
    terminals,
    workflows,
    workspaces,
)
from aegis.protocol.command import Command
from aegis.protocol.entry import Entry
from aegis.protocol.table import BY_COMMAND, COMMANDS

ASYNC: tuple[type, ...] = (
    terminals.Terminals,
    workspaces.Shells,
    workspaces.Workspaces,
    agents.Agents,
    inboxes.Inboxes,
    requests.Requests,
    queues.Queues,
    canvases.Canvases,
    workflows.Workflows,
    groups.Groups,
    daemon.Sessions,
    daemon.Pages,
    daemon.Push,
    daemon.Daemon,
    daemon.Tree,
)
BLOCKING: tuple[type, ...] = (
    blocking_terminals.Terminals,
    blocking_workspaces.Shells,
    blocking_workspaces.Workspaces,
    blocking_agents.Agents,
    blocking_inboxes.Inboxes,
    blocking_requests.Requests,
    blocking_queues.Queues,
    blocking_canvases.Canvases,
    blocking_workflows.Workflows,
    blocking_groups.Groups,
    blocking_daemon.Sessions,
    blocking_daemon.Pages,
    blocking_daemon.Push,
    blocking_daemon.Daemon,
)
STREAMS = {"watch", "follow", "events", "command_output"}
"""Methods that are no commands."""

Method = tuple[type, str]


class Recorder:
    """Takes calls in place of either session."""

    handle = None

    def __init__(self) -> None:
        self.made: list[tuple[type[Command[Any]], dict[str, object]]] = []

    def call(self, command: type[Command[Any]], arguments: dict[str, object]) -> object:
        self.made.append((command, arguments))
        return types.SimpleNamespace(__await__=None)


class AsyncRecorder(Recorder):
    async def call(self, command: type[Command[Any]], arguments: dict[str, object]) -> object:
        return super().call(command, arguments)


def methods(classes: tuple[type, ...]) -> Iterator[Method]:
    for cls in classes:
        for name, value in vars(cls).items():
            if callable(value) and not name.startswith("_") and name not in STREAMS:
                yield cls, name


def called(method: Method, **arguments: object) -> tuple[Entry, dict[str, object]]:
    """Which command a method calls, and with what."""
    cls, name = method
    recorder = AsyncRecorder() if cls in ASYNC else Recorder()
    bound = getattr(cls(recorder), name)
    if inspect.iscoroutinefunction(bound):

        async def run() -> None:
            await bound(**arguments)

        trio.run(run)
    else:
        bound(**arguments)
    [(command, given)] = recorder.made
    return BY_COMMAND[command], given


def signature(method: Method) -> tuple[list[inspect.Parameter], Callable[..., object]]:
    function = getattr(*method)
    return list(inspect.signature(function).parameters.values())[1:], function


def given_to(method: Method) -> dict[str, object]:
    """Something else for every argument."""
    return {each.name: object() for each in signature(method)[0]}


def without_none(form: object) -> object:
    if get_origin(form) in (Union, types.UnionType):
        [inner] = [each for each in get_args(form) if each is not type(None)]
        return inner
    return form


def is_set_by_the_owner(field: attrs.Attribute[Any]) -> bool:
    """Whether its default is the daemon's to say."""
    return "setting" in field.metadata


@pytest.mark.parametrize("classes", [ASYNC, BLOCKING], ids=["async", "blocking"])
def test_each_command_has_exactly_one_method(classes: tuple[type, ...]) -> None:
    found = [called(method, **given_to(method))[0].name for method in methods(classes)]
    assert sorted(found) == sorted(entry.name for entry in COMMANDS)


@pytest.mark.parametrize(
    "method", list(methods(ASYNC + BLOCKING)), ids=lambda m: f"{m[0].__module__}.{m[1]}"
)
def test_a_method_has_the_arguments_of_its_command(method: Method) -> None:
    given = given_to(method)
    entry, passed = called(method, **given)
    assert passed == given, "each argument goes to the one of its name"
    parameters, function = signature(method)
    hints = get_type_hints(function)
    fields = [each for each in resolved_fields(entry.command) if each.name != "from_handle"]
    assert {each.name for each in parameters} == {each.name for each in fields}
    required = [each.name for each in fields if each.default is attrs.NOTHING]
    assert [each.name for each in parameters if each.default is each.empty] == required
    by_name = {each.name: each for each in parameters}
    for field in fields:
        parameter, hint = by_name[field.name], hints[field.name]
        if field.default is attrs.NOTHING:
            assert parameter.kind is parameter.POSITIONAL_OR_KEYWORD
            assert hint == field.type
        elif isinstance(field.default, attrs.Factory) or is_set_by_the_owner(field):  # type: ignore[arg-type]
            assert parameter.default is None
            assert without_none(hint) == without_none(field.type)
        else:
            assert parameter.kind is parameter.KEYWORD_ONLY
            assert (type(parameter.default), parameter.default) == (
                type(field.default),
                field.default,
            )
            assert hint == field.type
    assert hints["return"] is entry.reply


@pytest.mark.parametrize("method", list(methods(ASYNC)), ids=lambda m: f"{m[0].__name__}.{m[1]}")
def test_both_faces_have_the_same_methods(method: Method) -> None:
    cls, name = method
    [twin] = [each for each in BLOCKING if each.__name__ == cls.__name__]
    mine, theirs = getattr(cls, name), getattr(twin, name)
    assert inspect.iscoroutinefunction(mine)
    assert not inspect.iscoroutinefunction(theirs)
    assert inspect.signature(mine) == inspect.signature(theirs)
    assert mine.__doc__ == theirs.__doc__


def test_the_reference_has_each_method_in_the_row_of_its_noun() -> None:
    page = Path(__file__).parents[3] / "docs" / "reference" / "python.md"
    rows = re.findall(r"^\| `client\.(\w+)` \| (.*) \|$", page.read_text(), re.MULTILINE)
    shown = {noun: sorted(re.findall(r"`(\w+)`", cells)) for noun, cells in rows}
    found: dict[str, list[str]] = {}
    for cls, name in methods(ASYNC):
        found.setdefault(cls.__name__.lower(), []).append(name)
    found["daemon"] += found.pop("tree", [])
    assert shown == {noun: sorted(names) for noun, names in found.items()}


def test_every_file_of_a_noun_is_looked_at() -> None:
    for package, classes in ((nouns, ASYNC), (blocking, BLOCKING)):
        [folder] = package.__path__
        held = {cls.__module__.rpartition(".")[2] for cls in classes}
        there = {path.stem for path in Path(folder).glob("*.py")}
        assert there - held <= {
            "__init__",
            "noun",
            "session",
            "client",
            "agent_streams",
            "request_stream",
        }


def test_both_clients_have_the_same_nouns() -> None:
    hints = [
        {name for name in vars(cls(Recorder())) if not name.startswith("_")}  # type: ignore[arg-type]
        for cls in (Client, BlockingClient)
    ]
    assert hints[0] - hints[1] == {"tree"}, "which only has a stream"
    assert hints[1] <= hints[0]
