# SPDX-License-Identifier: Apache-2.0
"""How much the kernel's verifier looks at when a family begins, as the kernel counts it: most of what a start takes. It grows unseen, where code behind a loop
is looked at once for each way out of it."""
import glob
import os
import signal
import subprocess
import time

from conftest import BIN, need_root

# Instructions, of all programs that a family's loader holds: on 6.18 what is counted, and some more. Another kernel counts otherwise, but not twice as much.
MOST = {"cpu": 370_000, "offcpu": 600_000, "mem": 1_300_000, "net": 60_000, "l7": 1_260_000, "disk": 150_000}


def verified(pid):
    found = {}
    for path in glob.glob(f"/proc/{pid}/fdinfo/*"):
        try:
            with open(path, encoding="ascii", errors="replace") as f:
                info = dict(line.split(":", 1) for line in f if ":" in line)
        except OSError:
            continue
        if "verified_insns" in info:
            found[int(info["prog_id"])] = int(info["verified_insns"])
    return sum(found.values())


def loader(family):
    for path in glob.glob("/proc/[0-9]*/comm"):
        try:
            with open(path, encoding="ascii", errors="replace") as f, open(path[:-4] + "environ", "rb") as e:
                if f.read().strip() == f"sonde-{family}" and MARK.encode() in e.read():
                    yield int(path.split("/")[2])
        except OSError:
            continue


MARK = f"SONDE_TEST_VERIFIED={os.getpid()}"


def test_what_a_start_has_verified(store):
    need_root()
    most = dict.fromkeys(MOST, 0)
    child = subprocess.Popen([f"{BIN}/sonde", "record", "-q", "--families", ",".join(MOST), "-d", "5s", "--store", store],
                             env=dict(os.environ, **dict([MARK.split("=")])), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    try:
        while child.poll() is None:
            for family in MOST:
                for pid in loader(family):
                    most[family] = max(most[family], verified(pid))
            time.sleep(0.2)
    finally:
        if child.poll() is None:
            child.send_signal(signal.SIGINT)
        child.wait(120)
    print(most)
    assert all(0 < most[f] <= 2 * MOST[f] for f in MOST), most
    if os.uname().release.startswith("6.18"):
        assert all(most[f] <= MOST[f] for f in MOST), most
