"""The fault points of workflows; those of their lines are the journal's.

The subject of a call is its name, that of the others a workflow's name.
"""

from __future__ import annotations

from actors.faults import FaultTable

WORKFLOWS = FaultTable()

LAUNCH_BEFORE = WORKFLOWS.point("workflow.launch.before")
"""The process of a run will now be started."""
LAUNCH_AFTER = WORKFLOWS.point("workflow.launch.after")
"""The process has its journal, and runs."""
CALL_BEFORE = WORKFLOWS.point("workflow.call.before")
"""``begun`` is synced, and the daemon will now carry out the call."""
CALL_AFTER = WORKFLOWS.point("workflow.call.after")
"""The call is carried out, and its outcome is not written yet."""
WITHDRAW_BEFORE = WORKFLOWS.point("workflow.withdraw.before")
"""The cancellation of a question is synced, and the question will now be withdrawn."""
WITHDRAW_AFTER = WORKFLOWS.point("workflow.withdraw.after")
"""The question is withdrawn."""
NOTIFY_BEFORE = WORKFLOWS.point("workflow.notify.before")
"""``returned`` is synced, and the starter will now be notified."""
NOTIFY_AFTER = WORKFLOWS.point("workflow.notify.after")
"""The starter's inbox has the message, which is not noted yet."""
SETTLE_AFTER = WORKFLOWS.point("workflow.settle.after")
"""The sessions of an ended workflow are drained and closed, which is not noted yet."""
