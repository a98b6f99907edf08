"""Handles of sessions: generated names, the check of chosen ones, and what they stand for. Pure.

A handle is never given twice: the names of closed sessions and the former names of renamed ones
stay taken.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable

from aegis.errors import AlreadyExists, InvalidRequest
from aegis.names import shorten
from aegis.protocol.naming import NAME_RULE, RESERVED_HANDLES, is_name, name_key

Choose = Callable[[int], int]
"""Return a random number from 0 up to, not including, the argument."""

TRIES = 16
"""Random pairs that are tried before the free ones are searched in order."""

_ADJECTIVES = """
    able agile alert amber ample apt astute autumn azure bold brave brief bright brisk calm candid
    careful clear clever coral crisp deft early eager exact fair fast fine fleet fond frank fresh
    gentle glad golden grand green happy honest ivory keen kind lively loyal lucid merry mild neat
    nimble noble open patient placid plain polite prompt proud quick quiet rapid ready silver smart
    solid steady sunny swift tidy warm wise
"""

_SURNAMES = """
    abel ampere avery babbage banach bell bohr boole borel bose brahe carnot cauchy celsius clarke
    cori coulomb curie dalton darwin dijkstra dirac doppler edison euler faraday fermat fermi
    fibonacci floyd fourier franklin galilei galois gauss germain goodall hamilton hertz hilbert
    hooper hopper hubble huygens joule kelvin kepler knuth lagrange laplace leavitt leibniz liskov
    lovelace mach maxwell meitner mendel morse napier newton noether ohm pascal pasteur planck
    ramanujan riemann sagan shannon tesla turing volta watt weyl wiener
"""


ADJECTIVES = tuple(_ADJECTIVES.split())

SURNAMES = tuple(_SURNAMES.split())


def new_handle(taken: Container[str], choose: Choose) -> str:
    """Return an ``adjective-surname`` that is not in ``taken``, which ignores case.

    Once all pairs are taken, a number is added.
    """
    count = len(ADJECTIVES) * len(SURNAMES)
    for _ in range(TRIES):
        handle = _pair(choose(count))
        if handle not in taken:
            return handle
    first = choose(count)
    for number in range(count):
        handle = _pair((first + number) % count)
        if handle not in taken:
            return handle
    number = 2
    while f"{_pair(first)}-{number}" in taken:
        number += 1
    return f"{_pair(first)}-{number}"


def check_handle(tool: str, wanted: str, taken: Container[str]) -> str:
    """Return the handle ``wanted``. Raises ``AlreadyExists``, ``InvalidRequest``."""
    handle = f"{tool}: handle {shorten(wanted)!r}"
    if not is_name(wanted):
        raise InvalidRequest(f"{handle} is not a name: use {NAME_RULE}")
    if name_key(wanted) in RESERVED_HANDLES:
        raise InvalidRequest(f"{handle} is reserved: choose another one")
    if wanted in taken:
        raise AlreadyExists(
            f"{handle} is or was used, and no handle is given twice: choose another one"
        )
    return wanted


def _pair(number: int) -> str:
    adjective, surname = divmod(number, len(SURNAMES))
    return f"{ADJECTIVES[adjective]}-{SURNAMES[surname]}"


class SessionNames:
    """The names of all sessions of a root; the roster keeps it, the servers ask it.

    The address of a session is its first handle, which never changes: inboxes, subscriptions, keys
    and the suppression of a session's own echo use it. A handle or an alias of a session resolves
    to the address where a command arrives.
    """

    def __init__(self) -> None:
        self._addresses: dict[str, str] = {}
        self._shown: dict[str, str] = {}

    def put(self, address: str, handle: str) -> None:
        """Note that the session at ``address`` is now called ``handle``."""
        self._addresses[name_key(handle)] = address
        self._shown[name_key(address)] = handle

    def drop(self, address: str, handles: Iterable[str]) -> None:
        """Forget a session and its ``handles``."""
        self._shown.pop(name_key(address), None)
        for handle in handles:
            self._addresses.pop(name_key(handle), None)

    def replace(self, names: SessionNames) -> None:
        """Take over all of ``names`` in place of these."""
        self._addresses, self._shown = names._addresses, names._shown

    def address_of(self, handle: str) -> str:
        """Return the address of the session with this handle or alias; else ``handle`` itself."""
        return self._addresses.get(name_key(handle), handle)

    def shown(self, address: str) -> str:
        """Return the current handle of the session at ``address``; else ``address`` itself."""
        return self._shown.get(name_key(address), address)
