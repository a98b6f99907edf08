"""Sessions that work in git worktrees of their own, with a real git."""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aegis.doctor.ledgers import ledgers
from aegis.state.root import StatePaths
from aegis.state.sealing import Seals
from aegis.trust import forged_files
from tests.aegis.agents.directory.test_checkout import git
from tests.e2e.harness import DaemonProcess
from tests.e2e.test_agents import STAND_IN, Team, agents_of
from tests.resources.waiting import until

pytestmark = pytest.mark.real

START = ("--port", "0", "--trust")


@pytest.fixture
def work(own_daemon: DaemonProcess) -> Path:
    """A checkout in the root, with a commit; its own configuration is not part of it."""
    return make_work(own_daemon.root)


def make_work(root: Path) -> Path:
    git(root, "init", "-q")
    (root / "kept.txt").write_text("one\ntwo\n")
    (root / "sub").mkdir()
    (root / "sub" / "file").write_text("x")
    (root / ".gitignore").write_text("ignored*\nnode_modules/\n.aegis.yaml\n")
    git(root, "add", "kept.txt", ".gitignore", "sub")
    git(root, "commit", "-q", "-m", "first")
    return root


@pytest.fixture
def team(work: Path, own_daemon: DaemonProcess) -> Iterator[Team]:
    yield Team(own_daemon)
    own_daemon.stop()
    assert agents_of(own_daemon) == []


@contextlib.contextmanager
def running(daemon: DaemonProcess) -> Iterator[Team]:
    try:
        yield Team(daemon)
    finally:
        daemon.stop()


def tree_of(team: Team, handle: str) -> Path:
    return Path(team.info(handle)["cwd"])


def trees(team: Team) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = team.call("agent_worktree_list")["result"]
    return found


def branches(work: Path) -> list[str]:
    return git(work, "for-each-ref", "--format=%(refname:short)", "refs/heads").splitlines()


def names_below(team: Team) -> list[str]:
    directory = team.daemon.root / ".aegis" / "worktrees"
    return sorted(os.listdir(directory)) if directory.exists() else []


def test_the_file_of_worktrees_is_examined_and_signed_with_the_others(team: Team) -> None:
    team.spawn("SAY x", handle="ann", worktree=True)
    team.has_outcomes("ann", "completed")
    state = StatePaths(team.daemon.root)
    of_another = Seals(bytes(32), "1" * 32, str(state.directory))
    assert "agents/worktrees.jsonl" in forged_files(state, of_another)
    assert state.agents / "worktrees.jsonl" in ledgers(state)


def test_an_agent_works_on_a_branch_of_its_own_and_leaves_nothing(team: Team, work: Path) -> None:
    done = team.daemon.cli("agent", "launch", "--worktree", "--handle", "ann", "asks", "SAY x")
    assert (done.returncode, done.stdout) == (0, "ann\n")
    team.has_outcomes("ann", "completed")
    info, [tree] = team.info("ann"), trees(team)
    path = work / ".aegis" / "worktrees" / info["id"]
    assert (info["cwd"], tree["path"]) == (str(path), str(path))
    assert (tree["branch"], tree["target"], tree["holds"]) == ("aegis/ann", "main", "")
    assert git(path, "symbolic-ref", "HEAD") == "refs/heads/aegis/ann"
    assert git(path, "status", "--porcelain") == ""
    assert (path / "kept.txt").read_text() == "one\ntwo\n"
    assert git(work, "status", "--porcelain") == "", ".aegis/ is excluded"
    # What changes is seen there, and not in the checkout.
    (path / "kept.txt").write_text("1\n")
    difference = team.call("agent_diff", handle="ann")
    assert (difference["directory"], "-one" in difference["diff"]) == (str(path), True)
    git(path, "checkout", "-q", "kept.txt")
    assert git(work, "status", "--porcelain") == ""
    shown = team.daemon.cli("agent", "worktree", "list")
    assert all(each in shown.stdout for each in ("ann", "aegis/ann", "main", "nothing"))
    done = team.daemon.cli("agent", "stop", "ann")
    assert "worktree held nothing that would be lost, and is removed" in done.stderr
    assert (trees(team), names_below(team), branches(work)) == ([], [], ["main"])
    assert git(work, "worktree", "list").count("\n") == 0
    # It continues in the same place.
    team.call("agent_resume", handle="ann", prompt="SAY again")
    team.has_outcomes("ann", "completed", "completed")
    assert git(path, "symbolic-ref", "HEAD") == "refs/heads/aegis/ann"
    assert git(path, "status", "--porcelain") == ""


