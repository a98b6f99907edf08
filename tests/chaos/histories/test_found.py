"""Past findings of random histories, each as the shortest script that shows it."""

from __future__ import annotations

import pytest

from tests.chaos.histories import script as s
from tests.chaos.histories.playing import play
from tests.chaos.strikes import Kind


@pytest.mark.parametrize("draw", range(12))
def test_what_was_refused_is_in_no_record_after_a_loss_of_power(draw: int) -> None:
    """The note that withdrew it was not synced before its caller got the answer."""
    script = s.Script(
        seed=1,
        clients=3,
        steps=(
            s.OpenQuoteStep(number=0, client=0, terminal=s.SHARED),
            s.ListStep(number=1, client=0),
        ),
        faults=(s.PowerLossFault(step=1, after_s=0, draw=draw),),
    )
    outcome = play(script)
    assert outcome.violations == ()
    assert outcome.hits == {"power loss": 1}
    assert outcome.evidence.refused == ("@shared.0@",)


@pytest.mark.parametrize("seed", range(6))
def test_what_stood_behind_an_exit_that_was_typed_ahead_is_not_credited_with_it(seed: int) -> None:
    """It was recorded with the output and the exit of a line typed before the prompt."""
    script = s.Script(
        seed=seed,
        clients=3,
        steps=(
            s.ListStep(number=0, client=0),
            s.TypeStep(number=1, client=0, terminal=s.DESK, kind="ending the shell"),
        ),
        faults=(s.KillFault(step=0, after_s=0),),
    )
    assert play(script).violations == ()


@pytest.mark.parametrize("number", [1, 2, 3])
def test_what_is_in_flight_is_known_also_where_its_note_could_not_be_synced(number: int) -> None:
    """The failed sync dropped the pages, the note with them; then the daemon was killed."""
    script = s.Script(
        seed=1,
        clients=3,
        steps=(s.RunStep(number=0, client=0, terminal=s.SHARED, kind="asking"),),
        faults=(s.DiskFault(step=0, call="fdatasync", number=number, kind=Kind.ENOSPC),),
        stops=False,
    )
    assert play(script).violations == ()


def test_a_terminal_that_does_not_end_in_time_has_its_records_when_it_is_closed() -> None:
    """The end of its last command was recorded only at the next spawn."""
    script = s.Script(
        seed=101980,
        clients=3,
        steps=(
            s.RunStep(
                number=0, client=2, pause_s=0.0069, terminal=s.SPARE, kind="ending the shell"
            ),
            s.CloseStep(number=1, client=1, pause_s=0.022, terminal=s.SPARE),
        ),
        faults=(s.PointFault(step=0, place="shell.end.after", number=1, kind=Kind.STALL),),
        stops=False,
    )
    outcome = play(script)
    assert outcome.violations == ()
    assert outcome.hits["fault point: stall"] == 1


@pytest.mark.parametrize("number", range(3, 7))
def test_a_failed_terminal_has_its_records_when_it_is_closed_though_the_disk_refused_them(
    number: int,
) -> None:
    """The writes were not tried again before the next spawn."""
    slow, lines = "too long for its caller", "several lines of text"
    script = s.Script(
        seed=203095,
        clients=3,
        steps=(
            s.RunStep(number=0, client=0, pause_s=0.0103, terminal=s.SHARED, kind=lines),
            s.HandoffStep(number=1, client=1, pause_s=0.0196, to=2),
            s.RunStep(number=8, client=1, pause_s=0.0039, terminal=s.SHARED, kind=slow),
            s.RunStep(number=16, client=1, pause_s=0.0143, terminal=s.SPARE, kind=slow),
            s.RunStep(number=20, client=2, pause_s=0.0255, terminal=s.SPARE, kind=lines),
            s.RunStep(number=21, client=1, pause_s=0.0145, terminal=s.SHARED, kind="quick"),
            s.CloseStep(number=48, client=1, pause_s=0.0164, terminal=s.SPARE),
            s.RunStep(number=49, client=2, pause_s=0.0022, terminal=s.SPARE, kind="dying"),
        ),
        faults=(
            s.DiskFault(step=4, call="mkdir", number=2, kind=Kind.EIO),
            s.PointFault(step=21, place="note.write.after", number=8, kind=Kind.DIE),
            s.DiskFault(step=22, call="fdatasync", number=number, kind=Kind.ENOSPC),
        ),
    )
    outcome = play(script)
    assert outcome.violations == ()
    assert outcome.hits["fault point: death"] == 1


