# SPDX-License-Identifier: Apache-2.0
"""Large answers and questions of databases and caches, faster than they can be copied: each is counted, with its bytes, and nothing is
lost (make long-tls). The servers are real; what they send is known to the byte."""
import concurrent.futures
import os
import shutil
import subprocess
import tempfile

import pytest

import bulktalk
import servers
from conftest import Capture, need_root, sql_all
from servers import find
from talks import run

pytestmark = pytest.mark.tls
SIZE, N, AT_ONCE = 10_000_000, int(os.environ.get("N", "40")), int(os.environ.get("AT_ONCE", "40"))


class Server:
    """A database or cache; `ask(text)` runs one client, which is not allowed to fail."""

    def __init__(self, folder):
        self.folder, self.port, self.running = folder, servers.free_port(), servers.Running([type(self).__name__])

    def stop(self):
        self.running.stop()


class Redis(Server):
    protocol, operations = "redis", ("GET large", "SET large")

    def __init__(self, folder):
        super().__init__(folder)
        self.cli = [find("redis-cli"), "-p", str(self.port)]
        servers.wait_port(self.port, self.running.start([find("redis-server"), "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir", folder]))
        self.value = os.path.join(folder, "value")
        with open(self.value, "wb") as f:
            f.write(b"x" * SIZE)
        self.store()

    def ask(self):
        assert len(subprocess.run([*self.cli, "GET", "large"], capture_output=True, check=True).stdout) == SIZE + 1

    def store(self):
        with open(self.value, "rb") as f:
            assert subprocess.run([*self.cli, "-x", "SET", "large"], stdin=f, capture_output=True, check=True).stdout == b"OK\n"

    response = len(b"$10000000\r\n") + SIZE + 2
    request = len(b"*3\r\n$3\r\nSET\r\n$5\r\nlarge\r\n$10000000\r\n") + SIZE + 2


class Postgres(Server):
    protocol, operations = "postgres", ("SELECT repeat(?)", "SELECT length(?")

    def __init__(self, folder):
        self.server = servers.postgres(folder, load=False)
        self.port = int(self.server.at[3])
        self.psql = ["psql", "-X", "-A", "-t", "-q", *self.server.at]

    def stop(self):
        self.server.stop()

    def query(self, text):
        return subprocess.run(self.psql, input=text, capture_output=True, text=True, check=True).stdout

    def ask(self):
        assert len(self.query(f"SELECT repeat('x', {SIZE});")) == SIZE + 1

    def store(self):
        assert self.query(f"SELECT length('{'x' * SIZE}');") == f"{SIZE}\n"

    response = 1 + 4 + 2 + len("repeat") + 1 + 18 + 1 + 4 + 2 + 4 + SIZE + 1 + 4 + len("SELECT 1") + 1 + 6
    request = 1 + 4 + len(f"SELECT length('{'x' * SIZE}');") + 1

    def rows(self):
        assert len(self.query(f"SELECT repeat('x', 100) FROM generate_series(1, {SIZE // 100});")) == SIZE // 100 * 101


class Mariadb(Server):
    protocol, operations = "mysql", ("SELECT repeat(?)", "SELECT length(?")

    def __init__(self, folder):
        super().__init__(folder)
        data, sock = os.path.join(folder, "data"), os.path.join(folder, "sock")
        run(find("mariadb-install-db"), f"--datadir={data}", "--user=root", "--auth-root-authentication-method=normal", "--skip-test-db")
        servers.wait_port(self.port, self.running.start([find("mariadbd", "/usr/sbin/mariadbd"), "--no-defaults", f"--datadir={data}", f"--socket={sock}",
                                                         f"--port={self.port}", "--bind-address=127.0.0.1", "--user=root", f"--pid-file={folder}/pid",
                                                         "--max-allowed-packet=64M"]), 60)
        self.client = [find("mariadb"), "-h", "127.0.0.1", "-P", str(self.port), "-u", "root", "--protocol=tcp", "-N", "-r", "--max-allowed-packet=64M", "--quick"]

    def query(self, text):
        return subprocess.run(self.client, input=text, capture_output=True, text=True, check=True).stdout

    def ask(self):
        assert len(self.query(f"SELECT repeat('x', {SIZE});")) == SIZE + 1

    def store(self):
        assert self.query(f"SELECT length('{'x' * SIZE}');") == f"{SIZE}\n"

    response = None  # column definitions are the version's
    request = 4 + 1 + len(f"SELECT length('{'x' * SIZE}')")

    def rows(self):
        assert len(self.query(f"SELECT repeat('x', 100) FROM mysql.seq_1_to_{SIZE // 100};")) == SIZE // 100 * 101


