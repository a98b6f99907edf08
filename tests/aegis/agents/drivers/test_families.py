"""Drivers with the real machines of both families: scripted stand-ins, and recordings played."""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import Any

import attrs
import pytest

from aegis.agents.drivers.acp.machine import Acp
from aegis.agents.drivers.acp.options import AcpOptions
from aegis.agents.drivers.claude.machine import Claude
from aegis.agents.drivers.cookie import cookie_of_driver
from aegis.agents.drivers.harness import Beginning
from aegis.agents.messages import (
    DriverEnded,
    DriverFailed,
    DriverReady,
    InterruptTurn,
    McpConnected,
    SendAnswer,
)
from aegis.agents.profiles.families import start_of
from aegis.agents.profiles.profile import profile_of
from aegis.configuration.agents import AgentSection
from aegis.protocol.agent_events import (
    OptionKind,
    PermissionAnswer,
    RequestOpened,
    RequestWithdrawn,
    SystemInit,
    ToolResult,
)
from tests.aegis.agents.drivers.driving import MAIN, URL, Driven, driven, plan_for

pytestmark = pytest.mark.real

RECORDINGS = Path(__file__).parents[1] / "recordings"


def machine(family: str) -> Any:
    """The factory of a family's machine."""
    return Acp if family == "acp" else Claude


async def opened(it: Driven) -> RequestOpened:
    await it.log.until(lambda: any(isinstance(each, RequestOpened) for each in it.log.events))
    return next(each for each in it.log.events if isinstance(each, RequestOpened))


both = pytest.mark.parametrize("family", ["claude", "acp"])


@both
async def test_a_turn_has_texts_and_a_result(tmp_path: Path, family: str) -> None:
    async with driven(plan_for(tmp_path, family, make_harness=machine(family))) as it:
        ready = await it.log.first(DriverReady)
        await it.turn("SAY one\nSAY two")
        await it.log.until(lambda: bool(it.log.results))
        assert it.log.texts == ["one", "two"]
        assert [(each.messages, each.ok) for each in it.log.results] == [(["u1"], True)]
        assert ready.capabilities.can_resume
        ended = await it.close()
    assert ended.exit_code == 0


@both
@pytest.mark.parametrize(("kind", "text"), [("allow_once", "ran touch x"), ("deny", None)])
async def test_a_permission_is_answered(
    tmp_path: Path, family: str, kind: OptionKind, text: str | None
) -> None:
    async with driven(plan_for(tmp_path, family, make_harness=machine(family))) as it:
        await it.turn("ASK touch x\nSAY after")
        request = await opened(it)
        assert request.input == {"command": "touch x"}
        answer = SendAnswer(request=request.id, answer=PermissionAnswer(kind=kind))
        assert await it.driver.ask(answer) is None
        assert await it.driver.ask(answer) is not None
        await it.log.text("after")
        results = [each for each in it.log.events if isinstance(each, ToolResult)]
        assert [each.is_error for each in results] == [kind == "deny"]
        assert text is None or results[0].text == text


@pytest.mark.parametrize("old", ["1", "frames"])
async def test_an_older_claude_code_gets_our_server_too_and_no_secret_is_left(
    tmp_path: Path, old: str
) -> None:
    profile = profile_of(
        "old", AgentSection(provider="claude", command=(sys.executable, str(MAIN), "claude"))
    )
    beginning = Beginning(cwd=str(tmp_path), mcp_url=URL, primer="you are pm")
    how = start_of(profile, beginning, {}, tmp_path)
    plan = how.plan(
        {"STAND_IN_OLD": old},
        agent="claude",
        beginning=beginning,
        inherited={},
        launch=1,
        cookie=cookie_of_driver(str(tmp_path), token_hex(8), 1),
        directory=tmp_path,
    )
    async with driven(plan) as it:
        await it.log.first(DriverReady)
        assert not (tmp_path / "mcp.json").exists()
        await it.turn("ENVIRON\nSAY used")
        await it.log.text("used")
        *_, init = [each for each in it.log.events if isinstance(each, SystemInit)]
        assert init.mcp_servers == {"aegis": "connected"}
        assert ("you are pm" in it.log.texts[0]) == (old == "1")
        assert URL not in it.log.texts[0]
        ended = await it.close()
    assert ended.exit_code == 0
    assert not [each for each in it.log.reports if isinstance(each, DriverFailed)]


async def test_a_turn_waits_for_our_server_and_for_a_limited_time(tmp_path: Path) -> None:
    make = partial(Acp, options=AcpOptions(waits_for_mcp=True))
    plan = plan_for(tmp_path, "acp", make_harness=make, mcp_within_s=0.2)
    async with driven(plan) as it:
        await it.turn("SAY one")
        await it.log.until(lambda: bool(it.log.results))
        inits = [each for each in it.log.events if isinstance(each, SystemInit)]
        assert inits[-1].mcp_servers == {"aegis": "not connected"}
        # The turn was held until that was noted.
        assert it.log.events.index(inits[-1]) < it.log.events.index(it.log.results[0])


