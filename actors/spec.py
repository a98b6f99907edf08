"""Specifications of children: actors and supervisors. Checked when they are built. Pure."""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, Protocol, TypedDict, Unpack, cast

import attrs

from actors.errors import MisuseError
from actors.mailbox import MailboxSpec

P = ParamSpec("P")

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@+-]{0,127}")


class Restart(enum.Enum):
    """When a child that ended is started again (Erlang/OTP's names and meaning)."""

    PERMANENT = "permanent"
    """Always."""
    TRANSIENT = "transient"
    """Only after a crash."""
    TEMPORARY = "temporary"
    """Never."""


class Strategy(enum.Enum):
    """Who is started again together with a child that crashed (Erlang/OTP's names and meaning)."""

    ONE_FOR_ONE = "one_for_one"
    """It alone."""
    ONE_FOR_ALL = "one_for_all"
    """All children: they stop in reverse order, then start in order."""
    REST_FOR_ONE = "rest_for_one"
    """It and those that start after it, likewise."""


class AutoShutdown(enum.Enum):
    """When a supervisor ends of its own will, in order (Erlang/OTP's names and meaning)."""

    NEVER = "never"
    ANY_SIGNIFICANT = "any_significant"
    """As soon as a significant child ended by itself and does not come back."""
    ALL_SIGNIFICANT = "all_significant"
    """As soon as that is so and no other significant child is left."""


@attrs.frozen(kw_only=True)
class Backoff:
    """Seconds before a restart: ``first_s``, then ``step_s``, ``factor`` times more each time.

    Never more than ``most_s``. ``jitter`` is the part of it, 0 to 1, that is left to chance, so
    that many children that died of one cause do not come back in one instant.
    """

    first_s: float = attrs.field(default=0.0, validator=attrs.validators.ge(0))
    step_s: float = attrs.field(default=0.05, validator=attrs.validators.ge(0))
    factor: float = attrs.field(default=2.0, validator=attrs.validators.ge(1))
    most_s: float = attrs.field(default=5.0, validator=attrs.validators.ge(0))
    jitter: float = attrs.field(
        default=0.2, validator=[attrs.validators.ge(0), attrs.validators.le(1)]
    )


def _check_name(_: Any, attribute: attrs.Attribute[str], value: str) -> None:
    if _NAME.fullmatch(value) is None:
        raise MisuseError(f"{attribute.name} {value!r} cannot be part of an actor's path")


class Behaviour(Protocol):
    """The methods of an actor that the runtime calls: every subclass of ``Actor`` has them."""

    @classmethod
    def accepts(cls) -> frozenset[type]:
        """Return the classes of messages that the mailbox accepts."""
        ...

    async def setup(self) -> None:
        """Begin an incarnation."""

    async def receive(self, message: Any, /) -> None:
        """Handle one message."""

    async def teardown(self) -> None:
        """End an incarnation."""


class ChildOptions(TypedDict, total=False):
    """The options of a ``ChildSpec``, for ``with_options``."""

    restart: Restart
    backoff: Backoff
    shutdown_s: float
    mailbox: MailboxSpec
    significant: bool


