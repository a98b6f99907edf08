"""``renameat2``: the system call that exchanges two names in one step; Python does not offer it."""

from __future__ import annotations

import ctypes
import errno
import functools
import os
from collections.abc import Callable

_NOREPLACE = 1
_EXCHANGE = 2


def exchange_names(directory: int, one: str, other: str) -> None:
    """Exchange two names in the directory (a descriptor). Raises ``OSError``.

    ENOSYS, EINVAL or EOPNOTSUPP: the kernel, the C library or the file system cannot.
    """
    _renameat2(directory, one, other, _EXCHANGE)


def rename_new(directory: int, old: str, new: str) -> None:
    """Rename a file of the directory. Raises ``FileExistsError`` if ``new`` exists, ``OSError``."""
    try:
        _renameat2(directory, old, new, _NOREPLACE)
    except OSError as error:
        if error.errno not in (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP):
            raise
        os.link(old, new, src_dir_fd=directory, dst_dir_fd=directory, follow_symlinks=False)
        os.unlink(old, dir_fd=directory)


def _renameat2(directory: int, old: str, new: str, flags: int) -> None:
    call = _call()
    if call is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    if call(directory, os.fsencode(old), directory, os.fsencode(new), flags) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), new)


@functools.cache
def _call() -> Callable[..., int] | None:
    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if call is None:
        return None
    call.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
    call.restype = ctypes.c_int
    function: Callable[..., int] = call
    return function