def test_work_is_kept_and_said_until_it_is_removed_on_purpose(team: Team, work: Path) -> None:
    handle = team.spawn("SAY x", worktree=True, branch="feature/x-1")
    team.has_outcomes(handle, "completed")
    path = tree_of(team, handle)
    refusal = team.daemon.refusal("agent_worktree_remove", handle=handle)
    assert "is open; close it first" in str(refusal)
    (path / "new").write_text("x")
    (path / "ignored.env").write_text("x")
    (path / "node_modules").mkdir()
    (path / "node_modules" / "made").write_text("x")
    (path / "kept.txt").write_text("changed")
    git(path, "add", "kept.txt")
    (path / "kept.txt").write_text("one\ntwo\n")
    git(path, "commit", "-q", "--allow-empty", "-m", "second", "--only")
    done = team.daemon.cli("agent", "stop", handle)
    for part in (
        "1 changed file (kept.txt)",
        "1 file that git does not know (new)",
        "1 ignored file (ignored.env)",
        "1 commit that is in no other branch",
    ):
        assert part in done.stderr
    assert (path / "new").exists()
    [tree] = trees(team)
    assert tree["handle"] == handle
    refused = team.daemon.cli("agent", "worktree", "remove", handle)
    assert (refused.returncode, "1 changed file (kept.txt)" in refused.stderr) == (1, True)
    team.daemon.stop()
    team.daemon.start(*START)
    assert trees(team) == [tree], "a restart keeps it"
    tip = git(path, "rev-parse", "HEAD")
    done = team.daemon.cli("agent", "worktree", "remove", "--force", handle)
    assert (done.returncode, done.stderr) == (0, f"removed {path}\n")
    assert (trees(team), names_below(team)) == ([], [])
    assert git(work, "rev-parse", "feature/x-1") == tip, "commits stay in the branch"
    assert team.daemon.refusal("agent_worktree_remove", handle=handle).code == "not_found"


def test_merged_work_is_removed_with_its_branch_and_detached_work_is_kept(
    team: Team, work: Path
) -> None:
    handle = team.spawn(worktree=True)
    path = tree_of(team, handle)
    git(path, "commit", "-q", "--allow-empty", "-m", "second")
    git(work, "merge", "-q", "--ff-only", f"aegis/{handle}")
    (path / "node_modules" / "a").mkdir(parents=True)
    (path / "node_modules" / "a" / "made").write_text("x")
    assert "is removed" in team.call("close", handle=handle)["reason"]
    assert branches(work) == ["main"]
    other = team.spawn(worktree=True)
    path = tree_of(team, other)
    git(path, "switch", "-q", "--detach")
    git(path, "commit", "-q", "--allow-empty", "-m", "third")
    tip = git(path, "rev-parse", "HEAD")
    assert "1 commit that is in no other branch" in team.call("close", handle=other)["reason"]
    team.call("agent_worktree_remove", handle=other, force=True)
    assert tip in git(work, "for-each-ref", "--format=%(objectname)", "refs/heads/aegis-kept")