@attrs.frozen(kw_only=True)
class ChildSpec:
    """The specification of one supervised actor: its class, its arguments and its options.

    Build it with ``ChildSpec.of``, which checks the arguments against the constructor:

        ChildSpec.of("ada", Account, currency="EUR").with_options(restart=Restart.TRANSIENT)

    ``restart`` is permanent unless set. ``shutdown_s`` limits an ordered stop, in seconds; then
    the incarnation is cancelled. The end of a ``significant`` child, which must be transient or
    temporary, may end its supervisor (``AutoShutdown``).
    """

    name: str = attrs.field(validator=_check_name)
    actor: type[Behaviour]
    arguments: tuple[Any, ...] = ()
    keywords: Mapping[str, Any] = attrs.field(factory=dict)
    restart: Restart = Restart.PERMANENT
    backoff: Backoff = attrs.field(factory=Backoff)
    shutdown_s: float = attrs.field(default=1.0, validator=attrs.validators.ge(0))
    mailbox: MailboxSpec = attrs.field(factory=MailboxSpec)
    significant: bool = False

    def __attrs_post_init__(self) -> None:
        _check_significant(self.name, self.restart, significant=self.significant)

    @classmethod
    def of(
        cls, name: str, actor: Callable[P, Behaviour], /, *arguments: P.args, **keywords: P.kwargs
    ) -> ChildSpec:
        """Return the spec of an actor: each incarnation is ``actor(*arguments, **keywords)``.

        A wrong or missing argument is a type error. Raises ``MisuseError`` for a name that cannot
        be part of a path, and if ``actor`` is not a class.
        """
        if not isinstance(actor, type):
            raise MisuseError(f"child {name!r}: {actor!r} is not a class of actors")
        kind = cast("type[Behaviour]", actor)
        return cls(name=name, actor=kind, arguments=arguments, keywords=keywords)

    def with_options(self, **options: Unpack[ChildOptions]) -> ChildSpec:
        """Return this spec with other options. Raises ``MisuseError`` if they conflict."""
        return attrs.evolve(self, **options)

    def new_actor(self) -> Behaviour:
        """Return a new actor, for one incarnation."""
        make: Callable[..., Behaviour] = self.actor
        return make(*self.arguments, **self.keywords)


@attrs.frozen(kw_only=True)
class SupervisorSpec:
    """A supervisor and its children, which start in order and stop in reverse.

    ``strategy`` says who comes back together. More than ``intensity`` restarts within ``period_s``
    seconds and the supervisor gives up: it stops its children and crashes, for its own supervisor
    to decide; a group that comes back together counts once. With ``auto_shutdown`` it finishes when
    its significant children have ended. ``dynamic`` supervisors start and stop children on request
    instead, one_for_one, and stop them all at once.
    """

    name: str = attrs.field(validator=_check_name)
    children: tuple[ChildSpec | SupervisorSpec, ...] = ()
    dynamic: bool = False
    strategy: Strategy = Strategy.ONE_FOR_ONE
    auto_shutdown: AutoShutdown = AutoShutdown.NEVER
    restart: Restart = Restart.PERMANENT
    backoff: Backoff = attrs.field(factory=Backoff)
    intensity: int = attrs.field(default=3, validator=attrs.validators.ge(0))
    period_s: float = attrs.field(default=5.0, validator=attrs.validators.gt(0))
    shutdown_s: float = attrs.field(default=5.0, validator=attrs.validators.ge(0))
    significant: bool = False

    def __attrs_post_init__(self) -> None:
        _check_significant(self.name, self.restart, significant=self.significant)
        for child in self.children:
            self.check_child(child)
        names = [child.name for child in self.children]
        if len(set(names)) != len(names):
            raise MisuseError(f"supervisor {self.name!r} has two children of one name: {names}")
        if self.dynamic and self.children:
            raise MisuseError(f"dynamic supervisor {self.name!r} cannot have children in its spec")
        if self.dynamic and self.strategy is not Strategy.ONE_FOR_ONE:
            raise MisuseError(
                f"dynamic supervisor {self.name!r} cannot be {self.strategy.value}: its children "
                "have no order; it is one_for_one"
            )

    def check_child(self, child: ChildSpec | SupervisorSpec) -> None:
        """Raise ``MisuseError`` for a child that this supervisor cannot have."""
        if child.significant and self.auto_shutdown is AutoShutdown.NEVER:
            raise MisuseError(
                f"child {child.name!r} is significant, but supervisor {self.name!r} never shuts "
                "down by itself: give it auto_shutdown"
            )


def _check_significant(name: str, restart: Restart, *, significant: bool) -> None:
    if significant and restart is Restart.PERMANENT:
        raise MisuseError(
            f"child {name!r} cannot be significant: a permanent child always comes back; "
            "make it transient or temporary"
        )


AnySpec = ChildSpec | SupervisorSpec
