"""Workspaces and their shells as data: what may be made, and what comes back from the disk."""

from __future__ import annotations

import pytest

from aegis.errors import AlreadyExists, NotFound, Unavailable
from aegis.workspaces.rules import MAX_SHELLS, MAX_WORKSPACES, WorkspacesByName, restored


def demo() -> WorkspacesByName:
    return WorkspacesByName().created("Demo", "/srv/demo")


def test_a_workspace_is_found_whatever_the_case_of_its_name() -> None:
    assert demo().find("dEMO").directory == "/srv/demo"


def test_a_name_is_given_once() -> None:
    with pytest.raises(AlreadyExists, match="'Demo' already"):
        demo().created("demo", "/elsewhere")


def test_an_unknown_workspace_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(NotFound, match="did you mean 'Demo'"):
        demo().find("demmo")
    with pytest.raises(NotFound, match="there are: none; workspace_create"):
        WorkspacesByName().find("demo")


def test_shells_without_a_name_are_numbered_and_no_number_comes_twice() -> None:
    workspaces, first = demo().opening("demo", None)
    workspaces = workspaces.closed(first)
    workspaces, second = workspaces.opening("demo", None)
    assert (first, second) == ("Demo.1", "Demo.2")
    workspaces = workspaces.deleted("demo").created("demo", "/srv/demo")
    assert workspaces.opening("demo", None)[1] == "demo.3"


def test_a_named_shell_takes_no_number_and_is_there_once() -> None:
    workspaces, shell = demo().opening("demo", "build")
    assert (shell, workspaces.next) == ("Demo.build", 1)
    again, _ = workspaces.opening("demo", "BUILD")
    assert again.find("demo").shells == ("Demo.BUILD",)


def test_a_shell_belongs_to_the_workspace_that_opened_it() -> None:
    workspaces, shell = demo().opening("demo", None)
    assert workspaces.of_shell("demo.1").name == "Demo"
    assert workspaces.closed(shell).find("demo").shells == ()
    for name in ("build", "demo.2", "demo"):
        with pytest.raises(NotFound, match="no shell"):
            workspaces.of_shell(name)


def test_there_is_a_limit_of_shells_and_of_workspaces() -> None:
    full = demo()
    for number in range(MAX_SHELLS):
        full, _ = full.opening("demo", f"s{number}")
    with pytest.raises(Unavailable, match="shell_close"):
        full.opening("demo", None)
    full.opening("demo", "s0")  # one that is there already is no more than there were
    many = WorkspacesByName()
    for number in range(MAX_WORKSPACES):
        many = many.created(f"w{number}", "/")
    with pytest.raises(Unavailable, match="workspace_delete"):
        many.created("one-more", "/")


def test_what_was_stored_comes_back() -> None:
    workspaces, _ = demo().opening("demo", None)
    workspaces = workspaces.created("other", "/srv/ö")
    assert restored(workspaces.stored()) == (workspaces, 0)
    assert restored(None) == (WorkspacesByName(), 0)


@pytest.mark.parametrize(
    "entry",
    [
        None,
        {"name": "demo"},
        {"name": "../x", "directory": "/", "shells": []},
        {"name": "demo", "directory": "/", "shells": ["../x"]},
        {"name": "demo", "directory": "/", "shells": [7]},
        {"name": "demo", "directory": 7, "shells": []},
    ],
)
def test_an_entry_that_makes_no_sense_is_left_out_and_counted(entry: object) -> None:
    good = demo().stored()["workspaces"]
    assert isinstance(good, list)
    assert restored({"next": 1, "workspaces": [*good, entry]}) == (demo(), 1)


@pytest.mark.parametrize("fields", [{}, {"next": 0, "workspaces": []}, {"next": 1}])
def test_a_note_that_makes_no_sense_is_empty(fields: dict[str, object]) -> None:
    assert restored(fields) == (WorkspacesByName(), 1)
