# SPDX-License-Identifier: Apache-2.0
"""A kernel, or a policy on it, that refuses one BPF program of a family (here: itershim.so refuses it by name, EPERM). One that the
family can do without is left out: the rest is recorded, and `--check`, `doctor` and the recording say which one it is and what that
costs. One that it cannot do without is named in the error."""
import glob
import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest
from conftest import BIN, ROOT, WORKLOADS, need, need_root, sql_all

SHIM = os.path.join(WORKLOADS, "itershim.so")
SOURCES = {"sonde-net": ("net.bpf.c", "net_talk.bpf.h"), "sonde-l7": ("l7.bpf.c", "l7/came.bpf.h", "l7/uring.bpf.h", "l7/tls.bpf.h"),
           "sonde-offcpu": ("offcpu.bpf.c",), "sonde-goheap": ("goheap.bpf.c",), "sonde-cpu": ("cpu.bpf.c",), "sonde-maps": ("maps.bpf.c",),
           "sonde-pstack": ("pstack.bpf.c",)}
NEEDED = {"net_state", "call_ends", "call_writes", "cpu_sample", "pstack_task"}
SILENT = {"net_read", "l7_sent", "on_task"}  # the family goes another way, at no cost
TOGETHER = {"on_fork", "on_exec", "on_exit"}  # sonde-maps loads all of these or none, and goes on
UNUSED = {"net_look", "offcpu_switch_old", "offcpu_fork", "offcpu_exit", "cpu_fork", "cpu_exit"}  # loaded elsewhere, or with a command alone
PLAIN = {"offcpu_switch"}  # plain tracepoints are refused by this name, too
TABLE = {"sonde-net": "flows", "sonde-l7": "requests", "sonde-offcpu": "wait_totals", "sonde-cpu": "cpu_samples"}


def programs(loader):
    """The names of all programs in its sources."""
    found = []
    for name in SOURCES[loader]:
        with open(os.path.join(ROOT, "probes", name), encoding="utf-8") as f:
            text = f.read()
        found += re.findall(r'^SEC\("[^"]+"\)\nint (?:BPF_PROG\()?(\w+)', text, re.M) + re.findall(r"^TRACEPOINT\(\w+, (\w+)", text, re.M)
        found += re.findall(r'^PREEMPT_PAIR\("[^"]+", (\w+)', text, re.M)
    return found


ALL = [(loader, name) for loader in SOURCES for name in programs(loader)]


@pytest.fixture(autouse=True)
def rights():
    need_root()
    need("itershim.so (make workloads)", SHIM)


def refusing(name):
    """The kernel has 15 characters of a name; some exist twice (probes/lib/preempt.bpf.h)."""
    return {**os.environ, "LD_PRELOAD": SHIM, "PROGSHIM": f"{name[:15]} {(name + '_still')[:15]}"}


def checked(loader, store, name):
    got = subprocess.run([f"{BIN}/{loader}", "--check", "--json", "--store", str(store)], env=refusing(name), stdout=subprocess.PIPE, text=True,
                         check=False)
    return json.loads(got.stdout)


def test_all_programs_are_found():
    assert len(ALL) > 25 and {n for _, n in ALL} > NEEDED | SILENT | UNUSED | PLAIN


@pytest.mark.parametrize("loader,name", ALL)
def test_each_program_that_is_refused_is_named_with_what_it_costs(store, loader, name):
    """Whatever it is: a family that cannot do without says so, the others are ready."""
    got = checked(loader, store, name)
    items = {i["name"]: i for i in got["items"]}
    if name in NEEDED | PLAIN:
        assert not got["ok"] and f"at the program {name}" in items["programs"]["text"], items["programs"]
        assert items["programs"]["fix"] and "cap_add" not in items["programs"]["fix"], items["programs"]
        return
    assert got["ok"], items
    if name in TOGETHER:
        item = items["mapping programs"]
        assert item["state"] == "warn" and item["fix"] and f"at the program {name}" in item["text"] and "frame pointers" in item["text"], item
        return
    if name in SILENT | UNUSED:
        assert name not in items
    else:
        assert items[name]["state"] == "warn" and items[name]["fix"] and "refuses" in items[name]["text"], items.get(name)


def serve(times):
    """A few requests over TCP, by processes that do nothing else. The server's pid."""
    server = subprocess.Popen([sys.executable, "-c", "import http.server as h\ns = h.HTTPServer(('127.0.0.1', 0), h.SimpleHTTPRequestHandler)\n"
                               "print(s.server_port, flush=True)\ns.serve_forever()"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    port = int(server.stdout.readline())
    for _ in range(times):
        subprocess.run([sys.executable, "-c", f"import urllib.request as u; u.urlopen('http://127.0.0.1:{port}/').read()"], check=True)
    server.kill()
    server.wait()
    return server.pid


@pytest.mark.parametrize("loader,name", [(loader, n) for loader, n in ALL if loader in TABLE and n not in NEEDED | UNUSED | PLAIN])
def test_the_rest_is_recorded_without_it(capture, store, loader, name):
    said = {i["name"]: i["text"] for i in checked(loader, store, name)["items"]}
    cap = capture(program=loader, env=refusing(name))
    pid = serve(12)
    cap.stop()
    assert sql_all(store, f"SELECT 1 FROM {TABLE[loader]} WHERE pid = {pid} LIMIT 1"), cap.said()
    if name in said:
        assert said[name].removeprefix("the kernel refuses this program: ") in cap.said(), (said[name], cap.said())


FOLLOWED = {"cpu_fork": "child processes of the command are not followed", "cpu_exit": "keep their places"}


@pytest.mark.parametrize("name", FOLLOWED)
def test_a_command_is_recorded_without_the_programs_that_follow_its_children(capture, store, name):
    cap = capture(program="sonde-cpu", env=refusing(name), command=[os.path.join(WORKLOADS, "burn"), "1000", "1"])
    cap.wait()
    assert FOLLOWED[name] in cap.said() and sql_all(store, "SELECT 1 FROM cpu_samples WHERE comm = 'burn'"), cap.said()


LACKS = {"on_signal": "which process sent the signal", "on_free": "what processes used that have ended"}


@pytest.mark.parametrize("name", LACKS)
def test_the_table_of_processes_does_without_what_is_refused(capture, store, name):
    cap = capture(program="sonde-cpu", env=refusing(name))
    subprocess.run([os.path.join(WORKLOADS, "burn"), "1000", "1"], stdout=subprocess.DEVNULL, check=True)
    cap.stop()
    assert LACKS[name] in cap.said() and sql_all(store, "SELECT 1 FROM processes WHERE comm = 'burn' AND how = 'exit'"), cap.said()


def test_doctor_says_what_sonde_maps_and_sonde_pstack_leave_out(store):
    for name, cost in {**LACKS, "pstack_file": "which sockets threads"}.items():
        got = subprocess.run([f"{BIN}/sonde", "doctor", "--json", "--store", str(store)], env=refusing(name), stdout=subprocess.PIPE, text=True, check=False)
        rows = [r for r in json.loads(got.stdout)["rows"] if r["name"] == name]
        assert len(rows) == 1 and rows[0]["state"] == "warn" and cost in rows[0]["text"] and rows[0]["fix"], rows


# ---- how much the verifier looks at when a family begins, as the kernel counts it: most of what a start takes ----

# It grows unseen, where code behind a loop is looked at once for each way out of it.
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
