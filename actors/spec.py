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
    """Which children restart together with one that crashed (Erlang/OTP's names and meaning)."""

    ONE_FOR_ONE = "one_for_one"
    """Only the crashed child."""
    ONE_FOR_ALL = "one_for_all"
    """All children: they stop in reverse order, then start in order."""
    REST_FOR_ONE = "rest_for_one"
    """The crashed child and those started after it: stopped and started in the same way."""


class AutoShutdown(enum.Enum):
    """When a supervisor finishes because of its children (Erlang/OTP's names and meaning)."""

    NEVER = "never"
    ANY_SIGNIFICANT = "any_significant"
    """When a significant child has ended by itself and is not restarted."""
    ALL_SIGNIFICANT = "all_significant"
    """When the last significant child has ended by itself and is not restarted."""


@attrs.frozen(kw_only=True)
class Backoff:
    """The pause before a restart: ``first_s`` seconds, then ``step_s``, growing by ``factor``.

    At most ``most_s`` seconds. ``jitter`` (0 to 1) is the random part of each pause, so
    that children that failed of one cause do not restart all at once.
    """

    first_s: float = attrs.field(default=0.0, validator=attrs.validators.ge(0))
    step_s: float = attrs.field(default=0.05, validator=attrs.validators.ge(0))
    factor: float = attrs.field(default=2.0, validator=attrs.validators.ge(1))
    most_s: float = attrs.field(default=5.0, validator=attrs.validators.ge(0))
    jitter: float = attrs.field(
        default=0.2, validator=[attrs.validators.ge(0), attrs.validators.le(1)]
    )


# One of each for all specs: there are thousands of them.
_BACKOFF = Backoff()
_MAILBOX = MailboxSpec()


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
    backoff: Backoff = _BACKOFF
    shutdown_s: float = attrs.field(default=1.0, validator=attrs.validators.ge(0))
    mailbox: MailboxSpec = _MAILBOX
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
    """The specification of a supervisor and its children, which start in order and stop in reverse.

    ``strategy`` selects the children that restart together. After more than ``intensity`` restarts
    within ``period_s`` seconds the supervisor stops its children and crashes; a group that restarts
    together counts once. ``auto_shutdown`` lets it finish when its significant children have ended.
    A ``dynamic`` supervisor has no children in its spec: it starts and stops them on request,
    one_for_one, and stops them all at the same time.
    """

    name: str = attrs.field(validator=_check_name)
    children: tuple[ChildSpec | SupervisorSpec, ...] = ()
    dynamic: bool = False
    strategy: Strategy = Strategy.ONE_FOR_ONE
    auto_shutdown: AutoShutdown = AutoShutdown.NEVER
    restart: Restart = Restart.PERMANENT
    backoff: Backoff = _BACKOFF
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
                "have no order; use one_for_one"
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
            f"child {name!r} cannot be significant: a permanent child is always restarted; "
            "make it transient or temporary"
        )


AnySpec = ChildSpec | SupervisorSpec
