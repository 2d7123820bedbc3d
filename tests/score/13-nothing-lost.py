# SPDX-License-Identifier: Apache-2.0
"""No sample is lost at 99 Hz on busy CPUs, and status says so"""
import json
import os
import subprocess

from common import BUILD, Scratch, check, holds, need_root, sonde

need_root()
with Scratch() as folder:
    store = os.path.join(folder, "store")
    load = [subprocess.Popen([os.path.join(BUILD, "tests", "workloads", "burn"), "60000", "1"], stdout=subprocess.DEVNULL)
            for _ in range(os.cpu_count() or 2)]
    try:
        done = sonde("record", "-d", "10s", "--json", store=store)
    finally:
        for child in load:
            child.kill()
            child.wait()
    check(done.returncode == 0, done.stderr)
    row = json.loads(sonde("status", "--json", store=store).stdout)["rows"][0]
    check(row["samples"] > 500, f"only {row['samples']} samples")
    check(row["lost"] in (0, {}) or not sum(row["lost"].values() if isinstance(row["lost"], dict) else [row["lost"]]), f"lost {row['lost']}")
    text = sonde("status", store=store).stdout
    check("LOST" in text, text)
    holds(f"{row['samples']} samples, 0 lost")
