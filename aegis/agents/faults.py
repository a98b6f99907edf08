"""The fault points of agent sessions; the handle is the subject of those of a session.

The lines of transcripts and of the roster pass the points of ledgers, by the names of their files.
"""

from __future__ import annotations

from actors.faults import FaultTable

AGENTS = FaultTable()

START_BEFORE = AGENTS.point("agent.start.before", may_wait=True)
"""The agent's process will now be started; no process of an earlier one is left."""
START_AFTER = AGENTS.point("agent.start.after", may_wait=True)
"""Its driver runs; the session does not know it yet."""
LAUNCH_BEFORE = AGENTS.point("agent.launch.before", may_wait=True)
"""The terminal of a terminal agent is open; its program will now be run."""
LAUNCH_AFTER = AGENTS.point("agent.launch.after", may_wait=True)
"""The program runs; the agent's actor does not know it yet."""
ACKNOWLEDGE_BEFORE = AGENTS.point("turn.acknowledge.before")
"""A turn is synced as ended; its messages will now be marked as read."""
SEND_BEFORE = AGENTS.point("turn.send.before")
"""A turn is synced as opened; it will now be passed to the driver."""
SEND_AFTER = AGENTS.point("turn.send.after")
"""The driver has the turn in its mailbox."""
IMAGES_AFTER = AGENTS.point("agent.images.after")
"""The images of a message are durable; the message that names them will now be sent."""
NOTIFY_BEFORE = AGENTS.point("turn.notify.before")
"""The outcome of a turn is synced; a sender of it will now be notified."""
ANSWER_BEFORE = AGENTS.point("answer.write.before")
"""An answer to a request is synced; it will now be passed to the driver."""
ANSWER_AFTER = AGENTS.point("answer.write.after")
"""The driver has replied to the answer; the desk does not know that yet."""
FRAME_BEFORE = AGENTS.point("frame.write.before")
"""A frame will now be queued for the agent. The subject is the frame's type."""

TAKEOVER_OPEN_BEFORE = AGENTS.point("takeover.open.before", may_wait=True)
"""It is synced that a person owns the conversation; their terminal will now be opened."""
TAKEOVER_RUN_BEFORE = AGENTS.point("takeover.run.before", may_wait=True)
"""The terminal of a take-over is open; the agent's own program will now be run in it."""
TAKEOVER_RUN_AFTER = AGENTS.point("takeover.run.after", may_wait=True)
"""The program runs; nobody knows it yet."""
TAKEOVER_END_BEFORE = AGENTS.point("takeover.end.before", may_wait=True)
"""The program has ended, or is to be ended; its terminal will now be closed."""
TAKEOVER_READ_BEFORE = AGENTS.point("takeover.read.before", may_wait=True)
"""No process of a take-over is left; what was said in it will now be read."""
TAKEOVER_BACK_BEFORE = AGENTS.point("takeover.back.before", may_wait=True)
"""The talk of a take-over is read; it will now be written, and the agent synced as the owner."""

REWIND_KEEP_BEFORE = AGENTS.point("rewind.keep.before", may_wait=True)
"""The beginning of a rewind is synced; its files will now be set aside."""
REWIND_AGENT_BEFORE = AGENTS.point("rewind.agent.before", may_wait=True)
"""They are set aside, and synced; the agent will now set the files back."""
REWIND_BACK_BEFORE = AGENTS.point("rewind.back.before", may_wait=True)
"""The agent has answered; the files of others will now be put back."""
REWIND_END_BEFORE = AGENTS.point("rewind.end.before", may_wait=True)
"""All files are as they stay; the entry of the end will now be written, and the copies deleted."""

WORKTREE_MAKE_BEFORE = AGENTS.point("worktree.make.before", may_wait=True)
"""The intent to make a worktree is synced; git will now run. The subject is the session's id."""
WORKTREE_FILES_BEFORE = AGENTS.point("worktree.files.before", may_wait=True)
"""git has registered the worktree; its files will now be written."""
WORKTREE_MAKE_AFTER = AGENTS.point("worktree.make.after", may_wait=True)
"""The worktree is complete; that will now be synced."""
WORKTREE_OPEN_BEFORE = AGENTS.point("worktree.open.before", may_wait=True)
"""It is synced that the worktree is complete; its session will now be added to the roster."""
WORKTREE_REMOVE_BEFORE = AGENTS.point("worktree.remove.before", may_wait=True)
"""The intent to remove a worktree is synced; its directory will now be renamed."""
WORKTREE_DELETE_BEFORE = AGENTS.point("worktree.delete.before", may_wait=True)
"""Its directory has another name, and holds nothing that would be lost; it will now be deleted."""
WORKTREE_BRANCH_BEFORE = AGENTS.point("worktree.branch.before", may_wait=True)
"""Its directory is deleted; its branch will now be deleted, if it is merged."""
WORKTREE_REMOVE_AFTER = AGENTS.point("worktree.remove.after", may_wait=True)
"""The worktree is removed; that will now be synced."""
WORKTREE_MERGE_BEFORE = AGENTS.point("worktree.merge.before", may_wait=True)
"""The intent to merge a worktree is synced; the index of the target's checkout will be locked."""
WORKTREE_MOVE_BEFORE = AGENTS.point("worktree.move.before", may_wait=True)
"""The index is locked, and the new files are made; the target branch will now be moved."""
WORKTREE_WRITE_BEFORE = AGENTS.point("worktree.write.before", may_wait=True)
"""The target branch is moved; the files of its checkout will now be replaced."""
WORKTREE_INDEX_BEFORE = AGENTS.point("worktree.index.before", may_wait=True)
"""The files are replaced; the index will now be replaced."""
WORKTREE_UNLOCK_BEFORE = AGENTS.point("worktree.unlock.before", may_wait=True)
"""The index is replaced; its lock will now be removed."""
WORKTREE_MERGE_AFTER = AGENTS.point("worktree.merge.after", may_wait=True)
"""A merge is complete; that will now be synced."""
