# SPDX-License-Identifier: Apache-2.0
"""The map of services that are known: nginx to gunicorn over a Unix socket, that to PostgreSQL and Redis, a worker to both; exactly these edges, each with
its connections and bytes, in a network namespace of their own."""
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile

import pytest

import servers
from conftest import LIB, need, need_root
from sonded import until
from test_net import alone, rows

pytestmark = pytest.mark.live
HERE = os.path.join(LIB, "servers")
PORTS = {"SHOP_POSTGRES": 5432, "SHOP_REDIS": 6379}
WORKER = "#!/usr/bin/python3\nimport sys\nsys.path.insert(0, {here!r})\nimport netshop\nnetshop.work()\n"
NGINX = """worker_processes 1; pid {at}/pid; error_log {at}/error; daemon off; user root; events {{}}
http {{ access_log off; client_body_temp_path {at}/body; proxy_temp_path {at}/proxy; fastcgi_temp_path {at}/f; uwsgi_temp_path {at}/u; scgi_temp_path {at}/s;
  server {{ listen 127.0.0.1:80; location / {{ proxy_pass http://unix:{at}/shop.sock; }} }} }}
"""
ASKER = """import sys, urllib.request as u
for line in sys.stdin:
    try:
        print(u.urlopen("http://127.0.0.1/", timeout=5).read().decode().strip(), flush=True)
    except OSError as e:
        print(e, flush=True)
"""


class Shop:
    """Everything runs in the namespace of a process that sleeps."""

    def __init__(self, folder):
        self.at, self.begun = folder, []
        self.home = subprocess.Popen([*alone(), "sleep", "600"])
        assert until(lambda: os.stat(f"/proc/{self.home.pid}/ns/net").st_ino != os.stat("/proc/self/ns/net").st_ino, 10)
        self.into = ["nsenter", "-t", str(self.home.pid), "-n"]
        self.asker = subprocess.Popen([*self.into, sys.executable, "-c", ASKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.begun += [self.home, self.asker]

    def start(self, *argv, **env):
        self.begun.append(subprocess.Popen([*self.into, *argv], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, **env}))
        return self.begun[-1]

    def answers(self):
        self.asker.stdin.write("\n")
        self.asker.stdin.flush()
        return self.asker.stdout.readline() == "sold\n"

    def postgres(self):
        place = "/usr/lib/postgresql/15/bin/"
        if not os.path.exists(place + "initdb"):
            pytest.skip("missing: postgresql-15")
        shutil.chown(self.at, "postgres")
        user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
        subprocess.run([*user, place + "initdb", "-D", f"{self.at}/data", "-A", "trust", "-N"], check=True, capture_output=True)
        self.start(*user, place + "postgres", "-D", f"{self.at}/data", "-p", "5432", "-k", "", "-c", "listen_addresses=127.0.0.1", "-c", "fsync=off",
                   "-c", "autovacuum=off")

    def begin(self):
        self.postgres()
        self.start("redis-server", "--port", "6379", "--bind", "127.0.0.1", "--save", "", "--dir", self.at)
        with open(f"{self.at}/nginx.conf", "w", encoding="ascii") as f:
            f.write(NGINX.format(at=self.at))
        worker = f"{self.at}/shopworker"
        with open(worker, "w", encoding="ascii") as f:
            f.write(WORKER.format(here=HERE))
        os.chmod(worker, os.stat(worker).st_mode | stat.S_IXUSR)
        ports = {k: str(v) for k, v in PORTS.items()}
        self.start("gunicorn", "-w", "2", "-b", f"unix:{self.at}/shop.sock", "--chdir", HERE, "netshop:application", **ports)
        self.start("nginx", "-c", f"{self.at}/nginx.conf", "-p", self.at)
        assert until(self.answers, 60)
        self.start(worker, **ports)

    def pids(self):
        ours = os.stat(f"/proc/{self.home.pid}/ns/net").st_ino
        return [p for p in os.listdir("/proc") if p.isdigit() and os.path.exists(f"/proc/{p}/ns/net") and os.stat(f"/proc/{p}/ns/net").st_ino == ours]

    def end(self):
        for p in reversed(self.begun):
            p.terminate()
        self.asker.stdin.close()
        self.asker.stdout.close()
        for p in self.begun:
            try:
                p.wait(timeout=120)
            except subprocess.TimeoutExpired:
                p.kill()
                p.wait()


@pytest.fixture
def shop():
    need_root()
    for program in ("nginx", "gunicorn", "redis-server", "setpriv"):
        need(program)
    folder = tempfile.mkdtemp(prefix="sonde-shop-")
    os.chmod(folder, 0o755)
    made = Shop(folder)
    try:
        made.begin()
        yield made
    finally:
        made.end()
        shutil.rmtree(folder, ignore_errors=True)


def test_the_map_has_the_known_edges_and_no_other(shop, capture, store, sonde):
    net = capture(program="sonde-net")
    assert until(lambda: rows(store, "SELECT 1 FROM netns_stats"), 20)
    for _ in range(40):
        assert shop.answers()
    pids = shop.pids()
    net.stop()
    edges = json.loads(sonde("map", "--json", *(a for p in pids for a in ("--pid", p)), store=store, check=True).stdout)["rows"]
    got = {(x["from"]["name"], x["to"]["name"], x["protocol"], x["port"]): x for x in edges}
    known = {("python3", "nginx", "tcp", 80), ("nginx", "gunicorn", "unix", None), ("gunicorn", "postgres", "tcp", 5432), ("gunicorn", "redis-server", "tcp", 6379),
             ("shopworker", "postgres", "tcp", 5432), ("shopworker", "redis-server", "tcp", 6379)}
    assert set(got) == known, sorted(got)
    assert got["python3", "nginx", "tcp", 80]["opened"] == 40
    for edge in known:
        assert got[edge]["tx_bytes"] > 0 and got[edge]["rx_bytes"] > 0, (edge, got[edge]["tx_bytes"], got[edge]["rx_bytes"])
