# SPDX-License-Identifier: Apache-2.0
"""Family mem: whose line makes memory grow, in any language. Each program keeps memory in one function and says how much."""
import collections
import contextlib
import json
import os
import subprocess
import sys
import time

import pytest

from conftest import ROOT, need, need_root, sql_all

LEAKS = os.path.join(ROOT, "tests/workloads/leaks")
SECONDS = 8
KIB = 256  # in 20 ms: 100 MB in 8 s

MAKE = {
    "c": ("gcc", ["gcc", "-O2", "-g", "leak.c", "-o", "{out}"]),
    "c++": ("g++", ["g++", "-O2", "-g", "leak.cc", "-o", "{out}"]),
    "rust": ("rustc", ["rustc", "-O", "-g", "leak.rs", "-o", "{out}"]),
    "go": ("go", ["go", "build", "-o", "{out}", "leak.go"]),
    "java": ("javac", ["javac", "-d", "{dir}", "Leak.java"]),
}
RUN = {
    "c": ["{out}"], "c++": ["{out}"], "rust": ["{out}"], "go": ["{out}"],
    "java": ["java", "-Xmx64m", "-Xmn4m", "-XX:MaxDirectMemorySize=1g", "-cp", "{dir}", "Leak"],
    "python": ["python3", "{leaks}/leak.py"], "node": ["node", "{leaks}/leak.js"],
    "ruby": ["ruby", "{leaks}/leak.rb"], "php": ["php", "{leaks}/leak.php"], "numpy": ["/usr/bin/python3", "{leaks}/leak_numpy.py"],
}
EVERY_DAY = ("c",)
SITE = {"go": "main.leaky", "java": "Leak.leaky", "rust": "leaky"}
FILE = {"go": "leak.go", "java": "Leak.java", "rust": "leak.rs", "c": "leak.c", "c++": "leak.cc", "python": "leak.py", "node": "leak.js", "ruby": "leak.rb",
        "php": "leak.php", "numpy": "leak_numpy.py"}
WARM_S = 300


def ready(language, folder):
    """The command of a language's program."""
    places = {"out": os.path.join(folder, "leak"), "dir": folder, "leaks": LEAKS}
    if language in MAKE:
        need(MAKE[language][0])
        subprocess.run([part.format(**places) for part in MAKE[language][1]], cwd=LEAKS, check=True, capture_output=True,
                       env={**os.environ, "GOCACHE": os.path.join(folder, "go"), "GOFLAGS": "-buildvcs=false"})
    if language == "numpy" and subprocess.run(["/usr/bin/python3", "-c", "import numpy"], capture_output=True, check=False).returncode:
        pytest.skip("missing: python3-numpy")
    command = [part.format(**places) for part in RUN[language]]
    need(os.path.basename(command[0]), command[0] if "/" in command[0] else None)
    return command


@contextlib.contextmanager
def started(command):
    """A session of its own, as services and terminals have: with autogroup that is a scheduling group."""
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        yield child
    finally:
        child.kill()
        child.communicate()


def own_bytes(pid):
    """What the kernel counts: private memory and swap."""
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        of = dict(line.split(":", 1) for line in f)
    return sum(int(of[k].split()[0]) * 1024 for k in ("RssAnon", "VmSwap"))


