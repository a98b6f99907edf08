"""A refusal names the limit that was reached."""

from __future__ import annotations

import errno
import os
import resource
from pathlib import Path

import pytest
import trio

from aegis import limits
from aegis.errors import AegisError, LimitReached, StorageError, Unavailable
from aegis.limits import in_thread, in_thread_or_here, limit_reached, open_process
from aegis.telegram.api import ApiUnreachable, Bot
from aegis.telegram.settings import ChatSettings


@pytest.fixture
def no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(trio.to_thread, "run_sync", refuse)


@pytest.mark.parametrize(
    ("number", "name"),
    [
        (errno.EMFILE, "RLIMIT_NOFILE"),
        (errno.ENFILE, "fs.file-max"),
        (errno.ENOSPC, "kernel.pty.max"),
        (errno.ENOMEM, "no memory is free"),
    ],
)
def test_a_limit_of_files_terminals_and_memory_is_named(number: int, name: str) -> None:
    refusal = limit_reached("open a terminal", OSError(number, os.strerror(number)))
    assert str(refusal).startswith("the daemon cannot open a terminal: ")
    assert name in str(refusal)
    assert refusal.errno == number


@pytest.mark.parametrize("above", ["", "/slice"])
def test_the_limit_of_a_control_group_is_named_also_of_one_above(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, above: str
) -> None:
    inner = tmp_path / "slice" / "service"
    inner.mkdir(parents=True)
    limited = tmp_path / above.strip("/") if above else inner
    for directory, most in ((inner, "max"), (limited, "7")):
        (directory / "pids.max").write_text(f"{most}\n")
        (directory / "pids.current").write_text("7\n")
    monkeypatch.setattr(limits, "_CGROUPS", tmp_path)
    (tmp_path / "cgroup").write_text("0::/slice/service\n")
    monkeypatch.setattr(limits, "_OWN_GROUP", tmp_path / "cgroup")
    assert "has 7 processes and threads, its limit (pids.max)" in str(limits.no_thread())


def test_the_limit_of_a_user_is_named_where_it_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "_OWN_GROUP", tmp_path / "none")
    monkeypatch.setattr(resource, "getrlimit", lambda _: (50, 50))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert "user 1000 has 50 processes and threads, the limit (RLIMIT_NPROC)" in str(
        limits.no_thread()
    )
    monkeypatch.setattr(os, "geteuid", lambda: 0)  # root is exempt
    assert "kernel.pid_max" in str(limits.no_thread())


async def test_a_refusal_is_one_of_the_disk_too_so_that_it_is_tried_again(no_thread: None) -> None:
    with pytest.raises(LimitReached) as refused:
        await in_thread(int)
    assert isinstance(refused.value, StorageError | Unavailable | AegisError)
    assert isinstance(refused.value, OSError)
    again = type(refused.value)(*refused.value.args)
    assert (str(again), again.code) == (str(refused.value), "unavailable")


async def test_what_takes_no_time_is_done_without_a_thread(no_thread: None) -> None:
    assert await in_thread_or_here(divmod, 7, 2) == (3, 1)


async def test_a_process_that_cannot_be_forked_is_refused(no_thread: None) -> None:
    with pytest.raises(LimitReached, match="the daemon cannot start a process: "):
        await open_process(["true"])


async def test_an_error_of_the_function_itself_is_not_a_limit() -> None:
    def fail() -> None:
        raise RuntimeError("a bug")

    with pytest.raises(RuntimeError, match="a bug"):
        await in_thread(fail)


async def test_telegram_counts_as_unreachable_while_no_thread_looks_its_name_up(
    no_thread: None,
) -> None:
    settings = ChatSettings(chat_id=1, user_ids=(), token="1:a", api="http://api.example:1")
    async with Bot(settings) as bot:
        with pytest.raises(ApiUnreachable, match="the daemon cannot look up the Bot API: "):
            await bot.call("getMe")
