"""The start of an agent, and what keeps it from starting."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import attrs
import pytest

from aegis.agents.drivers.harness import Beginning
from aegis.agents.drivers.plan import SecretFile
from aegis.agents.messages import (
    DriverEnded,
    DriverFailed,
    DriverReady,
)
from aegis.path_text import text_of_path
from tests.aegis.agents.drivers.driving import GUARD_S, URL, driven, plan_for

pytestmark = pytest.mark.real


async def test_an_agent_that_ends_before_it_is_ready_has_failed_with_its_last_words(
    tmp_path: Path,
) -> None:
    argv = ["sh", "-c", "echo first >&2; echo no such model >&2; exit 4"]
    async with driven(plan_for(tmp_path, argv=argv)) as it:
        failed = await it.log.first(DriverFailed)
        ended = await it.log.first(DriverEnded)
    sentence = "stand-in ended with exit code 4 before it was ready: no such model"
    assert failed == DriverFailed(launch=1, reason=sentence)
    assert (ended.exit_code, ended.stderr) == (4, "first\nno such model")


async def test_an_agent_that_does_not_become_ready_is_ended_after_a_time_limit(
    tmp_path: Path,
) -> None:
    plan = plan_for(tmp_path, argv=["sleep", "1000"], ready_within_s=0.2, term_s=GUARD_S)
    async with driven(plan) as it:
        failed = await it.log.first(DriverFailed)
        ended = await it.log.first(DriverEnded)
        assert it.processes == []
    assert failed.reason == (
        "stand-in was not ready within 0.2 s; its process was ended; start it by hand to see what "
        "it waits for"
    )
    assert ended.exit_code == -signal.SIGTERM


MISSING: dict[str, tuple[dict[str, Any], str]] = {
    "a program": (
        {"argv": ["no-such-agent"]},
        "the program 'no-such-agent' was not found in PATH; install it, or set the command of the "
        "profile",
    ),
    "a path": (
        {"argv": ["/no/such/agent"]},
        "the program '/no/such/agent' was not found, or the interpreter in its first line was "
        "not; install it, or set the command of the profile",
    ),
    "a program that is a directory": (
        {"argv": ["/etc"]},
        "the program '/etc' cannot be started: Permission denied",
    ),
}


@pytest.mark.parametrize("what", MISSING)
async def test_what_cannot_be_started_fails_with_one_sentence(tmp_path: Path, what: str) -> None:
    options, sentence = MISSING[what]
    async with driven(plan_for(tmp_path, **options)) as it:
        await it.log.first(DriverEnded)
    assert it.log.reports[0] == DriverFailed(launch=1, reason=sentence)
    assert it.log.reports[-1] == DriverEnded(launch=1, reason=sentence, exit_code=None)


async def test_a_missing_directory_fails_with_one_sentence(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    async with driven(plan_for(gone, directory=None)) as it:
        failed = await it.log.first(DriverFailed)
    assert "there is no directory" in failed.reason
    assert str(gone) in failed.reason


async def test_an_agent_works_in_a_directory_whose_name_is_no_utf_8(tmp_path: Path) -> None:
    cwd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9"))
    os.mkdir(cwd)
    beginning = Beginning(cwd=text_of_path(cwd), mcp_url=URL)
    argv = ["sh", "-c", 'pwd >&2; echo "$PWD" >&2']
    async with driven(plan_for(tmp_path, beginning=beginning, argv=argv)) as it:
        await it.log.first(DriverEnded)
        await it.log.driver_end()
    assert read_bytes(f"{tmp_path}/stderr") == (os.fsencode(cwd) + b"\n") * 2


async def test_an_argument_that_no_program_can_get_is_a_failure(tmp_path: Path) -> None:
    async with driven(plan_for(tmp_path, argv=["sh", "-c", "a\0b"])) as it:
        failed = await it.log.first(DriverFailed)
    assert failed.reason == f"'sh' cannot be started in {str(tmp_path)!r}: embedded null byte"


async def test_a_file_with_a_secret_exists_until_the_agent_is_ready(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text("of an earlier daemon")
    secret = SecretFile(path=path, text=URL)
    argv = ["sh", "-c", 'stat -c %a "$0" >&2; cat "$0" >&2; exec "$@"', str(path)]
    plan = plan_for(tmp_path, secret_file=secret)
    async with driven(attrs.evolve(plan, argv=[*argv, *plan.argv])) as it:
        await it.log.first(DriverReady)
        # The file "stderr" is written by a thread, which may not have begun.
        assert not path.exists()
        assert (await it.close()).stderr == "600\n\u2039secret\u203a"
    assert URL not in repr(plan)


async def test_a_kept_file_with_a_secret_exists_until_the_process_has_ended(tmp_path: Path) -> None:
    secret = SecretFile(path=tmp_path / "mcp.json", text=URL, is_kept=True)
    async with driven(plan_for(tmp_path, secret_file=secret)) as it:
        await it.turn("SAY ready")
        await it.log.text("ready")
        assert secret.path.read_text() == URL
        await it.close()
        assert not secret.path.exists()


@pytest.mark.parametrize("argv", [["false"], ["/no/such/agent"]])
async def test_a_file_with_a_secret_is_deleted_when_the_agent_fails(
    tmp_path: Path, argv: list[str]
) -> None:
    secret = SecretFile(path=tmp_path / "mcp.json", text=URL)
    async with driven(plan_for(tmp_path, secret_file=secret, argv=argv)) as it:
        await it.log.first(DriverFailed)
        assert "mcp.json" not in os.listdir(tmp_path)


async def test_a_file_with_a_secret_that_cannot_be_written_is_a_failure(tmp_path: Path) -> None:
    path = tmp_path / "gone" / "mcp.json"
    plan = plan_for(tmp_path, secret_file=SecretFile(path=path, text=URL))
    async with driven(plan) as it:
        failed = await it.log.first(DriverFailed)
    assert failed.reason == (
        f"the file {str(path)!r} for the agent cannot be written: No such file or directory"
    )


def read_bytes(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError:
        return b""
