# SPDX-License-Identifier: Apache-2.0
"""MySQL's protocol inside TLS, which begins in the midst of a connection, and compressed: each login and each statement is counted, as often
as the server says (make long-tls)."""
import os
import subprocess
import sys
import textwrap

import pytest

import servers
from conftest import need, need_root, sql_all
from tlsservers import PYTHON, certificate, probes_in

pytestmark = pytest.mark.tls
N = 20
PYMYSQL = textwrap.dedent("""
    import pymysql, sys
    for i in range(int(sys.argv[3])):
        c = pymysql.connect(host="127.0.0.1", port=int(sys.argv[2]), user="root", ssl={"ca": sys.argv[1]})
        with c.cursor() as q:
            q.execute("select 1 + %s", (i,))
            assert q.fetchone()[0] == 1 + i
            q.execute("select repeat('a', 300000)")
            assert len(q.fetchone()[0]) == 300000
        c.close()
""")


def started(r, folder, cert, key):
    """The port of a MariaDB that offers TLS."""
    port, data = servers.free_port(), os.path.join(folder, "data")
    subprocess.run(["mariadb-install-db", f"--datadir={data}", "--user=root", "--auth-root-authentication-method=normal", "--skip-test-db"], check=True,
                   capture_output=True)
    argv = ["/usr/sbin/mariadbd", "--no-defaults", f"--datadir={data}", f"--socket={folder}/sock", f"--port={port}", "--bind-address=127.0.0.1", "--user=root",
            f"--pid-file={folder}/pid", f"--ssl-cert={cert}", f"--ssl-key={key}", "--skip-name-resolve"]
    servers.wait_port(port, r.start(argv), 60)
    return port


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    need_root()
    need("mariadb")
    need("mariadbd", "/usr/sbin/mariadbd")
    folder, r = str(tmp_path_factory.mktemp("mariadb")), servers.Running(["mariadbd"])
    cert, key = certificate(folder)
    try:
        port = started(r, folder, cert, key)
        # so that the client's library has its probes before the first client begins
        r.start([PYTHON, "-c", "import ctypes, time; ctypes.CDLL('libgnutls.so.30'); time.sleep(9999)"])
        yield port, cert
    finally:
        r.stop()


def told(store, port, side):
    """({operation: answered requests}, those that were not)"""
    rows = sql_all(store, "SELECT operation, result, sum(requests) AS n FROM requests WHERE service LIKE ? AND side = ? AND protocol = 'mysql' GROUP BY 1, 2",
                   (f"%:{port}", side))
    return {r["operation"]: r["n"] for r in rows if r["result"] == "ok"}, [r for r in rows if r["result"] != "ok"]


def check(store, port, want):
    for side in ("client", "server"):
        got, others = told(store, port, side)
        assert {op: got.get(op) for op in want} == want and not others, (side, got, others)
        rows = sql_all(store, "SELECT seen, parsed, skipped, blind FROM request_bytes WHERE service LIKE ? AND side = ?", (f"%:{port}", side))
        assert all(r["seen"] == r["parsed"] + r["skipped"] + r["blind"] and not r["blind"] for r in rows), rows


@pytest.mark.parametrize("args", [["--ssl"], ["--ssl", "--compress"], ["--compress", "--skip-ssl"], ["--skip-ssl"]], ids=" ".join)
def test_each_login_and_statement_of_mariadbs_client_is_counted(capture, store, server, args):
    port, _ = server
    c = capture("-v", program="sonde-l7")
    probes_in(c, "libgnutls.so.30")
    probes_in(c, "libssl.so.3")
    for i in range(N):
        said = subprocess.run(["mariadb", "--no-defaults", "-N", "-h", "127.0.0.1", "-P", str(port), "-u", "root", *args, "-e",
                               f"select {i} + 1; select repeat('ab', 200000); show status like 'Ssl_cipher'; show status like 'Compression'"],
                              check=True, capture_output=True, text=True).stdout
        assert ("Ssl_cipher\tTLS" in said) == ("--ssl" in args) and ("Compression\tON" in said) == ("--compress" in args), said[-200:]
    c.stop()
    check(store, port, {"CONNECT": N, "select ? + ?": N, "select repeat(?)": N})


def test_each_login_and_statement_of_a_python_client_is_counted(capture, store, server):
    try:
        subprocess.run([PYTHON, "-c", "import pymysql"], check=True, capture_output=True)
    except subprocess.CalledProcessError:
        pytest.skip("missing: python3-pymysql")
    port, cert = server
    c = capture("-v", program="sonde-l7")
    probes_in(c, "libssl.so.3")
    subprocess.run([PYTHON, "-c", PYMYSQL, cert, str(port), str(N)], check=True, stderr=sys.stderr)
    c.stop()
    check(store, port, {"CONNECT": N, "select ? + ?": N, "select repeat(?)": N})
