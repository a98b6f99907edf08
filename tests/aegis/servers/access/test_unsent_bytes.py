"""Whoever owes most is cut off when too much waits for all together, and nobody else."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from aegis.servers.access.unsent_bytes import UnsentBytes


class Client:
    """Notes whether it was cut off."""

    def __init__(self) -> None:
        self.cut = 0

    def abort(self) -> None:
        self.cut += 1


def test_what_waits_is_counted_for_as_long_as_it_waits() -> None:
    unsent, client = UnsentBytes(100), Client()
    with unsent.holding(client, 30), unsent.holding(client, 70):
        assert unsent.total == 100
    assert (unsent.total, client.cut) == (0, 0)


def test_it_is_not_counted_any_more_when_the_send_failed() -> None:
    unsent = UnsentBytes(100)
    with pytest.raises(OSError, match="gone"), unsent.holding(Client(), 30):
        raise OSError("gone")
    assert unsent.total == 0


def test_of_all_clients_the_one_that_owes_most_is_cut_off_once_and_told_of_once() -> None:
    unsent, deaf, honest = UnsentBytes(100), Client(), Client()
    with capture_logs() as logs, unsent.holding(deaf, 60), unsent.holding(honest, 30):
        with unsent.holding(honest, 20):
            assert (deaf.cut, honest.cut) == (1, 0)
        for _ in range(5):  # its tasks have not noticed yet
            with unsent.holding(honest, 25):
                pass
    assert (deaf.cut, honest.cut) == (1, 0)
    assert [entry["event"] for entry in logs] == ["cut off a client that does not read"]


def test_who_is_here_again_may_be_cut_off_again() -> None:
    unsent, client = UnsentBytes(100), Client()
    for number in (1, 2):
        with unsent.holding(client, 101):
            assert client.cut == number
