# SPDX-License-Identifier: Apache-2.0
"""Each capability and each limit in turn is taken away from root. What then does not work is said by `--check`, by `doctor` and by the
recording with the same reason and a fix, and the reason is the true one; root is not told to run it as root."""
import json
import os
import subprocess
import tempfile
import time

import pytest
from conftest import BIN, WORKLOADS, need, need_root

ROOTS_ADVICE = ("run it as root", "run it with sudo", "sudo sonde record ...")

# what is dropped -> family -> what `--check` and the recording say, and a word of the fix; None: all goes on as with all rights
RIGHTS = {
    "sys_ptrace": {"cpu": ("no CAP_SYS_PTRACE", "SYS_PTRACE"), "goheap": ("no CAP_SYS_PTRACE", "SYS_PTRACE"), "host": ("no CAP_SYS_PTRACE", "SYS_PTRACE")},
    "dac_read_search": {"cpu": ("no CAP_DAC_READ_SEARCH", "DAC_READ_SEARCH"), "goheap": ("no CAP_DAC_READ_SEARCH", "DAC_READ_SEARCH")},
    "syslog": {"cpu": ("no CAP_SYSLOG", "SYSLOG")},
    "sys_admin,bpf": {"cpu": ("have: CAP_PERFMON", "BPF"), "net": ("have: CAP_PERFMON", "BPF"), "l7": ("have: CAP_PERFMON", "BPF")},
    "sys_admin,perfmon": {"cpu": ("have: CAP_BPF", "PERFMON"), "offcpu": ("have: CAP_BPF", "PERFMON")},
    "sys_admin,bpf,perfmon": {"cpu": ("have: neither", "BPF, PERFMON")},
    "sys_admin": {"cpu": None},
    "sys_resource": {"cpu": None, "net": None},
    "sys_nice": {"cpu": None},
    "net_admin": {"cpu": None},
}
LIMITS = {
    "nofile=64": ("RLIMIT_NOFILE", "ulimit -n"),
    "as=33554432": ("RLIMIT_AS", "ulimit -v"),
    "data=33554432": ("RLIMIT_DATA", "ulimit -d"),
    "fsize=1000000": ("RLIMIT_FSIZE", "ulimit -f"),
    "memlock=65536": None,  # since 5.11 BPF memory is charged to the cgroup
    "nproc=1": None,        # root is not counted
}


@pytest.fixture(autouse=True)
def rights():
    need_root()
    need("setpriv")
    need("prlimit")


def without(caps):
    dropped = ",".join("-" + c for c in caps.split(","))
    return ["setpriv", f"--bounding-set={dropped}", f"--inh-caps={dropped}"]


def run(prefix, *argv):
    return subprocess.run([*prefix, *argv], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=400, check=False)


def items_of(prefix, family, store):
    got = run(prefix, f"{BIN}/sonde-{family}", "--check", "--json", "--store", store)
    assert got.stdout, got
    return json.loads(got.stdout)["items"]


def doctor(prefix, store):
    got = run(prefix, f"{BIN}/sonde", "doctor", "--json", "--store", store)
    return [r for r in json.loads(got.stdout)["rows"] if r["fix"]]


def record(prefix, family, store):
    with tempfile.TemporaryDirectory() as base:
        return run(prefix, f"{BIN}/sonde", "record", "--families", family, "-d", "2s", "--store", os.path.join(base, store)).stderr


def said_alike(prefix, family, store, reason, fix):
    items = [i for i in items_of(prefix, family, store) if i["state"] in ("warn", "fail") and reason in i["text"]]
    assert items and all(fix in i["fix"] for i in items), items_of(prefix, family, store)
    assert any(r["text"] == items[0]["text"] and fix in r["fix"] for r in doctor(prefix, store)), doctor(prefix, store)
    said = record(prefix, family, "new")
    assert items[0]["text"] in said, (items[0]["text"], said)
    for text in [said, *(i["fix"] for i in items)]:
        assert not any(advice in text for advice in ROOTS_ADVICE), text


