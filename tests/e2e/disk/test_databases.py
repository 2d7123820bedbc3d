# SPDX-License-Identifier: Apache-2.0
"""Databases' commits, as family disk records them: what PostgreSQL and InnoDB themselves count is the judge; and whether `sonde explain` names the backup behind whose
writeback they wait. Their disk is a loop device whose writes are held back."""
import contextlib
import json
import os
import re
import signal
import sqlite3
import subprocess
import time

import loops
import pytest
import servers
from conftest import BIN, need_root, sql_all

LIMIT = "/sys/fs/cgroup/blkio/blkio.throttle.write_bps_device"  # of the root group: cgroup 2 has none there
PART_S = 11


@pytest.fixture
def slow_disk():
    """The folder where an ext4 on a loop device is mounted; some MB a second may be written to it. It lies in memory: however others keep the disk busy."""
    need_root()
    if not os.path.exists(LIMIT):
        pytest.skip(f"{LIMIT} is missing")
    with loops.device(600 << 20, "/dev/shm") as (path, _), loops.mounted(path, options="relatime") as folder:
        number = os.stat(path).st_rdev

        def limit(rate):
            with open(LIMIT, "w", encoding="ascii") as f:
                f.write(f"{os.major(number)}:{os.minor(number)} {rate}")
        limit(4000000)
        try:
            yield folder
        finally:
            limit(0)


@contextlib.contextmanager
def recorded(store, families):
    with open(f"{store}.said", "w", encoding="utf-8") as said:
        recording = subprocess.Popen([os.path.join(BIN, "sonde"), "record", "--families", families, "-d", "900s", "--store", store], stderr=said)
        try:
            while open(f"{store}.said", encoding="utf-8").read().count("recording ") < len(families.split(",")):  # each says so
                assert recording.poll() is None, open(f"{store}.said", encoding="utf-8").read()
                time.sleep(0.2)
            yield
        finally:
            recording.send_signal(signal.SIGINT)
            recording.wait()


def syncs(store, comm, like):
    rows = sql_all(store, "SELECT call, sum(calls) AS calls, sum(us) AS us FROM fsyncs WHERE comm = ? AND file LIKE ? GROUP BY call", (comm, like))
    return sum(r["calls"] for r in rows), sum(r["us"] for r in rows)


