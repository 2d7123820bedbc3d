# SPDX-License-Identifier: Apache-2.0
"""`make -j2` from clean within 120 s, without the network"""
import os
import time

from common import ROOT, Scratch, check, holds, need_root, run

need_root()
with Scratch() as folder:
    clone = os.path.join(folder, "sonde")
    check(run("git", "clone", "-q", ROOT, clone).returncode == 0, "git clone failed")
    began = time.monotonic()
    done = run("unshare", "-n", "make", "-j2", cwd=clone, timeout=800)
    took = time.monotonic() - began
    check(done.returncode == 0, f"make failed\n{done.stderr[-1500:]}")
    check(took <= 120, f"{took:.0f} s, without the network (load of this machine: {os.getloadavg()[0]:.1f})")
    holds(f"{took:.0f} s, without the network")
