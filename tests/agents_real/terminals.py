"""The terminals of an ACP client, as far as a test needs them: commands that end by themselves."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from typing import Any

import trio

from aegis.errors import Unavailable


class PlainTerminals:
    """Serve ``terminal/*`` with commands that are run to their end; refuse everything else."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._ended: dict[str, subprocess.CompletedProcess[str]] = {}

    async def serve(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the result of a method. Raises ``Unavailable``."""
        if method == "terminal/create":
            words = ["bash", "-c", params["command"]]
            done = await trio.run_process(
                words, cwd=self._directory, capture_stdout=True, check=False, stdin=b""
            )
            name = f"terminal-{len(self._ended)}"
            output = done.stdout.decode()
            self._ended[name] = subprocess.CompletedProcess(words, done.returncode, output)
            return {"terminalId": name}
        ended = self._ended[params["terminalId"]]
        status = {"exitCode": ended.returncode, "signal": None}
        match method:
            case "terminal/wait_for_exit":
                return status
            case "terminal/output":
                return {"output": ended.stdout, "truncated": False, "exitStatus": status}
            case "terminal/release" | "terminal/kill":
                return {}
        raise Unavailable(f"{method} is not served here")
