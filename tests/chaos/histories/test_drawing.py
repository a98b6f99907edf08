"""Tests of the scripts that are drawn from a seed."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.chaos.histories import script as s
from tests.chaos.histories.drawing import make_script
from tests.chaos.strikes import Kind

SCRIPTS = [make_script(seed) for seed in range(200)]


def leaves(base: type[Any]) -> set[type[Any]]:
    """Return the subclasses of ``base`` that have no subclasses."""
    # attrs makes each class anew, with slots; the first of the two is a subclass, too.
    below = [each for each in base.__subclasses__() if vars(s).get(each.__name__) is each]
    return {base} if not below else set[type[Any]]().union(*map(leaves, below))


def test_one_seed_gives_one_script() -> None:
    assert make_script(7) == make_script(7)
    assert make_script(7) != make_script(8)


def test_it_is_as_long_and_has_as_many_clients_as_asked() -> None:
    script = make_script(1, clients=5, steps=80)
    assert [step.number for step in script.steps] == list(range(80))
    assert {step.client for step in script.steps} == set(range(5))
    assert sum(len(script.of(client)) for client in range(5)) == 80


@pytest.mark.parametrize(("clients", "steps"), [(2, 50), (3, 0)])
def test_less_is_no_history(clients: int, steps: int) -> None:
    with pytest.raises(ValueError, match="3 clients and 1 step"):
        make_script(1, clients=clients, steps=steps)


def test_every_client_has_something_to_do_and_something_goes_wrong() -> None:
    for script in SCRIPTS:
        assert all(script.of(client) for client in range(script.clients))
        assert script.faults


def test_every_kind_of_step_is_drawn() -> None:
    drawn = Counter(type(step) for script in SCRIPTS[:80] for step in script.steps)
    assert set(drawn) == leaves(s.Step)


def test_every_kind_of_fault_is_drawn() -> None:
    drawn = Counter(type(fault) for script in SCRIPTS for fault in script.faults)
    assert set(drawn) == leaves(s.ScriptFault)


def test_everything_strikes_the_disk_and_the_fault_points() -> None:
    struck = {
        fault.kind
        for script in SCRIPTS
        for fault in script.faults
        if isinstance(fault, s.DiskFault | s.PointFault)
    }
    assert struck == set(Kind)


def test_only_one_client_types_and_only_one_closes() -> None:
    for script in SCRIPTS:
        for step in script.steps:
            if isinstance(step, s.TypeStep | s.TypeAheadStep | s.EraseStep | s.InterruptStep):
                assert (step.client, step.terminal) == (s.TYPIST, s.DESK)
            if isinstance(step, s.SpawnStep | s.CloseStep):
                assert (step.client, step.terminal) == (s.KEEPER, s.SPARE)
            if isinstance(step, s.RunStep | s.OpenQuoteStep | s.NothingStep):
                assert step.client == s.TYPIST or step.terminal != s.DESK
