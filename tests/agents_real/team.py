"""A daemon that drives real agent CLIs offline, and a small project for them to work on."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs
import yaml

from tests.agents_real.bench import DaemonInside
from tests.agents_real.clis import Cli, node
from tests.agents_real.footprint import descendants
from tests.agents_real.model import Model, scripted_model
from tests.agents_real.model_server.script import Json
from tests.agents_real.namespace import Namespace, loopback_only, namespace_or_skip
from tests.e2e.harness import PROGRAM, DaemonProcess, processes_with

MODULE = """\
def total(prices):
    return sum(prices)


def discount(price, percent):
    return price - percent
"""

TESTS = """\
from cart import discount, total


def test_total():
    assert total([2, 3]) == 5


def test_discount():
    assert discount(200, 10) == 180
"""


@attrs.frozen(kw_only=True)
class Team:
    """A daemon with the CLIs of agents on its PATH, and the model that they ask."""

    daemon: DaemonProcess
    model: Model
    namespace: Namespace

    def call(self, command: str, /, **arguments: object) -> dict[str, Any]:
        """Return the reply to a command."""
        return self.daemon.call(command, **arguments)

    def info(self, handle: str) -> Json:
        """Return the state of a session."""
        return self.daemon.look("agent_show", handle=handle)

    def entries(self, handle: str, *kinds: str) -> list[Json]:
        """Return the entries of a transcript with these kinds."""
        found = self.daemon.look("session_read", handle=handle, last_n=1000)["result"]
        return [each["fields"] | {"seq": each["seq"]} for each in found if each["kind"] in kinds]

    def events(self, handle: str, *types: str) -> list[Json]:
        """Return the agent's events with these types."""
        events = [each["event"] for each in self.entries(handle, "event")]
        return [each for each in events if each["type"] in types]

    def text(self, handle: str, turn: int | None = None) -> str:
        """Return all that the agent wrote, the turns one after the other, or in one turn."""
        entries = self.entries(handle, "event")
        events = [each["event"] for each in entries if turn in (None, each["turn"])]
        return "\n".join(each["text"] for each in events if each["type"] == "assistant_text")

    def outcomes(self, handle: str) -> list[str]:
        """Return the outcomes of the turns that have ended."""
        return [each["outcome"] for each in self.entries(handle, "turn_ended")]

    def requests(self, handle: str | None = None, state: str = "open") -> list[Json]:
        """Return the requests at the desk."""
        found: list[Json] = self.call("request_list", handle=handle, state=state)["requests"]
        return found

    def pids(self) -> list[int]:
        """Return the processes of agents, the guards too, by their cookie or their parents."""
        marked = [int(each.split()[0]) for each in self._marked()]
        # Not by the cookie alone: kimi overwrites its environment with a title.
        return list(dict.fromkeys(below for pid in marked for below in descendants(pid)))

    def agent(self) -> int:
        """Return the process of the only agent's program, the child of its guard."""
        [agent] = self.guarded()
        return agent

    def guarded(self) -> list[int]:
        """Return the programs below guards, the first one first: agents and their commands."""
        guards = [int(each.split()[0]) for each in self._marked() if "guard.py" in each]
        return [descendants(guard)[1] for guard in sorted(guards)]

    def _marked(self) -> list[str]:
        return processes_with(f"AEGIS_TERMINAL={self.daemon.root}//")


@contextmanager
def new_team(directory: Path, clis: Iterable[Cli], profiles: Json) -> Iterator[Team]:
    """Start a daemon in a project with a test that passes and one that fails.

    ``profiles`` are those of its configuration. Skip the test where there can be no namespace.
    """

    def prepare(root: Path) -> None:
        (root / "cart.py").write_text(MODULE)
        (root / "test_cart.py").write_text(TESTS)
        (root / ".aegis.yaml").write_text(yaml.safe_dump({"agents": profiles}))

    with team_in(directory, clis, prepare) as team:
        yield team


@contextmanager
def team_in(
    directory: Path, clis: Iterable[Cli], prepare: Callable[[Path], None]
) -> Iterator[Team]:
    """Start a daemon in the project that ``prepare`` writes into its root."""
    namespace_or_skip()
    with loopback_only() as namespace, scripted_model(namespace, directory) as model:
        daemon = DaemonInside(directory, namespace)
        prepare(daemon.root)
        daemon.variables = _variables(clis, daemon.home, model.url)
        daemon.start("--port", "0", "--trust")
        try:
            yield Team(daemon=daemon, model=model, namespace=namespace)
        finally:
            daemon.stop()


def _variables(clis: Iterable[Cli], home: Path, url: str) -> dict[str, str]:
    """Return the environment of a user who has installed and configured these CLIs."""
    variables: dict[str, str] = {}
    paths = [str(PROGRAM.parent), str(node().parent)]
    for cli in clis:
        paths.append(str(Path(cli.command()[-1]).parent))
        variables |= cli.configure(home, url)
    paths.append(os.environ.get("PATH", os.defpath))
    return {**variables, "PATH": os.pathsep.join(paths)}
