"""Every exception of the runtime.

ActorError
├─ Refusal               the handler refused this request; the actor lives on
├─ AskError              the ask ended without a reply
│   ├─ ActorCrashed      the incarnation that held the request died
│   │   └─ NodeDied      with the whole process that it was in
│   ├─ ActorStopped      the life that held it ended in order, or none follows
│   ├─ Unreachable       the connection to the actor's node is cut; the actor may go on
│   ├─ AskDeadline       no reply within the asker's time
│   ├─ AskCycle          the chain of askers already waits for this actor
│   ├─ MailboxFull       no room, and the mailbox rejects when full
│   └─ NoReply           the handler ended without an answer
├─ StartFailed           a child did not come up
├─ RestartsExhausted     a supervisor gave up: more restarts than its budget
├─ SupervisorFailed      a supervisor itself failed, not a child of it
├─ InjectedCrash         an armed fault point struck
├─ NodeError             of nodes: worker processes, connections between them (``actors.nodes``)
│   ├─ NodesNotInstalled what they need is not installed
│   ├─ BadNodeKey        a key that cannot be used: its length, or the mode of its file
│   ├─ HandshakeRefused  the other side of a connection did not prove that it has the key
│   ├─ LinkLost          the connection to a worker or a node ended, or fell silent
│   ├─ JoinFailed        this process could not join the root of another
│   ├─ RemoteFailure     a reply failed in another process with an error of no known class
│   ├─ WorkerGone        the worker has ended, or ends
│   └─ WorkerDied        a worker ended that nobody had stopped: a crash of its actor
├─ MisuseError           the caller broke a rule of the runtime (a bug)
│   └─ WrongMessage      a message of a class that the mailbox does not accept
└─ CodecError            a message that does not fit its class
"""

from __future__ import annotations


class ActorError(Exception):
    """Base of everything that the runtime raises."""


class Refusal(ActorError):
    """Raised by a handler to refuse the request in hand: the asker gets it, the actor lives on.

    Raised while a message is handled that nobody asks about, it is a crash like any exception.
    """


class AskError(ActorError):
    """Base of the outcomes of an ask other than a value or a refusal.

    ``path`` is the actor that gave none, where the runtime says so; else it is empty.
    """

    def __init__(self, text: str, *, path: str = "") -> None:
        super().__init__(text)
        self.path = path


class ActorCrashed(AskError):
    """The incarnation that held the request died before it answered. Asking again is allowed."""


class NodeDied(ActorCrashed):
    """The process of the actor died, and the request with it; no life follows at this address."""


class ActorStopped(AskError):
    """The life that held the request ended in order, or no life will follow at this address.

    ``Ref.is_stopped`` tells the two apart.
    """


class Unreachable(AskError):
    """The connection to the node of the actor is cut. It may go on there, with the request, too."""


class AskDeadline(AskError):
    """No reply came within the asker's time. The request may still be carried out."""


class AskCycle(AskError):
    """The actor asked is itself waiting for the asker: answering would never happen."""


class MailboxFull(AskError):
    """The mailbox has no room and its policy is to reject. Try again later, or send less."""


class NoReply(AskError):
    """The handler took the request and ended without replying: a bug of that actor."""


class StartFailed(ActorError):
    """A child could not be started; ``__cause__`` is what its set-up raised."""


class RestartsExhausted(ActorError):
    """A supervisor restarted its children more often than its budget allows and gave up."""


class SupervisorFailed(ActorError):
    """A supervisor itself failed, not one of its children: a bug, or a fault made to order.

    ``__cause__`` is what it raised. Its children were cancelled; its own supervisor decides.
    """


class InjectedCrash(ActorError):
    """Raised at a fault point that a plan armed (``actors.faults``)."""


class NodeError(ActorError):
    """Base of what goes wrong with nodes: worker processes and the connections between them."""


class NodesNotInstalled(NodeError):
    """Nodes need the extra ``nodes``, which is not installed; the text names the command."""


class BadNodeKey(NodeError):
    """A key of nodes cannot be used: it has not 32 bytes, or others can read its file."""


class HandshakeRefused(NodeError):
    """The other side of a connection did not prove that it has the key, or said something else."""


class LinkLost(NodeError):
    """The connection to the other process ended, broke its rules, or was silent for too long."""


class JoinFailed(NodeError):
    """This process is not joined: the root was not reached, was silent, or refused and said why."""


class WorkerGone(NodeError):
    """The worker has ended, so nothing can be sent to it or come from it; the text tells how."""


class WorkerDied(NodeError):
    """A worker ended that nobody had stopped; the text tells how. It crashes its actor."""


class RemoteFailure(NodeError):
    """A reply failed in another process with an error that is not known here; the text names it."""


class MisuseError(ActorError):
    """The caller broke a rule of the runtime; the message names the rule."""


class WrongMessage(MisuseError):
    """A message of a class that the receiving actor does not accept."""


class CodecError(ActorError):
    """A document does not fit the message class; the text names the place and what is allowed."""


def root_cause(error: BaseException) -> BaseException:
    """The error at the bottom: one that could not start names its child's, and so on.

    Of a group it is that of the first in it.
    """
    if isinstance(error, BaseExceptionGroup):
        return root_cause(error.exceptions[0])
    if isinstance(error, StartFailed) and error.__cause__ is not None:
        return root_cause(error.__cause__)
    return error
