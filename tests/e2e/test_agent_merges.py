"""Worktrees of sessions that are merged, with a real git, from the command line and Python."""

from __future__ import annotations

import os
import random
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aegis.client.line import CommandFailed
from tests.aegis.agents.directory.test_checkout import git
from tests.e2e.harness import DaemonProcess
from tests.e2e.test_agent_worktrees import (
    START,
    branches,
    make_work,
    running,
    team,
    tree_of,
    trees,
    work,
)
from tests.e2e.test_agents import Team
from tests.resources.waiting import until

__all__ = ["team", "work"]

pytestmark = pytest.mark.real


@pytest.fixture(autouse=True)
def named(work: Path) -> None:
    """A name for merge commits; the checkout has it, as the tests have no home."""
    git(work, "config", "user.name", "Ann Person")
    git(work, "config", "user.email", "ann@example")


def commit(directory: Path, **files: str | None) -> str:
    """Commit files; None: it is deleted. ``__`` in a name is a slash."""
    for name, text in files.items():
        path = directory / name.replace("__", "/")
        if text is None:
            path.unlink()
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    git(directory, "add", "-A")
    git(directory, "commit", "-q", "-m", "more")
    return git(directory, "rev-parse", "HEAD")


def merge(team: Team, handle: str) -> tuple[int, str]:
    done = team.daemon.cli("agent", "merge", handle)
    return done.returncode, done.stderr


def refused(team: Team, handle: str) -> str:
    before = git(team.daemon.root, "rev-parse", "refs/heads/main")
    status = git(team.daemon.root, "status", "--porcelain")
    code, text = merge(team, handle)
    assert code == 1, text
    assert git(team.daemon.root, "rev-parse", "refs/heads/main") == before
    assert git(team.daemon.root, "status", "--porcelain") == status
    assert not (team.daemon.root / ".git" / "index.lock").exists()
    return text


def is_clean_at(work: Path, commit: str) -> None:
    assert git(work, "rev-parse", "HEAD") == commit
    assert git(work, "symbolic-ref", "HEAD") == "refs/heads/main"
    assert git(work, "status", "--porcelain") == ""
    assert git(work, "diff", "--cached", "HEAD") == ""
    assert git(work, "fsck", "--no-dangling") == ""
    assert left_in(work) == []


def left_in(work: Path) -> list[str]:
    return [each for each in os.listdir(work / ".git") if "aegis" in each or "lock" in each]


def test_a_refusal_names_the_agent_and_comes_before_any_wait(team: Team, work: Path) -> None:
    team.spawn(handle="bob")
    team.call("spawn", handle="busy", prompt="HANG")
    for handle in ("bob", "busy"):
        wanted = f"'{handle}' has no worktree; see: agent worktree list"
        assert wanted in refused(team, handle)
    assert "there is no agent 'bub'; did you mean 'bob'" in refused(team, "bub")
    removal = team.daemon.cli("agent", "worktree", "remove", "bub")
    assert removal.returncode == 1
    assert "there is no agent 'bub'" in removal.stderr


def test_the_refusals_for_a_closed_session_say_how_it_is_resumed(team: Team, work: Path) -> None:
    team.spawn(handle="bob")
    team.call("close", handle="bob")
    done = team.daemon.cli("agent", "takeover", "--detach", "bob")
    assert done.returncode == 1
    assert "resume it, as a person, with agent launch --resume bob" in done.stderr


def test_a_branch_is_moved_forward_with_the_files_of_its_checkout(team: Team, work: Path) -> None:
    handle = team.spawn("SAY x", worktree=True, handle="ann")
    team.has_outcomes(handle, "completed")
    path = tree_of(team, handle)
    assert merge(team, handle) == (0, "↳ main has all commits of aegis/ann already\n")
    (path / "program").write_text("#!/bin/sh\n")
    (path / "program").chmod(0o755)
    (path / "link").symlink_to("kept.txt")
    tip = commit(path, kept__txt="three\n", sub__file=None, **{"kept.txt": "1\n", "new__a__b": "x"})
    assert [each["unmerged"] for each in trees(team)] == [1]
    assert "1 commit" in team.daemon.cli("agent", "worktree", "list").stdout
    code, text = merge(team, handle)
    assert (code, text) == (
        0,
        f"merged aegis/ann into main in {work}: fast-forward {tip[:12]}, 6 files\n",
    )
    is_clean_at(work, tip)
    assert (work / "kept.txt").read_text() == "1\n"
    assert (work / "new" / "a" / "b").read_text() == "x"
    assert not (work / "sub").exists()
    assert os.access(work / "program", os.X_OK)
    assert (work / "link").readlink() == Path("kept.txt")
    assert "aegis-actors: merge aegis/ann" in git(work, "reflog", "show", "main")
    assert [each["unmerged"] for each in trees(team)] == [0]
    assert "is removed" in team.call("close", handle=handle)["reason"], "its commits are in main"
    assert branches(work) == ["main"]