def warmed(sonde, store, command, site, file):
    """Small runs of the program until its line is known: on a busy host the files of a program that nobody has seen are read late, as
    those of all others that run there."""
    end = time.monotonic() + WARM_S
    while time.monotonic() < end:
        child = subprocess.Popen([*command, str(4 * KIB), "1"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        child.communicate()
        for _ in range(2):
            done = sonde("heap", "-p", child.pid, "--json", store=store)
            rows = [] if done.returncode else json.loads(done.stdout)["rows"]
            if any(site in r["function"] and (r["file"] or "").endswith(file) for r in rows[:2]):
                return
            time.sleep(1)
    pytest.fail(f"{command}: its line is not known after {WARM_S} s")


def warmed_python(sonde, store):
    """The same for all scripts of this interpreter."""
    warmed(sonde, store, [os.path.realpath(sys.executable), os.path.join(LEAKS, "leak.py")], "leaky", "leak.py")


def leak(capture, command, *args, options=(), warm=None):
    """A program below a recording of the whole host, which ends while its memory is still there: what it kept, what the kernel
    counts, its pid, what the recording says; beside it the same program that keeps nothing for long: its pid; since when both ran, as
    options (a recording may take as long to begin as the host needs)."""
    c = capture("--apart", *options, program="sonde-mem")  # as `sonde record` begins it: on a busy host it gets its share
    if warm:
        warm()
    since = ["--from", f"{time.time():.3f}"]
    with started([*command, str(KIB), str(SECONDS), *args]) as child, started([*command, str(KIB), str(SECONDS), "none"]) as other:
        kept = int(child.stdout.readline())
        other.stdout.readline()
        time.sleep(3)
        own = own_bytes(child.pid)
        return kept, own, child.pid, c.stop(60), other.pid, since


def rows_of(sonde, store, pid, *args):
    return json.loads(sonde("heap", "-p", str(pid), "--json", *args, store=store, check=True).stdout)["rows"]


def said_to_grow(sonde, store, pid, since):
    """The lines; none, too, where its memory came at once, at its start, which is too little to tell."""
    done = sonde("heap", "-p", pid, "--growth", "--json", *since, store=store)
    assert not done.returncode or "too little to tell growth by" in done.stderr, done.stderr
    return [] if done.returncode else json.loads(done.stdout)["rows"]


@pytest.mark.parametrize("language", [pytest.param(x, marks=[] if x in EVERY_DAY else [pytest.mark.long, pytest.mark.live]) for x in RUN])
def test_the_line_that_leaks_is_first_and_its_bytes_are_right(sonde, store, capture, scratch, language):
    need_root()
    command = ready(language, scratch)
    # by default some hundred samples, whose number alone sways by 5 % and more: what runs every day takes more of them, of this program alone
    site, file = SITE.get(language, "leaky"), FILE[language]
    kept, own, pid, told, other, since = leak(capture, command, options=["--comm", "leak", "--period", "16"] if language in EVERY_DAY else [],
                                              warm=lambda: warmed(sonde, store, command, site, file))
    rows = rows_of(sonde, store, pid, "--growth", *since)
    print(language, kept, own, rows[:3], told)
    assert site in rows[0]["function"] and rows[0]["file"].endswith(file), rows[:3]
    assert rows[0]["grown_bytes"] == pytest.approx(kept, rel=0.15), (kept, rows[:3])
    assert rows[0]["inuse_bytes"] == pytest.approx(kept, rel=0.15), (kept, rows[:3])
    all_rows = rows_of(sonde, store, pid, "-n", "1000")
    assert sum(r["inuse_bytes"] for r in all_rows) == pytest.approx(own, rel=0.03), (own, all_rows[:5])
    assert said_to_grow(sonde, store, other, since) == []
    assert rows_of(sonde, store, other)


def huge_bytes(pid):
    """What the kernel counts."""
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as f:
        return sum(int(line.split()[1]) << 10 for line in f if line.startswith("AnonHugePages:"))


# Of every 65536th page fault none is one of these.
HUGE = {"person": (3, ["--apart"]), "sonded": (20, ["--bucket", "10s", "--interval", "5s"])}


@pytest.mark.parametrize("who", ["person", pytest.param("sonded", marks=pytest.mark.long)])
def test_huge_pages_are_counted_each_however_seldom_page_faults_are_sampled(sonde, store, capture, scratch, who):
    """As sonded records, where nobody waits, they are counted from a few seconds after the first one on, and where much else is
    allocated in a part of the time: the sum is the kernel's, and the line has its part of the samples."""
    need_root()
    command, (seconds, options) = ready("c", scratch), HUGE[who]
    c = capture("--period", 65536, "--comm", "leak", *options, program="sonde-mem")
    with started([*command, "2048", str(seconds), "huge", "10"]) as child:
        kept = int(child.stdout.readline())
        time.sleep(1)
        huge, pid = huge_bytes(child.pid), child.pid
        c.stop(60)
    if huge < kept / 2:
        pytest.skip(f"missing: huge pages ({huge >> 20} MiB of {kept >> 20}): /sys/kernel/mm/transparent_hugepage/enabled, or memory is in small pieces")
    rows = rows_of(sonde, store, pid, "-n", "1000")
    held, touched = collections.Counter(), collections.Counter()
    for r in rows:
        held[r["function"]] += r["inuse_bytes"]
        touched[r["function"]] += r["alloc_bytes"]
    print(who, kept, huge, held, touched)
    if who == "person":
        assert held["leaky"] == touched["leaky"] == huge, (huge, rows)
    else:
        assert held["leaky"] == pytest.approx(huge, rel=0.15), (huge, rows)


@pytest.mark.long
@pytest.mark.parametrize("how", ["mmap", "huge", "moves", "populate", "locked", "none"])
def test_each_way_to_get_memory(sonde, store, capture, scratch, how):
    """Huge pages count whole; what realloc moves keeps its stack; pages that came without a fault have none, and are told; churn is no
    growth."""
    need_root()
    # of this program alone, so many samples that their number does not decide: 800, and 12 of huge pages, of which 50 come
    kept, own, pid, _, _, since = leak(capture, ready("c", scratch), how, options=["--comm", "leak", "--period", "4" if how == "huge" else "32"])
    rows = rows_of(sonde, store, pid, "-n", "1000")
    of = collections.Counter()
    for r in rows:
        of[r["function"]] += r["inuse_bytes"]
    print(how, kept, own, rows[:4])
    assert sum(of.values()) == pytest.approx(own, rel=0.03)
    if how in ("populate", "locked"):
        assert of["[without a sample]"] >= 0.85 * kept and of.get("leaky", 0) < 0.15 * kept
    elif how != "none":
        assert of["moves" if how == "moves" else "leaky"] == pytest.approx(kept, rel=0.15)
    growth = sonde("heap", "-p", str(pid), "--growth", *since, store=store)
    assert "churn" not in growth.stdout, growth.stdout


@pytest.mark.long
def test_page_faults_are_as_many_as_the_program_made(store, capture, scratch):
    need_root()
    command = ready("c", scratch)
    _, _, pid, _, _, _ = leak(capture, command, "none")
    touched = sql_all(store, "SELECT sum(n) AS n, sum(value) AS bytes FROM amounts WHERE type = 'pagefaults' AND pid = ? AND function = 'churn'", (pid,))[0]
    truth = SECONDS * 50 // 5 * (16 << 20)
    assert touched["bytes"] == pytest.approx(truth, rel=0.15), (touched, truth)
    assert touched["n"] == pytest.approx(truth // 4096, rel=0.15)