@pytest.mark.long
def test_commits_of_postgres_that_wait_behind_a_backup(slow_disk, tmp_path):
    """PostgreSQL counts its fsyncs of the log and their time (pg_stat_wal). In the second part tar writes 4 MB again and again, and they are brought to the disk."""
    os.mkdir(f"{slow_disk}/pg")
    server = servers.postgres(f"{slow_disk}/pg", load=False, settings=("track_wal_io_timing=on", "max_wal_size=4GB", "checkpoint_timeout=1h", "full_page_writes=off", "bgwriter_lru_maxpages=0"))
    store, source = str(tmp_path / "store"), str(tmp_path / "source")
    with open(source, "wb") as f:
        f.write(os.urandom(4 << 20))

    def counted():
        time.sleep(1.5)  # until each of its processes has told its counters
        text = subprocess.run(["psql", "-At", *server.at, "-c", "select wal_sync, wal_sync_time from pg_stat_wal"], capture_output=True, text=True, check=True).stdout
        return [float(word) for word in text.split("|")]
    try:
        subprocess.run(["psql", "-q", *server.at, "-c", "checkpoint"], check=True)
        subprocess.run(["sync", "-f", slow_disk], check=True)  # what its start wrote is on the disk
        with recorded(store, "cpu,offcpu,disk,host,l7"):
            before = counted()
            load = subprocess.Popen(["/usr/lib/postgresql/15/bin/pgbench", "-n", "-N", "-c", "2", "-T", str(2 * PART_S + 4), *server.at], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            time.sleep(PART_S)
            middle = time.time()
            backup = subprocess.Popen(["sh", "-c", f"while :; do tar cf {slow_disk}/backup.tar -C {tmp_path} source; sync -f {slow_disk}; sleep 0.1; done"], process_group=0)
            try:
                time.sleep(PART_S)
                end = time.time()
            finally:
                os.killpg(backup.pid, signal.SIGTERM)
                backup.wait()
            load.communicate()
            after = counted()
    finally:
        server.stop()
    calls, us = syncs(store, "postgres", f"{slow_disk}/pg/data/pg_wal/%")
    print(f"fsyncs of the log: {calls}, {us / 1000:.0f} ms; PostgreSQL: {after[0] - before[0]:.0f}, {after[1] - before[1]:.0f} ms")
    assert 0 <= calls - (after[0] - before[0]) <= 3 and us == pytest.approx(1000 * (after[1] - before[1]), rel=0.02)
    means = [r["us"] / r["n"] for r in sql_all(store, "SELECT ts >= ? AS late, sum(us) AS us, sum(calls) AS n FROM fsyncs WHERE comm = 'postgres' AND file LIKE '%/pg_wal/%' GROUP BY 1 ORDER BY 1",
                                               (int(middle),))]
    if means[1] < 2 * means[0]:
        pytest.skip(f"the disk was as busy before the backup: fsync took {means[0] / 1000:.0f} ms, then {means[1] / 1000:.0f} ms")
    done = subprocess.run([os.path.join(BIN, "sonde"), "explain", "postgres", "--from", f"{middle:.3f}", "--to", f"{end:.3f}", "--before", f"{PART_S}s", "--json", "--store", store],
                          capture_output=True, text=True, check=True)
    links = json.loads(done.stdout)["chain"]["links"]
    said = next((link["text"] for link in links if link["what"] == "disk" and "postgres" in link["text"]), None)
    assert said, json.dumps(links, indent=1)
    print(said)
    assert "pg_wal" in said and "fsync of" in said and re.search(r"took \S+ ms each(, before \S+ \S+)?, behind writeback of \S*/backup\.tar, written by tar \(", said), said


@pytest.mark.long
def test_a_call_that_has_not_returned_is_seen_while_it_waits(slow_disk, store, capture, sonde):
    path = f"{slow_disk}/large"
    cap = capture(program="sonde-disk")
    with open(path, "wb") as f:
        f.write(os.urandom(24 << 20))
        f.flush()
        begin = time.time()
        os.fsync(f.fileno())
        took = time.time() - begin
    assert not any(cap.stop()["lost"].values())  # what says more of a call is no event that could be lost
    middle = begin + took / 2
    rows = json.loads(sonde("disk", "--fsync", "--json", "--from", f"{begin - 1:.3f}", "--to", f"{middle:.3f}", store=store, check=True).stdout)["rows"]
    (row,) = [r for r in rows if r["file"] == path]
    assert took > 4 and row["calls"] == 0 and 1e6 <= row["lasting_us"] <= took * 1e6
    (row,) = [r for r in json.loads(sonde("disk", "--fsync", "--json", store=store, check=True).stdout)["rows"] if r["file"] == path]
    assert row["calls"] == 1 and row["p99_us"] == row["us"] == pytest.approx(took * 1e6, rel=0.05)


@pytest.mark.long
def test_commits_of_sqlite_and_innodb_are_waited_for_by_file(slow_disk, tmp_path):
    """A commit of SQLite with a rollback journal: the journal's two fsyncs, the database's and the folder's. InnoDB counts its own."""
    store, commits = str(tmp_path / "store"), 40
    os.mkdir(f"{slow_disk}/maria")
    os.chmod(f"{slow_disk}/maria", 0o777)
    server = servers.mariadb(f"{slow_disk}/maria", load=False)

    def ask(statement):
        return subprocess.run(["mariadb", *server.at, "-N", "-e", statement], capture_output=True, text=True, check=True).stdout
    try:
        ask("create database d; create table d.t(a int) engine=innodb; set global innodb_flush_log_at_trx_commit=1")
        with recorded(store, "disk"):
            db = sqlite3.connect(f"{slow_disk}/lite.db", isolation_level=None)
            db.execute("PRAGMA synchronous = FULL")
            db.execute("CREATE TABLE t(a)")
            for i in range(commits):
                db.execute("INSERT INTO t VALUES(?)", (i,))
            db.close()
            before = int(ask("show global status like 'Innodb_data_fsyncs'").split()[1])
            ask("".join(f"insert into d.t values({i});" for i in range(commits)))
            time.sleep(2)
            after = int(ask("show global status like 'Innodb_data_fsyncs'").split()[1])
            time.sleep(1)
    finally:
        server.stop()
    comm = open("/proc/self/comm", encoding="ascii").read().strip()
    assert syncs(store, comm, f"{slow_disk}/lite.db")[0] == commits + 1
    assert syncs(store, comm, f"{slow_disk}/lite.db-journal")[0] >= commits + 1
    calls, us = syncs(store, "mariadbd", f"{slow_disk}/maria/data/%")
    print(f"fsyncs of mariadbd: {calls}; InnoDB counts {after - before} of the inserts")
    assert calls >= after - before >= commits and us > 0
