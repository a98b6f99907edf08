"""Messages: frozen attrs classes. A ``Request[T]`` is a message whose answer is a ``T``.

A message holds plain data only: no callable, no scope, no live ``Ref`` (an address travels as
text, ``node:path``). That is what lets a message one day cross into another process.

    @frozen(kw_only=True)
    class Deposit:                      # told: nobody waits
        amount: int

    @frozen(kw_only=True)
    class Balance(Request[int]):        # asked: the answer is an int
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
    """What ``Ref.ask`` takes: a request as its asker sees it, who gets a ``T_co`` or more general.

    An asker may expect less than the answer's class: ``object``, as ``print`` does, or
    ``int | None``. So the type parameter is covariant here, and a type checker finds it.
    """

    __slots__ = ()


class Request(Askable[T], Generic[T]):
    """A message that is answered with a ``T``; subclass it with the class of the answer.

    For the actor that answers, the type parameter is invariant: ``Actor.reply`` takes exactly a
    ``T`` for it.
    """

    __slots__ = ()


def message_classes(union: Any) -> tuple[type, ...]:
    """The classes of a message union (``A | B``, or one class), checked; of ``None``: none.

    Raises ``MisuseError`` for a member that is not a frozen attrs class: a mutable message could
    be changed by its sender after it was sent.
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
