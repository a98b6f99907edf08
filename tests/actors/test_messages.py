"""Which classes may be messages."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from actors.errors import MisuseError
from actors.messages import Request, message_classes


@attrs.frozen
class Told:
    pass


@attrs.frozen
class Asked(Request[int]):
    pass


@attrs.define
class Mutable:
    pass


def test_a_union_gives_its_members_in_order() -> None:
    assert message_classes(Told | Asked) == (Told, Asked)


def test_a_single_class_is_a_union_of_one() -> None:
    assert message_classes(Told) == (Told,)


@pytest.mark.parametrize("wrong", [Mutable, int, "Told", Any, list[Told]])
def test_what_is_no_frozen_attrs_class_is_no_message(wrong: object) -> None:
    with pytest.raises(MisuseError, match=r"declare it with @attrs\.frozen"):
        message_classes(wrong)


def test_one_mutable_member_spoils_the_union() -> None:
    with pytest.raises(MisuseError, match="Mutable"):
        message_classes(Told | Mutable)


def test_an_actor_may_accept_nothing() -> None:
    assert message_classes(None) == ()
    assert message_classes(type(None)) == ()
