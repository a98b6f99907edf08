"""The process that examines a root for the daemon: its time, its size, its end."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import trio

from aegis import examination
from aegis.errors import Unavailable
from aegis.examination import MAX_FINDINGS_BYTES, examination_of, examine
from aegis.protocol.command import MAX_REPLY_BYTES, json_size
from tests.resources.waiting import until

NOTES_ITS_END = """
import json, pathlib, sys, time
place = pathlib.Path("place")
place.write_text("runs")
try:
    time.sleep(600)
finally:
    place.write_text("ended")
"""


def python(text: str) -> tuple[str, ...]:
    return (sys.executable, "-c", text)


def printed(*findings: tuple[str, str]) -> bytes:
    found = [
        {"subject": "s", "level": level, "sentence": sentence, "remedy": ""}
        for level, sentence in findings
    ]
    return json.dumps({"root": "/", "findings": found}).encode()


async def test_a_process_that_takes_too_long_is_ended_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(examination, "LIMIT_S", 2.0)
    with pytest.raises(Unavailable, match=r"took longer than 2 s .* run 'aegis-actors doctor'"):
        await examine(tmp_path, python(NOTES_ITS_END))
    assert (tmp_path / "place").read_text() == "ended"


async def test_a_process_that_ignores_its_interruption_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(examination, "LIMIT_S", 1.0)
    monkeypatch.setattr(examination, "INTERRUPT_S", 0.2)
    ignores = "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN); time.sleep(600)"
    with trio.fail_after(60), pytest.raises(Unavailable, match="was ended"):
        await examine(tmp_path, python(ignores))


async def test_a_process_is_ended_when_its_caller_is(tmp_path: Path) -> None:
    place = tmp_path / "place"
    async with trio.open_nursery() as nursery:
        nursery.start_soon(examine, tmp_path, python(NOTES_ITS_END))
        await trio.to_thread.run_sync(
            until, lambda: place.exists() and place.read_text() != "", "it runs"
        )
        nursery.cancel_scope.cancel()
    until(lambda: place.read_text() == "ended", "it was interrupted")


async def test_a_process_that_prints_without_end_is_ended(tmp_path: Path) -> None:
    with trio.fail_after(60), pytest.raises(Unavailable, match="more than fits"):
        await examine(tmp_path, python("while True: print('x' * 65536)"))


@pytest.mark.parametrize("text", ["", "print(5)", "print('{}')", "raise SystemExit('no')"])
async def test_a_process_that_fails_is_an_error_with_what_to_do(tmp_path: Path, text: str) -> None:
    with pytest.raises(Unavailable, match="the examination failed; run 'aegis-actors doctor'"):
        await examine(tmp_path, python(text))


async def test_a_program_that_is_missing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="cannot be started"):
        await examine(tmp_path, [str(tmp_path / "missing")])


def test_a_level_of_another_version_is_an_error() -> None:
    with pytest.raises(Unavailable):
        examination_of(Path("/"), printed(("fatal", "x")))


def test_a_reply_keeps_the_most_severe_findings_in_their_order() -> None:
    long = "x" * 3000
    many = [*[("ok", long)] * 60, ("warning", "w"), *[("ok", long)] * 60, ("problem", "p")]
    found = examination_of(Path("/"), printed(*many))
    assert [each.level for each in found.findings if each.level != "ok"] == ["warning", "problem"]
    assert found.left_out == len(many) - len(found.findings) > 0
    size = json_size([each.sentence for each in found.findings])
    assert size <= MAX_FINDINGS_BYTES < MAX_REPLY_BYTES


def test_bytes_that_are_no_text_are_escaped() -> None:
    [found] = examination_of(Path("/"), printed(("ok", "/srv/d\udcff"))).findings
    assert found.sentence == "/srv/d\\udcff"


def test_a_long_sentence_is_cut() -> None:
    [found] = examination_of(Path("/"), printed(("ok", "x" * 100_000))).findings
    assert 4000 < len(found.sentence) < 4100
