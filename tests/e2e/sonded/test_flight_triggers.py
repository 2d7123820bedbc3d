# SPDX-License-Identifier: Apache-2.0
"""What the flight ring is kept for, by real things: each cause once an hour, windows that overlap are one."""
import http.server
import json
import os
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

import pytest
from conftest import need_root
from sonded import Sonded, until
from test_events import contained, memory
from test_flight import ask, kept, rows, spin_by_second, spun

pytestmark = pytest.mark.long


def waits(d, *families):
    assert until(lambda: all(d.running(f) for f in families), 60), d.said()


def kept_events(store):
    return [r["detail"] for r in rows(store, "SELECT detail FROM events WHERE kind = 'kept' ORDER BY at_ns")]


def reasons(d, what):
    """How often sonded said that it keeps the ring for this."""
    return len([line for line in d.said().splitlines() if "keeps the flight ring" in line and what in line])


def test_a_log_that_bursts_keeps_one_window_and_another_log_another_one(store, tmp_path):
    need_root()
    paths = [os.path.join(tmp_path, n) for n in ("shop.log", "till.log")]
    files = [open(p, "w", encoding="ascii") for p in paths]

    def burst(f):
        f.write("".join(f"INFO job {i} is done\n" for i in range(3000)))
        f.flush()
    with Sonded(store, "--families", "cpu,logs", "--log-files", ",".join(paths), "--flight", "on", "--cpu", "0") as d:
        waits(d, "cpu", "logs")
        for f in files:
            f.write("INFO begins\n")
            f.flush()
        time.sleep(70)  # what is usual of a log is known after a minute
        burst(files[0])
        assert until(lambda: reasons(d, f"{paths[0]} log burst"), 30), d.said()
        burst(files[1])  # while the first one waits: one window, with both reasons
        assert until(lambda: f"{paths[0]} log burst: 3000 lines" in kept(d)["last_why"], 150), (kept(d), d.said())
        assert f"{paths[1]} log burst: 3000 lines" in kept(d)["last_why"], kept(d)
        before = reasons(d, "log burst")
        burst(files[0])
        time.sleep(15)
        assert reasons(d, "log burst") == before, "one an hour and log"
        status = ask(store, "status").stdout
    assert "log burst" in status, status
    assert len([e for e in kept_events(store) if "log burst" in e]) == 1


THRASH = """import sys, time
end = time.time() + float(sys.argv[2])
with open(sys.argv[1], "rb", buffering=0) as f:
    while time.time() < end:
        f.seek(0)
        while f.read(1 << 20):
            pass
"""


def test_all_who_wait_for_memory_keep_the_window(store, tmp_path):
    """The pressure is that of a container, which sonded sees in place of the host's."""
    need_root()
    big = os.path.join(tmp_path, "big")
    with open(big, "wb") as f:
        for _ in range(96):
            f.write(os.urandom(1 << 20))
        f.flush()
        os.fsync(f.fileno())
        os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)  # who reads it first pays for its pages
    with contained(**memory(24)) as (container_id, prefix, _):
        pressure = next((p for p in (f"/sys/fs/cgroup/unified/docker/{container_id}/memory.pressure",
                                     f"/sys/fs/cgroup/docker/{container_id}/memory.pressure") if os.path.exists(p)), None)
        if not pressure:
            pytest.skip("missing: cgroup2 with PSI")
        seen = ["unshare", "-m", "sh", "-c", f'mount --bind {pressure} /proc/pressure/memory && exec "$@"', "sh"]
        with Sonded(store, "--families", "cpu", "--flight", "on", "--cpu", "0", prefix=seen) as d:
            waits(d, "cpu")
            time.sleep(15)
            assert not reasons(d, "memory pressure"), d.said()
            subprocess.run([*prefix, sys.executable, "-c", THRASH, big, "20"], check=True, stdin=subprocess.DEVNULL)
            with open(pressure, encoding="ascii") as f:
                said = f.read()
            assert until(lambda: reasons(d, "memory pressure"), 10), (said, d.said())
            assert until(lambda: "memory pressure" in kept(d)["last_why"], 150), (kept(d), d.said())


class Service(http.server.BaseHTTPRequestHandler):
    """Answers at once, after `slow` seconds, or with an error."""
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        time.sleep(self.server.slow)
        self.send_response(503 if self.server.fails else 200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_):
        pass


def serve():
    s = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service)
    s.slow, s.fails, s.asked, s.over = 0, False, 0, False
    threading.Thread(target=s.serve_forever, daemon=True).start()

    def ask_it():
        while not s.over:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{s.server_port}/{s.asked}", timeout=30).read()
            except urllib.error.HTTPError:
                pass
            s.asked += 1
            time.sleep(0.05)
    threading.Thread(target=ask_it, daemon=True).start()
    return s


