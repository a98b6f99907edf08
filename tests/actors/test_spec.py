"""Specs are checked when they are built."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from actors import (
    Actor,
    AutoShutdown,
    Backoff,
    ChildSpec,
    MailboxSpec,
    MisuseError,
    Restart,
    Strategy,
    SupervisorSpec,
)


@attrs.frozen
class Ping:
    pass


class Idle(Actor[Ping]):
    pass


def child(name: str) -> ChildSpec:
    return ChildSpec.of(name, Idle)


@pytest.mark.parametrize("name", ["a", "build-1", "agent.x:y@host+z", "0" * 128])
def test_a_name_may_be_part_of_a_path(name: str) -> None:
    assert child(name).name == name


@pytest.mark.parametrize("name", ["", "a/b", "-a", ".", "a b", "é", "a\n", "0" * 129])
def test_a_name_that_cannot_be_part_of_a_path_is_refused(name: str) -> None:
    with pytest.raises(MisuseError, match="cannot be part of an actor's path"):
        child(name)
    with pytest.raises(MisuseError, match="cannot be part of an actor's path"):
        SupervisorSpec(name=name)


def test_two_children_of_one_name_are_refused() -> None:
    with pytest.raises(MisuseError, match="two children of one name"):
        SupervisorSpec(name="root", children=(child("a"), child("b"), child("a")))


def test_a_dynamic_supervisor_has_no_children_in_its_spec() -> None:
    with pytest.raises(MisuseError, match="dynamic"):
        SupervisorSpec(name="root", dynamic=True, children=(child("a"),))


@pytest.mark.parametrize(
    "wrong",
    [
        {"first_s": -1},
        {"step_s": -0.1},
        {"factor": 0.5},
        {"most_s": -1},
        {"jitter": 1.5},
        {"jitter": -0.1},
    ],
)
def test_a_backoff_out_of_range_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Backoff(**wrong)


@pytest.mark.parametrize("wrong", [{"intensity": -1}, {"period_s": 0}, {"shutdown_s": -1}])
def test_a_supervisor_out_of_range_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        SupervisorSpec(name="root", **wrong)


def test_a_mailbox_has_room_for_at_least_one() -> None:
    with pytest.raises(ValueError, match="capacity"):
        MailboxSpec(capacity=0)


def test_a_child_is_permanent_and_backs_off_unless_told_otherwise() -> None:
    spec = child("a")
    assert (spec.restart, spec.shutdown_s) == (Restart.PERMANENT, 1.0)
    assert SupervisorSpec(name="s").intensity == 3


def test_a_permanent_child_cannot_be_significant() -> None:
    with pytest.raises(MisuseError, match="'a' cannot be significant"):
        ChildSpec.of("a", Idle).with_options(significant=True)
    with pytest.raises(MisuseError, match="'s' cannot be significant"):
        SupervisorSpec(name="s", significant=True)


def test_a_significant_child_needs_a_supervisor_that_shuts_down() -> None:
    significant = ChildSpec.of("a", Idle).with_options(restart=Restart.TRANSIENT, significant=True)
    with pytest.raises(MisuseError, match="'s' never shuts down by itself"):
        SupervisorSpec(name="s", children=(significant,))
    spec = SupervisorSpec(
        name="s", children=(significant,), auto_shutdown=AutoShutdown.ANY_SIGNIFICANT
    )
    assert spec.children == (significant,)


@pytest.mark.parametrize("strategy", [Strategy.ONE_FOR_ALL, Strategy.REST_FOR_ONE])
def test_a_dynamic_supervisor_is_one_for_one(strategy: Strategy) -> None:
    with pytest.raises(MisuseError, match=f"cannot be {strategy.value}"):
        SupervisorSpec(name="s", dynamic=True, strategy=strategy)


class Named(Actor[Ping]):
    def __init__(self, name: str, *, size: int = 1) -> None:
        self.named = (name, size)


def test_each_incarnation_is_built_with_the_arguments_of_the_spec() -> None:
    spec = ChildSpec.of("a", Named, "ada", size=3)
    first, second = spec.new_actor(), spec.new_actor()
    assert isinstance(first, Named)
    assert isinstance(second, Named)
    assert first is not second
    assert first.named == second.named == ("ada", 3)


def test_options_change_nothing_else_and_are_checked() -> None:
    spec = ChildSpec.of("a", Named, name="ada")
    changed = spec.with_options(restart=Restart.TRANSIENT, significant=True)
    assert changed == attrs.evolve(spec, restart=Restart.TRANSIENT, significant=True)
    assert (changed.actor, changed.keywords) == (Named, {"name": "ada"})
    with pytest.raises(MisuseError, match="'a' cannot be significant"):
        spec.with_options(significant=True)
    with pytest.raises(ValueError, match="shutdown_s"):
        spec.with_options(shutdown_s=-1)


def test_a_spec_is_of_a_class() -> None:
    with pytest.raises(MisuseError, match=r"child 'a': .* is not a class of actors"):
        ChildSpec.of("a", lambda: Idle())
