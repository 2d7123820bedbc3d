# SPDX-License-Identifier: Apache-2.0
"""Family host beside free, df, ip -s link and iostat in one run: each is asked before the recorder begins, after its first row, before it stops and after it."""
import json
import os
import subprocess
import threading

import pytest

from conftest import need, sql_all
from sonded import until
from test_host import assert_between, first_row, mounted, sums, talk, two_rounds_later, write_direct

pytestmark = pytest.mark.long


def said(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, "LC_ALL": "C", "S_TIME_FORMAT": "ISO"}).stdout


def links():
    return {x["ifname"]: {f"{way}_{what}": x["stats64"][way][what] for way in ("rx", "tx") for what in ("bytes", "packets", "errors", "dropped")}
            for x in json.loads(said("ip", "-s", "-j", "link"))}


def disks():
    """kB since the boot, rounded down."""
    told = json.loads(said("iostat", "-d", "-k", "-o", "JSON"))["sysstat"]["hosts"][0]["statistics"][0]["disk"]
    return {x["disk_device"]: {"read_bytes": x["kB_read"], "write_bytes": x["kB_wrtn"]} for x in told}


def memory():
    return dict(zip(("total", "used", "free", "shared", "cache", "available"), map(int, said("free", "-b").splitlines()[1].split()[1:])))


class Asked(threading.Thread):
    """What free says, again and again."""

    def __init__(self):
        super().__init__()
        self.over, self.told = threading.Event(), [memory()]
        self.start()

    def run(self):
        while not self.over.wait(0.05):
            self.told.append(memory())

    def end(self):
        self.over.set()
        self.join()
        self.told.append(memory())


def test_memory_file_systems_interfaces_and_disks_are_those_of_free_df_ip_and_iostat(capture, store, scratch):
    for program in ("free", "df", "ip", "iostat"):
        need(program)
    point = os.path.join(scratch, "fs")
    os.mkdir(point)
    with mounted(point, "tmpfs", data="size=64m,nr_inodes=1000"):
        with open(f"{point}/file", "wb") as f:
            f.write(b"x" * (20 << 20))
        marks = [(links(), disks())]
        asked = Asked()
        try:
            cap = capture(program="sonde-host")
            assert until(lambda: first_row(store, "fs_row"), 20)
            marks.append((links(), disks()))
            write_direct(os.path.join(scratch, "direct"), 16 << 20)
            talk(300)
            df = list(map(int, said("df", "-B1", "--output=size,used,avail,itotal,iavail", point).splitlines()[1].split()))
            marks.append((links(), disks()))
            two_rounds_later(store)
            cap.stop()
            marks.append((links(), disks()))
        finally:
            asked.end()
    for name in set.intersection(*(set(m[0]) for m in marks)):
        where = f"interface = '{name}' AND container = ''"
        if sql_all(store, f"SELECT 1 FROM net_stats WHERE {where}"):
            columns = {"rx_bytes", "rx_packets", "rx_errors", "rx_drops", "tx_bytes", "tx_packets", "tx_errors", "tx_drops"}
            assert_between(sums(store, "net_stats", columns, where), [{k.replace("dropped", "drops"): v for k, v in m[0][name].items()} for m in marks])
    assert sums(store, "net_stats", ["tx_packets"], "interface = 'lo'")["tx_packets"] >= 300
    written = 0
    for name in marks[0][1]:
        stored = sums(store, "disk_stats", marks[0][1][name], f"disk = '{name}'")
        for column, n in stored.items():
            inner, outer = (marks[b][1][name][column] - marks[a][1][name][column] for a, b in ((1, 2), (0, 3)))
            assert inner - 1 <= n / 1024 <= outer + 1, (name, column, n, inner, outer)
        written += stored["write_bytes"]
    assert written >= 16 << 20
    row = sql_all(store, f"SELECT size, free, available, inodes, inodes_free FROM filesystem_stats WHERE mount = '{point}' ORDER BY ts DESC LIMIT 1")[0]
    assert [row["size"], row["size"] - row["free"], row["available"], row["inodes"], row["inodes_free"]] == df
    for row in sql_all(store, "SELECT mem_total, mem_free, mem_available, shmem FROM host_stats"):
        assert row["mem_total"] == asked.told[0]["total"]
        for column, name in (("mem_free", "free"), ("mem_available", "available"), ("shmem", "shared")):
            told = [t[name] for t in asked.told]
            # it may have been read between two of free's looks
            assert min(told) - (128 << 20) <= row[column] <= max(told) + (128 << 20), (column, row, min(told), max(told))
