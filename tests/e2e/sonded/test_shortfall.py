# SPDX-License-Identifier: Apache-2.0
"""What sonded made do less, or could not record, is said where the answer stands: which family, since when, why, and what it costs."""
import json
import os
import re
import signal
import subprocess
import time

import pytest

from conftest import BIN, WORKLOADS, need, need_root, sql_all
from sonded import Hung, Sonded, until
from test_losses import burn, disk  # noqa: F401  pylint: disable=unused-import

CLOCK = r"(\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d"


@pytest.fixture(autouse=True)
def as_root():
    need_root()


def configure(scratch, families, cpu):
    with open(os.path.join(scratch, "sonde.conf"), "w", encoding="ascii") as f:
        f.write(f"[record]\nfamilies = {families}\nfreq = 40\n[limits]\nmemory = 0\ncpu = {cpu}\n")


def in_range(store, *verb):
    return subprocess.run([f"{BIN}/sonde", *verb, "--last", "5m", "--store", store], capture_output=True, text=True, check=False)


def test_a_family_that_is_slowed_and_stopped_is_told_by_each_answer_about_that_time(store, scratch, burn):  # noqa: F811
    configure(scratch, "cpu,offcpu", 0)
    with Sonded(store, "--config", scratch, env={"SONDE_PATIENCE": "500ms"}, limit=None) as d:
        assert d.running("cpu") and d.running("offcpu"), d.said()
        assert until(lambda: sql_all(store, "SELECT 1 FROM cpu_samples LIMIT 1"), 20)
        assert "note:" not in in_range(store, "stacks").stderr
        configure(scratch, "cpu,offcpu", 0.000001)
        d.child.send_signal(signal.SIGHUP)
        assert until(lambda: d.service("cpu")["state"] == "off" and d.service("offcpu")["state"] == "off", 60), d.said()
        stacks, offcpu, status = in_range(store, "stacks"), in_range(store, "stacks", "--type", "offcpu"), None
        status = subprocess.run([f"{BIN}/sonde", "status", "--store", store], capture_output=True, text=True, check=True).stdout
        d.stop()
    slowed = rf"note: family cpu took (5|10) samples a second instead of 40 (from|for) .*{CLOCK}.*, because sonde used more CPU time than its limit"
    stopped = rf"note: family cpu recorded nothing since {CLOCK}: sonded stopped it, because sonde used more CPU time than its limit"
    for told in (stacks.stderr, status):
        assert re.search(slowed, told) and re.search(stopped, told), (told, d.said())
    assert re.search(r"note: family offcpu took (fewer|no) stacks .*: sums are exact, (some|all) are under \[no stack\]", offcpu.stderr), offcpu
    assert "family cpu" not in offcpu.stderr and "family offcpu" not in stacks.stderr
    # sonded has ended: that time is over, and the store says so
    after = in_range(store, "stacks")
    assert re.search(rf"family cpu recorded nothing from {CLOCK} to {CLOCK}: sonded stopped it", after.stderr), after
    told = json.loads(in_range(store, "stacks", "--json").stdout)["warnings"]
    assert any(w.startswith("family cpu recorded nothing from ") for w in told), told
    assert any("recorded nothing" in w for w in json.loads(in_range(store, "flame", "--json").stdout)["shed"])
    page = os.path.join(scratch, "x.html")
    assert "family cpu recorded nothing" in in_range(store, "flame", "-o", page).stderr
    with open(page, encoding="utf-8") as f:
        html = f.read()
    assert "sonded recorded less then" in html and '<li class="warn">family cpu recorded nothing from' in html
    # an answer about another time lacks nothing
    early = subprocess.run([f"{BIN}/sonde", "stacks", "--rec", "1", "--store", store], capture_output=True, text=True, check=False)
    assert early.returncode == 0