@pytest.fixture(scope="module", params=[Redis, Postgres, Mariadb], ids=lambda k: k.__name__.lower())
def server(request):
    folder = tempfile.mkdtemp(prefix="sonde-bulk-")
    os.chmod(folder, 0o755)
    try:
        s = request.param(folder)
    except servers.Missing as e:
        pytest.skip(f"missing: {e}")
    yield s
    s.stop()
    shutil.rmtree(folder, ignore_errors=True)


def asked(store, server, what, n, at_once, may_lose=False):
    """The rows of both sides, after `n` times `what`, `at_once` at a time; and what moved."""
    c = Capture(store, "-v", program="sonde-l7").start()
    try:
        with concurrent.futures.ThreadPoolExecutor(at_once) as some:
            list(some.map(lambda _: getattr(server, what)(), range(n)))
        done = c.stop(120)
    finally:
        c.close()
    assert may_lose or not done["lost_total"], done
    rows = sql_all(store, "SELECT side, operation, result, sum(requests) AS n, sum(request_bytes) AS asked, sum(response_bytes) AS answered FROM requests"
                          " WHERE service LIKE ? AND protocol = ? GROUP BY 1, 2, 3", (f"%:{server.port}", server.protocol))
    moved = sql_all(store, "SELECT side, sum(seen) AS seen, sum(parsed) AS parsed, sum(skipped) AS skipped, sum(blind) AS blind FROM request_bytes WHERE service LIKE ?"
                           " GROUP BY 1", (f"%:{server.port}",))
    assert [r["side"] for r in moved] == ["client", "server"]
    assert all(r["seen"] == r["parsed"] + r["skipped"] + r["blind"] and (done["lost_total"] or not r["blind"]) for r in moved), (moved, rows)
    return rows, moved


@pytest.mark.parametrize("what", ["ask", "store"])
def test_each_large_one_is_counted_with_its_bytes_and_none_is_lost(store, server, what):
    rows, moved = asked(store, server, what, N, AT_ONCE)
    operation = server.operations[what == "store"]
    size = server.response if what == "ask" else server.request
    for side in ("client", "server"):
        found = [r for r in rows if r["side"] == side and r["operation"].startswith(operation)]
        assert len(found) == 1, rows
        row = found[0]
        assert (row["result"], row["n"]) == ("ok", N), rows
        assert size is None or row["answered" if what == "ask" else "asked"] == N * size, (row, size)
        assert row["answered" if what == "ask" else "asked"] >= N * SIZE
    assert all(r["skipped"] > 0.9 * N * SIZE for r in moved), "bodies are not copied"


def test_many_small_rows_are_counted_as_one_answer_or_blind_and_never_an_error(store, server):
    """100 000 rows of 100 bytes: but for PostgreSQL's their bytes are copied, so that a busy machine may lose some."""
    if not hasattr(server, "rows"):
        pytest.skip("it has no rows")
    rows, moved = asked(store, server, "rows", 8, 4, may_lose=True)
    for side, m in zip(("client", "server"), moved):
        got = {r["result"]: r["n"] for r in rows if r["side"] == side and r["operation"].startswith("SELECT repeat")}
        assert set(got) <= {"ok", "blind"} and not [r for r in rows if r["result"] not in ("ok", "blind")], rows
        assert got.get("ok", 0) == 8 or m["blind"] >= (8 - got.get("ok", 0)) * SIZE // 100, (rows, moved)