@pytest.mark.parametrize("keys", ["x\x7f", "half\x15", "half\x15y\x7f"])
def test_trap_36_a_line_that_was_erased_keeps_no_run_away(keys: str) -> None:
    """The prompt counted as typed on until Enter or Ctrl-C: each later run was refused."""
    script = s.Script(
        seed=1,
        clients=3,
        steps=tuple(
            s.EraseStep(number=number, client=s.TYPIST, terminal=s.DESK, keys=keys)
            for number in range(2)
        ),
        faults=(),
    )
    outcome = play(script)
    assert outcome.violations == ()
    assert outcome.evidence.refused == ()
    commands = [each["cmd"] for each in outcome.evidence.ledgers[s.DESK]]
    for number in range(2):
        assert sum(f"echo @desk.{number}.then@" in cmd for cmd in commands) == 1
    assert not [cmd for cmd in commands if "half" in cmd]


@pytest.mark.parametrize("lines", [1, 2, 3])
@pytest.mark.parametrize(
    ("place", "passes"),
    [
        ("note.write.before", range(3, 12)),
        ("mark.start.after", range(2, 6)),
        ("actor.receive.before[Terminal]", range(10, 26)),
    ],
)
def test_trap_37_a_run_behind_lines_typed_ahead_is_recorded_wherever_the_daemon_dies(
    lines: int, place: str, passes: range
) -> None:
    """The note did not name it while the shell read the lines typed before it."""
    step = s.TypeAheadStep(
        number=0, client=0, terminal=s.DESK, kinds=("quick",) * lines, behind="quick", is_first=True
    )
    for number in passes:
        fault = s.PointFault(step=0, place=place, number=number, kind=Kind.DIE)
        outcome = play(s.Script(seed=1, clients=3, steps=(step,), faults=(fault,)))
        assert outcome.violations == (), number


@pytest.mark.parametrize("pause_s", [0.142, 0.1425, 0.143, 0.1435])
def test_a_close_while_the_actor_of_the_shell_crashes_keeps_the_output(pause_s: float) -> None:
    """The crashing actor told the front that its shell had ended, without the output."""
    script = s.Script(
        seed=1,
        clients=3,
        steps=(
            s.RunStep(number=0, client=0, terminal=s.SPARE, kind="too long for its caller"),
            s.CloseStep(number=1, client=0, pause_s=pause_s, terminal=s.SPARE),
        ),
        faults=(s.PointFault(step=0, place="mark.end.after", number=1, kind=Kind.CRASH),),
    )
    outcome = play(script)
    assert outcome.violations == ()
    assert outcome.hits == {"fault point: crash": 1}


@pytest.mark.parametrize("draw", [0, 4, 9, 13])
def test_a_note_that_a_power_loss_took_does_not_return_after_the_next_one(draw: int) -> None:
    """A command of the first incarnation was recorded as killed after one of the second.

    The first power loss left the note under its unfinished name only, and that file was truncated
    and written anew; the second one left an old page of it beside a new one.
    """
    line = s.TypeAheadStep(
        number=0,
        client=0,
        terminal=s.DESK,
        kinds=("slow output", "quick"),
        behind="quick",
        is_first=False,
    )
    script = s.Script(
        seed=1,
        clients=3,
        steps=(line, s.RunStep(number=1, client=0, terminal=s.DESK, kind="quick")),
        faults=(
            s.PowerLossFault(step=0, after_s=0.16, draw=285),
            s.PowerLossFault(step=1, after_s=0.003, draw=draw),
        ),
    )
    outcome = play(script)
    assert outcome.violations == ()
    assert outcome.hits == {"power loss": 2}
