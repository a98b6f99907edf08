"""The request of a node that joins, and the answer. Pure.

A node that joins has proved the key, but its request may still contain anything. Both are sent as
plain values of tractor's wire.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from actors.errors import JoinFailed, NodeError
from actors.nodes.links.heartbeat import Beat

SAID_LIMIT = 65_536
"""The largest hello of either side, in bytes."""

NAME_LIMIT = 64
"""The longest name of a node, in characters."""

REFUSAL_LIMIT = 1_000
"""The longest reason of a refusal, in characters."""

FASTEST_BEAT_S = 0.05
SLOWEST_LOSS_S = 60.0


@attrs.frozen
class JoinRequest:
    """The request to join: the node's name, its hello, and its heartbeat."""

    name: str
    hello: bytes
    beat: Beat


@attrs.frozen
class JoinAnswer:
    """The answer to a request: ``said`` is the root's hello, or the reason of a refusal."""

    is_accepted: bool
    said: bytes

    def packed(self) -> tuple[bool, bytes]:
        """Return it as it crosses."""
        return self.is_accepted, self.said


def refusal(why: str) -> JoinAnswer:
    """Return a refusal with its reason."""
    return JoinAnswer(is_accepted=False, said=why[:REFUSAL_LIMIT].encode("utf-8", "replace"))


def arguments_of(request: JoinRequest) -> dict[str, object]:
    """Return a request in its transport form. Raises ``NodeError`` if a root would refuse it."""
    beat = request.beat
    said = {"hello": request.hello, "every_s": beat.every_s, "lost_after_s": beat.lost_after_s}
    judge(request.name, said)
    return said


def judge(name: str, said: Mapping[str, object]) -> JoinRequest:
    """Return the request of a node. Raises ``NodeError``, with the reason, if it is malformed."""
    hello = said.get("hello")
    if said.keys() != {"hello", "every_s", "lost_after_s"} or not isinstance(hello, bytes):
        raise NodeError("That is no request to join: install the same version on both sides.")
    if len(hello) > SAID_LIMIT:
        raise NodeError(f"A hello of {len(hello)} bytes is too long: at most {SAID_LIMIT}.")
    if not 0 < len(name) <= NAME_LIMIT or not name.isprintable():
        raise NodeError(f"A node needs a name of 1 to {NAME_LIMIT} characters that can be shown.")
    return JoinRequest(name, hello, _beat(said["every_s"], said["lost_after_s"]))


def _beat(every_s: object, lost_after_s: object) -> Beat:
    match every_s, lost_after_s:
        case (int() | float(), int() | float()) if _are_in_range(every_s, lost_after_s):
            return Beat(float(every_s), float(lost_after_s))
    raise NodeError(
        f"A node beats every {FASTEST_BEAT_S:g} s or slower, and is lost after at least two beats,"
        f" at most {SLOWEST_LOSS_S:g} s."
    )


def _are_in_range(every_s: float, lost_after_s: float) -> bool:
    return lost_after_s <= SLOWEST_LOSS_S and FASTEST_BEAT_S <= every_s <= lost_after_s / 2


def verdict_of(said: object) -> JoinAnswer:
    """Return the answer of the root. Raises ``JoinFailed`` if it is malformed."""
    match said:
        case [bool() as is_accepted, bytes() as text] if len(text) <= SAID_LIMIT:
            return JoinAnswer(is_accepted, text)
    raise JoinFailed("The root answered what is no answer: install the same version on both sides.")
