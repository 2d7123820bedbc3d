# SPDX-License-Identifier: Apache-2.0
"""sonde-scrape on a Go program that offers /debug/pprof and keeps a copy of each profile that it hands out (tests/workloads/scrapework.go).
The oracle is go tool pprof on those copies."""
import collections
import glob
import gzip
import json
import os
import re
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


def recorded(store, *args, duration="2s", ends=0, prefix=()):
    done = subprocess.run([*prefix, LOADER, "--store", store, "--bucket", "1s", "--duration", duration, *args], capture_output=True, text=True, timeout=60,
                          check=False)
    assert done.returncode == ends, done.stderr


def scraped(store):
    try:
        return {r["pid"]: r for r in sql_all(store, "SELECT * FROM scraped")}
    except Exception:  # noqa: BLE001 (there is no store yet)
        return {}


def pids(*works):
    return [a for w in works for a in ("--pid", str(w.pid))]


def test_each_profile_is_in_the_store_stack_by_stack_as_the_program_handed_it_out(scrapework, sonde, store, tmp_path):
    w = scrapework()
    recorded(store, *pids(w))  # a CPU profile is taken for 10 s: it ends with the recording
    (row,) = scraped(store).values()
    assert row["state"] == "asked" and row["address"] == f"127.0.0.1:{w.port}" and row["version"].startswith("go1.")
    assert {row[p] for p in ("cpu", "heap", "goroutine", "block", "mutex")} == {"read"}
    for kind, name, columns in (("goblock", "block", ("contentions", "delay")), ("gomutex", "mutex", ("contentions", "delay")),
                                ("goalloc", "heap", ("alloc_objects", "alloc_space"))):
        files = w.handed(name)
        assert len(files) == 2
        expected = less(stacks(files[-1], *columns), stacks(files[0], *columns))
        assert expected and stored(sonde, store, tmp_path, kind, *columns) == expected
    for kind, name, columns in (("goinuse", "heap", ("inuse_objects", "inuse_space")), ("goroutine", "goroutine", ("goroutine",))):
        expected = stacks(w.handed(name)[-1], *columns)
        assert expected and stored(sonde, store, tmp_path, kind, *columns) == expected
    (profile,) = w.handed("profile")
    expected = stacks(profile, "samples", "cpu")
    assert expected and {s: v[1] for s, v in stored(sonde, store, tmp_path, "gocpu", "samples", "cpu").items()} == {s: v[1] for s, v in expected.items()}


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
    recorded(store, "--profiles", "heap,goroutine", *pids(good, *bad.values()))
    rows = scraped(store)
    assert rows[good.pid]["heap"] == rows[good.pid]["goroutine"] == "read" and rows[good.pid]["cpu"] == rows[good.pid]["block"] == ""
    heap = {name: rows[w.pid]["heap"] for name, w in bad.items() if rows[w.pid]["state"] == "asked"}
    assert heap == {"nonsense": "not read: what it sent is no such profile", "bomb": "not read: its answer is too large",
                    "cut": "not read: its answer was cut off", "other": "not read: what answers there is another program", "slow": "",
                    "huge": "not read: its answer is too large"}
    reasons = {name: rows[w.pid]["reason"].split(": ", 1)[1] for name, w in bad.items() if rows[w.pid]["state"] == "not asked"}
    assert reasons == {"plain": "what listens there speaks no HTTP", "hidden": "it answered with status 404", "tls": "it wants TLS there"}
    assert len(bad["hidden"].handed("pprof")) == 1  # asked once, and no more
    assert {r["pid"] for r in sql_all(store, "SELECT DISTINCT pid FROM amounts WHERE n > 0")} == {good.pid}


def test_an_answer_of_another_program_is_not_taken(scrapework, store):
    """Two processes listen at one port: the kernel chooses who answers."""
    one = scrapework("-shared", "-rest")
    other = scrapework("-shared", "-rest", "-listen", f"127.0.0.1:{one.port}")
    recorded(store, *pids(one), ends=4)
    (row,) = scraped(store).values()
    assert row["state"] == "not asked" and "another process listens where it does" in row["reason"]
    assert not one.handed("pprof") and not other.handed("pprof")


def test_a_program_that_links_no_such_page_is_not_bothered(store):
    need_root()
    program = os.path.join(WORKLOADS, "shares-go")
    need("shares-go (make workloads, with go)", program)
    p = subprocess.Popen([program, "60"], stdout=subprocess.DEVNULL)
    try:
        recorded(store, "--pid", str(p.pid), duration="1s", ends=4)
    finally:
        p.kill()
        p.wait()
    (row,) = scraped(store).values()
    assert (row["state"], row["reason"]) == ("not asked", "it does not link net/http/pprof")


@pytest.mark.long
def test_a_program_in_a_network_of_its_own_is_asked_there(scrapework, store):
    w = scrapework("-listen", ":0", prefix=["unshare", "-n", "sh", "-c", 'ip link set lo up; exec "$@"', "sh"])
    recorded(store, *pids(w))
    (row,) = scraped(store).values()
    assert row["state"] == "asked" and row["heap"] == row["mutex"] == "read"


@pytest.mark.long
def test_who_may_enter_no_network_says_so(scrapework, store):
    w = scrapework("-listen", ":0", prefix=["unshare", "-n", "sh", "-c", 'ip link set lo up; exec "$@"', "sh"])
    recorded(store, *pids(w), ends=4, prefix=("setpriv", "--inh-caps", "-all", "--bounding-set", "-all,+sys_ptrace,+dac_read_search,+bpf,+perfmon,+syslog"))
    (row,) = scraped(store).values()
    assert row["state"] == "not asked" and "in a network of its own, which may not be entered" in row["reason"]


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
        expected = stacks(w.handed(name)[-1], *columns)
        assert expected and stored(sonde, store, tmp_path, kind, *columns) == expected
