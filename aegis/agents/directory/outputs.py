"""``AgentOutputs``: the output of one session's commands, of open and of released ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs
import trio

from actors import ActorError, Reply, System
from aegis.agents.directory.following import ref_of_command
from aegis.agents.directory.roster import Member
from aegis.agents.sessions.command_outputs import CommandOutputs
from aegis.errors import AegisError, NotFound, Unavailable
from aegis.protocol.agent_commands import AgentOutput, ReadAgentOutput
from aegis.protocol.feeds import AgentCommandNews, FollowAgentCommand
from aegis.protocol.terminals import AgentCommand

AGAIN_S = 0.2
"""Seconds until a command that has just been released is stored."""

ASK_S = 5.0

MAX_PARTS = 32
"""Answers of a command, of at most 64 KiB each, that make one reply: more than it keeps."""


@attrs.frozen(kw_only=True)
class AgentOutputs:
    """The outputs of ``member``, whose supervisor is at ``subtree``.

    ``stored`` are those of released commands; ``commands`` returns the open ones of all agents.
    """

    system: System
    subtree: str
    member: Member
    stored: CommandOutputs
    commands: Callable[[], Sequence[AgentCommand]]

    async def answer(self, request: ReadAgentOutput, reply: Reply[AgentOutput]) -> None:
        """Answer a request for the output of a command."""
        try:
            reply.send(await self._read(request))
        except AegisError as error:
            reply.fail(error)
        except ActorError as error:
            reply.fail(Unavailable(f"the command did not answer: {error}"))

    async def _read(self, request: ReadAgentOutput) -> AgentOutput:
        title = self._title(request.command)
        try:
            return await self._of_open(request, title)
        except (NotFound, ActorError):
            found = await self._of_released(request)
        if found is None:
            await trio.sleep(AGAIN_S)
            found = await self._of_released(request)
        return found or await self._of_open(request, title)

    def _title(self, id_: str) -> str:
        handle = self.member.handle
        found = [each for each in self.commands() if (each.agent, each.id) == (handle, id_)]
        return found[0].command if found else ""

    async def _of_open(self, request: ReadAgentOutput, title: str) -> AgentOutput:
        """Return the output of an open command. Raises ``NotFound``, ``ActorError``."""
        news = await self._news(request, request.cursor)
        begin, parts = news.begin, [news.text]
        while news.text and len(parts) < MAX_PARTS:  # a command may print without end
            before = news.cursor
            news = await self._news(request, before)
            if news.begin > before:
                begin, parts = news.begin, []
            parts.append(news.text)
        return AgentOutput(
            handle=self.member.handle,
            id=request.command,
            command=title,
            output="".join(parts),
            line=news.line,
            begin=begin,
            cursor=news.cursor,
            has_ended=news.has_ended,
            exit_code=news.exit_code,
            signal=news.signal,
            released=False,
        )

    async def _news(self, request: ReadAgentOutput, cursor: int) -> AgentCommandNews:
        ask = FollowAgentCommand(handle=self.member.handle, command=request.command, cursor=cursor)
        ref = ref_of_command(self.system, self.subtree, self.member, ask)
        news: AgentCommandNews = await ref.ask(ask, timeout=ASK_S)
        return news

    async def _of_released(self, request: ReadAgentOutput) -> AgentOutput | None:
        """Return the output of a released command; None if it is not kept."""
        found = await self.stored.read(request.command)
        if found is None:
            return None
        begin, text = found.since(request.cursor)
        return AgentOutput(
            handle=self.member.handle,
            id=request.command,
            command=found.command,
            output=text,
            line="",
            begin=begin,
            cursor=begin + len(text.encode()),
            has_ended=True,
            exit_code=found.exit_code,
            signal=found.signal,
            released=True,
        )
