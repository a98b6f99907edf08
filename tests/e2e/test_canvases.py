"""Canvases of a real daemon."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from aegis.canvases.canvas import GONE_S, QUIET_S
from aegis.client.errors import CommandFailed
from tests.e2e.canvas_tools import (
    HELD_OPEN,
    PLAN,
    Canvases,
    rename_over,
    sed,
    truncate_and_write,
)
from tests.e2e.harness import DaemonProcess
from tests.resources.waiting import until

pytestmark = pytest.mark.real

TRIES = 20
"""Of what shows nothing where the machine stalls in its midst."""


@pytest.fixture
def canvases(own_daemon: DaemonProcess) -> Canvases:
    return Canvases(own_daemon)


def test_a_canvas_is_the_sections_of_its_file(canvases: Canvases) -> None:
    info = canvases.call("open")
    assert (info["name"], info["file"]) == ("plan", "plan.md")
    assert info["sections"] == ["_preamble", "Goals", "Log"]
    assert canvases.text("Goals") == "- ship"
    assert canvases.call("read", section="Log")["sections"][0]["writer"] == "outside"
    [listed] = canvases.daemon.call("canvas_list")["result"]
    assert listed["sections"] == info["sections"]


def test_a_write_is_in_the_file_when_it_is_acknowledged(canvases: Canvases) -> None:
    canvases.file.chmod(0o640)
    rev = canvases.sections()["Goals"]["rev"]
    done = canvases.write("Goals", "- ship\n- test", if_rev=rev, from_handle="ada")
    assert done["ok"]
    assert done["op"] == "written"
    assert done["writer"] == "agent:ada"
    assert (done["added"], done["removed"], done["section"]) == (1, 0, "Goals")
    assert canvases.file.read_text() == PLAN.replace("- ship\n", "- ship\n- test\n")
    assert stat.S_IMODE(canvases.file.stat().st_mode) == 0o640
    assert canvases.beside() == []
    canvases.append("Log", "went on", from_handle="bob")
    canvases.write("New", "text")
    assert canvases.file.read_text().endswith("begun\nwent on\n\n## New\n\ntext\n")


def test_a_section_is_replaced_only_by_who_has_read_it(canvases: Canvases) -> None:
    first = canvases.sections()["Goals"]["rev"]
    assert "pass if_rev=" in canvases.refusal("write_section", section="Goals", content="x")
    canvases.write("Goals", "of ada", if_rev=first, from_handle="ada")
    stale = canvases.refusal("write_section", section="Goals", content="of bob", if_rev=first)
    assert "written by agent:ada since" in stale
    assert stale.endswith('which is now "of ada"')
    canvases.write("Goals", "of bob", force=True)
    assert canvases.text("Goals") == "of bob"


def test_subscribers_are_woken_by_the_writes_of_others_once(canvases: Canvases) -> None:
    for handle, sections in (("ada", None), ("bob", ["Log"])):
        canvases.call("subscribe", from_handle=handle, sections=sections)
    canvases.append("Log", "one\ntwo", from_handle="ada")
    canvases.write("New", "\n".join(map(str, range(9))), from_handle="bob")
    [to_bob] = canvases.gets("bob", 1)
    [to_ada] = canvases.gets("ada", 1)
    assert to_bob["text"].startswith("> from canvas:plan · ")
    assert to_bob["body"] == 'section "Log"\nappended by agent:ada (+2 / -0 lines)\n──\none\ntwo'
    assert to_ada["body"].splitlines()[1:] == [
        "written by agent:bob (+9 / -0 lines)", "──", *"012345"
    ]  # fmt: skip
    canvases.call("unsubscribe", from_handle="ada")
    canvases.daemon.kill()
    canvases.daemon.start()
    canvases.append("Log", "three", from_handle="bob")
    assert len(canvases.inbox("ada")) == len(canvases.inbox("bob")) == 1


@pytest.mark.parametrize("edit", [rename_over, truncate_and_write])
def test_an_edit_of_another_program_is_noticed(canvases: Canvases, edit: object) -> None:
    assert callable(edit)
    canvases.call("subscribe", from_handle="ada")
    edit(canvases.file, PLAN.replace("- ship", "- ship\n- sail") + "\n## More\n\nx\n")
    [message] = canvases.gets("ada", 1)
    first, second = message["body"].split("\n\n")
    assert first.startswith('section "Goals"\nchanged by another program, outside (+1 / -0 lines)')
    assert second.startswith('section "More"\nchanged by')
    assert canvases.sections()["Goals"]["writer"] == "outside"


def anew(path: Path, text: str) -> None:
    """Save as ``git checkout`` does."""
    path.unlink()
    path.write_text(text)


def anew_later(path: Path, text: str) -> None:
    """Save as a synchronizing program does, which writes a while after it has removed."""
    path.unlink()
    time.sleep(0.3)
    path.write_text(text)


def with_backup(path: Path, text: str) -> None:
    """Save as vim does with ``backupcopy=no``, and emacs."""
    backup = path.with_name(f"{path.name}~")
    path.rename(backup)
    path.write_text(text)
    backup.unlink()


def emptied(path: Path, text: str) -> None:
    """Save in two steps: an empty file first."""
    path.write_text("")
    time.sleep(0.1)
    truncate_and_write(path, text)


def in_pieces(path: Path, text: str) -> None:
    """Save by appending, the file closed in between."""
    for start in range(0, len(text), 20):
        if start:
            time.sleep(0.02)
        with path.open("a" if start else "w") as file:
            file.write(text[start : start + 20])


SAVES = (anew, anew_later, with_backup, emptied, in_pieces, rename_over)


@pytest.mark.long
@pytest.mark.parametrize("save", SAVES, ids=lambda each: each.__name__)
def test_a_save_is_one_edit_however_the_program_makes_the_file(
    canvases: Canvases, save: Callable[[Path, str], None]
) -> None:
    for number in range(TRIES):
        if number:
            canvases.open_another(f"plan{number}")
        if saves_are_edits(canvases, save, f"reader-{number}"):
            return
    raise AssertionError("each time the machine stalled in the midst of a save")


def saves_are_edits(canvases: Canvases, save: Callable[[Path, str], None], reader: str) -> bool:
    """Check that each save is one edit; False if one took longer than its rest is waited for."""

    def is_quick(text: str) -> bool:
        began = time.monotonic()
        save(canvases.file, text)
        return time.monotonic() - began < (QUIET_S if save is in_pieces else GONE_S)

    canvases.call("subscribe", from_handle=reader)
    before = canvases.sections()
    for number in range(3):
        if not is_quick(PLAN.replace("begun", f"begun {number}")):
            return False
        wakes = canvases.gets(reader, number + 1)
        assert 'section "Log"' in wakes[-1]["body"]
    # A save of the same text is none at all.
    if not is_quick(canvases.file.read_text()):
        return False
    canvases.append("Log", "the end", from_handle="ada")
    assert len(canvases.gets(reader, 4)) == 4
    after = canvases.sections()
    assert after["Log"]["text"] == "begun 2\nthe end"
    for section in ("_preamble", "Goals"):
        assert after[section]["rev"] == before[section]["rev"]
        assert len(canvases.history(section=section)) == 1
    assert [each["op"] for each in canvases.history()].count("removed") == 0
    return True


def test_a_call_amid_a_save_sees_the_whole_file(canvases: Canvases) -> None:
    assert any(is_written_amid_a_save(canvases) for _ in range(TRIES))


def is_written_amid_a_save(canvases: Canvases) -> bool:
    """Check a write amid a save; False if the save took longer than a file may be gone."""
    canvases.file.write_text(PLAN)
    rev = canvases.sections()["Goals"]["rev"]
    began = time.monotonic()
    canvases.file.unlink()
    saving = threading.Timer(0.3, canvases.file.write_text, (PLAN.replace("begun", "saved"),))
    saving.start()
    try:
        assert canvases.write("Goals", "- later", if_rev=rev)["ok"]
    except CommandFailed:
        saving.join()
        if time.monotonic() - began > GONE_S:
            return False
        raise
    saving.join()
    assert canvases.file.read_text() == PLAN.replace("begun", "saved").replace("- ship", "- later")
    return True


FRONT_MATTER = {
    "yaml": "---\nDate created: 2024-01-01\ntags: [a]\n---\n",
    "comment": '---\n# of a tool\n\n## not a heading\n"a key": |\n  ## text\n  ---\n---\n',
    "dots": "---\ntitle: x\n...\n",
    "toml": "+++\ntitle = 'x'\n\n## no heading\ntext = [\n1,\n]\n---\n+++\n",
    "empty": "---\n---\n",
    "windows": "\ufeff---\r\ntitle: x\r\n---\r\n",
}


@pytest.mark.parametrize("name", FRONT_MATTER)
def test_front_matter_belongs_to_the_preamble_and_stays_as_it_is(
    own_daemon: DaemonProcess, name: str
) -> None:
    front = FRONT_MATTER[name]
    newline = "\r\n" if "\r" in front else "\n"
    text = front + PLAN.replace("\n", newline)
    canvases = Canvases(own_daemon, None, "")
    canvases.file.write_bytes(text.encode())
    canvases.call("open", file="plan.md")
    assert canvases.call("open")["sections"] == ["_preamble", "Goals", "Log"]
    canvases.write("Goals", "- done", force=True)
    canvases.append("Log", "ended")
    expected = text.replace("- ship", "- done").replace("begun", f"begun{newline}ended")
    assert canvases.file.read_bytes() == expected.encode()
    shown = canvases.text("_preamble")
    assert shown.startswith(front.removeprefix("\ufeff").replace("\r", "").rstrip("\n"))
    canvases.write("_preamble", f"{shown}\n\nMore.", force=True)
    canvases.append("_preamble", "Still more.")
    assert canvases.file.read_bytes().startswith(front.encode())
    assert canvases.call("open")["sections"] == ["_preamble", "Goals", "Log"]


def test_a_rule_at_the_beginning_is_no_front_matter(own_daemon: DaemonProcess) -> None:
    canvases = Canvases(own_daemon, "---\n\nSome words.\n\nA heading\n---\n\ntext\n")
    assert canvases.call("open")["sections"] == ["_preamble", "A heading"]


def test_a_section_that_was_changed_outside_is_not_overwritten(canvases: Canvases) -> None:
    rev = canvases.sections()["Goals"]["rev"]
    sed(canvases.file, "s/ship/sail/")
    stale = canvases.refusal("write_section", section="Goals", content="x", if_rev=rev)
    assert "written by outside since" in stale
    assert "- sail" in stale
    canvases.append("Log", "more")
    assert "- sail" in canvases.file.read_text()


def test_a_program_that_has_the_file_open_loses_nothing(canvases: Canvases) -> None:
    text = PLAN.replace("begun", "written slowly")
    with subprocess.Popen(
        [sys.executable, "-c", HELD_OPEN, str(canvases.file), text],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as editor:
        assert editor.stdin is not None
        assert editor.stdout is not None
        editor.stdout.readline()
        waiting = canvases.daemon.send(
            "canvas_append_to_section", name="plan", section="Log", text="by an agent"
        )
        waiting.has_arrived()
        assert canvases.text("Log") == "begun", "the last whole text"
        editor.stdin.write(b"\n")
        editor.stdin.close()
        editor.wait()
    try:
        waiting.result()
    except CommandFailed:  # the machine has stalled for longer than a write waits
        canvases.append("Log", "by an agent")
    assert canvases.text("Log") == "written slowly\nby an agent"


def test_a_file_that_is_held_open_for_long_refuses_writes(canvases: Canvases) -> None:
    with canvases.file.open("a"):
        refusal = canvases.refusal("append_to_section", section="Log", text="x")
    assert "open for writing" in refusal
    canvases.append("Log", "x")


def test_an_edit_while_the_daemon_was_down_is_noticed_at_its_start(canvases: Canvases) -> None:
    canvases.call("subscribe", from_handle="ada")
    canvases.daemon.kill()
    sed(canvases.file, "s/begun/ended/")
    canvases.daemon.start()
    [message] = canvases.gets("ada", 1)
    assert message["body"].startswith('section "Log"\nchanged by')
    assert [each["text"] for each in canvases.history(section="Log")] == ["ended", "begun"]


def test_one_save_of_several_sections_wakes_once(canvases: Canvases) -> None:
    canvases.call("subscribe", from_handle="ada")
    canvases.call("subscribe", from_handle="bob", sections=["Goals"])
    text = (
        PLAN[: PLAN.index("## Goals")]
        + "## Goals\n\nnew\n\n## Log\n\nended\n"
        + "".join(f"\n## Part {number}\n\ntext {number}\n" for number in range(6))
    )
    canvases.file.write_text(text)
    [to_ada] = canvases.gets("ada", 1)
    blocks = to_ada["body"].split("\n\n")
    assert [each.split("\n")[0] for each in blocks[:3]] == [
        'section "Goals"',
        'section "Log"',
        'section "Part 0"',
    ]
    assert blocks[-1] == 'and 3 more sections: "Part 3", "Part 4", "Part 5"'
    [to_bob] = canvases.gets("bob", 1)
    assert to_bob["body"].split("\n")[0] == 'section "Goals"'
    assert "Log" not in to_bob["body"]
    canvases.append("Goals", "more")
    assert len(canvases.gets("ada", 2)) == 2


def test_a_removed_file_is_an_edit_and_a_write_makes_it_again(canvases: Canvases) -> None:
    canvases.call("subscribe", from_handle="ada")
    canvases.file.unlink()
    [message] = canvases.gets("ada", 1)
    blocks = message["body"].split("\n\n")
    assert all("removed by another program" in each or "body" in each for each in blocks)
    assert len(blocks) == 3
    canvases.write("Goals", "again")
    assert canvases.file.read_text() == "## Goals\n\nagain\n"


def test_the_history_has_every_text(canvases: Canvases) -> None:
    for number in range(3):
        canvases.write("Goals", f"text {number}", force=True, from_handle="ada")
    newest = canvases.history(section="Goals")
    assert [each["text"] for each in newest] == ["text 2", "text 1", "text 0", "- ship"]
    assert [each["writer"] for each in newest] == ["agent:ada"] * 3 + ["outside"]
    assert newest[0]["rev"] > newest[1]["rev"]
    reply = canvases.call("history", limit=2)
    assert reply["more"]
    assert len(reply["result"]) == 2


def test_a_canvas_survives_a_kill(canvases: Canvases) -> None:
    canvases.call("subscribe", from_handle="ada", sections=["Log"])
    written = canvases.write("Goals", "kept", force=True, from_handle="bob")
    canvases.daemon.kill()
    canvases.daemon.start()
    goals = canvases.sections()["Goals"]
    assert (goals["rev"], goals["writer"]) == (written["rev"], "agent:bob")
    info = canvases.call("open", file="plan.md")
    assert (info["rev"], info["subscribers"]) == (written["rev"], ["ada"])
    assert len(canvases.history(section="Goals")) == 2


def test_a_new_file_is_made_by_the_first_write(own_daemon: DaemonProcess) -> None:
    canvases = Canvases(own_daemon, text=None)
    assert not canvases.file.exists()
    assert canvases.call("read")["sections"][0]["section"] == "body"
    canvases.write("body", "all of it")
    assert canvases.file.read_text() == "all of it\n"
    assert stat.S_IMODE(canvases.file.stat().st_mode) == 0o666 & ~_umask()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


# Files that are no canvas.


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("../outside.md", "is not below the project's root"),
        ("/etc/hosts.md", "is not below the project's root"),
        (".aegis/state/x.md", "is in a directory of a program"),
        ("notes.txt", "must end with .md"),
        ("", "is no path"),
        ("a\0b.md", "is no path"),
        ("nowhere/x.md", "its directory does not exist"),
        ("link.md", "it is a symbolic link"),
        ("linked/x.md", "is a link, or no directory"),
        ("twice.md", "second name"),
        ("fifo.md", "a FIFO"),
        ("directory.md", "cannot be read"),
        ("latin.md", "is not valid UTF-8"),
        ("large.md", "at most 262144"),
        ("many.md", "at most 500"),
        ("plan.md", "is canvas 'plan' already"),
    ],
)
def test_a_file_that_can_be_no_canvas_is_refused(canvases: Canvases, file: str, words: str) -> None:
    root = canvases.daemon.root
    outside = root.parent / "outside"
    outside.mkdir()
    (outside / "x.md").write_text("secret")
    (root / "link.md").symlink_to(outside / "x.md")
    (root / "linked").symlink_to(outside)
    (outside / "two.md").write_text("two")
    os.link(outside / "two.md", root / "twice.md")
    os.mkfifo(root / "fifo.md")
    (root / "directory.md").mkdir()
    (root / "latin.md").write_bytes(b"caf\xe9")
    (root / "large.md").write_bytes(b"x" * 10_000_000)
    (root / "many.md").write_text("".join(f"## {each}\n" for each in range(501)))
    sentence = canvases.refusal("open", name="other", file=file)
    assert words in sentence
    assert "\n" not in sentence
    assert [each.name for each in canvases.daemon.state.canvases.iterdir()] == ["plan"]


def test_a_directory_that_becomes_a_link_leads_nowhere(own_daemon: DaemonProcess) -> None:
    directory, outside = own_daemon.root / "notes", own_daemon.root.parent / "outside"
    directory.mkdir()
    outside.mkdir()
    own_daemon.start()
    own_daemon.call("canvas_open", name="n", file="notes/n.md")
    own_daemon.call("canvas_write_section", name="n", section="A", content="x")
    directory.rename(own_daemon.root / "moved")
    directory.symlink_to(outside)
    refusal = own_daemon.refusal("canvas_append_to_section", name="n", section="A", text="y")
    assert "is a link, or no directory" in str(refusal)
    assert [*outside.iterdir()] == []
    directory.unlink()
    (own_daemon.root / "moved").rename(directory)
    own_daemon.call("canvas_append_to_section", name="n", section="A", text="y")
    until(lambda: "problem" in own_daemon.call("canvas_list")["result"][0], "it is listed")
    assert own_daemon.call("canvas_list")["result"][0]["problem"] == ""


def test_a_file_that_is_no_canvas_for_a_while_is_one_again(canvases: Canvases) -> None:
    canvases.file.write_bytes(b"caf\xe9")
    assert "not valid UTF-8" in canvases.refusal("append_to_section", section="Log", text="x")
    assert canvases.file.read_bytes() == b"caf\xe9"
    until(lambda: canvases.daemon.call("canvas_list")["result"][0]["problem"] != "", "is told")
    canvases.file.write_text(PLAN)
    canvases.append("Log", "x")
    assert canvases.text("Log") == "begun\nx"


def test_directories_of_the_configuration_may_have_canvases(own_daemon: DaemonProcess) -> None:
    shared = own_daemon.root.parent / "shared"
    shared.mkdir()
    (own_daemon.root / ".aegis.yaml").write_text("canvases:\n  directories: [../shared]\n")
    own_daemon.start("--port", "0", "--trust")
    info = own_daemon.call("canvas_open", name="s", file="../shared/s.md")
    assert info["file"] == str(shared / "s.md")
    own_daemon.call("canvas_write_section", name="s", section="A", content="x")
    assert (shared / "s.md").read_text() == "## A\n\nx\n"


@pytest.mark.parametrize(
    "point",
    [
        "ledger.append.before[ledger.jsonl]@{}",
        "ledger.sync.before[ledger.jsonl]@{}",
        "exchange.write.before[plan.md]@1",
        "exchange.write.after[plan.md]@1",
    ],
)
def test_a_full_disk_refuses_a_write_in_one_sentence_and_leaves_nothing(
    canvases: Canvases, point: str
) -> None:
    daemon = canvases.daemon
    daemon.kill()
    daemon.start("--port", "0", faults=f"{point.format(1)}=enospc")
    before = canvases.file.read_text()
    sentence = canvases.refusal("append_to_section", section="Log", text="x")
    assert "No space left on device" in sentence
    assert "\n" not in sentence
    assert canvases.file.read_text() == before
    until(lambda: canvases.beside() == [], "the written file is removed")
    canvases.append("Log", "again")
    assert canvases.text("Log") == "begun\nagain"
    assert [each["text"] for each in canvases.history(section="Log")] == ["again", "begun"]


def test_a_full_disk_opens_no_canvas(canvases: Canvases) -> None:
    daemon = canvases.daemon
    daemon.kill()
    daemon.start("--port", "0", faults="canvas.open.before@1=enospc")
    sentence = canvases.refusal("open", name="other", file="other.md")
    assert "No space left on device" in sentence
    assert [each.name for each in daemon.state.canvases.iterdir()] == ["plan"]
    canvases.call("open", name="other", file="other.md")


def test_a_wake_that_an_inbox_refused_is_sent_again_once(canvases: Canvases) -> None:
    canvases.call("subscribe", from_handle="ada")
    canvases.daemon.kill()
    canvases.daemon.start("--port", "0", faults="ledger.append.before[ada.jsonl]@1=enospc")
    for text in ("one", "two", "three"):
        canvases.append("Log", text, from_handle="bob")
    bodies = [each["body"].split("\n")[-1] for each in canvases.gets("ada", 3)]
    assert bodies == ["one", "two", "three"]


def test_a_directory_that_is_made_again_is_watched_again(own_daemon: DaemonProcess) -> None:
    directory = own_daemon.root / "notes"
    directory.mkdir()
    own_daemon.start()
    call = own_daemon.call
    call("canvas_open", name="n", file="notes/n.md")
    call("canvas_write_section", name="n", section="A", content="x")
    call("canvas_subscribe", name="n", from_handle="ada")
    shutil.rmtree(directory)
    until(lambda: call("canvas_list")["result"][0].get("problem", "") != "", "it is told")
    assert "directory does not exist" in call("canvas_list")["result"][0]["problem"]
    directory.mkdir()
    (directory / "n.md").write_text("## A\n\ny\n")
    until(
        lambda: any(
            "y" in each["body"]
            for each in own_daemon.call("inbox_read", from_handle="ada")["messages"]
        ),
        "the edit is noticed",
    )


def test_a_long_ledger_is_replaced_and_keeps_everything_that_matters(
    canvases: Canvases,
) -> None:
    canvases.call("subscribe", from_handle="ada", sections=["Goals"])
    text = "x" * 100_000
    ledger = canvases.daemon.state.canvases / "plan" / "ledger.jsonl"
    number = size = 0
    while (before := size) <= (size := ledger.stat().st_size):
        number += 1
        canvases.write("Big", f"{text} {number}", force=True, from_handle="bob")
        assert number < 200
    assert before > 1_000_000
    last = canvases.write("Big", "small", force=True, from_handle="bob")
    canvases.daemon.kill()
    canvases.daemon.start()
    big = canvases.sections()["Big"]
    assert (big["rev"], big["writer"], big["text"]) == (last["rev"], "agent:bob", "small")
    assert canvases.sections()["Goals"]["rev"] < big["rev"]
    assert canvases.call("open")["subscribers"] == ["ada"]
    history = canvases.history(section="Log")
    assert [each["text"] for each in history] == ["begun"], "the newest of each section is kept"
    assert canvases.daemon.cli("doctor").returncode in (0, 1)


def test_the_verbs_of_the_command_line(canvases: Canvases) -> None:
    daemon = canvases.daemon
    assert "plan.md" in daemon.cli("canvas", "list").stdout
    assert "- ship" in daemon.cli("canvas", "read", "plan", "Goals").stdout
    done = daemon.cli("canvas", "write", "plan", "Goals", "new", "--force")
    assert "Goals is at rev" in done.stderr + done.stdout, done
    daemon.json("canvas", "append", "plan", "Log", "by the shell", "--json")
    assert "by the shell" in canvases.file.read_text()
    history = daemon.cli("canvas", "history", "plan", "--text")
    assert "by the shell" in history.stdout
    assert daemon.json("canvas", "subscribe", "plan", "--section", "Log", "--json")["sections"] == [
        "Log"
    ]
    assert not daemon.json("canvas", "unsubscribe", "plan", "--json")["subscribed"]
    stale = daemon.cli("canvas", "write", "plan", "Goals", "old", "--if-rev", "1")
    assert stale.returncode == 1
    assert "pass if_rev=" in stale.stderr


def test_a_section_that_the_file_has_twice_is_read_and_not_written(canvases: Canvases) -> None:
    canvases.file.write_text(f"{PLAN}\n## Goals\n\n- again\n")
    until(lambda: canvases.text("Goals") == "- ship\n\n- again", "the edit is noticed")
    before = canvases.file.read_bytes()
    for verb, arguments in (
        ("write_section", {"content": "x", "force": True}),
        ("append_to_section", {"text": "x"}),
    ):
        sentence = canvases.refusal(verb, section="Goals", **arguments)
        assert "the file has 2 sections 'Goals'; rename one of the headings" in sentence
        assert "\n" not in sentence
    assert canvases.file.read_bytes() == before
    assert canvases.beside() == []
