# SPDX-License-Identifier: Apache-2.0
"""`sonde logs --new` and `sonde status` on made stores: what is new needs a time before, and what sonde costs is the sum of what records."""
import json
import os

import livedin
import pytest
from conftest import segments

AT = 1795144200
SAID = {"fact": "log_pattern_row", "source": "web", "level": "error", "pattern": "cannot reach *", "sample": "ERROR cannot reach db", "messages": 1}


def put(tmp_path, begin, also=()):
    store = str(tmp_path / "store")
    livedin.put(store, [{"run": "logs", "from": begin, "to": AT, "bucket_s": 10}, *also,
                        {"fact": "log_row", "at": AT - 30, "source": "web", "level": "error", "lines": 1, "messages": 1, "bytes": 40}, {**SAID, "at": AT - 30}])
    return store


@pytest.mark.parametrize("before", [True, False])
def test_what_is_new_is_known_where_there_is_a_time_before(before, sonde, tmp_path):
    words = ("logs", "--new", "--from", str(AT - 100), "--to", str(AT))
    store = put(tmp_path, AT - (900 if before else 60))
    (row,) = json.loads(sonde(*words, "--json", store=store, check=True).stdout)["rows"]
    said = sonde(*words, store=store, check=True).stdout
    assert (row["new"], row["before"]) == ((True, 0) if before else (None, None))
    assert ("whether a pattern is new is not known" in said) == (not before) and "cannot reach *" in said


def test_what_sonde_costs_is_the_sum_of_the_families_that_record(sonde, tmp_path):
    families = ("cpu", "offcpu", "host", "net", "l7", "mem", "disk")
    store = str(tmp_path / "store")
    rows = [{"run": "cpu", "from": AT - 1900, "to": AT - 1000, "bucket_s": 10, "recording": 1}]  # it is over
    for n, family in enumerate(families, 2):
        rows.append({"run": family, "from": AT - 900, "to": AT, "bucket_s": 10, "recording": n})
    livedin.put(store, rows)
    said = sonde("status", store=store, check=True).stdout
    line = next(x for x in said.splitlines() if x.startswith("cost"))
    assert all(f"{family} 0.00" in line for family in families) and line.count("cpu 0.00") == 2, said  # cpu and offcpu, each once
    assert all(any(row.split()[:1] == [str(n)] for row in said.splitlines()) for n in range(2, 9)), said


def test_explain_says_what_failed_while_an_error_was_logged(sonde, tmp_path):
    """40 errors in the last 20 s, none before; meanwhile 3 of 7 requests failed, and one before that is not counted."""
    store = str(tmp_path / "store")
    who = {"pid": 7, "comm": "app"}
    pay = {"request": "POST /pay", "protocol": "http", "service": "shop:80", "side": 2, **who, "total_ns": 9000000, "max_ns": 9000000}
    said = [{**SAID, "at": AT - s, "messages": 20, "first_us": (AT - s) * 1000000, "last_us": (AT - s + 5) * 1000000} for s in (20, 10)]
    asked = [{**pay, "at": AT - 100, "status": "500", "result": 1, "n": 1}, {**pay, "at": AT - 10, "status": "500", "result": 1, "n": 3},
             {**pay, "at": AT - 20, "status": "200", "result": 0, "n": 4}]
    spun = [{"kind": "cpu", "n": 100, "stack": ["main"], **who, "at": AT - s} for s in range(10, 300, 10)]
    run = [{"run": family, "from": AT - 300, "to": AT, "bucket_s": 10, "period_ns": 10000000, "recording": n} for n, family in enumerate(("cpu", "logs", "l7"), 1)]
    livedin.put(store, [run[0], *spun, run[1], *said, run[2], *asked])
    words = ("explain", "--from", str(AT - 60), "--to", str(AT), "--before", "200s")
    (row,) = json.loads(sonde(*words, "--json", store=store, check=True).stdout)["logged"]
    assert (row["before"], row["after"]) == (0, 40)
    assert row["failed"] == {"errors": 3, "requests": 7, "service": "shop:80", "operation": "POST /pay", "status": "500"}
    assert "meanwhile 3 of 7 requests failed, POST /pay of shop:80 (500)" in " ".join(sonde(*words, store=store, check=True).stdout.split())


def test_what_failed_meanwhile_is_counted_over_all_files_of_the_store(sonde, tmp_path):
    """POST /pay failed twice in each of two files, GET /cart three times in one: most failed at POST /pay."""
    store, who = str(tmp_path / "store"), {"pid": 7, "comm": "app"}
    of = {"protocol": "http", "service": "shop:80", "side": 2, **who, "total_ns": 9000000, "max_ns": 9000000, "status": "500", "result": 1}
    said = [{**SAID, "at": AT - s, "messages": 20, "first_us": (AT - s) * 1000000, "last_us": (AT - s + 5) * 1000000} for s in (20, 10)]
    spun = [{"kind": "cpu", "n": 100, "stack": ["main"], **who, "at": AT - s} for s in range(10, 300, 10)]
    run = [{"run": family, "from": AT - 300, "to": AT, "bucket_s": 10, "period_ns": 10000000, "recording": n} for n, family in enumerate(("cpu", "logs", "l7"), 1)]
    livedin.put(store, [run[0], *spun, run[1], *said, run[2], {**of, "request": "POST /pay", "at": AT - 20, "n": 2}])
    livedin.put(str(tmp_path / "second"), [{**run[2], "from": AT - 10}, {**of, "request": "POST /pay", "at": AT - 10, "n": 2}, {**of, "request": "GET /cart", "at": AT - 10, "n": 3}])
    (file,) = segments(str(tmp_path / "second"))
    os.rename(file, os.path.join(store, os.path.basename(file).replace("-0001.db", "-0002.db")))
    assert len(segments(store)) == 2
    words = ("explain", "--from", str(AT - 60), "--to", str(AT), "--before", "200s")
    (row,) = json.loads(sonde(*words, "--json", store=store, check=True).stdout)["logged"]
    assert row["failed"] == {"errors": 7, "requests": 7, "service": "shop:80", "operation": "POST /pay", "status": "500"}
    assert "meanwhile 7 of 7 requests failed, 4 of them POST /pay of shop:80 (500)" in " ".join(sonde(*words, store=store, check=True).stdout.split())
