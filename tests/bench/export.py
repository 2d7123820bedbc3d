# SPDX-License-Identifier: Apache-2.0
"""export: what it takes to feed other engines (make bench-export).

  1. an always-on recorder of all families for SECONDS on this host, as busy as it is made by BUSY loops
  2. a scrape of /metrics every 15 s, and sonde-push to receivers in the place of each engine, every 60 s: CPU time by the kernel's account beside the time;
     memory at its highest
  3. that store as HOSTS hosts in a ClickHouse server here, PUSHES of them sent, the others copies of the first there: rows a second, bytes a host and day, the
     top 20 functions over all; what 10 000 would take

SECONDS=300 BUSY=2 HOSTS=100 PUSHES=10; KEPT=DIR: row 3 alone, of a store that is there
"""
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e", d) for d in ("", "lib", "lib/servers", "export")]
from clickhouse import Receiver  # noqa: E402
from conftest import BIN  # noqa: E402

SECONDS, BUSY, HOSTS, PUSHES = (int(os.environ.get(k, d)) for k, d in (("SECONDS", "300"), ("BUSY", "2"), ("HOSTS", "100"), ("PUSHES", "10")))
KEPT = os.environ.get("KEPT")


def cost(*args):
    """(CPU seconds, most memory in MB) of one run."""
    done = subprocess.run(["/usr/bin/time", "-f", "%U %S %M", *args], capture_output=True, text=True, check=True)
    user, system, kb = done.stderr.strip().splitlines()[-1].split()
    return float(user) + float(system), int(kb) / 1024


def config(folder, url, more="", name="export.conf"):
    path = f"{folder}/{name}"
    with open(path, "w", encoding="ascii") as f:
        f.write(f"[export.fleet]\nurl = {url}\n{more}\n")
    return path


class Sink(Receiver):
    """Takes all, keeps nothing."""

    def take(self, path, body):
        self.heads.clear()
        self.bytes = b""


CLICKHOUSE, PYROSCOPE, OTLP = "type = clickhouse", "type = pyroscope", "type = otlp"
PUSHED = (("ClickHouse and Pyroscope", (CLICKHOUSE, PYROSCOPE)), ("ClickHouse", (CLICKHOUSE,)), ("Pyroscope", (PYROSCOPE,)),
          ("OTLP: metrics, logs, traces", (OTLP,)), ("OTLP: profiles", (OTLP + "\nsignals = profiles-v1development",)))


class Push:
    """A sonde-push of its own; what it has used since it began."""

    def __init__(self, folder, store, url, name, targets):
        self.name, where = name, f"{folder}/{name}"
        os.makedirs(where)
        with open(f"{where}/export.conf", "w", encoding="ascii") as f:
            f.writelines(f"[export.t{i}]\nurl = {url}\n{t}\n" for i, t in enumerate(targets))
        self.began = time.monotonic()
        self.child = subprocess.Popen([f"{BIN}/sonde-push", "--config", f"{where}/export.conf", "--store", store, "--state", where])

    def end(self):
        """(share of a core in %, MB at most)"""
        with open(f"/proc/{self.child.pid}/stat", encoding="ascii") as f:
            ticks = sum(map(int, f.read().rsplit(")", 1)[1].split()[11:13]))
        with open(f"/proc/{self.child.pid}/status", encoding="ascii") as f:
            most = next(int(line.split()[1]) for line in f if line.startswith("VmHWM"))
        took = time.monotonic() - self.began
        self.child.terminate()
        self.child.wait()
        return 100 * ticks / os.sysconf("SC_CLK_TCK") / took, most / 1024