async def test_a_turn_is_sent_when_the_agent_has_listed_our_tools(tmp_path: Path) -> None:
    make = partial(Acp, options=AcpOptions(waits_for_mcp=True))
    async with driven(plan_for(tmp_path, "acp", make_harness=make, mcp_within_s=1e6)) as it:
        await it.turn("SAY one")
        assert await it.driver.ask(McpConnected()) is None
        await it.log.text("one")


async def test_a_program_that_refuses_another_argument_is_not_started_again(
    tmp_path: Path,
) -> None:
    plan = plan_for(tmp_path, argv=["sh", "-c", "echo \"unknown option '--model'\" >&2; exit 1"])
    plan = attrs.evolve(plan, older=plan_for(tmp_path), refusal="unknown option '--await'")
    async with driven(plan) as it:
        failed = await it.log.first(DriverFailed)
        assert "unknown option '--model'" in failed.reason


@both
async def test_an_interrupt_withdraws_the_request_and_ends_the_turn(
    tmp_path: Path, family: str
) -> None:
    async with driven(plan_for(tmp_path, family, make_harness=machine(family))) as it:
        await it.turn("ASK touch x\nSAY never")
        request = await opened(it)
        assert await it.driver.ask(InterruptTurn()) is None
        await it.log.until(lambda: bool(it.log.results))
        assert not it.log.results[0].ok
        withdrawn = [each.id for each in it.log.events if isinstance(each, RequestWithdrawn)]
        assert withdrawn == [request.id]
        await it.turn("SAY usable", "u2")
        await it.log.text("usable")
        assert "never" not in it.log.texts


@both
async def test_the_death_of_the_agent_withdraws_its_requests(tmp_path: Path, family: str) -> None:
    async with driven(plan_for(tmp_path, family, make_harness=machine(family))) as it:
        await it.turn("SPAWN setsid\nASK touch x")
        request = await opened(it)
        (agent,) = [it.pid_of_agent()]
        it.kill(agent)
        ended = await it.log.first(DriverEnded)
        assert ended.exit_code == -9
        withdrawn = [each.id for each in it.log.events if isinstance(each, RequestWithdrawn)]
        assert withdrawn == [request.id]
        assert it.processes == []


@both
async def test_a_flood_is_complete_and_its_result_the_last(tmp_path: Path, family: str) -> None:
    async with driven(plan_for(tmp_path, family, make_harness=machine(family))) as it:
        await it.turn("FLOOD 3000")
        await it.log.until(lambda: bool(it.log.results))
        assert it.log.texts == [f"event {number}" for number in range(3000)]


PLAYED = (
    "claude_await_initialize",
    "claude_permission_allow",
    "acp_claude_turn",
    "acp_claude_permission",
    "acp_codex_turn",
    "acp_gemini_turn",
    "acp_gemini_permission",
    "acp_kimi_turn",
    "acp_opencode_turn",
)

WITHOUT_MCP = ("claude_permission_allow",)


@pytest.mark.parametrize("name", PLAYED)
async def test_a_recorded_agent_is_driven_to_the_end_of_its_recording(
    tmp_path: Path, name: str
) -> None:
    path = RECORDINGS / f"{name}.jsonl"
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    prompts = [text for line in lines[1:] if line["d"] == ">" if (text := prompt_of(line["f"]))]
    family = name.partition("_")[0]
    assert prompts
    make = partial(Acp, options=AcpOptions(needs_mode=False)) if family == "acp" else Claude
    url = "" if name in WITHOUT_MCP else URL
    beginning = Beginning(cwd=str(tmp_path), mcp_url=url)
    plan = plan_for(tmp_path, "play", str(path), make_harness=make, beginning=beginning)
    async with driven(plan) as it:
        answered = set[str]()
        for number, prompt in enumerate(prompts):
            await it.turn(prompt, f"u{number}")
            while len(it.log.results) <= number:
                await it.log.until(
                    lambda: len(it.log.results) > number or bool(unanswered(it, answered))  # noqa: B023
                )
                for request in unanswered(it, answered):
                    answered.add(request.id)
                    allow = PermissionAnswer(kind="allow_once")
                    await it.driver.ask(SendAnswer(request=request.id, answer=allow))
        assert [each.messages for each in it.log.results] == [
            [f"u{n}"] for n in range(len(prompts))
        ]
        await it.close()


def prompt_of(frame: dict[str, Any]) -> str:
    if frame.get("method") == "session/prompt":
        return "\n".join(each["text"] for each in frame["params"]["prompt"])
    if frame.get("type") == "user":
        content = frame["message"]["content"]
        return content if isinstance(content, str) else "\n".join(e["text"] for e in content)
    return ""


def unanswered(it: Driven, answered: set[str]) -> list[RequestOpened]:
    opened = [each for each in it.log.events if isinstance(each, RequestOpened)]
    return [each for each in opened if each.id not in answered]
