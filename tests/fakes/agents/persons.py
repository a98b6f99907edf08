"""A stand-in of Claude Code's own interface on a conversation: an order per line.

/clear        begin another conversation, which has no file before its first message
/open ID      continue another conversation
/exit         print how the conversation is resumed, and end
CHILD         start a process in a session of its own, which ignores SIGHUP
DEAF          ignore SIGTERM and SIGHUP from now on
TEXT          a message, which is answered with ``heard TEXT``
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from datetime import UTC, datetime

from tests.fakes.agents.witness import Witness


def run() -> int:
    """Serve a person at the terminal until the end."""
    given = dict(
        each[2:].split("=", 1) for each in sys.argv if each.startswith("--") and "=" in each
    )
    conversation = given["resume"]
    witness = Witness()
    witness.begin(conversation, is_person=True)
    witness.note("ready", conversation=conversation, primed=False)
    with open(given["mcp-config"]) as file:
        servers = json.load(file)["mcpServers"]
    mode = os.stat(given["mcp-config"]).st_mode & 0o777
    say(f"resumed {conversation} in {os.getcwd()} with {[*servers]} {mode:o}\n")
    start(given["settings"], conversation)
    while True:
        say("> ")
        order = sys.stdin.readline().strip()
        match order:
            case _ if order.startswith("/open "):
                conversation = order.split()[1]
                start(given["settings"], conversation)
                say("is open\n")
            case "/clear":
                conversation = fresh_id()
                start(given["settings"], conversation)
            case "/exit" | "":
                say(f"\nclaude --resume {conversation}\n")
                return 0
            case "CHILD":
                ignoring = "trap '' HUP TERM; sleep 600 & wait"
                subprocess.Popen(["sh", "-c", ignoring], start_new_session=True)
                say("has a child\n")
            case "DEAF":
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
                signal.signal(signal.SIGHUP, signal.SIG_IGN)
                say("is deaf\n")
            case _:
                append(witness, conversation, "user", order)
                append(witness, conversation, "assistant", f"heard {order}")
                say(f"heard {order}\n")


def say(text: str) -> None:
    """Print a text at once."""
    sys.stdout.write(text)
    sys.stdout.flush()


def fresh_id() -> str:
    """Return the id of a new conversation."""
    given = os.urandom(16).hex()
    return "-".join((given[:8], given[8:12], given[12:16], given[16:20], given[20:]))


def start(settings: str, conversation: str) -> None:
    """Run the hooks of the start of a conversation."""
    with open(settings) as file:
        hooks = json.load(file)["hooks"]["SessionStart"]
    text = json.dumps({"session_id": conversation, "hook_event_name": "SessionStart"})
    for each in (hook for group in hooks for hook in group["hooks"]):
        subprocess.run(each["command"], shell=True, input=text, text=True, check=True)


def append(witness: Witness, conversation: str, role: str, text: str) -> None:
    """Append a message to the file of the conversation, and log it."""
    home = os.environ["CLAUDE_CONFIG_DIR"]
    directory = os.path.join(home, "projects", "stand-in")
    os.makedirs(directory, exist_ok=True)
    path, uuid = os.path.join(directory, f"{conversation}.jsonl"), fresh_id()
    is_new = not os.path.exists(path)
    message: dict[str, object] = {"role": role, "content": [{"type": "text", "text": text}]}
    if role == "assistant":
        figures = {"input_tokens": 100, "cache_read_input_tokens": 20, "output_tokens": len(text)}
        message |= {"id": f"msg_{uuid}", "model": "stand-in", "usage": figures}
    line = {
        "type": role,
        "message": message,
        "uuid": uuid,
        "timestamp": datetime.now(UTC).isoformat(),
        "sessionId": conversation,
    }
    with open(path, "a") as file:
        file.write(json.dumps(line) + "\n")
    if is_new:
        witness.note("began", conversation=conversation, person=True)
    witness.note("said", source=f"{uuid}/0", text=text)