def goes_on(prefix, family, store):
    """The same items, in the same states, as with everything."""
    states = [[(i["name"], i["state"]) for i in items_of(p, family, store) if i["name"] not in ("store", "threads")] for p in ([], prefix)]
    assert states[0] == states[1]
    said = record(prefix, family, "new")
    assert "done:" in said and "fix:" not in said, said


@pytest.mark.parametrize("caps,family", [(c, f) for c, by in RIGHTS.items() for f in by])
def test_each_right_that_is_missing_is_told_alike_and_truly(scratch, caps, family):
    store, want = os.path.join(scratch, "none"), RIGHTS[caps][family]
    if want:
        said_alike(without(caps), family, store, *want)
    else:
        goes_on(without(caps), family, store)


@pytest.mark.parametrize("limit", LIMITS)
def test_each_limit_is_told_alike_and_truly(scratch, limit):
    prefix, want = ["prlimit", f"--{limit}"], LIMITS[limit]
    if want:
        said_alike(prefix, "cpu", os.path.join(scratch, "none"), *want)
    else:
        goes_on(prefix, "cpu", os.path.join(scratch, "none"))


@pytest.mark.parametrize("family", ["l7", "offcpu", "goheap", "host"])
def test_too_few_files_are_told_by_every_family(scratch, family):
    said_alike(["prlimit", "--nofile=64"], family, os.path.join(scratch, "none"), "RLIMIT_NOFILE", "ulimit -n")


def test_goheap_that_may_not_look_into_programs_says_so_at_its_end(scratch):
    said = record(without("sys_ptrace"), "goheap", "new")
    assert "no heap profiles" in said and "no CAP_SYS_PTRACE" in said.rpartition("sonde: ")[2], said
    assert "for longer" not in said and "cap_add" in said.rpartition("fix: ")[2], said


@pytest.fixture
def small():
    """A cgroup with 40 MB: what begins with the prefix runs in it."""
    for base, limit in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")):
        own = os.path.join(base, f"sonde-test-{os.getpid()}")
        try:
            os.makedirs(own, exist_ok=True)
            with open(os.path.join(own, limit), "w", encoding="ascii") as f:
                f.write("41943040")
        except OSError:
            if os.path.isdir(own):
                os.rmdir(own)
            continue
        yield own, ["sh", "-c", f'echo $$ > {own}/cgroup.procs && exec "$@"', "sh"]
        for _ in range(50):
            try:
                os.rmdir(own)
                return
            except OSError:
                time.sleep(0.1)
        return
    pytest.skip("missing: a cgroup hierarchy that limits memory")


def test_the_limit_of_a_cgroup_is_told_alike_and_truly(scratch, small):
    own, prefix = small
    said_alike(prefix, "cpu", os.path.join(scratch, "none"), f"its cgroup /{os.path.basename(own)}", "MemoryMax")


def test_a_loader_that_dies_says_how_much_is_missing(scratch):
    """Against the tally: what is stored and what is missing are all that it saw."""
    store = os.path.join(scratch, "store")
    work = subprocess.Popen([os.path.join(WORKLOADS, "burn"), "9000", "1"], stdout=subprocess.DEVNULL)
    rec = subprocess.Popen([f"{BIN}/sonde", "record", "-p", str(work.pid), "-F", "499", "-d", "30s", "--store", store], stderr=subprocess.PIPE, text=True)
    time.sleep(5)
    with open(f"/proc/{rec.pid}/task/{rec.pid}/children", encoding="ascii") as f:
        os.kill(int(f.read().split()[0]), 9)
    said = rec.communicate(timeout=360)[1]
    work.kill()
    work.wait()
    assert "ended by signal 9" in said and " events that it saw are lost, the rest is stored" in said, said
    missing, seen = (int(w) for w in said.partition("; ")[2].replace("of the ", "").split() if w.isdigit())
    run([], f"{BIN}/sonde", "record", "-d", "1s", "--store", store)  # the next writer books it
    rows = json.loads(run([], f"{BIN}/sonde", "sql", "--json", "--store", store,
                          "SELECT (SELECT sum(lost) FROM loss WHERE reason = 'killed') AS lost, (SELECT sum(accounted) FROM run WHERE state = 2) AS seen").stdout)["rows"]
    assert rows == [{"lost": missing, "seen": seen}] and 0 < missing < seen, (rows, said)
