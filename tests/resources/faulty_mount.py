"""A file system that passes all to a directory, and lets calls fail, tear or wait on command.

A process of its own: ``python -m tests.resources.faulty_mount BACKING MOUNT CONTROL``. It prints
``ready`` once it is mounted, and serves one JSON object per line at the Unix socket CONTROL
(``fuse_disk`` is the other end). SIGTERM unmounts it.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from typing import Any

import attrs
import mfusepy

MAX_LOGGED = 20_000


@attrs.define(eq=False)
class Fault:
    """What becomes of the next ``times`` calls of this kind whose path fits.

    ``how``: "error" (with ``code``), "short" (a write takes half), "hold" (it waits until the fault
    is disarmed), "delay" (by ``seconds``), "drop" (a sync fails with ``code``, and what was written
    since the last one that did not is zeros from then on, and clean).
    """

    call: str
    path: re.Pattern[str]
    how: str
    code: int
    seconds: float
    times: int
    hits: int = 0
    gone: threading.Event = attrs.field(factory=threading.Event)


class Faults:
    """The faults that are armed, and what was called."""

    def __init__(self) -> None:
        self._armed: dict[int, Fault] = {}
        self._changed = threading.Condition()
        self._log: deque[tuple[str, str, int, str]] = deque(maxlen=MAX_LOGGED)

    def strike(self, call: str, path: str, handle: int) -> Fault | None:
        """The fault of this call, after it has waited if it must; raises if it is an error."""
        fault = self._struck(call, path)
        self._log.append((call, path, handle, "" if fault is None else fault.how))
        if fault is None:
            return None
        if fault.how in ("hold", "delay"):
            fault.gone.wait(None if fault.how == "hold" else fault.seconds)
        elif fault.how == "error":
            raise OSError(fault.code, os.strerror(fault.code))
        return fault

    def _struck(self, call: str, path: str) -> Fault | None:
        with self._changed:
            for fault in self._armed.values():
                if fault.call == call and fault.hits < fault.times and fault.path.search(path):
                    fault.hits += 1
                    self._changed.notify_all()
                    return fault
        return None

    def do(self, request: dict[str, Any]) -> object:
        """What the other end of the control socket asks for."""
        match request.pop("do"):
            case "arm":
                return self._arm(**request)
            case "disarm":
                return self._disarm(request["number"])
            case "disarm_all":
                return [self._disarm(number) for number in self._armed]
            case "wait":
                return self._wait(request["number"], request["hits"])
            case "log":
                return [entry for entry in self._log if re.search(request["path"], entry[1])]
        raise ValueError(request)

    def _arm(self, path: str, **fields: Any) -> int:
        with self._changed:
            number = len(self._armed)
            self._armed[number] = Fault(path=re.compile(path), **fields)
            return number

    def _disarm(self, number: int) -> int:
        with self._changed:
            fault = self._armed[number]
            fault.times = 0
            fault.gone.set()
            return fault.hits

    def _wait(self, number: int, hits: int) -> int:
        fault = self._armed[number]
        with self._changed:
            self._changed.wait_for(lambda: fault.hits >= hits)
            return fault.hits


class FaultyMount(mfusepy.Operations):  # type: ignore[misc]
    """The calls of a file system, passed on. What the kernel caches is nothing: it asks anew."""

    use_ns = True

    def __init__(self, backing: str, faults: Faults) -> None:
        self._backing = backing
        self._faults = faults
        self._synced: dict[str, int] = {}

    def init_with_config(self, conn_info: Any, config_3: Any) -> None:
        """It is mounted."""
        config_3.direct_io = 1
        config_3.entry_timeout = config_3.attr_timeout = config_3.negative_timeout = 0
        print("ready", flush=True)  # noqa: T201

    def _real(self, path: str) -> str:
        return self._backing + path

    # Names.

    def getattr(self, path: str, fh: int | None = None) -> dict[str, Any]:
        found = os.lstat(self._real(path))
        fields = {name: getattr(found, name) for name in _STAT}
        return fields | {f"st_{which}": getattr(found, f"st_{which}_ns") for which in _TIMES}

    def readdir(self, path: str, fh: int) -> Iterator[str]:
        self._faults.strike("readdir", path, 0)
        yield from (".", "..", *os.listdir(self._real(path)))

    def statfs(self, path: str) -> dict[str, int]:
        found = os.statvfs(self._real(path))
        return {name: getattr(found, name) for name in _STATFS}

    def access(self, path: str, amode: int) -> int:
        if not os.access(self._real(path), amode):
            raise OSError(errno.EACCES, os.strerror(errno.EACCES))
        return 0

    def mkdir(self, path: str, mode: int) -> int:
        self._faults.strike("mkdir", path, 0)
        os.mkdir(self._real(path), mode)
        return 0

    def mknod(self, path: str, mode: int, dev: int) -> int:
        os.mknod(self._real(path), mode, dev)
        return 0

    def rmdir(self, path: str) -> int:
        os.rmdir(self._real(path))
        return 0

    def unlink(self, path: str) -> int:
        self._faults.strike("unlink", path, 0)
        os.unlink(self._real(path))
        self._synced.pop(path, None)
        return 0

    def rename(self, old: str, new: str) -> int:
        self._faults.strike("rename", new, 0)
        os.rename(self._real(old), self._real(new))
        self._synced.pop(new, None)
        if old in self._synced:
            self._synced[new] = self._synced.pop(old)
        return 0

    def chmod(self, path: str, mode: int) -> int:
        os.chmod(self._real(path), mode)
        return 0

    def utimens(self, path: str, times: tuple[int, int] | None = None) -> int:
        os.utime(self._real(path), ns=times or (time.time_ns(),) * 2)
        return 0

    # Contents.

    def open(self, path: str, flags: int) -> int:
        self._faults.strike("open", path, 0)
        # The kernel says where an append goes.
        handle = os.open(self._real(path), flags & ~os.O_APPEND)
        self._synced.setdefault(path, os.fstat(handle).st_size)
        return handle

    def create(self, path: str, mode: int, fi: int | None = None) -> int:
        self._faults.strike("open", path, 0)
        handle = os.open(self._real(path), os.O_RDWR | os.O_CREAT, mode)
        self._synced[path] = 0
        return handle

    def read(self, path: str, size: int, offset: int, fh: int) -> bytes:
        self._faults.strike("read", path, fh)
        return os.pread(fh, size, offset)

    def write(self, path: str, data: bytes, offset: int, fh: int) -> int:
        fault = self._faults.strike("write", path, fh)
        if fault is not None and fault.how == "short":
            data = data[: (len(data) + 1) // 2]
        return os.pwrite(fh, data, offset)

    def truncate(self, path: str, length: int, fh: int | None = None) -> int:
        self._faults.strike("truncate", path, fh or 0)
        os.truncate(self._real(path), length)
        self._synced[path] = min(self._synced.get(path, length), length)
        return 0

    def fsync(self, path: str, datasync: int, fh: int) -> int:
        fault = self._faults.strike("fsync", path, fh)
        length = os.fstat(fh).st_size
        if fault is not None and fault.how == "drop":
            lost = length - self._synced.get(path, 0)
            os.pwrite(fh, bytes(lost), length - lost)
            raise OSError(fault.code, os.strerror(fault.code))
        os.fsync(fh)
        self._synced[path] = length
        return 0

    def fsyncdir(self, path: str, datasync: int, fh: int) -> int:
        self._faults.strike("fsyncdir", path, 0)
        return 0

    def release(self, path: str, fh: int) -> int:
        os.close(fh)
        return 0

    # What a loss of power would cost.

    def lose_power(self, pattern: str) -> list[str]:
        """Cut the files that are only ever appended to at what was synced; gives their names."""
        cut = []
        for path, length in self._synced.items():
            if re.search(pattern, path) and os.path.exists(self._real(path)):
                os.truncate(self._real(path), length)
                cut.append(path)
        return cut


_STAT = ("st_mode", "st_nlink", "st_size", "st_uid", "st_gid", "st_ino", "st_blocks")
_TIMES = ("atime", "mtime", "ctime")
_STATFS = (
    *("f_bsize", "f_frsize", "f_blocks", "f_bfree", "f_bavail", "f_files", "f_ffree", "f_favail"),
    "f_namemax",
)


def serve(listening: socket.socket, faults: Faults, mount: FaultyMount) -> None:
    """Answer at the control socket; each connection has a thread, for some requests wait."""
    while True:
        connection, _ = listening.accept()
        threading.Thread(target=answer, args=[connection, faults, mount], daemon=True).start()


def answer(connection: socket.socket, faults: Faults, mount: FaultyMount) -> None:
    with connection, connection.makefile("rw") as lines:
        request = json.loads(lines.readline())
        if request["do"] == "lose_power":
            reply: object = mount.lose_power(request["path"])
        else:
            reply = faults.do(request)
        print(json.dumps(reply), file=lines, flush=True)


def main(backing: str, mount_point: str, control: str) -> None:
    faults = Faults()
    mount = FaultyMount(backing, faults)
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(control)
    listening.listen()
    threading.Thread(target=serve, args=[listening, faults, mount], daemon=True).start()
    with contextlib.suppress(RuntimeError):  # it ends by a signal
        mfusepy.FUSE(mount, mount_point, foreground=True, default_permissions=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