def test_what_git_merges_without_a_conflict_becomes_a_commit_of_the_person(
    team: Team, work: Path
) -> None:
    handle = team.spawn(worktree=True, handle="ann")
    path = tree_of(team, handle)
    tip = commit(path, of_agent="x")
    own = commit(work, of_person="y")
    code, text = merge(team, handle)
    assert (code, "merge commit" in text) == (0, True), text
    new = git(work, "rev-parse", "HEAD")
    is_clean_at(work, new)
    form = "%P|%an <%ae>|%cn|%s"
    assert git(work, "log", "-1", f"--format={form}") == (
        f"{own} {tip}|Ann Person <ann@example>|Ann Person|Merge branch 'aegis/ann' into main"
    )
    assert ((work / "of_agent").read_text(), (work / "of_person").read_text()) == ("x", "y")
    # It continues from its own branch.
    commit(path, of_agent="z")
    assert merge(team, handle)[0] == 0
    assert (work / "of_agent").read_text() == "z"


def test_conflicts_and_a_missing_name_are_refused_in_a_sentence(team: Team, work: Path) -> None:
    handle = team.spawn(worktree=True, handle="ann")
    path = tree_of(team, handle)
    commit(path, **{"kept.txt": "of the agent\n", "other": "1"})
    commit(work, **{"kept.txt": "of the person\n"})
    text = refused(team, handle)
    assert "'aegis/ann' and 'main' conflict in 1 file (kept.txt)" in text
    commit(work, **{"kept.txt": "one\ntwo\n"})
    git(work, "config", "--unset", "user.email")
    text = refused(team, handle)
    assert "git config --global user.name NAME" in text


def test_either_side_with_changes_or_a_turn_is_refused(team: Team, work: Path) -> None:
    gate = work.parent / "gate"
    os.mkfifo(gate)
    handle = team.spawn(f"RUN cat {gate}", worktree=True, handle="ann")
    team.is_in(handle, "working")
    path = tree_of(team, handle)
    assert "'ann' is in a turn (working)" in refused(team, handle)
    gate.write_text("")
    team.is_in(handle, "idle")
    (path / "new").write_text("x")
    (path / "kept.txt").write_text("x")
    assert "work that is not committed: 2 files (kept.txt, new)" in refused(team, handle)
    tip = commit(path)
    (work / "sub" / "file").write_text("changed")
    text = refused(team, handle)
    assert "with changes that are not committed: 1 file (sub/file); commit or stash" in text
    git(work, "add", "sub/file")
    assert "sub/file" in refused(team, handle)
    git(work, "reset", "-q", "--hard")
    git(work, "update-index", "--assume-unchanged", "sub/file")
    (work / "sub" / "file").write_text("hidden")
    assert "sub/file" in refused(team, handle)
    git(work, "update-index", "--no-assume-unchanged", "sub/file")
    git(work, "reset", "-q", "--hard")
    for obstacle in (work / "new", work / "new" / "below"):
        obstacle.parent.mkdir(exist_ok=True)
        obstacle.write_text("of the person")
        assert "files that git does not know" in refused(team, handle)
        assert obstacle.read_text() == "of the person"
        obstacle.unlink()
    (work / ".git" / "index.lock").write_text("")
    code, text = merge(team, handle)
    assert (code, "index.lock exists: git works in this checkout" in text) == (1, True)
    assert (work / ".git" / "index.lock").read_text() == ""
    (work / ".git" / "index.lock").unlink()
    (work / ".git" / "MERGE_HEAD").write_text(f"{tip}\n")
    assert "a merge of 'main' is not complete" in refused(team, handle)
    (work / ".git" / "MERGE_HEAD").unlink()
    (work / "unknown").write_text("another file is no obstacle")
    assert merge(team, handle)[0] == 0
    assert (work / "unknown").exists()
    assert git(work, "rev-parse", "HEAD") == tip


