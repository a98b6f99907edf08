"""Keys that wait for a submission to be read."""

from __future__ import annotations

from aegis.terminals.held_keys import HeldKeys


def test_keys_are_held_in_order_until_the_time_of_the_first() -> None:
    held = HeldKeys()
    assert (bool(held), held.size, held.is_overdue(1e9)) == (False, 0, False)
    held.hold("ann", b"ab", 5.0)
    held.hold("bob", b"c", 9.0)
    assert (bool(held), held.size) == (True, 3)
    assert (held.is_overdue(4.9), held.is_overdue(5.0)) == (False, True)
    assert held.take() == [("ann", b"ab"), ("bob", b"c")]
    assert (bool(held), held.is_overdue(1e9)) == (False, False)
