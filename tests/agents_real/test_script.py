"""The script of a prompt: its lines, and which of them are played next."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.agents_real.model_server.conversation import Message, Request, play
from tests.agents_real.model_server.script import (
    Bash,
    Call,
    Fail,
    Limit,
    Say,
    Step,
    Think,
    Tool,
    Wait,
    find_tool,
    parse,
    shell_call,
    steps_after,
)

TOOLS = (Tool("mcp__aegis__term_run"), Tool("Bash"))


def request(
    *messages: Message, tools: tuple[Tool, ...] = TOOLS, wants_json: bool = False
) -> Request:
    return Request(
        model="scripted",
        system="",
        tools=tools,
        messages=messages,
        is_streamed=True,
        wants_json=wants_json,
    )


def user(*texts: str, results: Sequence[str] = ()) -> Message:
    return Message(role="user", texts=texts, results=tuple(results))


def assistant(calls: int = 0) -> Message:
    return Message(role="assistant", calls=calls)


@pytest.mark.parametrize(
    ("line", "step"),
    [
        ("SAY two words", Say("two words")),
        ("  SAY indented", Say("indented")),
        ("THINK why", Think("why")),
        ('CALL run {"cmd": "ls -l"}', Call("run", {"cmd": "ls -l"})),
        ("CALL list", Call("list", {})),
        ('ALSO run {"cmd": "ls"}', Call("run", {"cmd": "ls"}, joins=True)),
        ("BASH echo a | wc", Bash("echo a | wc")),
        ("WAIT 0.5", Wait(0.5)),
        ("ERROR 529", Fail(529)),
        ("ERROR 529 2", Fail(529, 2)),
        ("LIMIT", Limit(3600)),
        ("LIMIT 60", Limit(60)),
    ],
)
def test_a_line_is_a_step(line: str, step: Step) -> None:
    assert parse(f"> from human\n{line}\nno step") == (step,)


@pytest.mark.parametrize("line", ["CALL run {", "CALL run []", "CALL", "WAIT long", "ERROR soon"])
def test_a_malformed_line_is_quoted_in_the_answer(line: str) -> None:
    [step] = parse(line)
    assert isinstance(step, Say)
    assert repr(line.strip()) in step.text


def test_an_answer_ends_with_its_calls() -> None:
    steps = parse("SAY a\nCALL x\nALSO y\nSAY b\nBASH z\nSAY c")
    a, x, y, b, z, c = steps
    assert steps_after(steps, 0) == [a, x, y]
    assert steps_after(steps, 2) == [b, z]
    assert steps_after(steps, 3) == [c]
    assert steps_after(steps[:5], 3) == []


@pytest.mark.parametrize("name", ["run", "aegis_run", "mcp__aegis_run"])
def test_a_tool_is_found_by_the_end_of_its_name(name: str) -> None:
    tools = [Tool("other"), Tool("mcp__aegis_run")]
    assert find_tool(tools, name) == tools[1]


def test_an_exact_name_is_preferred_and_an_unknown_one_is_kept() -> None:
    tools = [Tool("mcp__aegis__run"), Tool("run")]
    assert find_tool(tools, "run") == tools[1]
    assert find_tool(tools, "un") == Tool("un")


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        (Tool("Bash", {"properties": {"command": {}}}), {"command": "ls"}),
        (Tool("exec_command", {"properties": {"cmd": {"type": "string"}}}), {"cmd": "ls"}),
        (
            Tool("shell", {"properties": {"command": {"type": "array"}}}),
            {"command": ["bash", "-c", "ls"]},
        ),
        (
            Tool("bash", {"properties": {"command": {}, "description": {}}}),
            {"command": "ls", "description": "Run a command"},
        ),
    ],
)
def test_bash_calls_the_shell_tool_that_is_offered(tool: Tool, arguments: dict[str, str]) -> None:
    assert shell_call([Tool("other"), tool], "ls") == Call(tool.name, arguments)


def test_the_calls_since_the_prompt_decide_what_is_played() -> None:
    prompt = user("CALL term_run {}\nSAY one\nBASH ls\nSAY two")
    older = [user("CALL term_run {}"), assistant(1), user(results=["x"]), assistant()]
    first = Call("mcp__aegis__term_run", {})
    assert play(request(*older, prompt), {}) == [first]
    then = [prompt, assistant(1), user("<system-reminder>SAY no</system-reminder>", results=["x"])]
    assert play(request(*older, *then), {}) == [Say("one"), Call("Bash", {"command": "ls"})]
    last = [*then, assistant(1), user(results=["y"])]
    assert play(request(*older, *last), {}) == [Say("two")]
    assert play(request(*older, *last, assistant(1)), {}) == [Say("done")]


def test_of_a_cancelled_prompt_and_the_next_in_one_message_the_next_is_played() -> None:
    assert play(request(user("WAIT 100", "SAY next")), {}) == [Say("next")]


def test_a_prompt_that_comes_with_a_result_replaces_the_script() -> None:
    messages = [user("CALL term_run {}\nSAY old"), assistant(1), user("SAY new", results=["x"])]
    assert play(request(*messages), {}) == [Say("new")]


def test_a_message_without_a_script_is_quoted() -> None:
    done = [user("WAIT 100\nSAY old"), assistant()]
    assert play(request(*done, user("Hello?")), {}) == [Say("heard: Hello?")]


@pytest.mark.parametrize(("wants_json", "text"), [(False, "ok"), (True, "{}")])
def test_a_request_without_tools_plays_no_script(wants_json: bool, text: str) -> None:
    asked = request(user("SAY title"), tools=(), wants_json=wants_json)
    assert play(asked, {}) == [Say(text)]
