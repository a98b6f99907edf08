"""Messages: frozen attrs classes. A ``Request[T]`` is a message that is answered with a ``T``.

A message holds plain data only, so that it can be sent to another process: no callable, no scope,
no ``Ref`` (send its path).

    @frozen(kw_only=True)
    class Deposit:                      # no reply
        amount: int

    @frozen(kw_only=True)
    class Balance(Request[int]):        # the answer is an int
        pass
"""

from __future__ import annotations

import types
from typing import Any, Generic, TypeVar, Union, get_args, get_origin

import attrs

from actors.errors import MisuseError

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Askable(Generic[T_co]):
    """A request as its caller sees it: ``Ref.ask`` takes one and returns a ``T_co``.

    The type parameter is covariant, so that the caller may expect a more general type than the
    answer's, such as ``object`` or ``int | None``.
    """

    __slots__ = ()


class Request(Askable[T], Generic[T]):
    """A message that is answered with a ``T``; subclass it with the type of the answer.

    The type parameter is invariant for the answering actor: ``Actor.reply`` takes exactly a ``T``.
    """

    __slots__ = ()


def message_classes(union: Any) -> tuple[type, ...]:
    """Return the classes of a message union: ``A | B``, one class, or ``None`` for no messages.

    Raises ``MisuseError`` for a member that is not a frozen attrs class, because a sender could
    change a mutable message after sending it.
    """
    if union in (None, types.NoneType):
        return ()
    members = get_args(union) if get_origin(union) in (Union, types.UnionType) else (union,)
    for member in members:
        if not _is_frozen_attrs_class(member):
            raise MisuseError(f"{member!r} is not a message: declare it with @attrs.frozen")
    return tuple(members)


def _is_frozen_attrs_class(candidate: Any) -> bool:
    if not (isinstance(candidate, type) and attrs.has(candidate)):
        return False
    return candidate.__setattr__ is _FROZEN_SETATTR


@attrs.frozen
class _Sample:
    pass


_FROZEN_SETATTR = _Sample.__setattr__