def feed(folder, store):
    """Rows 1 and 2."""
    families = ("cpu", "offcpu", "host", "net", "l7")
    recorders = [subprocess.Popen([f"{BIN}/sonde-{f}", "--store", store, "--bucket", "10s", "--duration", f"{SECONDS}s"], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL) for f in families]
    busy = [subprocess.Popen(["sh", "-c", "while :; do ls -lR /usr/lib >/dev/null; done"], stdout=subprocess.DEVNULL) for _ in range(BUSY)]
    receiver, spent, most, rounds = Sink(), 0, 0, 0
    time.sleep(70)
    pushed = [Push(folder, store, receiver.url, *p) for p in PUSHED]
    began = time.monotonic()
    while time.monotonic() - began < SECONDS - 80:
        cpu, mb = cost(f"{BIN}/sonde-export", "metrics", "--store", store, "--state", folder)
        spent, most, rounds = spent + cpu, max(most, mb), rounds + 1
        time.sleep(max(0, began + 15 * rounds - time.monotonic()))
    print(f"{'metrics, every 15 s':28} {100 * spent / (time.monotonic() - began):.3f} % of a core, {most:.1f} MB at most")
    for p in pushed:
        print(f"{p.name:28} {'%.3f %% of a core, %.1f MB at most' % p.end()}")
    for p in busy:
        p.kill()
    for p in recorders:
        p.wait()
    receiver.close()
    said = subprocess.run([f"{BIN}/sonde", "sql", "--store", store, "SELECT (SELECT sum(samples) FROM cpu_samples) AS samples, (SELECT count(*) FROM processes) AS processes"],
                          capture_output=True, text=True, check=False).stdout
    print(f"{'':28} of a host with {' '.join(said.split())}")


def fleet(folder, store):
    """Row 3."""
    from test_export_engines import ClickHouse
    from test_push import SECRET
    server = ClickHouse(f"{folder}/clickhouse")
    for statement in subprocess.run([f"{BIN}/sonde-push", "--schema", "--store", store], capture_output=True, text=True, check=True).stdout.split(";\n"):
        if statement.strip():
            server.ask(statement)
    with open(f"{folder}/secret", "w", encoding="ascii") as f:
        f.write(SECRET)
    conf = config(folder, f"http://127.0.0.1:{server.port}", f"user = default\npassword-file = {folder}/secret")
    segments = [f"{store}/{n}" for n in os.listdir(store) if n.endswith(".db")]
    began = time.monotonic()
    for i in range(PUSHES):
        for segment in segments:
            with sqlite3.connect(segment) as db:
                db.execute("UPDATE meta SET value = ? WHERE key = 'host'", (f"host-{i:05}",))
        subprocess.run([f"{BIN}/sonde-push", "--once", "--config", conf, "--store", store, "--state", f"{folder}/host-{i}"], check=True)
    took = time.monotonic() - began
    pushed = int(server.ask("SELECT sum(rows) FROM system.parts WHERE active AND database = 'sonde'"))
    tables = server.ask("SELECT name FROM system.tables WHERE database = 'sonde'").split()
    for t in tables:
        columns = ", ".join(f"`{c}`" for c in server.ask(f"SELECT name FROM system.columns WHERE database = 'sonde' AND table = '{t}' AND name != 'host'").split())
        server.ask(f"INSERT INTO sonde.{t} (host, {columns}) SELECT concat('copy-', toString(arrayJoin(range({HOSTS - PUSHES})))), {columns} FROM sonde.{t}"
                   " WHERE host = 'host-00000'")
        server.ask(f"OPTIMIZE TABLE sonde.{t} FINAL")
    rows, size = map(int, server.ask("SELECT sum(rows), sum(bytes_on_disk) FROM system.parts WHERE active AND database = 'sonde'").split())
    span = int(server.ask("SELECT toUInt32(max(ts)) - toUInt32(min(ts)) + 10 FROM sonde.host_stats"))
    print(f"{'fleet':24} {HOSTS} hosts, {rows} rows; {PUSHES} of them sent: {pushed / took:.0f} rows a second with sender and server on this machine")
    print(f"{'':24} {size / HOSTS / span * 86400 / 1e6:.1f} MB and {rows / HOSTS / span * 86400 / 1e6:.2f} million rows a host and day")
    query = "SELECT function, module, sum(samples) AS n FROM sonde.cpu_samples GROUP BY function, module ORDER BY n DESC LIMIT 20"
    began = time.monotonic()
    server.ask(query)
    print(f"{'':24} 10 000 hosts: {10000 * rows / HOSTS / span:.0f} rows a second, {10000 * size / HOSTS / span * 86400 / 1e9:.0f} GB a day")
    print(f"{'':24} top 20 functions over all in {time.monotonic() - began:.2f} s")
    server.close()


def main():
    folder = tempfile.mkdtemp(prefix="sonde-bench-export-")
    try:
        store = f"{folder}/store"
        if KEPT:
            shutil.copytree(KEPT, store, ignore=shutil.ignore_patterns("images", "writers", "lock"))
        else:
            feed(folder, store)
        if shutil.which("clickhouse-server"):
            fleet(folder, store)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