def test_a_target_elsewhere_deleted_or_never_there(team: Team, work: Path) -> None:
    handle = team.spawn(worktree=True, handle="ann")
    tip = commit(tree_of(team, handle), **{"kept.txt": "new\n"})
    git(work, "switch", "-q", "-c", "other")
    (work / "kept.txt").write_text("the target is not checked out here")
    code, text = merge(team, handle)
    assert (code, text) == (
        0,
        f"merged aegis/ann into main: fast-forward {tip[:12]}, 1 file\n",
    )
    assert git(work, "rev-parse", "main") == tip
    assert (work / "kept.txt").read_text() == "the target is not checked out here"
    # Checked out in another directory, which is changed then.
    git(work, "worktree", "add", "-q", "../elsewhere", "main")
    tip = commit(tree_of(team, handle), **{"kept.txt": "newer\n"})
    assert merge(team, handle)[0] == 0
    elsewhere = work.parent / "elsewhere"
    assert (git(elsewhere, "status", "--porcelain"), git(elsewhere, "rev-parse", "HEAD")) == (
        "",
        tip,
    )
    (elsewhere / "kept.txt").write_text("changed")
    commit(tree_of(team, handle), **{"kept.txt": "newest\n"})
    assert f"is checked out in {elsewhere}, with changes" in refused_there(team, handle)
    git(work, "worktree", "remove", "--force", str(elsewhere))
    git(work, "branch", "-q", "-D", "main")
    assert "there is no branch 'main' any more" in refused_there(team, handle)
    git(work, "checkout", "-q", "--detach")
    git(work, "checkout", "-q", "kept.txt")
    detached = team.spawn(worktree=True)
    assert "began where no branch was checked out" in refused_there(team, detached)
    assert merge(team, "nobody")[0] == 1
    git(tree_of(team, handle), "checkout", "-q", "--detach", "HEAD~1")
    git(work, "branch", "main")
    assert "is not that of its branch" in refused_there(team, handle)


def test_a_target_in_another_file_system_is_left_to_the_person(team: Team, work: Path) -> None:
    shared = Path("/dev/shm")
    if not shared.is_dir() or shared.stat().st_dev == work.stat().st_dev:
        pytest.skip("/dev/shm is not another file system than that of the tests")
    handle = team.spawn(worktree=True, handle="ann")
    git(work, "switch", "-q", "-c", "other")
    with tempfile.TemporaryDirectory(dir=shared) as directory:
        git(work, "worktree", "add", "-q", f"{directory}/tree", "main")
        commit(tree_of(team, handle), **{"kept.txt": "new\n", "sub/file": "new\n"})
        text = refused(team, handle)
        assert f"{directory}/tree is in another file system than the repository" in text
        assert git(Path(directory) / "tree", "status", "--porcelain") == ""


def test_a_split_index_is_merged_and_a_sparse_checkout_is_left_to_the_person(
    team: Team, work: Path
) -> None:
    git(work, "config", "core.splitIndex", "true")
    git(work, "update-index", "--split-index")
    assert list((work / ".git").glob("sharedindex.*"))
    handle = team.spawn(worktree=True, handle="ann")
    path = tree_of(team, handle)
    tip = commit(path, **{"kept.txt": "1\n"})
    git(path, "update-index", "--split-index")
    code, text = merge(team, handle)
    assert code == 0, text
    is_clean_at(work, tip)
    # What a person's own configuration ignores is named with what to do.
    (work / ".git" / "info" / "exclude").write_text(".aegis/\nown\n")
    (path / "own").write_text("x")
    text = refused(team, handle)
    assert "1 file (own); have the agent commit it, or ignore it in .gitignore" in text
    (path / "own").unlink()
    git(work, "sparse-checkout", "set", "--no-cone", "/kept.txt", "/.gitignore")
    assert not (work / "sub").exists()
    commit(path, **{"sub/file": "2\n"})
    text = refused(team, handle)
    assert f"is checked out in {work} without 1 file (sub/file) (git sparse-checkout)" in text
    assert f"git -C {work} merge aegis/ann" in text


