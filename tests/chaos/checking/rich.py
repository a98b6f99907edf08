"""Sound evidence with moments: two terminals, changed subscriptions, a purge, a kill, cursors."""

from __future__ import annotations

from typing import Any

import attrs

from tests.chaos.checking.evidence import Answer, Command, Evidence, Handoff, Life, SeenRecord
from tests.chaos.checking.observations import (
    Ask,
    Broadcasted,
    Change,
    Death,
    Disturbance,
    Listing,
    Outcome,
    OutputRead,
    Record,
    RecordsRead,
    Span,
    Subscribing,
    Waited,
)
from tests.chaos.checking.parts import KILLED, at, command, record_of, wake

PM = "pm"

FIRST = command(0, 1, span=at(10))
FAILED = command(1, 1, span=at(20), exit=7)
GOOD = command(2, 1, span=at(24))
UNHEARD = command(3, 1, span=at(40), exit=7)
INTERRUPTED = command(4, 1, span=at(44), stdout="@t0.1.4@\n@t0.1.4@ late\n")
LONG = command(5, 1, span=Span(50), stdout="@t0.1.5@\n@t0.1.5@ late\n")
PURGED = command(6, 2, terminal="tmp", span=at(74))
AGAIN = command(7, 2, terminal="tmp", span=at(84))
CAST_T0 = command(8, 2, span=at(90), text="echo @$HERE.8@", stdout="@t0.2.8@\n")
CAST_TMP = command(9, 2, terminal="tmp", span=at(90), text="echo @$HERE.8@", stdout="@tmp.2.9@\n")
COMMANDS = (FIRST, FAILED, GOOD, UNHEARD, INTERRUPTED, LONG, PURGED, AGAIN, CAST_T0, CAST_TMP)

T0 = (
    record_of(FIRST, 0),
    record_of(FAILED, 1),
    record_of(GOOD, 2),
    record_of(UNHEARD, 3),
    record_of(INTERRUPTED, 4, exit=130, stdout="@t0.1.4@\n^C\n"),
    record_of(LONG, 5, **KILLED, stdout="@t0.1.5@\n"),
    record_of(CAST_T0, 6),
)
GONE = record_of(PURGED, 0)
TMP = (record_of(AGAIN, 0), record_of(CAST_TMP, 1))

WAKES = tuple(wake(record, PM) for record in T0)
NEWS = {"id": "h1", "body": "news @news.1@"}
LATER_NEWS = {"id": "h2", "body": "news @news.2@"}

TEXT = "".join(f"{number:03}\n" for number in range(100))


def output(begin: int, end: int, moment: int = 100, **fields: Any) -> OutputRead:
    """Return the output between two cursors."""
    return OutputRead(
        terminal="t0",
        span=at(moment),
        **{
            "from_cursor": begin,
            "cursor": begin,
            "next_cursor": end,
            "dropped": 0,
            "text": TEXT[begin:end],
            "max_bytes": 256,
            **fields,
        },
    )


def waited(reason: str, **fields: Any) -> Waited:
    """Return a wait on t0 with these fields."""
    return Waited(
        terminal="t0",
        reason=reason,
        **{
            "span": at(120),
            "seconds": 1.0,
            "timeout_s": 5.0,
            "record": None,
            "cursor": 0,
            **fields,
        },
    )


def change(kind: Any, moment: int, terminal: str = "tmp", **fields: Any) -> Change:
    return Change(kind=kind, terminal=terminal, span=at(moment), **{"done": True, **fields})


def seen(record: Record, sent: Command) -> SeenRecord:
    return SeenRecord(sent.terminal, record, sent.span)


