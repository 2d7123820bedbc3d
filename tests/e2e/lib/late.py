# SPDX-License-Identifier: Apache-2.0
"""late: a sonde-maps that is stopped for a while, so that what a recording knows of processes comes late."""
import contextlib
import os
import signal
import subprocess

import pytest


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
