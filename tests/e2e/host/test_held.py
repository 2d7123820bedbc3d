# SPDX-License-Identifier: Apache-2.0
"""Memory that the kernel cannot reclaim, told from files' pages; and what fills a disk, by folder and in containers' layers."""
import json
import os
import subprocess
import sys

import pytest

from conftest import need_root, sql_all
from sonded import until
from test_events import mounted
from test_kinds import put

MIB = 1 << 20
READER = """
import mmap, os, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
whole = mmap.mmap(fd, 0, mmap.MAP_SHARED, mmap.PROT_READ)
print(sum(whole[at] for at in range(0, len(whole), 4096)), flush=True)
input()
"""
LEAK = "x = bytearray(b'x') * (300 << 20); print(1, flush=True); input()"
SHARED = "import mmap; x = mmap.mmap(-1, 200 << 20); x.write(b'x' * (200 << 20)); print(1, flush=True); input()"


def first_row(store):
    return os.path.isdir(store) and any(n.endswith(".db") for n in os.listdir(store)) and sql_all(store, "SELECT ts FROM host_stats LIMIT 1")


def test_a_reader_of_a_large_file_ranks_below_a_leak_and_shared_memory(capture, store, scratch, sonde):
    path = os.path.join(scratch, "large")
    with open(path, "wb") as f:
        f.truncate(2 << 30)  # its pages are in memory once they are read
    programs = [subprocess.Popen([sys.executable, "-c", *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
                for args in ((READER, path), (LEAK,), (SHARED,))]
    try:
        for p in programs:
            p.stdout.readline()
        cap = capture(program="sonde-host")
        assert until(lambda: first_row(store), 20)
        cap.stop()
        reader, leak, shared = (p.pid for p in programs)
        rows = {r["pid"]: r for r in json.loads(sonde("ps", "--sort", "mem", "--json", "-n", "500", store=store, check=True).stdout)["rows"]}
        assert [pid for pid in rows if pid in (reader, leak, shared)] == [leak, shared, reader]
        assert rows[reader]["mem_bytes"] > 2 << 30 and rows[reader]["mem_held_bytes"] < 64 * MIB
        assert 300 * MIB < rows[leak]["mem_held_bytes"] < 340 * MIB and 200 * MIB < rows[shared]["mem_held_bytes"] < 240 * MIB
        (told,) = sql_all(store, f"SELECT max(file) AS file, max(shmem) AS shmem FROM process_mem_stats WHERE pid = {reader}")
        (kernel,) = [line for line in open(f"/proc/{reader}/status", encoding="utf-8") if line.startswith("RssFile")]
        assert abs(told["file"] - int(kernel.split()[1]) * 1024) < MIB and told["shmem"] < MIB
        (told,) = sql_all(store, f"SELECT max(file) AS file, max(shmem) AS shmem FROM process_mem_stats WHERE pid = {shared}")
        assert told["shmem"] >= 200 * MIB and told["file"] < 64 * MIB
        table = sonde("ps", "--sort", "mem", "-n", "500", store=store, check=True).stdout.splitlines()
        assert "HELD" in table[0].split()
    finally:
        for p in programs:
            p.communicate("\n", timeout=120)


def test_memory_is_ranked_by_what_is_held_and_swapped_in_every_answer(sonde, tmp_path):
    at, store = 1_790_000_000, str(tmp_path / "s")
    run = [{"run": "host", "from": at, "to": at + 60, "bucket_s": 10}]
    process = [{"fact": "process_row", "at": at + when, "pid": pid, "comm": comm, "rss": rss * MIB, "swap": swap * MIB}
               for when in range(0, 60, 10) for pid, comm, rss, swap in ((7, "reader", 900, 0), (8, "leak", 400, 100), (9, "swapped", 20, 450))]
    group = [{"fact": "cgroup_row", "cgroup": f"/docker/{c}", "container": c, "at": at + when, "working": working * MIB, "anon": anon * MIB,
              "kernel": 0, "swap": swap * MIB} for when in range(0, 60, 10) for c, working, anon, swap in (("cache", 900, 10, 0), ("web", 300, 250, 0), ("old", 30, 20, 400))]
    host = [{"fact": "host_row", "at": at + when, "mem_total": 8 << 30, "mem_available": 4 << 30} for when in range(0, 60, 10)]
    put(store, [*run, *host, *process, *group, {"fact": "process_mem_row", "at": at + 10, "pid": 7, "comm": "reader", "file": 880 * MIB, "shmem": 0}])

    def ranked(*verb, key):
        return [(r[key], r["mem_held_bytes"] >> 20) for r in json.loads(sonde(*verb, "--sort", "mem", "--json", store=store, check=True).stdout)["rows"]]
    assert ranked("ps", key="comm") == [("leak", 500), ("swapped", 470), ("reader", 20)]
    assert ranked("containers", key="container") == [("old", 420), ("web", 250), ("cache", 10)]
    assert [r["container"] for r in json.loads(sonde("sql", "@memory", "--json", store=store, check=True).stdout)["rows"]] == ["old", "web", "cache"]
    series = json.loads(sonde("timeline", "--of", "mem", "--json", store=store, check=True).stdout)
    assert [r["who"] for r in series["rows"]] == ["[host]", "old", "web", "cache"], series["rows"]


def test_what_fills_a_disk_is_told_by_folder_for_the_asked_range(sonde, tmp_path):
    at, store = 1_790_000_000, str(tmp_path / "s")

    def fill(when, kind, path, n, hour, week, **more):
        return {"fact": "fill_row", "at": when, **{k: more[k] for k in ("pid", "comm") if k in more},
                "columns": {"mount": "/var", "kind": kind, "path": path, "bytes": n * MIB, "hour": hour * MIB, "hours": hour * MIB, "day": week * MIB, "week": week * MIB}}
    put(store, [{"run": "host", "from": at, "to": at + 7200, "bucket_s": 10},
                fill(at, "folder", "/var/log", 100, 10, 90), fill(at, "folder", "/var/old", 700, 0, 600),
                fill(at + 3000, "folder", "/var/log", 350, 250, 340), fill(at + 3000, "folder", "/var/old", 700, 0, 600),
                fill(at + 3000, "deleted", "/tmp/gone", 50, 0, 0, pid=7, comm="sort")])

    def found(*options):
        return [(r["kind"], r["name"], r["bytes"] and r["bytes"] / 2**20, r["text"]) for r in json.loads(sonde("sql", "@fills", *options, "--json", store=store, check=True).stdout)["rows"]]
    assert [row[:3] for row in found("--from", str(at), "--to", str(at + 3600))] == [("folder", "/var: /var/log", 250.0), ("deleted", "/tmp/gone", 50.0)]
    assert found("--from", str(at), "--to", str(at + 3600), "--comm", "other") == []
    assert found("--from", str(at), "--to", str(at + 3600))[0][3] == f"written to, of 350 MiB in it, +250 MiB since {'%02d:%02d' % divmod(at % 86400 // 60, 60)}"
    assert [row[:3] for row in found()] == [("folder", "/var: /var/old", 600.0), ("folder", "/var: /var/log", 340.0), ("deleted", "/tmp/gone", 50.0)]


IN_LAYER = """
set -e
mount --make-rprivate /
mount -t overlay overlay -o lowerdir=/,upperdir=$1/upper,workdir=$1/work $1/merged
cd $1/merged
mkdir -p oldroot tmp
pivot_root . oldroot
head -c 20971520 /oldroot/dev/zero >/tmp/data.bin
exec 3>/tmp/gone
rm /tmp/gone
head -c 26214400 /oldroot/dev/zero >&3
echo ready
exec sleep 60
"""


def test_a_file_in_a_containers_layer_has_the_containers_path_and_a_deleted_one_is_found_there(capture, store, scratch):
    need_root()
    point = os.path.join(scratch, "disk")
    os.mkdir(point)
    with mounted(point, "tmpfs", data="size=54m"):
        for name in ("upper", "work", "merged"):
            os.mkdir(f"{point}/{name}")
        with subprocess.Popen(["unshare", "-m", "sh", "-c", IN_LAYER, "sh", point], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as holder:
            try:
                if (said := holder.stdout.readline()) != "ready\n":
                    pytest.skip(f"cannot make an overlay here: {said}")
                cap = capture("--bucket", "1s", program="sonde-host")
                assert until(lambda: first_row(store) and sql_all(store, "SELECT path FROM fill_stats WHERE kind = 'deleted'"), 40), cap.said()
                cap.stop()
            finally:
                holder.kill()
    rows = {(r["kind"], r["path"]): r for r in sql_all(store, f"SELECT * FROM fill_stats WHERE mount = '{point}'")}
    assert rows["file", "/tmp/data.bin"]["hour"] >> 20 == 20 and rows["folder", "/tmp"]["hour"] >> 20 == 20
    gone = rows["deleted", "/tmp/gone"]
    assert (gone["bytes"] >> 20, gone["pid"], gone["comm"]) == (25, holder.pid, "sleep")
