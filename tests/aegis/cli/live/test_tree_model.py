"""The tree as somebody watches it."""

from __future__ import annotations

from aegis.cli.live.tree_model import TreeModel, change_line, painted
from aegis.protocol.daemon import TreeNode
from aegis.protocol.streams import TreeChange


def node(path: str, *children: TreeNode, restarts: int = 0, state: str = "running") -> TreeNode:
    return TreeNode(
        path=path,
        name=path.rpartition("/")[2],
        kind="actor",
        state=state,
        mailbox=0,
        restarts=restarts,
        uptime_s=1.0,
        children=list(children),
    )


def change(path: str, state: str, restarts: int = 0) -> TreeChange:
    return TreeChange(path=path, kind="actor", state=state, restarts=restarts, mailbox=0)


def model() -> TreeModel:
    made = TreeModel()
    made.replace(node("root", node("root/a", node("root/a/b")), node("root/c")))
    return made


def test_the_whole_tree_is_drawn_with_branches() -> None:
    assert model().lines() == [
        "actor    kind   state    restarts  restarted",
        "root     actor  running  0         -",
        "├─ a     actor  running  0         -",
        "│  └─ b  actor  running  0         -",
        "└─ c     actor  running  0         -",
    ]


def test_a_restart_is_marked_with_its_time_and_stays_so_behind_a_gap() -> None:
    made = model()
    made.change(change("root/a/b", "down"), "14:00:00")
    assert "down" in made.lines()[3]
    made.change(change("root/a/b", "running", restarts=1), "14:00:01")
    assert made.lines()[3].split()[-4:] == ["running", "1", "↻", "14:00:01"]
    made.replace(node("root", node("root/a", node("root/a/b", restarts=1))))
    assert made.lines()[3].endswith("↻ 14:00:01")


def test_the_tree_of_another_daemon_has_no_marks_of_the_last_one() -> None:
    made = model()
    made.change(change("root/c", "running", restarts=2), "14:00:01")
    made.replace(node("root", node("root/c")))
    assert "↻" not in "\n".join(made.lines())


def test_places_come_and_go() -> None:
    made = model()
    made.change(change("root/a/new", "starting"), "")
    assert made.lines()[4].startswith("│  └─ new")
    made.change(change("root/a", "stopped"), "")
    assert [line.split()[0] for line in made.lines()] == ["actor", "root", "└─"]
    made.change(change("root/a/b", "running"), "")  # what was said before its parent stopped
    assert len(made.lines()) == 3


def test_names_cannot_draw() -> None:
    made = TreeModel()
    made.replace(node("ro\x1b[2Jot"))
    assert "\x1b" not in "\n".join(made.lines())
    assert change_line(change("root/\x1b[2J", "down"), "14:00") == "14:00 root/\\x1b[2J  down"
    assert change_line(change("root/a", "down", 2), "14:00") == "14:00 root/a  down · restarts 2"


def test_only_what_changed_is_painted() -> None:
    text, shown = painted([], ["one", "two"], 80, 24)
    assert text == "\x1b[1;1Hone\x1b[K\x1b[2;1Htwo\x1b[K"
    text, shown = painted(shown, ["one", "2"], 80, 24)
    assert text == "\x1b[2;1H2\x1b[K"
    text, shown = painted(shown, ["one"], 80, 24)
    assert (text, shown) == ("\x1b[2;1H\x1b[K", ["one"])


def test_what_does_not_fit_is_cut_and_counted() -> None:
    text, shown = painted([], ["abcdef", "b", "c", "d"], 4, 3)
    assert shown == ["abcd", "b", "… 2 "]
    assert "\x1b[4;1H" not in text