def test_a_range_in_which_sonded_had_stopped_the_family_says_so_instead_of_nothing_ran(store, scratch, burn):  # noqa: F811
    configure(scratch, "cpu", 0)
    with Sonded(store, "--config", scratch, env={"SONDE_PATIENCE": "500ms"}, limit=None) as d:
        assert d.running("cpu") and until(lambda: sql_all(store, "SELECT 1 FROM cpu_samples LIMIT 1"), 20), d.said()
        configure(scratch, "cpu", 0.000001)
        d.child.send_signal(signal.SIGHUP)
        assert until(lambda: d.service("cpu")["state"] == "off", 60), d.said()
        begin = time.time()
        time.sleep(2)
        done = subprocess.run([f"{BIN}/sonde", "stacks", "--from", str(begin + 1), "--to", str(begin + 2), "--store", store], capture_output=True,
                              text=True, check=False)
    assert done.returncode == 4 and "family cpu recorded nothing since" in done.stderr and "sonded stopped it" in done.stderr, done
    for args, says in ((["oom", "--from", str(begin + 1), "--to", str(begin + 2)], "nothing is stored of"),
                       (["stacks", "--from", str(begin + 86400), "--to", str(begin + 86460)], "is in the future")):
        done = subprocess.run([f"{BIN}/sonde", *args, "--store", store], capture_output=True, text=True, check=False)
        assert done.returncode == 4 and says in done.stderr, done


@pytest.mark.long
def test_what_a_loader_that_hangs_did_not_take_is_counted_and_told(store, burn):  # noqa: F811
    with Sonded(store, "--freq", "99") as d:
        pid = d.running("cpu")
        assert until(lambda: sql_all(store, "SELECT 1 FROM cpu_samples LIMIT 1"), 20), d.said()
        hung = Hung(pid)
        ran = cpu_s(burn.pid)
        assert until(lambda: not os.path.exists(f"/proc/{pid}"), 60), d.said()
        ran = cpu_s(burn.pid) - ran
        assert d.running("cpu", other_than=pid), d.said()
        time.sleep(3)
        hung.thread.join(5)
        told = in_range(store, "stacks").stderr
        said = d.said()
        d.stop()
    assert "it did not respond and was killed" in said, said
    lost = sum(r["n"] for r in sql_all(store, "SELECT sum(lost) AS n FROM loss WHERE reason IN ('killed', 'ring')") if r["n"])
    assert lost >= 0.85 * 99 * ran, (lost, ran, told)
    assert re.search(rf"note: family cpu recorded nothing from {CLOCK} to {CLOCK}: sonde-cpu did not respond and was killed", told), told
    assert re.search(rf"note: \d+ samples were lost: killed \(a program was killed before it had stored them\), {CLOCK} to {CLOCK}", told), told


def cpu_s(pid):
    with open(f"/proc/{pid}/schedstat", encoding="ascii") as f:
        return int(f.read().split()[0]) / 1e9


@pytest.mark.long
def test_a_file_system_that_does_not_answer_kills_no_loader_and_its_time_is_counted(disk, burn):  # noqa: F811
    """Frozen for longer than the watchdog's patience: no write returns, and no signal ends one."""
    need("fsfreeze")
    at, _, _ = disk
    store = os.path.join(at, "store")
    with Sonded(store, "--freq", "99") as d:
        pid = d.running("cpu")
        assert until(lambda: sql_all(store, "SELECT 1 FROM cpu_samples LIMIT 1"), 20), d.said()
        began = cpu_s(burn.pid)
        subprocess.run(["fsfreeze", "-f", at], check=True)
        try:
            time.sleep(45)
            states = subprocess.run(["ps", "-o", "stat=,wchan=", "-L", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
        finally:
            subprocess.run(["fsfreeze", "-u", at], check=True)
        assert d.running("cpu") == pid, (states, d.said())
        time.sleep(12)
        ran = cpu_s(burn.pid) - began
        d.child.terminate()
        d.child.wait(60)
        said = d.said()
    assert "and was killed" not in said and "restarting" not in said, (states, said)
    assert "waits in the kernel, mostly for a disk" in said or not states.startswith("D"), (states, said)
    runs = sql_all(store, "SELECT accounted FROM run WHERE family = 'cpu'")
    lost = sum(r["n"] or 0 for r in sql_all(store, "SELECT sum(lost) AS n FROM loss"))
    stored = sum(r["n"] or 0 for r in sql_all(store, "SELECT sum(samples) AS n FROM cpu_samples"))
    assert len(runs) == 1 and runs[0]["accounted"] == stored + lost and stored + lost >= 0.85 * 99 * ran, (states, runs, stored, lost, ran, said)