def test_a_worktree_in_use_or_with_a_repository_inside_is_kept(team: Team) -> None:
    handles = [team.spawn(worktree=True) for _ in range(5)]
    first, second, third, among_tracked, top = (tree_of(team, each) for each in handles)
    with subprocess.Popen(["sleep", "1000"], cwd=first) as process:
        reason = team.call("close", handle=handles[0])["reason"]
        process.kill()
    assert f"1 process that works in it ({process.pid})" in reason
    # It is looked at again, since a process ends.
    assert str(first) not in str(trees(team))
    assert not first.exists()
    (second / "node_modules" / "dependency").mkdir(parents=True)
    git(second / "node_modules" / "dependency", "init", "-q")
    assert "repository inside" in team.call("close", handle=handles[1])["reason"]
    git(third, "update-index", "--assume-unchanged", "kept.txt")
    (third / "kept.txt").write_text("hidden from git status")
    assert "1 changed file (kept.txt)" in team.call("close", handle=handles[2])["reason"]
    assert "is removed" not in team.call("close", handle=handles[2])["reason"]
    # Nobody writes into a FIFO, for which git would wait.
    os.mkfifo(second / "sub" / ".gitignore")
    [held] = [each["holds"] for each in trees(team) if each["path"] == str(second)]
    assert "git would wait for ever for 1 FIFO (sub/.gitignore); delete it" in held
    # git lists neither of these.
    git(among_tracked / "sub", "init", "-q")
    git(among_tracked / "sub", "add", "file")
    git(among_tracked / "sub", "commit", "-q", "-m", "inside")
    assert "1 repository inside (sub)" in team.call("close", handle=handles[3])["reason"]
    (top / ".git").rename(top.parent / "moved")
    git(top, "init", "-q")
    git(top, "commit", "-q", "--allow-empty", "-m", "inside")
    assert "1 repository inside (.)" in team.call("close", handle=handles[4])["reason"]
    assert (among_tracked / "sub" / ".git" / "HEAD").exists()


def test_a_worktree_of_two_sessions_is_removed_with_the_last(team: Team) -> None:
    owner = team.spawn(worktree=True)
    path = tree_of(team, owner)
    other = team.spawn(directory=f".aegis/worktrees/{path.name}/sub")
    assert team.info(other)["cwd"] == str(path / "sub")
    assert "worktree" not in team.call("close", handle=owner)["reason"], "it is in use"
    assert "is removed" in team.call("close", handle=other)["reason"]
    assert not path.exists()
    for handle in (owner, other):
        refusal = team.daemon.refusal("agent_diff", handle=handle)
        assert f"{path}, where '{handle}' worked, is removed" in str(refusal)
    team.call("agent_resume", handle=other, prompt="SAY again")
    team.has_outcomes(other, "completed")
    assert team.info(other)["cwd"] == str(path / "sub")
    assert path.exists()


def test_a_git_of_the_daemon_itself_does_not_keep_a_worktree(tmp_path: Path) -> None:
    daemon = SlowGit(tmp_path)
    make_work(daemon.root)
    with running(daemon) as team:
        handle = team.spawn(worktree=True)
        began, end = tmp_path / "began", tmp_path / "end"
        os.mkfifo(end)
        difference = daemon.send("agent_diff", handle=handle)
        until(began.exists, "git runs in the worktree")
        assert "is removed" in team.call("close", handle=handle)["reason"]
        os.close(os.open(end, os.O_RDWR))
        difference.hang_up()


class SlowGit(DaemonProcess):
    """A daemon in whose PATH the git of a difference waits for its end."""

    @property
    def environment(self) -> dict[str, str]:
        programs, real = self.root.parent / "programs", shutil.which("git")
        if not programs.exists():
            programs.mkdir()
            wait = f"touch {programs.parent}/began; cat {programs.parent}/end"
            text = f'#!/bin/sh\n[ "$1" != diff ] || {{ {wait}; }}\nexec {real} "$@"\n'
            (programs / "git").write_text(text)
            (programs / "git").chmod(0o755)
        return super().environment | {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}


def test_a_worktree_is_made_again_where_it_ended(team: Team, work: Path) -> None:
    handle = team.spawn("SAY x", worktree=True, branch="fix/one")
    team.has_outcomes(handle, "completed")
    path = tree_of(team, handle)

    numbers = itertools.count()

    def committed() -> str:
        # Two of one second with the same message and parent would be one commit.
        git(path, "commit", "-q", "--allow-empty", "-m", f"more {next(numbers)}")
        return git(path, "rev-parse", "HEAD")

    def is_made_again_at(tip: str, branch: str) -> None:
        assert not path.exists()
        team.call("agent_resume", handle=handle)
        assert git(path, "rev-parse", "HEAD") == tip
        assert git(path, "rev-parse", "--abbrev-ref", "HEAD") == branch
        assert git(path, "status", "--porcelain") == ""

    git(path, "checkout", "-q", "-b", "feature")
    tip = committed()
    assert "is removed" in team.call("close", handle=handle)["reason"], "feature has the commit"
    is_made_again_at(tip, "feature")
    # In another directory, a branch is not checked out a second time.
    team.call("close", handle=handle)
    git(work, "checkout", "-q", "feature")
    is_made_again_at(tip, "HEAD")
    tips = []
    for how in ("forced", "forced", "deleted"):
        tips.append(committed())
        team.call("close", handle=handle)
        if how == "forced":
            team.call("agent_worktree_remove", handle=handle, force=True)
        else:
            shutil.rmtree(path)
        is_made_again_at(tips[-1], "HEAD")
        git(path, "checkout", "-q", "--detach", "main")
    kept = git(work, "for-each-ref", "--format=%(objectname)", "refs/heads/aegis-kept").split()
    assert sorted(kept) == sorted(tips)


