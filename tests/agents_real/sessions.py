"""A driver with the real machine of a provider, and turns over it."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from secrets import token_hex

import attrs
import trio

from aegis.agents.directory.project_code import project_code
from aegis.agents.directory.user_world import user_world
from aegis.agents.drivers.cookie import cookie_of_driver
from aegis.agents.drivers.harness import Beginning
from aegis.agents.drivers.plan import DriverPlan
from aegis.agents.messages import (
    DriverFailed,
    DriverReady,
    InterruptTurn,
    McpConnected,
    SendAnswer,
)
from aegis.agents.profiles.families import start_of
from aegis.agents.profiles.profile import process_variables, profile_of
from aegis.configuration.agents import AgentSection
from aegis.protocol.agent_events import (
    AgentEvent,
    AssistantText,
    PermissionAnswer,
    RequestOpened,
    RequestWithdrawn,
    Result,
    SystemInit,
)
from tests.aegis.agents.drivers.driving import Driven, client_for, driven
from tests.agents_real.bench import Bench
from tests.agents_real.clis import Cli
from tests.agents_real.footprint import descendants

PRIMER = "The primer of this session."

STARTED = (DriverReady, DriverFailed)

Signal = Callable[[], Awaitable[None]]
"""Returns when a turn is to be interrupted."""


@attrs.frozen(kw_only=True)
class Turn:
    """The end of one turn, its texts, and all of its events."""

    result: Result
    text: str
    events: list[AgentEvent]

    @property
    def asked(self) -> list[RequestOpened]:
        """The requests that it opened."""
        return [each for each in self.events if isinstance(each, RequestOpened)]

    @property
    def end(self) -> str:
        """How it ended, for a table."""
        return f"{self.result.reason}, {'ok' if self.result.ok else 'not ok'}"


@attrs.define
class RealSession:
    """A session with a real agent."""

    it: Driven
    _answered: set[str] = attrs.field(factory=set)

    async def turn(
        self, text: str, *, allow: bool | None = True, interrupt: Signal | None = None
    ) -> Turn:
        """Play one turn to its end; permissions get the same answer, or none if that is None."""
        name = str(uuid.uuid4())
        first = len(self.it.log.events)
        await self.it.turn(text, name)
        async with trio.open_nursery() as nursery:
            if interrupt is not None:
                nursery.start_soon(self._interrupt, interrupt)
            result = await self._until_end(name, allow)
            nursery.cancel_scope.cancel()
        events = self.it.log.events[first:]
        return Turn(
            result=result,
            text="".join(each.text for each in events if isinstance(each, AssistantText)),
            events=events,
        )

    async def _interrupt(self, when: Signal) -> None:
        await when()
        assert await self.it.driver.ask(InterruptTurn()) is None

    async def _until_end(self, name: str, allow: bool | None) -> Result:
        refusal = PermissionAnswer(kind="deny", message="Refused by the test.")
        answer = PermissionAnswer(kind="allow_once") if allow else refusal
        while True:
            await self.it.log.until(
                lambda: bool(self._results(name) or (allow is not None and self.open()))
            )
            for request in self.open() if allow is not None else ():
                self._answered.add(request.id)
                await self.it.driver.ask(SendAnswer(request=request.id, answer=answer))
            if results := self._results(name):
                return results[0]

    async def wait_open(self) -> None:
        """Wait until a request is open."""
        await self.it.log.until(lambda: bool(self.open()))

    def open(self) -> list[RequestOpened]:
        """Return the requests that were neither answered nor withdrawn."""
        events = self.it.log.events
        withdrawn = {each.id for each in events if isinstance(each, RequestWithdrawn)}
        opened = [each for each in events if isinstance(each, RequestOpened)]
        return [each for each in opened if each.id not in self._answered | withdrawn]

    def _results(self, name: str) -> list[Result]:
        return [each for each in self.it.log.results if name in each.messages]

    @property
    def conversation(self) -> str:
        """The agent's own name of the conversation, as it was reported last."""
        inits = [each for each in self.it.log.events if isinstance(each, SystemInit)]
        return inits[-1].conversation

    def pids(self) -> list[int]:
        """Return the agent's processes, the first one first, without the guard.

        Not by a variable: kimi overwrites its environment with a title.
        """
        return descendants(self.it.pid_of_guard())[1:]


class AgentRefused(Exception):
    """The agent cannot be used; ``failed`` is the driver's report."""

    def __init__(self, failed: DriverFailed) -> None:
        super().__init__(failed.reason)
        self.failed = failed


@asynccontextmanager
async def real_session(
    cli: Cli,
    bench: Bench,
    url: str,
    conversation: str | None = None,
    *,
    section: AgentSection | None = None,
    is_trusted: bool = True,
) -> AsyncIterator[RealSession]:
    """Start an agent with the MCP server at ``url``, in a conversation that it has or a new one.

    ``section`` is its profile in the configuration; None: the defaults of its provider.
    ``is_trusted``: a person trusts the settings of the directory as they are.
    Raises ``NotInstalled`` or ``AgentRefused``.
    """
    profile = section or AgentSection(provider=cli.name)
    plan = _plan(cli, bench, url, conversation, profile, is_trusted=is_trusted)
    failed = None
    async with driven(plan, client_for(plan)) as it:
        await it.log.until(lambda: any(isinstance(each, STARTED) for each in it.log.reports))
        failed = next((each for each in it.log.reports if isinstance(each, DriverFailed)), None)
        if failed is None:
            # There is no session here that notices it; codex starts MCP servers beside its first
            # turn.
            await it.driver.ask(McpConnected())
            yield RealSession(it)
            return
    raise AgentRefused(failed)


def _plan(
    cli: Cli,
    bench: Bench,
    url: str,
    conversation: str | None,
    section: AgentSection,
    *,
    is_trusted: bool,
) -> DriverPlan:
    given = profile_of(cli.name, section)
    command = bench.namespace.command(*cli.command(), *given.command[1:])
    inherited = cli.environment(bench.home, bench.model.url)
    code = project_code(cli.name, str(bench.work), str(bench.home))
    trusted = code.digests if is_trusted else ()
    world = user_world(
        attrs.evolve(given, command=tuple(command)), str(bench.work), inherited, trusted
    )
    profile = world.profile
    beginning = Beginning(
        cwd=str(bench.work),
        mcp_url=url,
        primer="\n\n".join([PRIMER, *world.texts]),
        conversation=conversation,
        model=profile.model,
        effort=profile.effort,
        servers=world.servers,
        reads_project=world.reads_project,
    )
    # The driver's files are beside the directory of the agent, as in a daemon.
    bench.session.mkdir(exist_ok=True)
    how = start_of(profile, beginning, inherited, bench.session)
    return how.plan(
        process_variables(profile, inherited, token_hex),
        agent=cli.name,
        beginning=beginning,
        inherited=inherited,
        launch=1,
        cookie=cookie_of_driver(str(bench.session), token_hex(16), 1),
        directory=bench.session,
        notices=world.notices,
        eof_s=3.0,
        term_s=10.0,
    )