class Impatient(DaemonProcess):
    """A daemon that waits for git for a quarter of a minute."""

    patch = "from aegis.agents.directory import git; git.LIMIT_S = git.LONG_S = 15.0"


def test_a_git_that_does_not_end_is_killed_and_others_continue(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    daemon = Impatient(tmp_path / "own")
    work = make_work(daemon.root)
    with running(daemon) as team:
        first, second = (team.spawn(worktree=True) for _ in range(2))
        commit(tree_of(team, first), **{"kept.txt": "new\n"})
        tip = git(work, "rev-parse", "main")
        os.mkfifo(work / ".gitattributes")
        waiting = daemon.send("agent_merge", handle=first)
        waiting.has_arrived()
        assert "is removed" in team.call("close", handle=second)["reason"]
        with pytest.raises(CommandFailed, match=r"git update-index did not end within 15 s"):
            waiting.result()
        (work / ".gitattributes").unlink()
        assert git(work, "rev-parse", "main") == tip
        assert merge(team, first)[0] == 0


def refused_there(team: Team, handle: str) -> str:
    code, text = merge(team, handle)
    assert code == 1, text
    return text


def test_what_needs_programs_of_the_configuration_is_refused_and_runs_nothing(
    team: Team, work: Path
) -> None:
    evidence = work.parent / "ran"
    run = f"touch {evidence}; cat"
    for name in ("filter.evil.clean", "filter.evil.smudge", "merge.evil.driver", "core.fsmonitor"):
        git(work, "config", name, run)
    git(work, "config", "merge.evil.name", "evil")
    hooks = work / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    names = ("post-merge", "pre-merge-commit", "reference-transaction", "post-index-change")
    for name in (*names, "post-checkout", "commit-msg", "prepare-commit-msg"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {evidence}\n")
        (hooks / name).chmod(0o755)
    plain = {"-c": "core.fsmonitor=false"}
    handle = team.spawn(worktree=True, handle="ann")
    path = tree_of(team, handle)

    def quiet(directory: Path, *words: str) -> None:
        settings = [word for pair in plain.items() for word in pair]
        git(directory, *settings, "-c", "core.hooksPath=/dev/null", *words)

    (path / ".gitattributes").write_text("*.bin filter=evil\nkept.txt merge=evil\n")
    quiet(path, "add", ".gitattributes")
    quiet(path, "commit", "-q", "-m", "attributes")
    evidence.unlink(missing_ok=True)
    assert merge(team, handle)[0] == 0, "no file of it is filtered"
    assert not evidence.exists()
    blob = git(path, "hash-object", "-w", "--no-filters", "kept.txt")
    quiet(path, "update-index", "--add", "--cacheinfo", f"100644,{blob},a.bin")
    (path / "a.bin").write_text("one\ntwo\n")
    quiet(path, "commit", "-q", "-m", "filtered")
    evidence.unlink(missing_ok=True)
    _, text = merge(team, handle)
    assert "1 file (a.bin) is written by a filter" in text
    assert f"git -C {work} merge aegis/ann" in text
    quiet(path, "reset", "-q", "--hard", "HEAD~1")
    (path / "kept.txt").write_text("one\ntwo\nthree\n")
    quiet(path, "commit", "-q", "-a", "-m", "one side")
    (work / "kept.txt").write_text("zero\none\ntwo\n")
    quiet(work, "commit", "-q", "-a", "-m", "the other")
    evidence.unlink(missing_ok=True)
    _, text = merge(team, handle)
    assert "needs a merge program of your configuration" in text
    assert not evidence.exists()
    # A submodule.
    quiet(path, "reset", "-q", "--hard", "HEAD~1")
    tip = git(work, "rev-parse", "HEAD")
    quiet(path, "update-index", "--add", "--cacheinfo", f"160000,{tip},module")
    quiet(path, "commit", "-q", "-m", "module")
    (path / "module").mkdir(exist_ok=True)
    evidence.unlink(missing_ok=True)
    _, text = merge(team, handle)
    assert "it changes 1 submodule (module); merge it yourself" in text
    assert not evidence.exists()


def test_a_branch_with_the_name_of_an_option_and_a_large_file(team: Team, work: Path) -> None:
    git(work, "symbolic-ref", "HEAD", "refs/heads/--upload-pack=x")
    git(work, "commit", "-q", "--allow-empty", "-m", "hostile")
    handle = team.spawn(worktree=True, handle="ann")
    path = tree_of(team, handle)
    with (path / "large").open("wb") as file:
        file.truncate(200 * 1024 * 1024)
    tip = commit(path)
    code, text = merge(team, handle)
    assert (code, "merged aegis/ann into --upload-pack=x" in text) == (0, True), text
    assert git(work, "rev-parse", "HEAD") == tip
    assert git(work, "status", "--porcelain") == ""
    assert (work / "large").stat().st_size == 200 * 1024 * 1024


def test_files_and_directories_change_places(team: Team, work: Path) -> None:
    commit(work, a="file", b__c="file", b__d="file")
    (work / "b" / "ignored.log").write_text("of the person")
    handle = team.spawn(worktree=True, handle="ann")
    path = tree_of(team, handle)
    commit(path, a=None)
    commit(path, a__x="below", b__c=None, b__d=None)
    (path / "b").rmdir()
    tip = commit(path, b="a file now")
    assert "files that git does not know" in refused(team, handle)
    assert (work / "b" / "ignored.log").read_text() == "of the person"
    (work / "b" / "ignored.log").unlink()
    assert merge(team, handle)[0] == 0
    is_clean_at(work, tip)
    assert (work / "a" / "x").read_text() == "below"
    assert (work / "b").read_text() == "a file now"


def test_only_a_person_merges(team: Team, work: Path) -> None:
    handle = team.spawn(worktree=True, handle="ann")
    commit(tree_of(team, handle), new="x")
    with pytest.raises(CommandFailed, match="for a person only"):
        team.call("agent_merge", handle=handle, from_handle="pm")
    merged = team.call("agent_merge", handle=handle)
    assert (merged["kind"], merged["files"], merged["left"]) == ("fast-forward", 1, [])


POINTS = {
    "worktree.merge.before": False,
    "worktree.move.before": False,
    "worktree.write.before": True,
    "worktree.index.before": True,
    "worktree.unlock.before": True,
    "worktree.merge.after": True,
}
"""Where a merge is killed, and whether the next start completes it."""


def killed(
    work: Path, daemon: DaemonProcess, point: str, prepare: Callable[[Path], Any]
) -> tuple[Team, str, str]:
    """Kill the daemon in a merge commit; return the team and the commits of both sides."""
    team = Team(daemon, faults=f"{point}@1=kill")
    handle = team.spawn(worktree=True, handle="ann")
    path = tree_of(team, handle)
    old = commit(work, of_person="y")
    prepare(path)
    assert merge(team, handle)[0] != 0
    daemon.wait_stopped()
    return team, old, git(work, "rev-parse", "main")


@pytest.mark.parametrize("point", POINTS)
def test_a_kill_in_a_merge_leaves_it_complete_or_not_begun(
    work: Path, own_daemon: DaemonProcess, point: str
) -> None:
    commit(work, a="old", b="old", gone="old")
    change = {"a": "new", "gone": None, "sub/added": "new", "kept.txt": "new"}
    team, old, new = killed(work, own_daemon, point, lambda path: commit(path, **change))
    assert (new != old) == POINTS[point]
    own_daemon.start(*START)
    until(lambda: left_in(work) == [], "it is completed, or called off")
    is_merged = POINTS[point]
    until(lambda: [each["unmerged"] for each in trees(team)] == [0 if is_merged else 1], "looked")
    is_clean_at(work, new if is_merged else old)
    assert ((work / "a").read_text(), (work / "gone").exists()) == (
        ("new", False) if is_merged else ("old", True)
    )
    assert merge(team, "ann")[0] == 0
    assert (work / "sub" / "added").read_text() == "new"
    assert git(work, "status", "--porcelain") == ""
    own_daemon.stop()


def test_nobody_commits_a_half_merge_and_changes_since_are_left_alone(
    work: Path, own_daemon: DaemonProcess
) -> None:
    names = ("done", "changed", "deleted", "added")
    commit(work, **dict.fromkeys(names[:3], "old\n"))
    news = dict.fromkeys(names, "new\n")
    point = "worktree.write.before"
    team, _, new = killed(work, own_daemon, point, lambda path: commit(path, **news))
    with pytest.raises(Exception, match="non-zero exit"):
        git(work, "commit", "-q", "-a", "-m", "half")
    # As a kill between two files leaves them; and a person works on others.
    (work / "done").write_text("new\n")
    (work / "changed").write_text("of the person\n")
    (work / "deleted").unlink()
    own_daemon.start(*START)
    until(lambda: not (work / ".git" / "index.lock").exists(), "the index is unlocked")
    assert git(work, "rev-parse", "HEAD") == new
    assert git(work, "status", "--porcelain").split() == ["M", "changed", "D", "deleted"]
    assert (work / "changed").read_text() == "of the person\n"
    assert ((work / "done").read_text(), (work / "added").read_text()) == ("new\n", "new\n")
    assert trees(team)[0]["unmerged"] == 0
    own_daemon.stop()


def test_a_target_in_the_worktree_of_an_open_agent_is_left_to_that_agent(
    team: Team, work: Path
) -> None:
    team.spawn(worktree=True, handle="bob")
    # As if ann had been spawned there, by bob.
    place = tree_of(team, "bob").relative_to(work)
    handle = team.spawn(worktree=True, handle="ann", directory=str(place))
    commit(tree_of(team, handle), new="x")
    assert "is checked out in the worktree of 'bob', which is open" in refused(team, handle)
    assert trees(team)[0]["target"] == "aegis/bob"
    team.call("close", handle="bob")


def test_files_of_git_that_are_missing_are_one_sentence(team: Team, work: Path) -> None:
    handle = team.spawn(worktree=True, handle="ann")
    path = tree_of(team, handle)
    commit(path, new="x")
    own = work / ".git" / "worktrees" / path.name
    (own / "index").rename(own / "elsewhere")
    assert "nothing is merged" in refused(team, handle)
    (own / "elsewhere").rename(own / "index")
    # A repository without an index has no files: only its branch is moved.
    git(work, "read-tree", "--empty")
    (work / ".git" / "index").unlink()
    assert merge(team, handle)[0] == 0
    assert not (work / "new").exists()


KILLS = int(os.environ.get("MERGE_KILLS", "4"))
"""Kills at any moment; more are made by hand."""


@pytest.mark.long
def test_a_kill_at_any_moment_leaves_a_clean_checkout(
    work: Path, own_daemon: DaemonProcess
) -> None:
    team = Team(own_daemon)
    handle = team.spawn("SAY x", worktree=True, handle="ann")
    team.has_outcomes(handle, "completed")
    path = tree_of(team, handle)
    longest = 1.0
    for number in range(KILLS):
        names = [f"d{each % 7}/f{each}" for each in range(120)]
        gone = [f"d{each % 7}/g{number - 1}-{each}" for each in range(20) if number]
        fresh = [f"d{each % 7}/g{number}-{each}" for each in range(20)]
        texts = dict.fromkeys([*names, *fresh], f"{number}\n")
        tip = commit(path, **texts, **dict.fromkeys(gone))
        old = commit(work, own=f"{number}\n")
        calling = threading.Thread(target=merge, args=(team, handle))
        began = time.monotonic()
        calling.start()
        calling.join(random.random() * longest)
        if not calling.is_alive():
            longest = time.monotonic() - began
        own_daemon.kill()
        calling.join()
        own_daemon.start(*START)
        until(lambda: left_in(work) == [], "it is completed, or called off")
        new = git(work, "rev-parse", "HEAD")
        is_clean_at(work, new)
        assert new == old or git(work, "rev-parse", "HEAD^1", "HEAD^2").split() == [old, tip]
        assert merge(team, handle)[0] == 0
        is_clean_at(work, git(work, "rev-parse", "HEAD"))
        assert {(work / each).read_text() for each in [*names, *fresh]} == {f"{number}\n"}
        assert not any((work / each).exists() for each in gone)
    own_daemon.stop()
