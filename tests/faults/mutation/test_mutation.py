"""Tests of the mutants: each changes the place that it names, and no other."""

from __future__ import annotations

import ast

import pytest

from tests.faults.mutation.draw import draw, mutants
from tests.faults.mutation.machine import ROOT
from tests.faults.mutation.promise import Promise
from tests.faults.mutation.promises import PROMISES
from tests.faults.mutation.run import sources

SOURCE = '''\
"""A docstring that is left alone."""

def f(a: int, names: list[str]) -> int:
    assert a > 0
    log.info("left alone", a == 1)
    if not names:
        raise ValueError("empty")
    if a < 3 and names:
        names.append("ü")
        self.count += 1
    return a + 2
'''


@pytest.mark.parametrize("promise", PROMISES.values(), ids=PROMISES)
def test_every_broken_promise_is_another_program(promise: Promise) -> None:
    source = (ROOT / promise.file).read_text()
    broken = promise.broken(source)
    assert ast.dump(ast.parse(broken)) != ast.dump(ast.parse(source))


def test_at_least_thirty_promises_are_broken_and_each_break_has_a_name() -> None:
    assert len(PROMISES) >= 30
    assert len({promise.new + promise.old for promise in PROMISES.values()}) == len(PROMISES)


def test_a_promise_whose_line_is_gone_says_so() -> None:
    promise = Promise("it", "G1", "here.py", "old()", "new()")
    assert promise.broken("a; old()") == "a; new()"
    for source in ("a", "old(); old()"):
        with pytest.raises(ValueError, match="not exactly one"):
            promise.broken(source)


@pytest.mark.parametrize(
    "change",
    [
        "f.py:6: not names -> bool(names)",
        'f.py:7: raise ValueError("empty") -> pass',
        "f.py:8: a < 3 -> (a <= 3)",
        "f.py:8: a < 3 and names -> (a < 3 or names)",
        "f.py:8: 3 -> 4",
        'f.py:9: names.append("ü") -> pass',
        "f.py:10: self.count += 1 -> pass",
        "f.py:11: a + 2 -> (a - 2)",
    ],
)
def test_the_usual_operators_are_there(change: str) -> None:
    found = {str(mutant): mutant for mutant in mutants("f.py", SOURCE)}
    changed = found[change].applied_to(SOURCE)
    assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(SOURCE))
    assert len(changed.splitlines()) == len(SOURCE.splitlines())


def test_what_only_asserts_logs_or_documents_is_left_alone() -> None:
    assert {mutant.line for mutant in mutants("f.py", SOURCE)} == {6, 7, 8, 9, 10, 11}


@pytest.mark.long
def test_one_seed_draws_the_same_mutants_and_another_seed_others() -> None:
    files = sources()
    drawn = draw(files, 100, 1)
    assert drawn == draw(files, 100, 1)
    assert drawn != draw(files, 100, 2)
    assert len({(mutant.file, mutant.line) for mutant in drawn}) == len(drawn) == 100


@pytest.mark.long
def test_what_is_drawn_is_a_program_and_another_one() -> None:
    files = sources()
    trees = {file: ast.dump(ast.parse(source)) for file, source in files.items()}
    for mutant in draw(files, 100, 1):
        assert ast.dump(ast.parse(mutant.applied_to(files[mutant.file]))) != trees[mutant.file]


def test_a_mutant_knows_the_lines_of_its_statement() -> None:
    source = """\
def f(a):
    if (a >
            1):
        return g(a,
                 2)
    try:
        h()
    except E if a else F:
        match a:
            case 3 if a == 4: pass
"""
    lines = {str(mutant): mutant.lines for mutant in mutants("f.py", source)}
    assert lines["f.py:2: a > 1 -> (a >= 1)"] == range(2, 4)
    assert lines["f.py:5: 2 -> 3"] == range(4, 6)
    assert lines["f.py:7: h() -> pass"] == range(7, 8)
    assert lines["f.py:10: 4 -> 5"] == range(10, 11)