class PlainUser(DaemonProcess):
    """A daemon with the rights of a user over files, though root runs the tests."""

    @property
    def program(self) -> list[str]:
        less = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search,-fowner,-chown"]
        return [*(less if os.geteuid() == 0 else ()), *super().program]


def test_a_directory_that_cannot_be_read_or_emptied_is_kept(tmp_path: Path) -> None:
    daemon = PlainUser(tmp_path)
    make_work(daemon.root)
    with running(daemon) as team:
        handles = [team.spawn(worktree=True) for _ in range(2)]
        unreadable, foreign = (tree_of(team, each) for each in handles)
        (unreadable / "out").mkdir()
        (unreadable / "out" / "work.txt").write_text("work")
        (unreadable / "out").chmod(0)
        reason = team.call("close", handle=handles[0])["reason"]
        assert "1 directory that cannot be read or emptied (out)" in reason
        (unreadable / "out").chmod(0o700)
        assert (unreadable / "out" / "work.txt").read_text() == "work"
        # A container may have made files that do not count, as another user.
        (foreign / "node_modules").mkdir()
        (foreign / "node_modules" / "made").write_text("x")
        if os.geteuid() == 0:
            os.chown(foreign / "node_modules", 65534, 65534)
            reason = team.call("close", handle=handles[1])["reason"]
            assert "1 directory that cannot be read or emptied (node_modules)" in reason
            assert (foreign / "kept.txt").exists()


def test_files_in_the_place_of_a_removed_one_are_left_alone(team: Team, work: Path) -> None:
    handle = team.spawn("SAY x", worktree=True)
    team.has_outcomes(handle, "completed")
    path = tree_of(team, handle)
    assert "is removed" in team.call("close", handle=handle)["reason"]
    path.mkdir()
    (path / "work").write_text("x")
    assert "move it away" in str(team.daemon.refusal("agent_resume", handle=handle))
    path.rename(work / "moved")
    team.call("agent_resume", handle=handle)
    assert (work / "moved" / "work").read_text() == "x"
    assert (path / "kept.txt").exists()


@pytest.mark.parametrize("has_work", [False, True])
def test_a_resume_at_once_after_a_kill_of_a_removal_keeps_work(
    work: Path, own_daemon: DaemonProcess, has_work: bool
) -> None:
    team = Team(own_daemon, faults="worktree.remove.before@1=kill")
    handle = team.spawn("SAY x", worktree=True)
    team.has_outcomes(handle, "completed")
    path = tree_of(team, handle)
    with pytest.raises(Exception, match=r".*"):
        team.call("close", handle=handle)
    own_daemon.kill()
    if has_work:
        (path / "late").write_text("work")
    own_daemon.start(*START)
    team.call("agent_resume", handle=handle, prompt="SAY again")
    team.has_outcomes(handle, "completed", "completed")
    assert (path / "late").exists() == has_work
    assert (path / "kept.txt").exists()
    own_daemon.stop()


