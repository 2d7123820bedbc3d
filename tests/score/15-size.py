# SPDX-License-Identifier: Apache-2.0
"""The store grows by at most 50 MiB a day, and is never 1 % above its budget"""
import os
import subprocess
import time

from common import BUILD, Scratch, check, e2e, holds, need_root, run, tests

need_root()


def used(folder):
    return int(run("du", "-sB1", "--exclude=images", folder).stdout.split()[0])


said = tests(e2e("test_prune.py"), "-k", "budget_holds")
with Scratch() as folder:
    store = os.path.join(folder, "store")
    load = subprocess.Popen([os.path.join(BUILD, "tests", "workloads", "burn"), "600000", "1"], stdout=subprocess.DEVNULL)
    daemon = subprocess.Popen([os.path.join(BUILD, "bin", "sonded"), "--store", store], stderr=subprocess.DEVNULL)
    try:
        time.sleep(60)  # names of the host's programs, once
        first, began = used(store), time.monotonic()
        time.sleep(90)
        grown, took = used(store) - first, time.monotonic() - began
    finally:
        daemon.terminate()
        daemon.wait(20)
        load.kill()
        load.wait()
    day = grown / took * 86400
    check(day <= 50 << 20, f"{day / 2**20:.0f} MiB a day after the first minute ({grown >> 10} KiB in {took:.0f} s)")
    holds(f"{day / 2**20:.0f} MiB a day, always on, after the first minute; {said}")