@pytest.mark.parametrize("text", ["SELECT", "COPY"])
@pytest.mark.parametrize("size", [1, 20, 100, 700])
def test_small_rows_of_postgres_are_left_out_and_each_answer_is_counted(store, server, size, text):
    if server.protocol != "postgres":
        pytest.skip("of PostgreSQL alone")
    n = min(SIZE // size, 300_000)
    select = f"SELECT repeat('x', {size}) FROM generate_series(1, {n})"

    def ask():
        assert len(server.query(f"{select};" if text == "SELECT" else f"COPY ({select}) TO STDOUT;")) == n * (size + 1)
    server.small = ask
    rows, moved = asked(store, server, "small", 8, 4)
    row = 1 + 4 + 2 + 4 + size if text == "SELECT" else 1 + 4 + size + 1
    head = (1 + 4 + 2 + len("repeat") + 1 + 18 if text == "SELECT" else 1 + 4 + 1 + 2 + 2) + 1 + 4 + len(f"{text} {n}") + 1 + 6
    head += 5 if text == "COPY" else 0  # CopyDone
    for side in ("client", "server"):
        got = [(r["result"], r["n"], r["answered"]) for r in rows if r["side"] == side and r["operation"].startswith(text)]
        assert got == [("ok", 8, 8 * (n * row + head))], (rows, n * row + head)
    assert all(r["skipped"] > 0.9 * 8 * n * row for r in moved), moved


# ---- protocols without their servers ----

ENDS = [(name, what) for name, (_, _, ask, store) in bulktalk.LARGE.items() for what in ("ask", "store") if (ask if what == "ask" else store)]


def test_records_of_several_partitions_are_copied_and_none_is_an_error(store):
    """Errors of the other partitions are behind the records of the first one: it is not known where the last field is. What is cut is blind."""
    need_root()
    sizes = [bulktalk.SIZE // 2, bulktalk.SIZE // 4, bulktalk.SIZE // 4]
    listener = bulktalk.Listener([], bulktalk.FETCH, bulktalk.fetch_answer(sizes))
    c = Capture(store, program="sonde-l7").start()
    try:
        for _ in range(4):
            listener.once()
        c.stop(120)
    finally:
        c.close()
        listener.close()
    rows = sql_all(store, "SELECT result, sum(requests) AS n FROM requests WHERE service LIKE ? AND protocol = 'kafka' GROUP BY 1", (f"%:{listener.port}",))
    assert rows and {r["result"] for r in rows} <= {"ok", "blind"}, rows
    moved = sql_all(store, "SELECT seen, parsed, skipped, blind FROM request_bytes WHERE service LIKE ?", (f"%:{listener.port}",))
    assert moved and all(r["seen"] == r["parsed"] + r["skipped"] + r["blind"] for r in moved), moved


@pytest.mark.parametrize("name, what, first", [(name, what, first) for name, what in ENDS for first in ((0, 16) if name == "mongodb" else (0,))])
def test_each_large_message_is_counted_with_its_bytes_and_none_is_lost(store, name, what, first):
    need_root()
    protocol, login, *both = bulktalk.LARGE[name]
    question, answer, operation = both[what == "store"]
    listener = bulktalk.Listener(login, question, answer, first)
    listener.protocol, listener.ask_once = protocol, listener.once
    try:
        rows, moved = asked(store, listener, "ask_once", N, min(AT_ONCE, 8))
    finally:
        listener.close()
    for side in ("client", "server"):
        found = [(r["result"], r["n"], r["asked"], r["answered"]) for r in rows if r["side"] == side and r["operation"].startswith(operation)]
        assert found == [("ok", N, N * len(question), N * len(answer))], rows
    said = N * sum(len(data) for _, data in [*login, (0, question), (1, answer)])
    assert all(r["seen"] == said for r in moved), (moved, said)
    assert all(r["skipped"] > 0.9 * N * bulktalk.SIZE for r in moved), "bodies are not copied"