def test_files_that_it_needs_are_copied_and_do_not_keep_it(team: Team, work: Path) -> None:
    (work / ".worktreeinclude").write_text("ignored*\nkept.txt\n.aegis/\n")
    (work / "ignored.env").write_text("KEY=1")
    (work / "ignored.d").mkdir()
    (work / "ignored.d" / "link").symlink_to("../ignored.env")
    handle = team.spawn(worktree=True)
    path = tree_of(team, handle)
    assert (path / "ignored.env").read_text() == "KEY=1"
    assert (path / "ignored.d" / "link").readlink() == Path("../ignored.env")
    assert not (path / ".aegis").exists()
    (path / "ignored.env").write_text("KEY=2")
    assert "1 ignored file (ignored.env)" in team.call("close", handle=handle)["reason"]
    team.call("agent_resume", handle=handle)
    (path / "ignored.env").write_text("KEY=1")
    assert "is removed" in team.call("close", handle=handle)["reason"]


def test_no_copy_is_written_through_a_link_or_over_a_file_of_the_agent(
    team: Team, work: Path
) -> None:
    (work / ".worktreeinclude").write_text("ignored*\n")
    for name in ("ignored.env", "ignored.own", "ignored.d/a/b", "ignored.f/a"):
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text("of the person")
    outside = work.parent / "outside"
    outside.mkdir()
    (outside / "file").write_text("left alone")
    handle = team.spawn("SAY x", worktree=True, handle="ann")
    team.has_outcomes(handle, "completed")
    path = tree_of(team, handle)
    for name in ("ignored.env", "ignored.own", "ignored.d", "ignored.f"):
        git(path, "clean", "-fdxq", name)
    (path / "ignored.env").symlink_to(outside / "file")
    (path / "ignored.own").write_text("of the agent")
    (path / "ignored.d").symlink_to(outside)
    (path / "ignored.f").write_text("a file")
    git(path, "add", "-f", "ignored.env", "ignored.own", "ignored.d", "ignored.f")
    git(path, "commit", "-q", "-m", "links")
    assert "1 commit" in team.call("close", handle=handle)["reason"]
    team.call("agent_worktree_remove", handle=handle, force=True)
    team.call("agent_resume", handle=handle)
    assert (path / "ignored.env").is_symlink()
    assert (path / "ignored.own").read_text() == "of the agent"
    assert (os.listdir(outside), (outside / "file").read_text()) == (["file"], "left alone")
    assert git(path, "status", "--porcelain") == ""


