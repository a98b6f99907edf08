from __future__ import annotations

import pytest

from aegis.terminals.screen.alternate import AlternateWatch

CASES: dict[str, tuple[bytes, list[tuple[int, bool]]]] = {
    "nothing": (b"plain\x1b[31m text\r\n", []),
    "1049": (b"ab\x1b[?1049hxy\x1b[?1049lz", [(10, True), (20, False)]),
    "1047 and 47": (b"\x1b[?1047h\x1b[?47l", [(8, True), (14, False)]),
    "among others": (b"\x1b[?1;1049;25h\x1b[?47;1l", [(13, True), (21, False)]),
    "other modes": (b"\x1b[?25h\x1b[?1048h\x1b[?2004h\x1b[?14049h\x1b[?104h\x1b[49h", []),
    "twice is once": (b"\x1b[?1049h\x1b[?1049h\x1b[?47h", [(8, True)]),
    "leaving without entering": (b"\x1b[?1049l\x1bc", []),
    "a reset": (b"\x1b[?1049h\x1bc", [(8, True), (10, False)]),
    "after a broken sequence": (b"\x1b[?10\x1b[?1049h", [(13, True)]),
    "cut off": (b"\x1b[?1049", []),
}


@pytest.mark.parametrize(("data", "switches"), CASES.values(), ids=CASES)
def test_switches_are_found_at_their_place(data: bytes, switches: list[tuple[int, bool]]) -> None:
    expected = [(offset + 1000, on) for offset, on in switches]
    assert AlternateWatch().feed(data, 1000) == expected
    watch = AlternateWatch()
    found = []
    for at in range(len(data)):
        found += watch.feed(data[at : at + 1], 1000 + at)
    assert found == expected
    assert watch.shows is bool(switches and switches[-1][1])


def test_an_endless_sequence_is_not_kept() -> None:
    watch = AlternateWatch()
    watch.feed(b"\x1b[?" + b"1;" * 1000, 0)
    for _ in range(100):
        assert watch.feed(b"1;" * 1000, 2003) == []
    assert len(watch._incomplete) <= 64
