"""What an actor may do with the request in hand, and with its context."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, Generic, TypeVar

import attrs
import pytest
import trio
import trio.testing

from actors import (
    Actor,
    ActorCrashed,
    ActorStopped,
    ChildSpec,
    MailboxFull,
    MailboxSpec,
    MisuseError,
    Ref,
    Refusal,
    Request,
    Restart,
    StartFailed,
    SupervisorSpec,
    open_system,
)


@attrs.frozen
class Job(Request[str]):
    name: str


@attrs.frozen
class Note:
    text: str


@attrs.frozen
class Blocked(Request[str]):
    pass


@attrs.frozen
class Notes(Request[list[str]]):
    pass


class Worker(Actor[Job | Blocked]):
    async def receive(self, message: Job | Blocked) -> None:
        if isinstance(message, Blocked):
            await trio.sleep_forever()
        elif message.name == "forbidden":
            raise Refusal("the worker may not")
        else:
            self.reply(message, f"{self.context.path} did {message.name}")


class Front(Actor[Job | Note | Notes]):
    """Hands on every job as its name says."""

    def __init__(self) -> None:
        self._notes: list[str] = []

    async def receive(self, message: Job | Note | Notes) -> None:
        match message:
            case Note(text=text):
                self._notes.append(text)
            case Notes():
                self.reply(message, self._notes)
            case Job(name="as another"):
                self.pass_on(message, self._worker, Job("another job"))
            case Job(name="ask"):
                self.reply(message, await self._worker.ask(Job("forbidden")))
            case Job():
                self.pass_on(message, self._worker)

    @property
    def _worker(self) -> Ref[Job | Blocked]:
        return self.context.sibling("worker", Worker)


def office(actor: type[Actor[Any]] = Front, **arguments: Any) -> SupervisorSpec:
    return SupervisorSpec(
        name="root",
        children=(
            ChildSpec.of("worker", Worker).with_options(mailbox=MailboxSpec(capacity=1)),
            ChildSpec.of("front", actor, **arguments),
        ),
    )


@pytest.mark.parametrize(("name", "done"), [("x", "x"), ("as another", "another job")])
async def test_a_request_passed_on_is_answered_by_the_other_actor(name: str, done: str) -> None:
    async with open_system(office()) as system:
        assert await system.ref("root/front").ask(Job(name)) == f"root/worker did {done}"


@pytest.mark.parametrize("name", ["forbidden", "ask"])
async def test_a_refusal_of_the_other_actor_reaches_the_asker(name: str) -> None:
    async with open_system(office()) as system:
        with pytest.raises(Refusal, match="the worker may not"):
            await system.ref("root/front").ask(Job(name))
        assert [child.restarts for child in system.tree().children] == [0, 0]


async def test_a_request_passed_on_to_a_full_mailbox_fails_only_its_asker(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with open_system(office()) as system:
        worker, front = system.ref("root/worker"), system.ref("root/front")
        front.tell(Note("kept"))
        worker.tell(Blocked())
        await trio.testing.wait_all_tasks_blocked()
        worker.tell(Blocked())
        with pytest.raises(MailboxFull):
            await front.ask(Job("x"))
        assert await front.ask(Notes()) == ["kept"]


class OldFriend(Actor[Job | Note]):
    """Passes on to an address that it keeps, whoever is there."""

    async def setup(self) -> None:
        self._friend = self.context.sibling("worker", Worker)

    async def receive(self, message: Job | Note) -> None:
        if isinstance(message, Job):
            self.pass_on(message, self._friend)


async def test_a_request_passed_on_to_a_stopped_actor_fails_only_its_asker() -> None:
    async with open_system(office(OldFriend)) as system:
        await system.supervisor("root").stop_child("worker")
        with pytest.raises(ActorStopped, match="root/worker has stopped"):
            await system.ref("root/front").ask(Job("x"))
        assert system.tree().children[0].restarts == 0


async def test_a_told_request_that_cannot_be_passed_on_crashes_like_any_tell() -> None:
    crashes: list[Exception] = []
    async with open_system(
        office(OldFriend),
        observer=lambda event: crashes.append(event.error) if event.error else None,
    ) as system:
        await system.supervisor("root").stop_child("worker")
        system.ref("root/front").tell(Job("x"))
        await trio.testing.wait_all_tasks_blocked()
    assert isinstance(crashes[0], ActorStopped)


class Forwarder(Actor[Job | Note]):
    """Forwards what it is asked; a note ends its life."""

    async def receive(self, message: Job | Note) -> None:
        match message:
            case Job():
                self.context.sibling("worker", Patient).forward(message, self.defer(message))
            case Note(text):
                raise RuntimeError(text)


class Patient(Actor[Job | Note]):
    """Answers what it was asked when a note comes; a note "end" ends its life instead."""

    async def receive(self, message: Job | Note) -> None:
        if isinstance(message, Job):
            self._reply = self.defer(message)
        elif message.text == "end":
            raise RuntimeError("the end")
        else:
            self._reply.send(message.text)


def forwarding() -> SupervisorSpec:
    children = (ChildSpec.of("front", Forwarder), ChildSpec.of("worker", Patient))
    return SupervisorSpec(name="root", children=children)


async def test_a_request_that_was_forwarded_survives_the_life_that_forwarded_it() -> None:
    async with open_system(forwarding()) as system:
        front, worker = system.ref("root/front"), system.ref("root/worker")
        reply = front.send_request(Job("x"))
        await trio.testing.wait_all_tasks_blocked()
        front.tell(Note("a crash"))
        await trio.testing.wait_all_tasks_blocked()
        worker.tell(Note("answered"))
        assert await reply.wait() == "answered"
        assert reply.late == 0


async def test_a_request_that_was_forwarded_ends_with_the_life_that_it_was_forwarded_to() -> None:
    async with open_system(forwarding()) as system:
        reply = system.ref("root/front").send_request(Job("x"))
        await trio.testing.wait_all_tasks_blocked()
        system.ref("root/worker").tell(Note("end"))
        with pytest.raises(ActorCrashed, match="root/worker"):
            await reply.wait()


class Careless(Actor[Job | Note]):
    """Answers a request that is no longer in hand."""

    def __init__(self, how: str) -> None:
        self._how = how
        self._first: Job | None = None

    async def receive(self, message: Job | Note) -> None:
        if isinstance(message, Job):
            self._first = message
            self.defer(message)
            return
        assert self._first is not None
        match self._how:
            case "reply":
                self.reply(self._first, "too late")
            case "defer":
                self.defer(self._first)
            case _:
                self.pass_on(self._first, self.context.sibling("worker", Worker))


@pytest.mark.parametrize("how", ["reply", "defer", "pass_on"])
async def test_only_the_request_in_hand_can_be_answered(how: str) -> None:
    async with open_system(office(Careless, how=how)) as system:
        front = system.ref("root/front")
        reply = front.send_request(Job("x"))
        front.tell(Note("now answer"))
        with pytest.raises(ActorCrashed, match=r"MisuseError: .*not its current message"):
            await reply.wait()


async def test_a_sibling_is_found_by_its_name_and_class_only() -> None:
    async with open_system(office(Lost)) as system:
        for name in ("nobody", "front"):
            with pytest.raises(Refusal, match=f"has no sibling '{name}' of class Worker"):
                await system.ref("root/front").ask(Job(name))


class Lost(Actor[Job]):
    async def receive(self, message: Job) -> None:
        try:
            self.context.sibling(message.name, Worker)
        except MisuseError as error:
            raise Refusal(str(error)) from error


def test_an_actor_accepts_the_members_of_its_union() -> None:
    class Heir(Front):
        pass

    assert Front.accepts() == {Job, Note, Notes}
    assert Heir.accepts() == {Job, Note, Notes}


def test_a_generic_base_leaves_the_union_to_its_heirs() -> None:
    kind = TypeVar("kind")

    class Base(Actor[kind], Generic[kind]):
        pass

    class Heir(Base[Any], Actor[Note]):
        pass

    assert Base.accepts() == frozenset()
    assert Heir.accepts() == {Note}


def test_an_actor_of_messages_that_can_change_is_refused_when_it_is_written() -> None:
    with pytest.raises(MisuseError, match=r"declare it with @attrs\.frozen"):

        class Wrong(Actor[Note | list[str]]):
            pass


async def test_an_actor_that_says_nothing_of_messages_crashes_at_the_first() -> None:
    class Mute(Actor[Job]):
        pass

    async with open_system(office(Mute)) as system:
        with pytest.raises(ActorCrashed, match=r"Mute does not define receive\(\)"):
            await system.ref("root/front").ask(Job("x"))


# The context.


class Teller(Actor[Job | Note]):
    """Tells what its context says."""

    async def receive(self, message: Job | Note) -> None:
        if not isinstance(message, Job):
            raise RuntimeError(message.text)  # noqa: TRY004 - a crash made to order
        context = self.context
        own = context.ref == context.system.ref(context.path)
        self.reply(message, f"{context.path} {context.incarnation} {own}")


async def test_a_context_knows_its_path_its_life_and_its_own_address() -> None:
    async with open_system(office(Teller)) as system:
        front = system.ref("root/front")
        assert await front.ask(Job("who")) == "root/front 1 True"
        front.tell(Note("die"))
        assert await front.ask(Job("who")) == "root/front 2 True"


requester: ContextVar[str] = ContextVar("requester", default="nobody")


class Nosy(Actor[Job]):
    async def setup(self) -> None:
        self._in_setup = requester.get()

    async def receive(self, message: Job) -> None:
        self.reply(message, f"{self._in_setup} {requester.get()}")


async def test_the_context_variables_of_a_requester_do_not_leak_into_a_child() -> None:
    async with open_system(SupervisorSpec(name="root", dynamic=True)) as system:
        requester.set("somebody")
        ref = await system.supervisor("root").start_child(ChildSpec.of("nosy", Nosy))
        assert await ref.ask(Job("tell")) == "nobody nobody"


class Host(Actor[Job]):
    """Its set-up is a helper task that says when it is ready."""

    def __init__(self, log: list[str]) -> None:
        self._log = log

    async def setup(self) -> None:
        self._log.append(await self.context.start(self._serve, "port 1"))

    async def receive(self, message: Job) -> None:
        self.reply(message, self._log[0])

    async def _serve(self, port: str, task_status: trio.TaskStatus[str]) -> None:
        if not self._log:
            task_status.started(port)
        await trio.sleep_forever()


async def test_a_helper_task_can_be_waited_for_until_it_has_started() -> None:
    async with open_system(office(Host, log=[])) as system:
        assert await system.ref("root/front").ask(Job("port")) == "port 1"


async def test_a_set_up_that_waits_for_ever_is_cancelled_with_its_system() -> None:
    with trio.move_on_after(0.01) as scope:
        async with open_system(office(Host, log=["taken"])):
            raise AssertionError("never up")
    assert scope.cancelled_caught


async def test_what_a_refused_set_up_raises_is_the_cause_of_the_failed_start() -> None:
    class Unwilling(Actor[Job]):
        async def setup(self) -> None:
            raise Refusal("not today")

    spec = ChildSpec.of("u", Unwilling).with_options(restart=Restart.TEMPORARY)
    with pytest.raises(StartFailed, match="Refusal: not today") as caught:
        async with open_system(SupervisorSpec(name="root", children=(spec,))):
            pass
    assert isinstance(caught.value.__cause__, Refusal)


class Tardy(Actor[Job]):
    """Answers in a helper task, when the handler has ended."""

    async def receive(self, message: Job) -> None:
        async def answer() -> None:
            await trio.testing.wait_all_tasks_blocked()
            self.reply(message, "too late")

        self.context.start_soon(answer)


async def test_a_told_request_too_is_in_hand_only_until_its_handler_ends() -> None:
    spec = ChildSpec.of("a", Tardy).with_options(restart=Restart.TEMPORARY)
    errors: list[Exception | None] = []
    async with open_system(
        SupervisorSpec(name="root", children=(spec,)),
        observer=lambda event: errors.append(event.error),
    ) as system:
        system.ref("root/a").tell(Job("late"))
        await trio.testing.wait_all_tasks_blocked()
        await trio.testing.wait_all_tasks_blocked()
    assert isinstance(errors[-1], MisuseError)
