"""Commands that behave badly, agents that ask badly, and what a terminal leaves behind."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
import trio.testing

from aegis.agents.drivers.terminals.rules import MAX_LIMIT, MAX_WAITS, TerminalRules
from aegis.agents.drivers.terminals.service import MAX_TERMINALS
from aegis.agents.drivers.terminals.terminal import MAX_FOLLOWERS
from aegis.errors import Busy, InvalidRequest, NotFound, Unavailable
from aegis.processes.process_table import COOKIE_VARIABLE
from aegis.protocol.feeds import AgentCommandNews, FollowAgentCommand
from tests.aegis.agents.drivers.terminals.world import GUARD_S, KILLED, World, terminals_in

pytestmark = pytest.mark.real

STUBBORN = "trap '' TERM HUP; echo begun; while :; do sleep 1; done"


def is_alive(pid: int) -> bool:
    try:
        return b") Z " not in Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):  # it may be reaped within the read
        return False


async def test_a_command_has_a_tty_for_its_output_and_no_input(tmp_path: Path) -> None:
    async with terminals_in(tmp_path) as it:
        line = (
            "test -t 1 && test -t 2 && echo both; cat; (: < /dev/tty) || echo none; stty size <&1"
        )
        status, output = await it.run(line)
        assert status == {"exitCode": 0, "signal": None}
        assert output.startswith("both\n")
        assert output.endswith("none\n30 120\n")


async def test_the_environment_is_that_of_the_plan_with_the_requested_variables(
    tmp_path: Path,
) -> None:
    async with terminals_in(tmp_path, KEPT="kept", CHANGED="old", AEGIS_TOKEN="ours") as it:
        given = [{"name": "CHANGED", "value": "new"}, {"name": COOKIE_VARIABLE, "value": "forged"}]
        _, output = await it.run("env", env=given)
    found = dict(line.split("=", 1) for line in output.splitlines())
    assert (found["KEPT"], found["CHANGED"], found["PWD"]) == ("kept", "new", str(tmp_path))
    assert found[COOKIE_VARIABLE].startswith(f"{tmp_path}//")
    assert "AEGIS_TOKEN" not in found


@pytest.mark.parametrize(
    ("command", "args", "output"),
    [
        ("echo", [], "\n"),
        ("echo", ["a b", "$HOME", ";"], "a b $HOME ;\n"),
        ("echo a && echo b", [], "a\nb\n"),
        ("./run me", [], "mine\n"),
        ("./run me", ["x"], "mine x\n"),
        ("printf 'a\\rb\\n\\033[31mred\\033[0m'", [], "b\nred"),
    ],
)
async def test_a_command_is_a_program_or_a_shell_line(
    tmp_path: Path, command: str, args: list[str], output: str
) -> None:
    program = tmp_path / "run me"
    program.write_text('#!/bin/sh\necho mine "$@"\n')
    program.chmod(0o755)
    async with terminals_in(tmp_path) as it:
        assert (await it.run(command, args=args))[1] == output


async def test_the_followers_of_a_command_are_limited(tmp_path: Path) -> None:
    async with terminals_in(tmp_path) as it:
        id_ = await it.create("echo begun; sleep 1000")
        await it.printed(id_, "begun")
        ref = it.system.ref(f"root/terminals/{id_}")
        first = FollowAgentCommand(handle="a", command=id_)
        seen: AgentCommandNews = await ref.ask(first, timeout=GUARD_S)
        assert (seen.text, seen.cursor, seen.has_ended) == ("begun\n", 6, False)
        again = attrs.evolve(first, cursor=seen.cursor, seen=seen)
        waiting = [ref.send_request(again) for _ in range(MAX_FOLLOWERS)]
        with pytest.raises(Busy, match="follow command 'term_1_1' already"):
            await ref.ask(again, timeout=GUARD_S)
        await it.call("kill", id_)
        for each in waiting:
            # The second signal: the machine was too busy for the shell to end by the first.
            assert (await each.wait()).signal in {"SIGTERM", "SIGKILL"}


async def test_a_wait_that_was_given_up_leaves_room_for_others(tmp_path: Path) -> None:
    async with terminals_in(tmp_path) as it:
        id_ = await it.create("sleep 1000")
        for _ in range(2 * MAX_WAITS):
            with trio.move_on_after(0):
                await it.wait(id_)
        with trio.move_on_after(0.05) as timer:
            await it.wait(id_)
        assert timer.cancelled_caught


async def test_a_command_runs_in_the_requested_directory(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    async with terminals_in(tmp_path) as it:
        assert (await it.run("pwd", cwd=f"{tmp_path}/sub/../sub"))[1] == f"{tmp_path}/sub\n"


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"cwd": "{0}/file"}, "is no directory"),
        ({"cwd": "{0}/none"}, "does not exist"),
        ({"cwd": "/"}, "outside of the directory of the session"),
        ({"cwd": "{0}/.."}, "outside of the directory of the session"),
        ({"cwd": "{0}/link"}, "outside of the directory of the session"),
        ({"command": "no-such-program", "args": ["x"]}, "there is no program 'no-such-program'"),
        ({"env": [{"name": "A", "value": "a\0b"}]}, "has a NUL character"),
        ({"command": "\0"}, "has a NUL character"),
    ],
)
async def test_a_command_that_cannot_be_run_is_refused(
    tmp_path: Path, params: dict[str, Any], words: str
) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to("/usr")
    given = {"command": "true", **params}
    if "cwd" in given:
        given["cwd"] = given["cwd"].format(tmp_path)
    async with terminals_in(tmp_path) as it:
        with pytest.raises(InvalidRequest, match=words):
            await it.create(**given)
        assert await it.run("true") == ({"exitCode": 0, "signal": None}, "")


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("exit 255", {"exitCode": 255, "signal": None}),
        ("kill -9 $$", KILLED),
        ("kill -TERM $$", {"exitCode": None, "signal": "SIGTERM"}),
        ("kill -40 $$", {"exitCode": None, "signal": "SIG40"}),
        ("no-such-command", {"exitCode": 127, "signal": None}),
    ],
)
async def test_an_end_has_an_exit_code_or_the_name_of_a_signal(
    tmp_path: Path, line: str, status: dict[str, Any]
) -> None:
    async with terminals_in(tmp_path) as it:
        assert (await it.run(line))[0] == status


async def test_the_output_is_cut_at_its_beginning_and_at_a_character(tmp_path: Path) -> None:
    async with terminals_in(tmp_path) as it:
        id_ = await it.create("printf 'aéé'", outputByteLimit=3)
        await it.wait(id_)
        ended = await it.call("output", id_)
        assert (ended["output"], ended["truncated"]) == ("é", True)


async def test_a_limit_of_zero_keeps_nothing(tmp_path: Path) -> None:
    async with terminals_in(tmp_path) as it:
        for line, truncated in (("echo a", True), ("true", False)):
            id_ = await it.create(line, outputByteLimit=0)
            await it.wait(id_)
            ended = await it.call("output", id_)
            assert (ended["output"], ended["truncated"]) == ("", truncated)


@pytest.mark.long
async def test_the_end_of_fifty_megabytes_is_kept(tmp_path: Path) -> None:
    async with terminals_in(tmp_path) as it:
        id_ = await it.create("seq 1 6500000; echo end", outputByteLimit=10**12)
        await it.wait(id_, 10 * GUARD_S)  # so much takes a minute on a busy machine
        ended = await it.call("output", id_)
        assert ended["truncated"]
        assert ended["output"].endswith("\n6499999\n6500000\nend\n")
        assert MAX_LIMIT - 8 <= len(ended["output"]) <= MAX_LIMIT


async def test_all_output_is_known_when_the_end_is(tmp_path: Path) -> None:
    async with terminals_in(tmp_path) as it:
        for count in (1, 10, 1000, 9999):
            _, output = await it.run(f"seq 1 {count}")
            assert output.split() == [str(number) for number in range(1, count + 1)]


async def test_a_command_that_ignores_term_is_killed(tmp_path: Path) -> None:
    async with terminals_in(tmp_path) as it:
        id_ = await it.create(STUBBORN)
        await it.printed(id_, "begun")
        assert await it.call("kill", id_) == {}
        assert await it.wait(id_) == KILLED


@pytest.mark.parametrize("how", ["setsid sleep 1000", "env -i setsid sleep 1000"])
@pytest.mark.parametrize("by", ["release", "end"])
async def test_a_process_that_has_left_its_session_and_its_cookie_is_ended(
    tmp_path: Path, how: str, by: str
) -> None:
    async with terminals_in(tmp_path) as it:
        # The shell ends, so that the process is an orphan; and it holds the PTY.
        id_ = await it.create(f"({how} & echo $! > pid.new; mv pid.new pid); echo over")
        assert await it.wait(id_) == {"exitCode": 0, "signal": None}
        assert await it.output(id_) == "over\n"
        (pid,) = [int(each) for each in (tmp_path / "pid").read_text().split()]
        if by == "release":
            await it.call("release", id_)
        else:
            await it.terminals.end()
        assert not is_alive(pid)


async def test_a_process_that_outlives_the_command_may_still_print(tmp_path: Path) -> None:
    async with terminals_in(tmp_path) as it:
        id_ = await it.create("(while [ ! -e go ]; do sleep 0.02; done; echo late) & echo over")
        assert await it.wait(id_) == {"exitCode": 0, "signal": None}
        assert await it.output(id_) == "over\n"
        (tmp_path / "go").touch()
        assert await it.printed(id_, "late") == "over\nlate\n"


async def test_a_flood_of_a_background_process_delays_no_end(tmp_path: Path) -> None:
    async with terminals_in(tmp_path) as it:
        id_ = await it.create("yes & exit 4")
        assert await it.wait(id_) == {"exitCode": 4, "signal": None}
        await it.call("release", id_)


async def test_waits_are_answered_together_and_are_limited(tmp_path: Path) -> None:
    async with terminals_in(tmp_path) as it:
        id_ = await it.create("while [ ! -e go ]; do sleep 0.02; done; exit 5")
        answers: list[Any] = []

        async def wait() -> None:
            answers.append(await it.wait(id_))

        with trio.fail_after(GUARD_S):
            async with trio.open_nursery() as nursery:
                for _ in range(MAX_WAITS):
                    nursery.start_soon(wait)
                await trio.testing.wait_all_tasks_blocked(0.05)
                with pytest.raises(Unavailable, match=f"{MAX_WAITS} requests wait"):
                    await it.wait(id_)
                (tmp_path / "go").touch()
        assert answers == [{"exitCode": 5, "signal": None}] * MAX_WAITS
        assert await it.wait(id_) == answers[0]


@pytest.mark.long
async def test_a_thousand_creates_open_as_many_terminals_as_are_allowed(tmp_path: Path) -> None:
    opened, refused = [], []

    async def create(it: World) -> None:
        try:
            opened.append(await it.create("sleep 1000"))
        except Unavailable as error:
            refused.append(str(error))

    async with terminals_in(tmp_path) as it:
        async with trio.open_nursery() as nursery:
            for _ in range(1000):
                nursery.start_soon(create, it)
        assert (len(opened), len(refused)) == (MAX_TERMINALS, 1000 - MAX_TERMINALS)
        assert "release one with terminal/release" in refused[0]
        await it.call("release", opened[0])
        assert await it.create("true") not in opened
        assert len(it.processes()) <= 3 * (MAX_TERMINALS + 1)


@pytest.mark.parametrize("id_", ["term_1_1", "", "x" * 10_000, None, 7, ["term_1_1"]])
async def test_an_unknown_id_is_refused(tmp_path: Path, id_: Any) -> None:
    async with terminals_in(tmp_path) as it:
        for method in ("output", "wait_for_exit", "kill", "release"):
            with pytest.raises(NotFound, match=f"terminal/{method}: there is no terminal"):
                await it.call(method, id_)


async def test_a_terminal_of_a_crashed_actor_has_ended_and_leaves_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with terminals_in(tmp_path) as it:
        id_ = await it.create("echo begun; sleep 1000")
        await it.printed(id_, "begun")
        answers: list[Any] = []

        async def wait() -> None:
            answers.append(await it.wait(id_))

        def broken(*_: object) -> None:
            raise RuntimeError("a bug")

        gone = {"output": "", "truncated": True, "exitStatus": KILLED}
        with trio.fail_after(GUARD_S):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(wait)
                await trio.testing.wait_all_tasks_blocked()
                monkeypatch.setattr(TerminalRules, "ask", broken)
                assert await it.call("output", id_) == gone
        assert answers == [KILLED]
        assert await it.call("output", id_) == gone
        assert await it.call("kill", id_) == {}
        assert it.processes() == []
        assert await it.call("release", id_) == {}
        assert [(each.terminal, each.signal) for each in it.ends] == [(id_, "SIGKILL")]


async def test_a_killed_guard_is_the_end_of_the_command(tmp_path: Path) -> None:
    async with terminals_in(tmp_path) as it:
        id_ = await it.create("setsid sleep 1000 & echo begun; sleep 1000")
        await it.printed(id_, "begun")
        (guard,) = [each.pid for each in it.processes() if each.parent == os.getpid()]
        os.kill(guard, signal.SIGKILL)
        assert await it.wait(id_) == KILLED
        assert it.processes() == []
        await it.call("release", id_)


@pytest.mark.parametrize("steps", range(12))
async def test_a_terminal_that_is_being_created_at_the_end_leaves_no_process(
    tmp_path: Path, steps: int
) -> None:
    refused = []

    async def create(it: World) -> None:
        try:
            await it.create("setsid sleep 1000 & sleep 1000")
        except Unavailable as error:
            refused.append(str(error))

    async with terminals_in(tmp_path) as it, trio.open_nursery() as nursery:
        nursery.start_soon(create, it)
        await trio.sleep(0.004 * steps)
        await it.terminals.end()
        if steps % 2:
            nursery.cancel_scope.cancel()
    assert len(refused) <= 1


async def test_no_terminal_is_created_after_the_end(tmp_path: Path) -> None:
    async with terminals_in(tmp_path) as it:
        id_ = await it.create("sleep 1000")
        await it.terminals.end()
        await it.terminals.end()
        assert [each.terminal for each in it.ends] == [id_]
        with pytest.raises(Unavailable, match="the agent's process is ending"):
            await it.create("true")
