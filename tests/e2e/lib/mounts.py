# SPDX-License-Identifier: Apache-2.0
"""A file system that is mounted for the time of a test."""
import contextlib
import ctypes
import os

import pytest
from conftest import need_root


@contextlib.contextmanager
def mounted(point, kind, source="sonde-test", data=""):
    need_root()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(source.encode(), point.encode(), kind.encode(), 0, data.encode()):
        pytest.skip(f"missing: mounting {kind} ({os.strerror(ctypes.get_errno())})")
    try:
        yield
    finally:
        libc.umount2(point.encode(), 2)  # MNT_DETACH
