# SPDX-License-Identifier: Apache-2.0
"""sonde-scrape on a Go program that offers /debug/pprof and keeps a copy of each profile that it hands out (tests/workloads/scrapework.go).
The oracle is go tool pprof on those copies."""
import collections
import glob
import json
import os
import re
import subprocess

import pytest

from conftest import BIN, WORKLOADS, need, need_root, sql_all
from sonded import until

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


def recorded(store, *args, duration="4s"):
    return subprocess.run([LOADER, "--store", store, "--bucket", "1s", "--interval", "1s", "--duration", duration, *args], capture_output=True, text=True,
                          timeout=60, check=False)


def scraped(store):
    return {r["pid"]: r for r in sql_all(store, "SELECT * FROM scraped")}


def test_each_profile_is_in_the_store_stack_by_stack_as_the_program_handed_it_out(scrapework, sonde, store, tmp_path):
    w = scrapework()
    done = recorded(store, "--pid", str(w.pid))
    assert done.returncode == 0, done.stderr
    (row,) = scraped(store).values()
    assert row["state"] == "asked" and row["address"] == f"127.0.0.1:{w.port}" and row["version"].startswith("go1.")
    assert {row[p] for p in ("cpu", "heap", "goroutine", "block", "mutex")} == {"read"}
    for kind, name, columns in (("goblock", "block", ("contentions", "delay")), ("gomutex", "mutex", ("contentions", "delay")),
                                ("goalloc", "heap", ("alloc_objects", "alloc_space"))):
        files = w.handed(name)
        assert len(files) >= 3
        expected = less(stacks(files[-1], *columns), stacks(files[0], *columns))
        assert expected and stored(sonde, store, tmp_path, kind, *columns) == expected
    for kind, name, columns in (("goinuse", "heap", ("inuse_objects", "inuse_space")), ("goroutine", "goroutine", ("goroutine",))):
        expected = stacks(w.handed(name)[-1], *columns)
        assert expected and stored(sonde, store, tmp_path, kind, *columns) == expected
    expected = collections.Counter()
    for f in w.handed("profile"):
        expected.update({s: v[1] for s, v in stacks(f, "samples", "cpu").items()})
    assert expected and {s: v[1] for s, v in stored(sonde, store, tmp_path, "gocpu", "samples", "cpu").items()} == expected