def test_a_command_in_a_worktree_reaches_the_daemon_that_made_it(team: Team, work: Path) -> None:
    handle = team.spawn(worktree=True)
    path = tree_of(team, handle)
    (path / ".aegis.yaml").write_text("agents: {evil: {command: [touch, /tmp/x]}}\n")
    for directory in (path, path / "sub"):
        shown = subprocess.run(
            [*team.daemon.program, "agent", "profiles"],
            cwd=directory,
            env=team.daemon.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ("asks" in shown.stdout, "evil" in shown.stdout) == (True, False), shown


def test_a_hostile_checkout_runs_nothing(team: Team, work: Path) -> None:
    evidence = work.parent / "ran"
    run = f"touch {evidence}; cat"
    (work / ".gitattributes").write_text("* filter=evil diff=evil merge=evil\n")
    git(work, "add", ".gitattributes")
    git(work, "commit", "-q", "-m", "attributes")
    for name in (
        *("core.fsmonitor", "core.pager", "core.sshCommand", "core.editor", "diff.external"),
        *("filter.evil.clean", "filter.evil.smudge", "filter.evil.process", "diff.evil.textconv"),
        *("gpg.program", "credential.helper", "merge.evil.driver"),
    ):
        git(work, "-c", "core.fsmonitor=false", "config", name, run)
    git(work, "-c", "core.fsmonitor=false", "config", "filter.evil.required", "true")
    git(
        work, "-c", "core.fsmonitor=false", "config", "core.hooksPath", str(work / ".git" / "hooks")
    )
    for name in ("post-checkout", "reference-transaction", "post-index-change", "pre-commit"):
        hook = work / ".git" / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch {evidence}\n")
        hook.chmod(0o755)
    evidence.unlink(missing_ok=True)
    handle = team.spawn(worktree=True)
    path = tree_of(team, handle)
    assert (path / "kept.txt").read_text() == "one\ntwo\n"
    (path / "kept.txt").write_text("changed")
    assert "1 changed file" in trees(team)[0]["holds"]
    (path / "kept.txt").write_text("one\ntwo\n")
    assert "is removed" in team.call("close", handle=handle)["reason"]
    assert not evidence.exists()
    (work / ".aegis" / "worktrees").rmdir()
    (work / ".aegis" / "worktrees").symlink_to(work.parent)
    refusal = team.daemon.refusal("spawn", worktree=True)
    assert "is not a directory of this user" in str(refusal)
    for branch in ("--upload-pack=touch x", "-b", "a..b", "x.lock", "HEAD", "a b", "refs/heads/x"):
        refusal = team.daemon.refusal("spawn", worktree=True, branch=branch)
        assert (refusal.code, "branch cannot be called" in str(refusal)) == (
            "invalid_request",
            True,
        )
    assert "already" in str(team.daemon.refusal("spawn", worktree=True, branch="main"))
    assert len(team.call("list_sessions")["result"]) == 0
    assert not evidence.exists()


def test_without_a_checkout_or_rights_it_is_one_sentence(own_daemon: DaemonProcess) -> None:
    reads = {"provider": "claude", "permission": "read", "command": ["true"], "worktree": True}
    team = Team(own_daemon, more={"reads": reads})
    refusal = own_daemon.refusal("spawn", worktree=True)
    assert "is in no git checkout with a commit" in str(refusal)
    assert "no git checkout" in str(own_daemon.refusal("spawn", profile="reads")), "by its profile"
    reader = team.spawn(profile="reads", worktree=False)
    refusal = own_daemon.refusal("spawn", profile="reads", from_handle=reader)
    assert "may only read" in str(refusal)
    own_daemon.stop()


@pytest.mark.parametrize(
    "point",
    [f"worktree.{step}" for step in ("make.before", "files.before", "make.after", "open.before")],
)
def test_a_kill_while_it_is_made_leaves_nothing(
    work: Path, own_daemon: DaemonProcess, point: str
) -> None:
    team = Team(own_daemon, faults=f"{point}@1=kill")
    with pytest.raises(Exception, match=r".*"):
        team.spawn(worktree=True)
    own_daemon.kill()
    own_daemon.start(*START)
    until(lambda: names_below(team) == [], "its files are deleted")
    until(lambda: branches(work) == ["main"], "its branch is deleted")
    assert git(work, "worktree", "list").count("\n") == 0
    assert team.call("list_sessions")["result"] == []
    handle = team.spawn("SAY x", worktree=True)
    team.has_outcomes(handle, "completed")
    own_daemon.stop()


@pytest.mark.parametrize(
    "point",
    [
        f"worktree.{step}"
        for step in ("remove.before", "delete.before", "branch.before", "remove.after")
    ],
)
@pytest.mark.parametrize("has_work", [False, True])
def test_a_kill_while_it_is_removed_completes_or_keeps_it(
    work: Path, own_daemon: DaemonProcess, point: str, has_work: bool
) -> None:
    team = Team(own_daemon, faults=f"{point}@1=kill")
    handle = team.spawn("SAY x", worktree=True)
    team.has_outcomes(handle, "completed")
    path = tree_of(team, handle)
    with pytest.raises(Exception, match=r".*"):
        team.call("close", handle=handle)
    own_daemon.kill()
    removing = path.with_name(f"{path.name}.removing")
    if has_work and path.exists():
        (path / "late").write_text("work")
    has_late = (path / "late").exists() or (removing / "late").exists()
    own_daemon.start(*START)
    if has_late:
        until(lambda: "late" in str(trees(team)), "it is kept")
        assert (path / "late").read_text() == "work"
    else:
        until(lambda: (trees(team), names_below(team)) == ([], []), "it is removed")
        until(lambda: branches(work) == ["main"], "its branch too")
    team.call("agent_resume", handle=handle, prompt="SAY again")
    team.has_outcomes(handle, "completed", "completed")
    assert git(path, "symbolic-ref", "HEAD") == f"refs/heads/aegis/{handle}"
    own_daemon.stop()


def test_the_directories_that_git_of_a_killed_daemon_has_left_are_deleted(
    work: Path, own_daemon: DaemonProcess
) -> None:
    left, locked, new, others = (work.parent / "tmp" / f"aegis-git-{each}" for each in "abcd")
    for each in (left, locked, new):
        (each / "refs").mkdir(parents=True)
    others.symlink_to(left.parent.parent)
    for each in (left, locked):
        os.utime(each, (0, 0))
    own_daemon.variables = {"TMPDIR": str(left.parent)}
    fd = os.open(locked, os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        team = Team(own_daemon)
        assert "is removed" in team.call("close", handle=team.spawn(worktree=True))["reason"]
        own_daemon.stop()
        os.utime(new)
        own_daemon.start(*START)
        until(lambda: not left.exists(), "it is deleted")
    finally:
        os.close(fd)
    assert {locked, new, others} <= {*left.parent.iterdir()}
    assert work.exists()
    own_daemon.stop()


def trees_of_profile(**more: object) -> dict[str, dict[str, Any]]:
    """A profile whose sessions work in worktrees."""
    command = [sys.executable, str(STAND_IN), "claude"]
    own = {"provider": "claude", "permission": "ask", "command": command, "worktree": True}
    return {"own": own | more}


def test_each_worker_of_a_group_or_a_queue_has_a_worktree_by_its_profile(
    work: Path, own_daemon: DaemonProcess
) -> None:
    queues = {"build": {"agent": "own", "max_parallel": 2}}
    team = Team(own_daemon, more=trees_of_profile(), queues=queues)
    for handle in ("ann", "eve"):
        team.call("group_spawn", group="g", profile="own", handle=handle)
    paths = {tree_of(team, each) for each in ("ann", "eve")}
    assert len(paths) == 2
    assert all((each / "kept.txt").exists() for each in paths)
    assert work not in paths
    # A worker that is done is closed, and its worktree goes unless it has work.
    run = "RUN git symbolic-ref HEAD; pwd; touch made; git add made"
    task = team.call("enqueue", queue="build", payload=run)["task_id"]
    until(lambda: team.call("task_status", task_id=task)["status"] == "completed", "it is done")
    until(lambda: len(trees(team)) == 3, "its work is kept")
    [tree] = [each for each in trees(team) if Path(each["path"]) not in paths]
    assert "1 changed file (made)" in tree["holds"]
    assert tree["path"] in str(team.call("task_status", task_id=task))
    own_daemon.stop()


def test_the_directories_that_tools_make_again_are_configured(
    work: Path, own_daemon: DaemonProcess
) -> None:
    team = Team(own_daemon, more={})
    own_daemon.stop()
    with (work / ".aegis.yaml").open("a") as file:
        file.write("worktrees: {made_again: [ignored-output]}\n")
    own_daemon.start(*START)
    first, second = (team.spawn(worktree=True) for _ in range(2))
    for handle, name in ((first, "ignored-output"), (second, "node_modules")):
        (tree_of(team, handle) / name).mkdir()
        (tree_of(team, handle) / name / "made").write_text("x")
    assert "is removed" in team.call("close", handle=first)["reason"]
    assert "1 ignored file (node_modules/made)" in team.call("close", handle=second)["reason"]
    own_daemon.stop()


def test_a_moved_root_keeps_its_worktrees(work: Path, own_daemon: DaemonProcess) -> None:
    team = Team(own_daemon)
    handle = team.spawn("SAY x", worktree=True)
    team.has_outcomes(handle, "completed")
    id_ = team.info(handle)["id"]
    own_daemon.stop()
    (work.parent / "later").mkdir()
    later = DaemonProcess(work.parent / "later")
    moved = later.root
    moved.rmdir()
    work.rename(moved)
    try:
        later.start(*START)
        there = Team.__new__(Team)
        there.daemon = later
        path = moved / ".aegis" / "worktrees" / id_
        assert tree_of(there, handle) == path
        assert git(path, "status", "--porcelain") == ""
        assert str(path) in git(moved, "worktree", "list")
        git(path, "commit", "-q", "--allow-empty", "-m", "there")
        merged = there.daemon.cli("agent", "merge", handle)
        assert (merged.returncode, f"into main in {moved}" in merged.stderr) == (0, True), merged
        there.send(handle, "RUN pwd")
        there.has_outcomes(handle, "completed", "completed")
        assert str(path) in "".join(there.texts(handle))
        assert "is removed" in there.call("close", handle=handle)["reason"]
    finally:
        later.stop()
