"""Every exception of the runtime.

ActorError
├─ Refusal               the handler refused this request; the actor keeps running
├─ AskError              the ask ended without a reply
│   ├─ ActorCrashed      the incarnation that held the request died
│   │   └─ NodeDied      its whole process died
│   ├─ ActorStopped      its incarnation ended in order, or the actor is gone for good
│   ├─ Unreachable       no connection to the actor's node; the actor may still run
│   ├─ AskDeadline       no reply within the asker's time
│   ├─ AskCycle          the actor waits, directly or not, for the asker
│   ├─ MailboxFull       no room, and the mailbox rejects when full
│   └─ NoReply           the handler returned without an answer
├─ StartFailed           a child did not come up
├─ RestartsExhausted     a supervisor gave up: more restarts than its budget
├─ SupervisorFailed      the supervisor itself failed, not one of its children
├─ InjectedCrash         raised at an armed fault point
├─ NodeError             worker processes and connections to other hosts (``actors.nodes``)
│   ├─ NodesNotInstalled the extra ``nodes`` is not installed
│   ├─ BadNodeKey        the key is unusable: its length, or the mode of its file
│   ├─ HandshakeRefused  the other side of a connection did not prove that it has the key
│   ├─ LinkLost          the connection to a worker or a node ended or timed out
│   ├─ JoinFailed        this process could not join the root of another
│   ├─ RemoteFailure     a remote error of a class that is unknown here
│   ├─ WorkerGone        the worker has ended or is ending
│   └─ WorkerDied        a worker ended without being stopped: a crash of its actor
├─ MisuseError           the caller broke a rule of the runtime (a bug)
│   └─ WrongMessage      a message of a class that the mailbox does not accept
└─ CodecError            a message that does not fit its class
"""

from __future__ import annotations


class ActorError(Exception):
    """Base of all exceptions of the runtime."""


class Refusal(ActorError):
    """Raised by a handler to refuse the current request: it becomes the caller's result.

    The actor keeps running. Raised while a message without a reply is handled, it is a crash like
    any other exception.
    """


class AskError(ActorError):
    """Base of the outcomes of an ask other than a value or a refusal.

    ``path`` is the path of the actor that did not answer; empty if it is unknown.
    """

    def __init__(self, text: str, *, path: str = "") -> None:
        super().__init__(text)
        self.path = path


class ActorCrashed(AskError):
    """The incarnation that held the request died before it answered. Asking again is allowed."""


class NodeDied(ActorCrashed):
    """The actor's process died with the request. Nothing will run at the address again."""


class ActorStopped(AskError):
    """The incarnation that held the request ended in order, or the actor is stopped for good.

    ``Ref.is_stopped`` distinguishes the two.
    """


class Unreachable(AskError):
    """The actor's node cannot be reached. The actor may still run there, with the request."""


class AskDeadline(AskError):
    """No reply came within the timeout. The request may still be carried out."""


class AskCycle(AskError):
    """The receiver is itself waiting for the caller, so it could never answer."""


class MailboxFull(AskError):
    """The mailbox is full and does not wait for room. Try again later, or send less."""


class NoReply(AskError):
    """The handler of the request returned without replying: a bug of that actor."""


class StartFailed(ActorError):
    """A child could not be started; ``__cause__`` is what its set-up raised."""


class RestartsExhausted(ActorError):
    """A supervisor restarted its children more often than its budget allows and gave up."""


class SupervisorFailed(ActorError):
    """A supervisor itself failed, not one of its children: a bug, or an injected fault.

    ``__cause__`` is the original error. The children were cancelled, and the supervisor above
    handles the failure like any crash.
    """


class InjectedCrash(ActorError):
    """Raised at a fault point that a plan armed (``actors.faults``)."""


class NodeError(ActorError):
    """Base of the errors of nodes: worker processes, and connections to other hosts."""


class NodesNotInstalled(NodeError):
    """The extra ``nodes`` is not installed; the text names the command that installs it."""


class BadNodeKey(NodeError):
    """A key of nodes is unusable: it has not 32 bytes, or other users can read its file."""


class HandshakeRefused(NodeError):
    """The peer did not prove that it has the key, or broke the protocol."""


class LinkLost(NodeError):
    """The connection to the other process ended, broke the protocol, or timed out."""


class JoinFailed(NodeError):
    """This process could not join: the root was unreachable, timed out, or refused."""


class WorkerGone(NodeError):
    """The worker has ended: nothing can be sent or received. The text says how it ended."""


class WorkerDied(NodeError):
    """A worker ended without being stopped; the text says how. It crashes the worker's actor."""


class RemoteFailure(NodeError):
    """A request failed in another process with an error that is unknown here: see the text."""


class MisuseError(ActorError):
    """The caller broke a rule of the runtime; the text names the rule."""


class WrongMessage(MisuseError):
    """A message of a class that the receiving actor does not accept."""


class CodecError(ActorError):
    """A document does not fit the message class; the text names the position and the rule."""


def root_cause(error: BaseException) -> BaseException:
    """Return the original error behind ``error``.

    Follows the ``__cause__`` of each ``StartFailed``, and the first error of each group.
    """
    if isinstance(error, BaseExceptionGroup):
        return root_cause(error.exceptions[0])
    if isinstance(error, StartFailed) and error.__cause__ is not None:
        return root_cause(error.__cause__)
    return error
