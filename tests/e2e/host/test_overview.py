# SPDX-License-Identifier: Apache-2.0
"""`sonde`: what is compared with the time before, on made stores. What was not read in one of the two windows is not known there, which is not 0; shares are of
all that was recorded, whatever the files."""
import json
import os

import livedin
import pytest
from conftest import segments

AT = 1795144200
MIB = 1 << 20
RUN = {"run": "host", "from": AT - 120, "to": AT, "bucket_s": 10, "recording": 1}
RANGE = ["--from", AT - 60, "--to", AT]


def process(at, pid, comm, **more):
    return {"fact": "process_row", "at": AT + at, "pid": pid, "comm": comm, "start": AT - 1000 + pid, "user_us": 900_000, "system_us": 0, **more}


def host(at, user_us, **more):
    return {"fact": "host_row", "at": AT + at, "cpus": 4, "user_us": user_us, "system_us": 0, "mem_total": 8 << 30, "mem_available": 4 << 30, "psi_cpu_us": user_us // 10, **more}


def rows_of(sonde, store):
    said = json.loads(sonde(*RANGE, "--json", store=store, check=True).stdout)
    return said["host"], {row["name"]: row for row in said["rows"]}


def test_memory_that_was_not_read_in_one_window_is_not_known_there(sonde, tmp_path):
    """`gone` ended in the window, `read` had no reading before, `fresh` was not there before, `steady` has both."""
    store = str(tmp_path / "store")
    lines = [RUN]
    for at in range(-120, 0, 10):
        now = at >= -60
        lines += [host(at, 4_000_000), process(at, 2, "read", **({"rss": 500 * MIB} if now else {})),
                  process(at, 4, "steady", rss=(300 if now else 200) * MIB)]
        lines += [process(at, 3, "fresh", rss=400 * MIB)] if now else []
        lines += [process(at, 1, "gone", rss=538 * MIB)] if at <= -50 else []
    lines.append({"end": 1, "status": 0, "at": AT - 45, "pid": 1, "comm": "gone", "start": AT - 999})
    livedin.put(store, lines)
    _, rows = rows_of(sonde, store)
    assert {name: (row["memory"]["now"], row["memory"]["before"]) for name, row in rows.items()} == {
        "gone": (None, 538.0 * MIB), "read": (500.0 * MIB, None), "fresh": (400.0 * MIB, 0.0), "steady": (300.0 * MIB, 200.0 * MIB)}, rows
    assert rows["fresh"]["cores"]["before"] == 0 and rows["fresh"]["cores"]["now"] == pytest.approx(0.09)
    text = sonde(*RANGE, store=store, check=True).stdout
    lines = {line.split()[0]: line for line in text.splitlines() if line.split() and line.split()[0] in rows}
    assert "MiB" not in lines["gone"] and "0 B" not in lines["gone"], text
    assert "500 MiB" in lines["read"] and "+" not in lines["read"], text
    assert "400 MiB +400 MiB" in lines["fresh"] and "300 MiB +100 MiB" in lines["steady"], text


def test_load_and_disks_are_of_the_whole_window_where_it_has_several_files(sonde, tmp_path):
    """Two cores busy in the first half minute, none in the second, which is in a file of its own."""
    store, second = str(tmp_path / "store"), str(tmp_path / "second")

    def part(begin, end, user_us, busy_us):
        yield {**RUN, "from": AT + begin, "to": AT + end}
        for at in range(begin, end, 10):
            yield host(at, user_us)
            yield {"fact": "disk_row", "at": AT + at, "disk": "sda", "busy_us": busy_us}
    livedin.put(store, list(part(-120, -30, 20_000_000, 4_000_000)))
    livedin.put(second, list(part(-30, 0, 0, 0)))
    (file,) = segments(second)
    os.rename(file, os.path.join(store, os.path.basename(file).replace("-0001.db", "-0002.db")))
    assert len(segments(store)) == 2
    host_said, _ = rows_of(sonde, store)
    assert host_said["cores"] == {"now": pytest.approx(1.0), "before": pytest.approx(2.0)}, host_said
    assert host_said["disk_busy"] == {"now": pytest.approx(0.2), "before": pytest.approx(0.4)}, host_said
