# SPDX-License-Identifier: Apache-2.0
"""No empty graph: a process that sleeps gives exit 4, the reason, and the way to its waits"""
import os
import subprocess

from common import Scratch, check, holds, need_root, sonde

need_root()
with Scratch() as folder, subprocess.Popen(["sleep", "60"]) as idle:
    try:
        store, page = os.path.join(folder, "store"), os.path.join(folder, "x.html")
        a = sonde("record", "-d", "1s", "-p", idle.pid, store=store)
        check(a.returncode == 4 and "offcpu" in a.stderr and "fix:" in a.stderr, f"record: {a.returncode}\n{a.stderr}")
        check(sonde("record", "-d", "1s", store=store).returncode == 0, "record")
        for words in (["flame", "-o", page], ["stacks"], ["export", "pprof", "-o", page + ".pb.gz"]):
            b = sonde(*words, "--pid", idle.pid, store=store)
            check(b.returncode == 4 and "no CPU samples" in b.stderr and "offcpu" in b.stderr, f"{words}: {b.stderr}")
        check(os.listdir(folder) == ["store"], f"left behind: {os.listdir(folder)}")
    finally:
        idle.kill()
holds("record, flame, stacks and export say why, and name offcpu")
