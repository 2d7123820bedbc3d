# SPDX-License-Identifier: Apache-2.0
"""sonde-scrape on a Go program that offers /debug/pprof and keeps a copy of each profile that it hands out (tests/workloads/scrapework.go).
The oracle is go tool pprof on those copies."""
import collections
import glob
import gzip
import json
import os
import re
import signal
import subprocess

import pytest

from conftest import BIN, WORKLOADS, need, need_root, sql_all
from sonded import Sonded, until

PROGRAM = os.path.join(WORKLOADS, "scrapework-go")
LOADER = os.path.join(BIN, "sonde-scrape")


class Scrapework:
    def __init__(self, folder, *args, prefix=()):
        need("scrapework-go (make workloads, with go)", PROGRAM)
        self.folder = str(folder)
        self.process = subprocess.Popen([*prefix, PROGRAM, *args, self.folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.port = json.loads(self.process.stdout.readline())["port"]
        self.pid = self.process.pid

    def handed(self, name):
        """The files of a profile, in the order in which they were handed out."""
        return sorted((f for f in glob.glob(f"{self.folder}/{name}.*") if f.rsplit(".", 1)[1].isdigit()), key=lambda f: int(f.rsplit(".", 1)[1]))

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


@pytest.fixture
def scrapework(scratch):
    running = []

    def start(*args, **kw):
        folder = os.path.join(scratch, f"dir{len(running)}")
        os.makedirs(folder)
        running.append(Scrapework(folder, *args, **kw))
        return running[-1]

    need_root()
    yield start
    for w in running:
        w.close()


def stacks(profile, *kinds):
    """{stack, a tuple of (function, line) from leaf to root: [value of each kind]}, as go tool pprof reads the profile."""
    raw = subprocess.run(["go", "tool", "pprof", "-raw", profile], capture_output=True, text=True, check=True).stdout
    head, rest = raw.split("\nLocations\n", 1)
    places = {}
    for line in rest.split("\nMappings\n")[0].splitlines():
        found = re.match(r"\s*(?:(\d+): 0x[0-9a-f]+ (?:M=\d+ )?(?:\[F\] )?)?(\S.*) \S+?:(\d+)(?::\d+)? s=-?\d+$", line)
        assert found, line
        at = int(found.group(1)) if found.group(1) else at  # noqa: F821 (a line of its own is what it is inlined into)
        places.setdefault(at, []).append((found.group(2), int(found.group(3))))
    names = re.search(r"^Samples:\n(.*)$", head, re.M).group(1)
    columns = [re.split(r"/|\[", t)[0] for t in names.split()]
    sums = collections.defaultdict(lambda: [0] * len(kinds))
    for values, ids in re.findall(r"^\s*((?:\d+\s+)*\d+): ([\d ]+)$", head, re.M):
        stack = tuple(p for i in ids.split() for p in places[int(i)])
        for k, kind in enumerate(kinds):
            sums[stack][k] += int(values.split()[columns.index(kind)])
    return {s: v for s, v in sums.items() if any(v)}


def stored(sonde, store, tmp, kind, *columns):
    path = os.path.join(str(tmp), kind + ".pb.gz")
    sonde("export", "pprof", "--type", kind, "--from", "-10m", "-o", path, store=store, check=True)
    return stacks(path, *columns)


def less(now, before):
    out = {s: [a - b for a, b in zip(v, before.get(s, [0] * len(v)))] for s, v in now.items()}
    return {s: v for s, v in out.items() if any(v)}


def scraped(store):
    try:
        return {r["pid"]: r for r in sql_all(store, "SELECT * FROM scraped")}
    except Exception:  # noqa: BLE001 (there is no store yet)
        return {}


def pids(*works):
    return [a for w in works for a in ("--pid", str(w.pid))]


def recorded(store, *works, till, args=(), prefix=()):
    """Until `till` is true of the rows of `scraped`, by pid; these."""
    with subprocess.Popen([*prefix, LOADER, "--store", store, "--bucket", "1s", "--interval", "1s", *args, *pids(*works)], stderr=subprocess.DEVNULL) as p:
        try:
            assert until(lambda: all(w.pid in scraped(store) for w in works) and till(scraped(store)), 60), scraped(store)
            p.send_signal(signal.SIGINT)
            p.wait(30)
        finally:
            p.kill()
    return scraped(store)


def each_read(names, *works):
    return lambda rows: all(rows[w.pid][n] == "read" for n in names for w in works)


def sums(profiles, *columns):
    all_ = collections.defaultdict(lambda: [0] * len(columns))
    for s, v in (x for p in profiles for x in stacks(p, *columns).items()):
        all_[s] = [a + b for a, b in zip(all_[s], v)]
    return dict(all_)


ALL = ("cpu", "heap", "goroutine", "block", "mutex")


def test_each_profile_is_in_the_store_stack_by_stack_as_the_program_handed_it_out(scrapework, sonde, store, tmp_path):
    """The last one that it handed out may not have been taken any more when the recording ended."""
    w = scrapework()
    recorded(store, w, till=lambda rows: each_read(ALL, w)(rows) and all(len(w.handed(n)) >= 3 for n in ("heap", "block", "mutex")))
    (row,) = scraped(store).values()
    assert row["state"] == "asked" and row["address"] == f"127.0.0.1:{w.port}" and row["version"].startswith("go1.")
    for kind, name, columns in (("goblock", "block", ("contentions", "delay")), ("gomutex", "mutex", ("contentions", "delay")),
                                ("goalloc", "heap", ("alloc_objects", "alloc_space"))):
        first, *later = w.handed(name)
        has = stored(sonde, store, tmp_path, kind, *columns)
        assert has and has in [less(stacks(f, *columns), stacks(first, *columns)) for f in later[-3:]], kind
    for kind, name, columns in (("goinuse", "heap", ("inuse_objects", "inuse_space")), ("goroutine", "goroutine", ("goroutine",))):
        has = stored(sonde, store, tmp_path, kind, *columns)
        assert has and has in [stacks(f, *columns) for f in w.handed(name)[-3:]], kind
    has, all_ = stored(sonde, store, tmp_path, "gocpu", "cpu"), w.handed("profile")
    assert has and has in [sums(all_[:n], "cpu") for n in range(1, len(all_) + 1)]


@pytest.mark.long
def test_a_cpu_profile_ends_with_the_recording_and_is_kept(scrapework, sonde, store, tmp_path):
    w = scrapework()
    subprocess.run([LOADER, "--store", store, "--bucket", "1s", "--duration", "3s", *pids(w)], check=True, timeout=60)
    (profile,) = w.handed("profile")  # of ten seconds, which were not there
    assert stored(sonde, store, tmp_path, "gocpu", "cpu") == stacks(profile, "cpu")


def lies(scratch):
    """Bytes that are no profile, one that unpacks to 110 MB, one that is cut off, one of another program."""
    program = os.path.join(WORKLOADS, "profiles-go")
    need("profiles-go (make workloads, with go)", program)
    folder = os.path.join(scratch, "profiles")
    os.makedirs(folder)
    subprocess.run([program, folder], check=True)
    with open(os.path.join(folder, "heap.pb.gz"), "rb") as f:
        other = f.read()
    for name, data in (("nonsense", b"\x0a\x7f" * 5000), ("bomb", gzip.compress(bytes(110 << 20), 1)), ("cut", other[:len(other) // 2]), ("other", other)):
        path = os.path.join(scratch, name)
        with open(path, "wb") as f:
            f.write(data)
        yield name, path


def test_whatever_a_program_answers_costs_its_own_profiles_only(scrapework, store, scratch):
    bad = {name: scrapework("-rest", "-liar", path) for name, path in lies(scratch)}
    bad.update({name: scrapework("-rest", f"-{name}") for name in ("plain", "hidden", "tls", "slow", "huge")})
    good = scrapework()
    names = {w.pid: name for name, w in bad.items()}
    heap = {"nonsense": "not read: what it sent is no such profile", "bomb": "not read: its answer is too large", "cut": "not read: its answer was cut off",
            "other": "not read: what answers there is another program", "huge": "not read: its answer is too large"}
    reasons = {"plain": "what listens there speaks no HTTP", "hidden": "it answered with status 404", "tls": "it wants TLS there"}

    def told(rows):
        return {n: rows[p]["heap"] for p, n in names.items() if n in heap and rows[p]["heap"]}

    def refused(rows):
        return {n: rows[p]["reason"].split(": ", 1)[1] for p, n in names.items() if n in reasons and ": " in rows[p]["reason"]}
    rows = recorded(store, good, *bad.values(), args=("--profiles", "heap,goroutine"),
                    till=lambda rows: each_read(("heap", "goroutine"), good)(rows) and len(told(rows)) == 5 and len(refused(rows)) == 3)
    assert told(rows) == heap and refused(rows) == reasons
    assert rows[good.pid]["cpu"] == rows[good.pid]["block"] == ""
    assert len(bad["hidden"].handed("pprof")) == 1  # asked once, and no more
    assert {r["pid"] for r in sql_all(store, "SELECT DISTINCT pid FROM amounts WHERE n > 0")} == {good.pid}


def test_an_answer_of_another_program_is_not_taken(scrapework, store):
    """Two processes listen at one port: the kernel chooses who answers."""
    one = scrapework("-shared", "-rest")
    other = scrapework("-shared", "-rest", "-listen", f"127.0.0.1:{one.port}")
    rows = recorded(store, one, till=lambda rows: "another" in rows[one.pid]["reason"])
    assert rows[one.pid]["state"] == "not asked" and "another process listens where it does" in rows[one.pid]["reason"]
    assert not one.handed("pprof") and not other.handed("pprof")


def test_a_program_that_links_no_such_page_is_not_bothered(store):
    need_root()
    program = os.path.join(WORKLOADS, "shares-go")
    need("shares-go (make workloads, with go)", program)
    p = subprocess.Popen([program, "60"], stdout=subprocess.DEVNULL)
    try:
        rows = recorded(store, p, till=lambda rows: rows[p.pid]["reason"])
    finally:
        p.kill()
        p.wait()
    assert (rows[p.pid]["state"], rows[p.pid]["reason"]) == ("not asked", "it does not link net/http/pprof")


OWN_NETWORK = ("unshare", "-n", "sh", "-c", 'ip link set lo up; exec "$@"', "sh")


@pytest.mark.long
def test_a_program_in_a_network_of_its_own_is_asked_there(scrapework, store):
    w = scrapework("-listen", ":0", prefix=OWN_NETWORK)
    assert recorded(store, w, till=each_read(("heap", "mutex"), w))[w.pid]["state"] == "asked"


@pytest.mark.long
def test_who_may_enter_no_network_says_so(scrapework, store):
    w = scrapework("-listen", ":0", prefix=OWN_NETWORK)
    few = ("setpriv", "--inh-caps", "-all", "--bounding-set", "-all,+sys_ptrace,+dac_read_search,+bpf,+perfmon,+syslog")
    rows = recorded(store, w, prefix=few, till=lambda rows: "network" in rows[w.pid]["reason"])
    assert rows[w.pid]["state"] == "not asked" and "in a network of its own, which may not be entered" in rows[w.pid]["reason"]


@pytest.mark.long
def test_always_on_cpu_is_left_out_and_a_program_that_comes_later_counts_from_its_begin(scrapework, sonde, store, tmp_path):
    config = tmp_path / "etc"
    config.mkdir()
    (config / "sonde.conf").write_text("[record]\nfamilies = cpu\nscrape = on\n")
    with Sonded(store, "--config", str(config)) as s:
        assert until(lambda: s.service("scrape"), 30)
        w = scrapework()
        assert until(lambda: scraped(store).get(w.pid, {}).get("mutex") == "read", 60)
    row = scraped(store)[w.pid]
    assert row["cpu"] == "" and row["heap"] == row["goroutine"] == row["block"] == "read"
    for kind, name, columns in (("goalloc", "heap", ("alloc_objects", "alloc_space")), ("gomutex", "mutex", ("contentions", "delay"))):
        has = stored(sonde, store, tmp_path, kind, *columns)
        assert has and has in [stacks(f, *columns) for f in w.handed(name)[-2:]]
