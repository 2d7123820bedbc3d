# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the end-to-end tests: the built programs, a fresh store, a running capture, plain SQL over a store.

Nothing of sonde is imported: the tests use the programs as a person does, and read the store by Python's own sqlite3.
A test that needs what this machine lacks says so through need().
"""
import contextlib
import fcntl
import glob
import json
import math
import os
import pty
import re
import select
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, os.environ.get("B", "build"))
BIN = os.path.join(BUILD, "bin")
WORKLOADS = os.path.join(BUILD, "tests", "workloads")
E2E = os.path.dirname(os.path.abspath(__file__))
LIB = os.path.join(E2E, "lib")
sys.path[:0] = [E2E, LIB, os.path.join(LIB, "servers"), *sorted(glob.glob(os.path.join(E2E, "*", "")))]  # helpers, and tests that others take parts of
os.environ["PATH"] = f"{BIN}:{os.environ['PATH']}"  # hints name the programs as they are typed then: sonde, not its path


def pytest_configure(config):
    config.addinivalue_line("markers", "docker: needs a Docker engine, which the test starts itself (make long-docker)")
    config.addinivalue_line("markers", "live: Debian's own servers and compilers under load (make long-live)")
    config.addinivalue_line("markers", "requests: requests beside the servers' own counts (make long-requests)")
    config.addinivalue_line("markers", "page: the flame graph page at length (make long-page)")
    config.addinivalue_line("markers", "long: ten seconds and more on the real host (make long-capture)")
    config.addinivalue_line("markers", "tls: requests inside TLS of many programs (make long-tls)")
    config.addinivalue_line("markers", "alone: measures what other tests beside it would change: has the machine for itself")
    config.addinivalue_line("markers", "soak: takes minutes (make long-soak)")


# What takes longest begins first, so that no worker is left with it at the end.
LONGEST = ("test_goheap", "test_maps", "test_output", "test_tool_sql", "test_cpu_loader", "test_degraded", "test_shares",
           "test_symbolize", "test_line_tables", "test_goheap_force", "test_goheap_exact", "test_kills", "test_targets",
           "test_tool_record", "test_diff", "test_tables", "test_import", "test_goheap_hostile", "test_every_verb",
           "test_lines", "test_page", "test_sonded", "test_strangers", "test_page_diff", "test_refusals", "test_clock",
           "test_diff_forms", "test_page_views", "test_page_opens", "test_sonded_upgrade", "test_explain", "test_record_families",
           "test_every_instruction", "test_tool_frame", "test_processes", "test_offcpu")


# What compares numbers of the live host with a small tolerance, or waits for its scheduler: too much chance for a gate that runs
# nothing a second time. make long-capture has them; each family's own file stays in the everyday run.
BY_THE_HOST = ("test_waits_live", "test_waits_plain", "test_pstack", "test_late", "test_strangers", "test_kills", "test_clock", "test_degraded",
               "test_processes", "test_tables", "test_targets", "test_who", "test_replaced", "test_goheap_force", "test_goheap_hostile",
               "test_sonded_limits", "test_sonded_upgrade", "test_sonded_seal", "test_two_captures", "test_shares", "test_perf_beside", "test_iterators_refused", "test_jit_bombs",
               "test_programs_refused", "test_reasons")


# What takes half a minute and more, where shorter files and unit tests look at the same code every day. make long-capture has them.
HALF_A_MINUTE = ("test_lines", "test_line_tables", "test_seal_sql", "test_archive", "test_damaged", "test_scrape", "test_python_frames",
                 "test_sonded_owner", "test_pstack_java", "test_pstack_php", "test_pstack_node", "test_node_frames", "test_java_frames",
                 "test_page_diff", "test_engines", "test_hostile_stores")


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.stem in BY_THE_HOST + HALF_A_MINUTE:
            item.add_marker(pytest.mark.long)
    place = {name: i for i, name in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(item.path.stem, len(LONGEST)))


TURNS = "SONDE_TEST_TURNS"  # a folder of locks, where several workers run tests side by side (pytest -n)


def pytest_sessionstart(session):
    if getattr(session.config.option, "numprocesses", None):
        os.environ[TURNS] = session.config.turns = tempfile.mkdtemp(prefix="sonde-turns-")


def pytest_unconfigure(config):
    if hasattr(config, "turns"):
        shutil.rmtree(config.turns, ignore_errors=True)
        os.environ.pop(TURNS, None)


@contextlib.contextmanager
def turn(alone):
    """Side by side with other tests, or, if it measures what others would change, `alone`. Who waits for the machine
    keeps the gate meanwhile, so that nobody overtakes it."""
    if not os.environ.get(TURNS):
        yield
        return
    with open(os.path.join(os.environ[TURNS], "room"), "w") as room:
        with open(os.path.join(os.environ[TURNS], "gate"), "w") as gate:
            fcntl.flock(gate, fcntl.LOCK_EX)
            fcntl.flock(room, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        yield


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_protocol(item):
    with turn(item.get_closest_marker("alone")):
        yield


def need(what, path=None):
    """Skip, saying what is missing, unless a program (or `path`) is there."""
    if not (os.path.exists(path) if path else shutil.which(what)):
        pytest.skip(f"missing: {what}")


def comm_of(pid):
    """A process's name; "": it is gone."""
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as f:
            return f.read().strip()
    except OSError:
        return ""


