# SPDX-License-Identifier: Apache-2.0
"""A sonde-maps that stays over several captures, so that what is measured begins with its rows; and one that is stopped for a while, so that what a recording knows of processes comes late."""
import contextlib
import glob
import os
import signal
import subprocess
import time

import pytest

from conftest import BIN

def descendants(pid):
    """{name} of all that the process has started and that runs now."""
    names = set()
    for path in glob.glob(f"/proc/{pid}/task/*/children"):
        with contextlib.suppress(OSError):  # it has ended
            with open(path, encoding="ascii") as f:
                children = f.read().split()
            for child in children:
                with open(f"/proc/{child}/comm", encoding="utf-8") as f:
                    names |= {f.read().strip()} | descendants(child)
    return names


def wait_indexed(pid, timeout=120):
    """Until no index has been made for a second: a compiler's library takes a few seconds, more where others are busy."""
    end, calm = time.monotonic() + timeout, time.monotonic()
    while time.monotonic() < min(end, calm + 1):
        if "sonde-index" in descendants(pid):
            calm = time.monotonic()
        time.sleep(0.05)


@contextlib.contextmanager
def publisher(store, scratch, *args):
    """A sonde-maps that stays: what is measured begins with the rows of what runs in the kernel, as an always-on capture."""
    path = os.path.join(scratch, "maps.sock")
    maps = subprocess.Popen([os.path.join(BIN, "sonde-maps"), "--socket", path, "--store", store, *args])
    try:
        while not os.path.exists(path):
            assert maps.poll() is None, "sonde-maps ended"
            time.sleep(0.05)
        yield maps.pid, path
    finally:
        maps.terminate()
        maps.wait()


@contextlib.contextmanager
def maps_still(capture):
    told = subprocess.run(["pgrep", "-P", str(capture.pid), "sonde-maps"], capture_output=True, text=True, check=False).stdout
    pids = [int(pid) for pid in told.split()]
    if not pids:
        pytest.skip("missing: a sonde-maps of this capture's own")
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
