# SPDX-License-Identifier: Apache-2.0
"""A host in trouble, and what a new user's first recording of it says, beside what the load knows and `perf record` counts.

The figures are those of docs/decisions/0230. DROWNING_SECONDS: how long the last test records (default 600).
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "e2e")]

from conftest import BIN, need, need_root, sql_all  # noqa: E402
from figures import figures, perf_counts, share, shares_apart  # noqa: E402
from load import JAVA, LIMIT_S, Load, runs, write  # noqa: E402

SECONDS = 12


@pytest.fixture(autouse=True)
def as_root():
    need_root()
    need("gcc")


@pytest.fixture(scope="module")
def load():
    """Sixty busy processes; two cores have a load of sixty then."""
    with Load() as running:
        time.sleep(4)
        yield running


@pytest.fixture
def new_store():
    base = tempfile.mkdtemp(prefix="drowning-store-")
    yield os.path.join(base, "store")
    shutil.rmtree(base, ignore_errors=True)


def sonde(store, *args, timeout=180):
    done = subprocess.run([os.path.join(BIN, "sonde"), *args, "--store", store], capture_output=True, text=True, check=False,
                          stdin=subprocess.DEVNULL, timeout=timeout)
    assert done.returncode == 0, f"{args}: {done.stderr}"
    return done


def test_the_first_seconds_in_a_new_store_are_whole_named_and_true(load, new_store):
    need("perf")
    data = new_store + ".perf"
    os.makedirs(os.path.dirname(data), exist_ok=True)
    perf = subprocess.Popen(["perf", "record", "-q", "-a", "-e", "cpu-clock", "-F", "99", "-o", data, "--", "sleep", str(SECONDS)],
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    done = sonde(new_store, "record", "-d", f"{SECONDS}s", "--json")
    perf.wait()
    row = json.loads(done.stdout)["rows"][0]
    found = figures(new_store, load.truth())
    apart = shares_apart(found.pop("by_pid"), perf_counts(data), load.truth())
    print(json.dumps(found, indent=1), apart, done.stderr)
    assert row["seen"] == row["samples"] + sum(row["lost"].values())
    assert found["all"]["user"] >= SECONDS * 100, "the host had no time for the load"
    assert found["all"]["whole"] >= 90 and found["last"]["whole"] >= 97, found
    assert found["all"]["named"] >= 95, found
    assert found["last"]["script frames"] >= 90, found
    assert all(abs(ours - theirs) <= 3 for _, ours, theirs in apart), apart


def named_of(store, load, view):
    """Of the load's own files with symbols, which are all on disk: what share of the frames in samples has a name."""
    files = {p["program"] for p in load.started if p["named"] and not p["script"] and p["n"]}
    rows = sql_all(store, f"""SELECT f.module, f.named, count(*) AS n FROM {view} f GROUP BY 1, 2""")
    mine = [r for r in rows if r["module"] in files]
    return share(sum(r["n"] for r in mine if r["named"]), sum(r["n"] for r in mine)), sum(r["n"] for r in mine)


@pytest.mark.parametrize("family", ["cpu", "offcpu"])
def test_symbolize_completes_what_a_short_recording_lacks(load, new_store, family):
    """No file is indexed when it ends: each is identified all the same."""
    sonde(new_store, "record", "-d", "3s", "--finish", "1ms", "--families", family)
    before = named_of(new_store, load, "frames")
    done = subprocess.run([os.path.join(BIN, "sonde"), "symbolize", "--store", new_store], capture_output=True, text=True, check=False,
                          stdin=subprocess.DEVNULL, timeout=300)
    after = named_of(new_store, load, "frames")
    print(before, after, done.stdout[-1500:], done.stderr[-1500:])
    assert before[0] is not None and (family == "offcpu" or before[0] < 99), "it was not cut short"
    assert after[1] and after[0] >= 99, (before, after, done.stderr)
    lacks = sql_all(new_store, "SELECT path FROM image WHERE key LIKE 'pending-%-0000000000000000' AND build_id = '' AND path LIKE '/%'")
    assert not lacks


def test_java_at_999_hz_is_not_cut(new_store):
    """Four busy JVMs: each sample goes through the ring `late`."""
    need("javac")
    folder = tempfile.mkdtemp(prefix="drowning-")
    running = []
    try:
        for n in range(50, 54):
            assert runs("javac", "-d", folder, write(folder, f"Busy{n}.java", JAVA.format(n=n, limit=LIMIT_S)))
            running.append(subprocess.Popen(["java", "-Xmx64m", "-XX:+UseSerialGC", "-cp", folder, f"Busy{n}"], stdin=subprocess.DEVNULL))
        time.sleep(2)
        sonde(new_store, "record", "-F", "999", "-d", f"{SECONDS}s")
    finally:
        for p in running:
            p.kill()
            p.wait()
        shutil.rmtree(folder, ignore_errors=True)
    rows = sql_all(new_store, "SELECT reason, complete, sum(samples) AS n FROM unwinding WHERE executable LIKE '%/java' AND complete IS NOT NULL GROUP BY 1, 2")
    print(rows)
    all_ = sum(r["n"] for r in rows)
    assert all_ >= SECONDS * 200 and sum(r["n"] for r in rows if not r["complete"]) <= 0.01 * all_, rows


def test_a_long_recording_tells_all_that_it_did_not_see(load, new_store):
    seconds = int(os.environ.get("DROWNING_SECONDS", "600"))
    done = sonde(new_store, "record", "-d", f"{seconds}s", "--json", timeout=seconds + 120)
    row = json.loads(done.stdout)["rows"][0]
    print(row, done.stderr)
    assert row["seen"] == row["samples"] + sum(row["lost"].values())
    assert row["samples"] >= seconds * 99, row
    assert "restarted" not in done.stderr and "killed" not in done.stderr, done.stderr
