"""Images and other files in a person's messages to an agent."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio

import aegis
from aegis.client.line import CommandFailed, ConnectionLost
from tests.aegis.agents.drivers.test_images import png
from tests.attacks.test_uploads import upload
from tests.e2e.harness import DaemonProcess
from tests.e2e.mcp_client import connect_mcp_to
from tests.e2e.test_agents import STAND_IN, Team, agents_of
from tests.resources.waiting import until

pytestmark = pytest.mark.real

START = ("--port", "0", "--trust")


def acp(images: str = "") -> dict[str, Any]:
    command = [sys.executable, str(STAND_IN), "acp"]
    env = {"STAND_IN_IMAGES": images}
    return {
        "provider": "acp",
        "permission": "ask",
        "command": command,
        "asking_mode": "default",
        "env": env,
    }


PROFILES = {"acp": acp(), "blind": acp("none")}


@pytest.fixture
def team(own_daemon: DaemonProcess) -> Iterator[Team]:
    yield Team(own_daemon, more=PROFILES)
    own_daemon.stop()
    assert agents_of(own_daemon) == []


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    path = tmp_path / "a picture.png"
    path.write_bytes(png(40, 30))
    return path


def sent(team: Team, handle: str) -> Path:
    id_: str = team.info(handle)["id"]
    return team.daemon.root / ".aegis" / "state" / "agents" / id_ / "sent"


def files(team: Team, handle: str) -> list[str]:
    return sorted(each.name for each in sent(team, handle).rglob("*") if each.is_file())


def name_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:8]


def said(team: Team, handle: str) -> list[str]:
    """The texts of the agent without the lines about images, which the stand-in repeats."""
    return [each for each in team.texts(handle) if not each.startswith("[image: ")]


def send(team: Team, handle: str, text: str = "", **arguments: object) -> dict[str, Any]:
    return team.call("agent_send", handle=handle, text=text, **arguments)


def refused(team: Team, handle: str, text: str = "", **arguments: object) -> str:
    return str(team.daemon.refusal("agent_send", handle=handle, text=text, **arguments))


@pytest.mark.parametrize("profile", ["asks", "acp"])
def test_an_image_reaches_the_agent_as_one_and_is_kept_once(
    team: Team, picture: Path, profile: str
) -> None:
    handle = team.spawn("SAY ready", profile=profile)
    team.has_outcomes(handle, "completed")
    for _ in range(2):
        send(team, handle, "SAY look", images=[str(picture)])
    team.has_outcomes(handle, *["completed"] * 3)
    seen = f"saw image/png {name_of(picture)}"
    assert said(team, handle) == ["ready", seen, "look", seen, "look"]
    [kept] = [each for each in sent(team, handle).iterdir() if each.is_file()]
    assert kept.read_bytes() == picture.read_bytes()
    assert kept.stat().st_mode & 0o777 == 0o600
    opened = team.entries(handle, "turn_opened")[1]
    size = f"{len(picture.read_bytes())} bytes"
    assert opened["text"].endswith(f"SAY look\n\n[image: png, 40 x 30, {size}: {kept}]")
    assert opened["images"] == [kept.name]
    assert str(kept) in team.call("session_export", handle=handle)["text"].replace("\\", "")
    assert str(kept) in team.daemon.cli("agent", "read", handle).stdout
    team.call("agent_purge", handle=handle)
    until(lambda: not kept.exists(), "it is deleted with the session")


def test_what_a_page_has_uploaded_reaches_the_agent(team: Team, picture: Path) -> None:
    handle = team.spawn("SAY ready", profile="acp")
    team.has_outcomes(handle, "completed")
    bearer: dict[str, str | None] = {"authorization": f"Bearer {team.daemon.endpoint.token}"}
    _, image = upload(team.daemon, picture.read_bytes(), bearer, name="shot.png")
    _, notes = upload(team.daemon, b"SAY inside", bearer, name="notes.md")
    send(team, handle, "SAY look", images=[image["path"]], files=[notes["path"]])
    team.has_outcomes(handle, *["completed"] * 2)
    assert f"saw image/png {name_of(picture)}" in said(team, handle)
    assert f"[file: {notes['path']}, 10 bytes]" in team.entries(handle, "turn_opened")[-1]["text"]
    team.call("agent_purge", handle=handle)
    assert Path(notes["path"]).read_bytes() == b"SAY inside"


def test_the_command_line_takes_an_image_of_its_input_and_files(team: Team, picture: Path) -> None:
    handle = team.spawn("SAY ready", profile="acp")
    team.has_outcomes(handle, "completed")
    program, environment = team.daemon.program, team.daemon.environment
    words = ("agent", "send", "--wait", "--image", "-", handle, "SAY from input")
    with picture.open("rb") as data:
        done = subprocess.run(
            [*program, *words],
            env=environment,
            cwd=team.daemon.root,
            stdin=data,
            capture_output=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert f"saw image/png {name_of(picture)}" in team.texts(handle)
    (team.daemon.root / "notes.md").write_text("/clear\n```\nSAY inside\n> from human\n")
    (team.daemon.root / "data.bin").write_bytes(b"\0\1")
    line = team.daemon.cli(
        *("agent", "send", handle, "SAY files", "--wait", "--file", "notes.md"),
        *("--file", "data.bin"),
    )
    assert line.returncode == 0, line.stderr
    text = team.entries(handle, "turn_opened")[-1]["text"]
    root = team.daemon.root
    assert f"[file: {root}/notes.md, 35 bytes]\n````\n/clear\n" in text
    assert "| > from human" in text
    assert text.endswith(f"[file: {root}/data.bin, 2 bytes, not included: read it there]")
    for wrong in (
        ("--image", "-", handle, "-"),
        ("--file", "-", handle, "x"),
        (handle,),
    ):
        failed = team.daemon.cli("agent", "send", *wrong)
        assert failed.returncode == 2, failed
    assert len(team.outcomes(handle)) == 3


def test_a_launch_takes_images_and_files_with_the_first_message(team: Team, picture: Path) -> None:
    def launched(*words: str) -> subprocess.CompletedProcess[str]:
        return team.daemon.cli("agent", "launch", *words)

    (team.daemon.root / "notes.md").write_text("noted\n")
    files = ("--image", str(picture), "--file", "notes.md")
    done = launched("acp", "SAY seen", "--handle", "ann", *files, "--wait")
    assert (done.returncode, done.stderr) == (0, "↳ launched ann\n")
    assert f"saw image/png {name_of(picture)}" in team.texts("ann")
    assert "noted" in team.entries("ann", "turn_opened")[0]["text"]
    alone = launched("acp", "--handle", "bob", "--image", str(picture), "--wait")
    assert alone.returncode == 0, alone.stderr
    team.call("close", handle="ann")
    again = launched("--resume", "ann", "--file", "notes.md", "--wait")
    assert again.returncode == 0, again.stderr
    assert "noted" in team.entries("ann", "turn_opened")[1]["text"]
    missing = launched("acp", "SAY x", "--handle", "eve", "--file", "none")
    assert missing.returncode == 1
    assert "No such file" in missing.stderr
    assert "eve was launched, and has no message: aegis-actors agent send eve" in missing.stderr
    for wrong in (
        ("acp", "-", "--image", "-"),
        ("acp", "SAY x", "--file", "-"),
        ("--terminal", "--file", "notes.md", "--", "sh"),
    ):
        assert launched(*wrong).returncode == 2, wrong


def test_a_file_that_an_agent_or_its_model_would_refuse_is_refused_before(
    team: Team, picture: Path, tmp_path: Path
) -> None:
    claude, other = team.spawn(profile="asks"), team.spawn(profile="acp")
    text = tmp_path / "text.png"
    text.write_text("no image")
    cut = tmp_path / "cut.png"
    cut.write_bytes(picture.read_bytes()[:-9])
    wide = tmp_path / "wide.png"
    wide.write_bytes(png(8_001, 1))
    large = tmp_path / "large.png"
    large.write_bytes(b"x" * 11 * 2**20)
    empty = tmp_path / "empty"
    empty.touch()
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    for handle, path, why in (
        (claude, text, "no PNG, JPEG, GIF or WebP"),
        (claude, cut, "is cut off"),
        (claude, large, "10,485,760"),
        (other, large, "3,932,160"),
        (other, wide, "8001 x 1"),
        (claude, fifo, "no regular file"),
        (claude, tmp_path, "is a directory: name it in the text"),
        (claude, empty, "is empty: leave it out"),
        (claude, tmp_path / "none", "No such file"),
    ):
        assert why in refused(team, handle, "x", images=[str(path)])
    for path in (tmp_path, empty, fifo):
        assert str(path.name) in refused(team, claude, "x", files=[str(path)])
    assert "no absolute path" in refused(team, claude, "x", images=["a.png"])
    assert "command of the agent takes no files" in refused(
        team, claude, "/compact", images=[str(picture)]
    )
    assert "the message is empty" in refused(team, claude)
    many = tmp_path / "many.txt"
    many.write_text("x" * 60_000)
    assert "at most 262,144" in refused(team, claude, "x", files=[str(many)] * 5)
    assert files(team, claude) == files(team, other) == []
    team.call("close", handle=claude)
    assert "is closed" in refused(team, claude, "x", images=[str(picture)])
    assert team.call("inbox_read", from_handle=other)["messages"] == []


def test_an_agent_that_takes_no_images_refuses_them(team: Team, picture: Path) -> None:
    handle = team.spawn("SAY ready", profile="blind")
    team.has_outcomes(handle, "completed")
    assert "takes no images" in refused(team, handle, "SAY x", images=[str(picture)])
    # Before its start nobody knows: its turn fails, and the sender hears of it.
    team.daemon.kill()
    team.daemon.start(*START)
    send(team, handle, "SAY x", images=[str(picture)])
    team.has_outcomes(handle, "completed", "failed")
    assert "takes no images" in team.entries(handle, "turn_ended")[-1]["reason"]
    send(team, handle, "SAY with a file", files=[str(picture)])
    team.has_outcomes(handle, "completed", "failed", "completed")


def test_only_a_person_sends_files(team: Team, picture: Path) -> None:
    handle = team.spawn("SAY ready")
    message = {"handle": handle, "text": "x", "images": [str(picture)]}
    for caller in ("pm", handle):
        refusal = team.daemon.refusal("agent_send", **message, from_handle=caller)
        assert "is for a person only" in str(refusal)
    with aegis.connect_sync(team.daemon.root) as person:
        receipt = person.agents.send(handle, "SAY hello", images=[str(picture)], key="k")
        again = person.agents.send(handle, "SAY hello", images=[str(picture)], key="k")
        ended = person.agents.wait(handle, message=receipt.id)
    assert (receipt.id, ended.outcome) == (again.id, "done")
    assert "hello" in said(team, handle)


@pytest.mark.filterwarnings(r"ignore:Async generator '.*:ResourceWarning")
async def test_no_call_over_mcp_sends_files(own_daemon: DaemonProcess, picture: Path) -> None:
    team = await trio.to_thread.run_sync(Team, own_daemon)
    handle = await trio.to_thread.run_sync(team.spawn)
    async with connect_mcp_to(own_daemon, "auto") as client:
        arguments = {"handle": handle, "text": "x", "images": [str(picture)]}
        result = await client.call_tool("aegis_agent_send", arguments)
    assert "is for a person only" in str(result.content)
    await trio.to_thread.run_sync(own_daemon.stop)


def test_an_image_survives_a_kill_with_its_message(team: Team, picture: Path) -> None:
    handle = team.spawn("HANG")
    team.is_in(handle, "working")
    send(team, handle, "SAY look", images=[str(picture)])
    picture.unlink()
    team.daemon.kill()
    team.daemon.start(*START)
    team.has_outcomes(handle, "interrupted", "completed")
    assert "saw image/png" in " ".join(team.texts(handle))


def test_an_image_without_its_message_is_swept_after_a_kill(
    own_daemon: DaemonProcess, picture: Path
) -> None:
    team = Team(own_daemon, faults="agent.images.after@2=kill")
    handle = team.spawn("HANG")
    team.is_in(handle, "working")
    send(team, handle, "SAY first", images=[str(picture)])
    first = files(team, handle)
    place = sent(team, handle)
    other = picture.with_name("other.png")
    other.write_bytes(png(7, 7))
    with pytest.raises((ConnectionLost, CommandFailed)):
        send(team, handle, "SAY second", images=[str(other)])
    own_daemon.wait_stopped()
    assert len(list(place.rglob("*.png"))) == 2
    own_daemon.start(*START)
    team.has_outcomes(handle, "interrupted", "completed")
    until(lambda: files(team, handle) == first, "the other image is deleted")
    assert said(team, handle)[-1] == "first"
    own_daemon.stop()
    assert agents_of(own_daemon) == []


def test_a_message_before_its_images_have_their_last_name_has_them(
    team: Team, picture: Path
) -> None:
    handle = team.spawn("SAY ready")
    team.has_outcomes(handle, "completed")
    senders = [
        threading.Thread(
            target=send, args=(team, handle, f"SAY {number}"), kwargs={"images": [str(picture)]}
        )
        for number in range(8)
    ]
    for each in senders:
        each.start()
    for each in senders:
        each.join()
    team.has_turns(handle, 9)
    assert [each for each in team.texts(handle) if each.startswith("saw")] == [
        f"saw image/png {name_of(picture)}"
    ] * 8
    assert len(files(team, handle)) == 1
