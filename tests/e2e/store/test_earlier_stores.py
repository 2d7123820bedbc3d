# SPDX-License-Identifier: Apache-2.0
"""Stores of earlier schemas answer as they did: from schema 28 on one file, plain and archived, is kept for each.

They were made once by `make_store`, `sonde seal` and `gzip -9n`, of the numbers below, and are never made anew: a program of today must read what that program wrote.
"""
import glob
import gzip
import json
import os
import shutil
import sqlite3
import time

import pytest
from conftest import E2E

T0 = 1_789_000_000
KEPT = sorted(glob.glob(os.path.join(E2E, "stores", "*.gz")))


def clock(seconds):
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))


def make_store(folder):
    from test_kinds import put
    run = {"from": T0, "to": T0 + 60, "bucket_s": 10, "recording": 7}
    put(folder, [{"run": "cpu", "period_ns": 10101010, **run},
                 *[{"kind": "cpu", "at": T0 + s, "n": 99, "value": 0, "stack": ["main", ["spin", "app.c", 12]]} for s in range(10)],
                 {"loss": "ring", "at": T0, "n": 3}, {"run": "offcpu", **run},
                 {"kind": "offcpu", "at": T0 + 1, "n": 4, "value": 4_000_000_000, "max": 3_000_000_000, "stack": ["main", "read"]},
                 {"kind": "offcpu", "at": T0 + 12, "n": 10, "value": 1_500_000_000, "stack": ["main", "lock", ["futex", "wait.c", 7]]},
                 {"run": "goheap", **run}, {"rate": 524288, "at": T0},
                 {"kind": "inuse", "at": T0 + 15, "n": 4, "value": 4096, "label": 1024, "stack": ["main", ["make", "app.go", 12]]}])


@pytest.fixture(params=KEPT, ids=[os.path.basename(k)[:-3] for k in KEPT])
def kept(request, tmp_path):
    path = os.path.join(str(tmp_path), "20260909T000000Z-0001.db")
    with gzip.open(request.param) as packed, open(path, "wb") as out:
        shutil.copyfileobj(packed, out)
    return path


def test_there_is_one_of_each_schema_and_form():
    assert {os.path.basename(k) for k in KEPT} >= {"schema-28.db.gz", "schema-28-archive.db.gz"}


def test_a_kept_store_answers_as_it_did(kept, sonde):
    before = open(kept, "rb").read()
    at = ["--from", clock(T0), "--to", clock(T0 + 60)]
    cpu = json.loads(sonde("stacks", "--json", *at, store=kept, check=True).stdout)
    assert cpu["samples"] == 990 and {r["function"]: r["self_samples"] for r in cpu["rows"]} == {"main": 0, "spin": 990}
    waits = json.loads(sonde("stacks", "--json", *at, "--type", "offcpu", store=kept, check=True).stdout)
    assert (waits["n"], waits["value"]) == (14, 5_500_000_000)
    assert sonde("sql", "--csv", "SELECT file, line, sum(samples) FROM cpu_samples", store=kept, check=True).stdout.split()[1:] == ["app.c,12,990"]
    assert sonde("sql", "--csv", "SELECT sum(lost) FROM loss", store=kept, check=True).stdout.split()[1:] == ["3"]
    assert sonde("sql", "--csv", "SELECT inuse_objects_raw, inuse_bytes_raw FROM go_heap", store=kept, check=True).stdout.split()[1:] == ["4,4096"]
    assert sonde("status", store=kept).returncode == 0
    assert open(kept, "rb").read() == before, "reading wrote to it"


def test_a_store_from_before_schema_28_is_refused_by_name_and_left_alone(kept, sonde, tmp_path):
    with sqlite3.connect(kept) as db:
        db.execute("UPDATE meta SET value = 27 WHERE key = 'schema_version'")
    db.close()
    before = open(kept, "rb").read()
    for verb in ("stacks", "status", "sql"):
        done = sonde(verb, *(["SELECT 1"] if verb == "sql" else []), store=str(tmp_path))
        assert done.returncode != 0 and os.path.basename(kept) in done.stderr and "schema 27" in done.stderr, (verb, done.stderr)
    assert open(kept, "rb").read() == before