def test_services_that_are_slow_or_fail_against_their_own_hour_keep_it_each_for_itself(store):
    """Three services for eleven minutes; then two become slow in the same seconds, and one fails: three reasons, one window."""
    need_root()
    shop, till, desk = all_of = [serve() for _ in range(3)]
    try:
        with Sonded(store, "--families", "cpu,l7", "--flight", "on", "--cpu", "0") as d:
            waits(d, "cpu", "l7")
            time.sleep(660)
            assert not reasons(d, "service") and not reasons(d, " is slow: ") and not reasons(d, " fails: "), d.said()
            shop.slow = till.slow = 0.3
            desk.fails = True
            ports = {str(s.server_port) for s in all_of}
            assert until(lambda: all(p in d.said() for p in ports), 60), d.said()
            time.sleep(30)
            for s in all_of:
                s.slow, s.fails = 0, False
            want = [f":{s.server_port} is slow: p99" for s in (shop, till)] + [f":{desk.server_port} fails: "]
            assert until(lambda: all(any(w in e for e in kept_events(store)) for w in want), 150), (kept(d), d.said())
            assert [e for e in kept_events(store) if all(w in e for w in want)], "one window"
    finally:
        for s in all_of:
            s.over = True
            s.shutdown()


def test_each_request_of_a_kept_window_is_there(store):
    """Many more than the store keeps of ten seconds, each with a path of its own; its two sides are linked."""
    need_root()
    s = serve()
    s.over = True  # it asks nothing by itself
    with Sonded(store, "--families", "cpu,l7", "--flight", "on", "--cpu", "0") as d:
        waits(d, "cpu", "l7")
        time.sleep(22)
        began = time.time()
        asked = []
        while time.time() < began + 25:
            asked.append((time.time(), f"/item{len(asked):05d}"))
            urllib.request.urlopen(f"http://127.0.0.1:{s.server_port}/{len(asked) - 1}?q=1", timeout=30).read()
            time.sleep(0.01)
        n, of = len(asked), f"FROM request_log WHERE service LIKE '%:{s.server_port}'"
        sums = f"SELECT side, sum(requests) AS n FROM requests WHERE service LIKE '%:{s.server_port}' GROUP BY side"
        # all of them are stored: those of other programs on this host may come later
        assert until(lambda: [r["n"] for r in rows(store, sums)] == [n, n], 60, 1), (rows(store, sums), n)
        time.sleep(1)
        before, weights = rows(store, sums), rows(store, f"SELECT sum(weight) AS n {of}")
        assert ask(store, "keep", "--last", f"{int(time.time() - began) + 20}s", "--why", "each request").returncode == 0
        assert until(lambda: "each request" in kept(d)["last_why"], 150), (kept(d), d.said())
    s.shutdown()
    assert rows(store, f"SELECT sum(weight) AS n {of}") == weights
    assert rows(store, sums) == before and {(r["side"], r["n"]) for r in before} == {("client", n), ("server", n)}, (before, n)
    sides = {r["side"]: r for r in rows(store, f"SELECT side, count(*) AS n, count(DISTINCT at_ns) AS times {of} GROUP BY side")}
    for side in ("client", "server"):
        assert sides[side]["n"] == sides[side]["times"] == n, (sides, n)
    # when each was asked, by who asked
    at = sorted(r["at_ns"] / 1e9 for r in rows(store, f"SELECT at_ns {of} AND side = 'client'"))
    assert all(0 <= a - t < 0.5 for a, (t, _) in zip(at, asked)), (at[:3], asked[:3])
    kinds = {r["why"]: r["n"] for r in rows(store, f"SELECT why, count(*) AS n {of} GROUP BY why")}
    assert kinds["ring"] > n, kinds
    told = json.loads(ask(store, "requests", "--slowest", "--side", "server", "-n", "0", "--json").stdout)
    assert len([r for r in told["rows"] if r["service"].endswith(f":{s.server_port}")]) == n
    trees = json.loads(ask(store, "trace", "-n", "0", "--json").stdout)
    assert len([r for r in trees["rows"] if r["joined_by"] == "bytes"]) >= n


def on_tmpfs(store, size):
    os.makedirs(os.path.join(store, "flight"), exist_ok=True)
    return ["unshare", "-m", "sh", "-c", f'mount -t tmpfs -o size={size} tmpfs {store}/flight && exec "$@"', "sh"]


def test_a_ring_on_a_tmpfs_is_kept_from_and_one_that_is_full_does_not_harm_the_store(store, tmp_path):
    """An administrator may mount one at STORE/flight; nothing else is set."""
    need_root()
    with Sonded(store, "--families", "cpu", "--flight", "on", "--cpu", "0", prefix=on_tmpfs(store, "64m")) as d:
        waits(d, "cpu")
        child = spun(tmp_path, 30, "first")
        child.wait()
        assert ask(store, "keep", "--last", "60s", "--why", "of a tmpfs").returncode == 0
        assert until(lambda: "of a tmpfs" in kept(d)["last_why"], 150), (kept(d), d.said())
        assert "hole" not in d.said()
    assert len(spin_by_second(store, "first")) >= 10
    assert not os.listdir(os.path.join(store, "flight")), "all of it was on the tmpfs"
    with Sonded(store, "--families", "cpu", "--flight", "on", "--cpu", "0", prefix=on_tmpfs(store, "256k")) as d:
        waits(d, "cpu")
        child = spun(tmp_path, 30, "second")
        child.wait()
        assert until(lambda: "the ring has a hole, the recording goes on" in d.said(), 30), d.said()
        assert until(lambda: spin_by_second(store, "second"), 30), d.said()
        assert d.running("cpu") and not d.service("cpu")["failures"]