CHANGES = (
    change("spawn", 2, "t0", id="abc"),
    change("spawn", 70, id="xyz"),
    change("purge", 78),
    change("spawn", 82, id="uvw"),
)
SUBSCRIPTIONS = (
    Subscribing(handle=PM, terminal="t0", span=at(4), done=True),
    Subscribing(handle=PM, terminal="tmp", span=at(72), done=True),
    Subscribing(handle=PM, terminal="t0", span=at(22), done=True, only_failures=True),
    Subscribing(handle=PM, terminal="t0", span=at(36), done=True, on=False),
    Subscribing(handle=PM, terminal="t0", span=at(42), done=True, pattern="t0.1.[45]"),
)
ANSWERS = (
    Answer(WAKES[:1], None, at(12), 50),
    Answer(WAKES[:2], None, at(26), 50),
    Answer((), WAKES[1]["id"], at(28), 50),
    Answer((NEWS,), WAKES[1]["id"], Span(48), 50),
    Answer((NEWS, WAKES[4]), None, at(60), 1),
    Answer((NEWS, WAKES[4], WAKES[5], wake(GONE, PM, terminal="tmp", life="xyz")), None, at(76)),
    Answer((LATER_NEWS,), "term:tmp/xyz/0/pm", at(130), 50),
)
ASKS = (
    Ask(client="ann", life=1, what="run", span=at(10), outcomes=(Outcome(kind="value"),)),
    Ask(client="ann", life=1, what="run", span=Span(50), outcomes=()),
    Ask(client="pm", life=2, what="wait", span=Span(88), outcomes=(), gave_up=True),
    Ask(
        client="pm",
        life=2,
        what="spawn",
        span=at(72),
        outcomes=(Outcome(kind="refused", code="already_exists", sentence="it is there"),),
    ),
)
CAST = Broadcasted(
    span=at(90),
    named=("t0", "tmp", "none"),
    answered=("t0", "tmp", "none"),
    records=(T0[6], TMP[1], None),
    errors=(None, None, "no such terminal"),
)
WAITS = (
    waited("ended", record=T0[6]),
    waited("ended", record=T0[6], seq=6),
    waited("matched", pattern="^t[0-9]$", match="t0"),
    waited("idle", idle_s=0.5),
    waited("timeout", seconds=5.0),
    waited("needs_input", record={**T0[4], "end": None}, span=at(45)),
    attrs.evolve(waited("closed"), terminal="tmp", span=Span(77, 80)),
)

RICH = Evidence(
    commands=COMMANDS,
    begun=tuple(each.token for each in COMMANDS),
    ended=tuple(each.token for each in COMMANDS if each not in (INTERRUPTED, LONG)),
    seen=(
        *(seen(record, sent) for record, sent in zip(T0[:5], COMMANDS[:5], strict=True)),
        seen(GONE, PURGED),
        seen(TMP[0], AGAIN),
    ),
    refused=(),
    ledgers={"t0": T0, "tmp": TMP},
    ids={"t0": "abc", "tmp": "uvw"},
    former={"tmp": ("xyz",)},
    answers={PM: ANSWERS},
    kept={PM: (*WAKES[:2], NEWS, WAKES[4], WAKES[5], LATER_NEWS)},
    handoffs=(
        Handoff(PM, NEWS["body"], "h1", "ann", at(46)),
        Handoff(PM, LATER_NEWS["body"], "h2", "ann", at(86)),
    ),
    lives=(Life(number=1, killed=True, ready=1), Life(number=2, killed=False, ready=56)),
    deaths=(Death(life=1, kind="kill", moment=54), Death(life=2, kind="stop", moment=140)),
    subscriptions=SUBSCRIPTIONS,
    changes=CHANGES,
    listings=(
        Listing(span=at(8), terminals=("t0",)),
        Listing(span=at(80), terminals=("t0",)),
        Listing(span=Span(77, 79), terminals=("t0", "tmp")),
        Listing(span=at(88), terminals=("t0", "tmp")),
    ),
    asks=ASKS,
    reads=(
        RecordsRead(terminal="t0", span=at(14), since_seq=-1, records=T0[:1]),
        RecordsRead(terminal="t0", span=at(58), since_seq=2, records=T0[3:6]),
        RecordsRead(terminal="t0", span=at(94), since_seq=2, records=T0[3:5], more=True),
        RecordsRead(terminal="tmp", span=at(96), since_seq=1, records=()),
    ),
    outputs=(
        output(0, 200),
        output(0, 120, 102),
        output(120, 200, 104),
        output(20, 90, 106, plain=False),
        output(50, 140, 108, plain=False),
        output(30, 60, 110, from_cursor=10, dropped=20),
    ),
    waits=WAITS,
    broadcasts=(CAST,),
    disturbances=(Disturbance(kind="interrupt", terminal="t0", span=at(44)),),
)