def need_root():
    if os.geteuid() != 0:
        pytest.skip("missing: root")


UNSEEN = re.compile("[\x80-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufe00-\ufe0d\ufeff\ufff9-\ufffb\U000e0000-\U000e0fff]")


def seen(name):
    """A name as people are shown it: no controls, nothing that turns the order of text."""
    return UNSEEN.sub(lambda m: f"\\u{ord(m[0]):04x}" if ord(m[0]) < 0x10000 else f"\\U{ord(m[0]):08x}", name)


def scale(short, full):
    """Everyday tests are short; SONDE_SOAK=1 (make long-soak) runs them at their full length."""
    return full if os.environ.get("SONDE_SOAK") else short


def tolerance(least, cpu_ns, wall_ns, freq):
    """How far samples x period may be from a process's CPU time. A process that has a CPU for itself is counted without
    chance: `least`. One that shares its CPU is on it by chance when a sample falls: three standard deviations of that."""
    share = min(1.0, cpu_ns / wall_ns)
    return max(least, 3 * math.sqrt(share * (1 - share) * wall_ns * 1e-9 * freq) / (cpu_ns * 1e-9 * freq))


def stolen_ns():
    """What a hypervisor has taken from this host so far."""
    with open("/proc/stat", encoding="ascii") as f:
        return int(f.readline().split()[8]) * 1_000_000_000 // os.sysconf("SC_CLK_TCK")


def is_charged(seen_ns, charged_ns, rel, stolen):
    """Is what a sampler or a switch's clock saw what the kernel charged? They count as well what was stolen meanwhile, if from
    this process; the kernel charges that to nobody."""
    return (1 - rel) * charged_ns <= seen_ns <= (1 + rel) * charged_ns + stolen


def about(share, samples):
    """Within 2 points; where a busy machine left few samples, within what chance does."""
    return pytest.approx(share, abs=max(0.02, 3.5 * math.sqrt(share * (1 - share) / max(samples, 1))))


def families():
    """The families that there are, as schema/families/families.c lists them."""
    with open(os.path.join(ROOT, "schema/families/families.c"), encoding="utf-8") as f:
        return re.findall(r'^\t\{\.name = "(\w+)"', f.read(), re.M)


def on_terminal(args, env=None):
    """What a program writes to a terminal; nobody is there to press keys."""
    env = {"TERM": "xterm", **(os.environ if env is None else env), "SONDE_PAGER": ""}
    main, other = pty.openpty()
    done = subprocess.Popen(args, stdout=other, stderr=other, stdin=subprocess.DEVNULL, env=env)
    os.close(other)
    text = b""
    try:
        while chunk := os.read(main, 65536):
            text += chunk
    except OSError:
        pass
    os.close(main)
    assert done.wait() == 0
    return text.decode("utf-8", "replace")


@pytest.fixture(scope="session")
def bin_dir():
    return BIN


@pytest.fixture(scope="session")
def sonde():
    """sonde(ARGS..., store=, check=, ...) -> CompletedProcess with text output. It never reads our stdin."""
    def call(*args, store=None, check=False, timeout=120, env=None, **kw):
        full = dict(os.environ, **(env or {}))
        full.pop("SONDE_STORE", None)
        if store:
            full["SONDE_STORE"] = str(store)
        kw.setdefault("stdin", subprocess.DEVNULL)
        done = subprocess.run([os.path.join(BIN, "sonde"), *map(str, args)], capture_output=True, timeout=timeout,
                              env=full, text=True, errors="replace", **kw)
        if check:
            assert done.returncode == 0, f"sonde {args}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done
    return call


@pytest.fixture
def store():
    """A new store's folder (not made yet), on a path that any user can reach; gone after the test."""
    base = tempfile.mkdtemp(prefix="sonde-test-")
    os.chmod(base, 0o755)
    yield os.path.join(base, "store")
    shutil.rmtree(base, ignore_errors=True)


@pytest.fixture
def scratch():
    """A new empty folder that any user can reach; gone after the test."""
    base = tempfile.mkdtemp(prefix="sonde-test-")
    os.chmod(base, 0o755)
    yield base
    shutil.rmtree(base, ignore_errors=True)


def segments(store):
    return sorted(p for p in glob.glob(os.path.join(store, "*.db")) if os.path.basename(p) != "sealing.db")


