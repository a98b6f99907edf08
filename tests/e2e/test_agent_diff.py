"""What changed in the checkout of a session, also in one that would run programs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.aegis.agents.directory.test_checkout import git
from tests.e2e.harness import DaemonProcess
from tests.e2e.test_agents import Team

pytestmark = pytest.mark.real


@pytest.fixture
def work(own_daemon: DaemonProcess) -> Path:
    """A checkout in the root, with a commit."""
    root = own_daemon.root
    git(root, "init", "-q")
    (root / "kept.txt").write_text("one\ntwo\n")
    (root / ".gitignore").write_text(".aegis*\nignored\n")
    git(root, "add", "kept.txt", ".gitignore")
    git(root, "commit", "-q", "-m", "first")
    return root


@pytest.fixture
def team(work: Path, own_daemon: DaemonProcess) -> Iterator[Team]:
    yield Team(own_daemon)
    own_daemon.stop()


def difference(team: Team, handle: str) -> dict[str, Any]:
    return team.call("agent_diff", handle=handle)


def test_it_shows_changes_commits_and_new_files_since_the_start(team: Team, work: Path) -> None:
    base = git(work, "rev-parse", "HEAD")
    handle = team.spawn("SAY x")
    team.has_turns(handle, 1)
    assert difference(team, handle)["diff"] == ""
    (work / "kept.txt").write_text("one\n2\n")
    (work / "added.txt").write_text("new\n")
    git(work, "add", "added.txt")
    git(work, "commit", "-q", "-m", "second")
    (work / "loose \u00fc.txt").write_text("x")
    (work / "ignored").write_text("x")
    found = difference(team, handle)
    assert (found["base"], found["truncated"]) == (base, False)
    assert "-two\n+2\n" in found["diff"]
    assert "+++ b/added.txt" in found["diff"]
    assert "+++ b/loose \u00fc.txt" in found["diff"]
    assert found["new_files"] == ["added.txt", "loose \u00fc.txt"]
    assert found["uncommitted"] == ["kept.txt", "loose \u00fc.txt"]
    later = team.spawn()
    assert "added.txt" not in difference(team, later)["diff"]
    team.call("close", handle=handle)
    assert difference(team, handle)["base"] == base, "also of a closed session"
    shown = team.daemon.cli("agent", "diff", handle)
    assert (shown.returncode, "-two\n+2\n" in shown.stdout) == (0, True)
    assert shown.stderr == "↳ not committed: kept.txt, loose \u00fc.txt\n"
    status = git(work, "status", "--porcelain").splitlines()
    assert status == ["M kept.txt", '?? "loose \\303\\274.txt"'], "the checkout is as it was"


def test_a_change_that_the_index_hides_is_shown(team: Team, work: Path) -> None:
    handle = team.spawn()
    git(work, "update-index", "--assume-unchanged", "kept.txt")
    (work / "kept.txt").write_text("hidden\n")
    (work / ".git" / "info" / "exclude").write_text("secret\n")
    (work / "secret").write_text("x")
    found = difference(team, handle)
    assert "+hidden" in found["diff"]
    assert found["new_files"] == ["secret"]


def test_the_programs_of_a_hostile_checkout_do_not_run(team: Team, work: Path) -> None:
    handle = team.spawn()
    evidence = work / "ran"
    run = f"touch {evidence}; cat"
    for name, value in {
        "core.fsmonitor": run,
        "core.pager": run,
        "core.sshCommand": run,
        "core.hooksPath": str(work / "hooks"),
        "diff.external": run,
        "diff.evil.command": run,
        "diff.evil.textconv": run,
        "filter.evil.clean": run,
        "filter.evil.smudge": run,
        "filter.evil.process": run,
        "filter.evil.required": "true",
        "alias.diff": f"!{run}",
        "interactive.diffFilter": run,
    }.items():
        git(work, "config", name, value)
    for hooks in (work / "hooks", work / ".git" / "hooks"):
        hooks.mkdir(exist_ok=True)
        for name in ("post-index-change", "post-checkout", "pre-commit", "fsmonitor-watchman"):
            (hooks / name).write_text(f"#!/bin/sh\ntouch {evidence}\n")
            (hooks / name).chmod(0o755)
    (work / ".gitattributes").write_text("* filter=evil diff=evil\n")
    (work / "kept.txt").write_text("changed\x1b]0;evil\x07\n")
    found = difference(team, handle)
    assert "+changed" in found["diff"]
    assert not evidence.exists()
    shown = team.daemon.cli("agent", "diff", handle)
    assert (shown.returncode, set("\x1b\x07") & set(shown.stdout)) == (0, set())
    assert not evidence.exists()


def test_the_programs_of_a_repository_inside_do_not_run(team: Team, work: Path) -> None:
    """Neither those of a submodule, nor of a repository without a commit."""
    evidence = work / "ran"
    for name in ("module", "fresh"):
        git(work, "init", "-q", name)
    git(work / "module", "commit", "-q", "--allow-empty", "-m", "one")
    git(work, "add", "module")
    git(work, "commit", "-q", "-m", "with a module")
    handle = team.spawn()
    for name in ("module", "fresh"):
        inside = work / name
        run = f"touch {evidence}; cat"
        for key in ("core.fsmonitor", "filter.evil.clean", "filter.evil.process", "diff.external"):
            git(inside, "config", key, run)
        (inside / ".gitattributes").write_text("* filter=evil\n")
        (inside / "file").write_text("x")
    git(work / "module", "-c", "core.fsmonitor=false", "commit", "-q", "--allow-empty", "-m", "two")
    evidence.unlink(missing_ok=True)
    (work / "*").write_text("a name like a pattern")
    found = difference(team, handle)
    assert "+++ b/*" in found["diff"]
    assert "*" in found["new_files"]
    assert not evidence.exists()


def test_the_state_of_the_daemon_is_left_out_and_a_removed_directory_refused(
    team: Team, work: Path
) -> None:
    (work / ".gitignore").write_text("ignored\n")
    handle = team.spawn(worktree=False)
    team.spawn(worktree=True)
    (work / "x" / ".aegis").mkdir(parents=True)
    (work / "x" / ".aegis" / "file").write_text("x")
    found = difference(team, handle)
    assert found["new_files"] == [".aegis.yaml", "x/.aegis/file"]
    assert found["uncommitted"] == [".aegis.yaml", ".gitignore", "x/.aegis/file"]
    nested = work / "nested"
    git(work, "worktree", "add", "-q", "nested")
    handle = team.spawn(directory="nested")
    git(work, "worktree", "remove", "nested")
    refusal = str(team.daemon.refusal("agent_diff", handle=handle))
    assert f"{nested}, where '{handle}' worked, is removed" in refusal


def test_a_large_or_odd_change_is_cut_and_says_so(team: Team, work: Path) -> None:
    handle = team.spawn()
    (work / "kept.txt").write_text("a line of the file\n" * 200_000)
    Path(os.fsdecode(os.fsencode(work) + b"/odd\xff")).write_text("x")
    found = difference(team, handle)
    assert found["truncated"]
    assert len(found["diff"]) == 1024 * 1024
    assert found["new_files"] == ["odd\ufffd"]
    shown = team.daemon.cli("agent", "diff", handle)
    assert f"git -C {work} diff {found['base']}" in shown.stderr


def test_without_a_checkout_or_its_commit_it_is_one_sentence(own_daemon: DaemonProcess) -> None:
    team = Team(own_daemon)
    root = own_daemon.root
    early = team.spawn()
    git(root, "init", "-q")
    refusal = own_daemon.refusal("agent_diff", handle=early)
    assert refusal.code == "invalid_request"
    assert "was no git checkout with a commit when it began" in str(refusal)
    git(root, "commit", "-q", "--allow-empty", "-m", "one")
    late = team.spawn()
    for file in (root / ".git" / "objects").rglob("??*/*"):
        file.unlink()
    refusal = own_daemon.refusal("agent_diff", handle=late)
    assert refusal.code == "unavailable"
    assert "git read-tree failed" in str(refusal)
    own_daemon.stop()


def test_a_session_sees_its_own_changes_and_those_of_what_it_spawned(team: Team) -> None:
    ann = team.spawn()
    child, other = team.spawn(from_handle=ann), team.spawn()
    for handle in (ann, child):
        assert team.call("agent_diff", handle=handle, from_handle=ann)["handle"] == handle
    refusal = team.daemon.refusal("agent_diff", handle=other, from_handle=ann)
    assert (refusal.code, "you did not spawn it" in str(refusal)) == ("forbidden", True)