def sql_all(store, query, params=()):
    """The rows of `query` from each segment of the store (or of one .db file), oldest first, as dicts.
    Whoever sums over segments sums over these rows."""
    files = [store] if str(store).endswith(".db") else segments(store)
    rows = []
    for path in files:
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=20) as db:
            db.row_factory = sqlite3.Row
            db.text_factory = lambda b: b.decode("utf-8", "replace")
            if not next(db.execute("PRAGMA schema_version"))[0]:
                continue  # begun this moment, and empty so far
            rows += [dict(r) for r in db.execute(query, params)]
        db.close()
    return rows


@pytest.fixture(scope="session")
def sql():
    return sql_all


class Capture:
    """A running loader, followed by its progress. start() returns once it samples; stop() once all is stored."""

    def __init__(self, store, *args, program="sonde-cpu", command=None, bucket="1s", env=None, prefix=(), pass_fds=()):
        self.store, self.events, self.buffer = store, [], b""
        self.read_fd, write_fd = os.pipe()
        argv = [*prefix, os.path.join(BIN, program), "--store", store, "--bucket", bucket, "--progress-fd",
                str(write_fd), *map(str, args)]
        if command:
            argv += ["--", *command]
        self.stderr = tempfile.TemporaryFile()
        self.child = subprocess.Popen(argv, pass_fds=[write_fd, *pass_fds], stdin=subprocess.DEVNULL, stdout=self.stderr,
                                      stderr=self.stderr, env=env)
        os.close(write_fd)

    @property
    def pid(self):
        return self.child.pid

    def said(self):
        self.stderr.seek(0)
        return self.stderr.read().decode("utf-8", "replace")

    def pump(self, timeout):
        """Take in what has been told; False at the end of it."""
        if not select.select([self.read_fd], [], [], timeout)[0]:
            return True
        data = os.read(self.read_fd, 65536)
        *lines, self.buffer = (self.buffer + data).split(b"\n")
        self.events += [json.loads(line) for line in lines if line.strip()]
        return bool(data)

    def last(self, event):
        return next((e for e in reversed(self.events) if e.get("event") == event), None)

    def wait_event(self, event, timeout=180):
        end = time.monotonic() + timeout
        open_ = True
        while not self.last(event):
            assert open_ and time.monotonic() < end, \
                f"no '{event}' in {timeout} s; told: {self.events}\nsaid: {self.said()}"
            open_ = self.pump(0.2)
        return self.last(event)

    def start(self, timeout=180):
        self.wait_event("ready", timeout)
        return self

    def wait(self, timeout=180):
        """Until it ends by itself. The 'done' event."""
        end = time.monotonic() + timeout
        while self.pump(0.2) and time.monotonic() < end:
            pass
        try:
            self.rc = self.child.wait(max(0.1, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"still running after {timeout} s: {self.said()}") from None
        return self.last("done")

    def stop(self, timeout=120):
        self.child.send_signal(signal.SIGINT)
        done = self.wait(timeout)
        assert self.rc == 0 and done, f"exit {self.rc}: {self.said()}; told: {self.events[-3:]}"
        return done

    def kill(self):
        if self.child.poll() is None:
            self.child.kill()
            self.child.wait()

    def close(self):
        self.kill()
        os.close(self.read_fd)
        self.stderr.close()


@pytest.fixture
def capture(store):
    """capture(ARGS..., store=, start=) -> a Capture of the test's store, already sampling; ended with the test at the latest. start: seconds that it may take."""
    need_root()
    running = []

    def begin(*args, start=180, **kw):
        c = Capture(kw.pop("store", store), *args, **kw)
        running.append(c)
        return c.start(start)
    yield begin
    for c in running:
        c.close()


class Work:
    """A workload that is running: tests/workloads says what each one does and prints (one JSON object at its end)."""

    def __init__(self, name, *args, argv0=None, prefix=(), cwd=None):
        path = os.path.join(WORKLOADS, name)
        if not os.path.exists(path):
            pytest.skip(f"missing: workload {name} (was its compiler there?)")
        self.child = subprocess.Popen([*prefix, argv0 or path, *map(str, args)], executable=None if prefix else path,
                                      stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, cwd=cwd)
        self.out = None

    @property
    def pid(self):
        return self.child.pid

    def told(self, timeout=600):
        """Wait for its end; what it says it did."""
        if self.out is None:
            text, _ = self.child.communicate(timeout=timeout)
            assert self.child.returncode == 0, f"workload ended with {self.child.returncode}: {text!r}"
            self.out = json.loads(text)
        return self.out

    def close(self):
        if self.child.poll() is None:
            self.child.kill()
        self.child.wait()
        if self.child.stdout:
            self.child.stdout.close()


@pytest.fixture
def work():
    """work(NAME, ARGS...) -> a running Work; ended with the test at the latest."""
    running = []

    def begin(name, *args, **kw):
        w = Work(name, *args, **kw)
        running.append(w)
        return w
    yield begin
    for w in running:
        w.close()
