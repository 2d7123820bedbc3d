# SPDX-License-Identifier: Apache-2.0
"""`sonde disk` on a store that a test wrote: disks, who asked, slow requests, fsync, failed opens."""
import json

import livedin
import pytest

AT = 1795144200
DB = {"pid": 21, "comm": "postgres", "container": "db", "container_id": "d" * 64, "start": AT - 900}
TAR = {"pid": 30, "comm": "tar", "start": AT - 90}
TAR2 = {**TAR, "pid": 31}
SELF = {"pid": 40, "comm": "sonde-disk", "start": AT - 90, "self": True}
PAGE = 4096


def block(at, who, disk, op, requests, each, **more):
    return {"fact": "block_row", "at": at, **who, "disk": disk, "op": op, "requests": requests, "bytes": requests * each, "errors": 0,
            "queue_us": 0, "device_us": 100 * requests, "us_64": requests, **more}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    store = str(tmp_path_factory.mktemp("disk") / "store")

    def lines():
        yield livedin.run("disk", AT - 100, AT, 10, 0)
        for at in range(AT - 100, AT, 10):
            yield {"fact": "device_row", "at": at, "disk": "sda", "under": "", "busy_us": 5000000, "in_flight": 2}
            yield {"fact": "device_row", "at": at, "disk": "dm-0", "under": "sda", "busy_us": 1000000, "in_flight": 0}
            yield block(at, DB, "sda", "write", 90, PAGE, us_64=89, us_65536=1, queue_us=2000)
            yield block(at, TAR, "sda", "read", 10, 1 << 20)
            yield block(at, TAR2, "sda", "read", 10, 1 << 20)
            yield block(at, SELF, "sda", "write", 1, PAGE)
            yield block(at, TAR, "dm-0", "read", 5, 1 << 20)
        yield block(AT - 10, DB, "sda", "flush", 7, 0)
        yield block(AT - 10, TAR, "dm-0", "read", 3, 512, errors=3)
        for n, us in enumerate((70000, 51000, 900)):
            yield {"fact": "slow_row", "at": AT - 10, **DB, "disk": "sda", "op": "write", "sector": 8 * n, "at_us": (AT - 10) * 10**6 + n, "thread": "walwriter",
                   "bytes": PAGE, "queue_us": us // 10, "device_us": us - us // 10, "failed": int(n == 1)}
        for at in (AT - 20, AT - 10):
            yield {"fact": "sync_row", "at": at, **DB, "file": "/var/lib/postgresql/pg_wal/1", "call": "fdatasync", "calls": 50, "errors": 0, "us": 100000,
                   "us_1024": 49, "us_16384": 1}
        for who in (TAR, TAR2):
            yield {"fact": "open_row", "at": AT - 10, **who, "path": "/etc/none", "error": "ENOENT", "opens": 4}
        yield {"fact": "open_row", "at": AT - 10, **DB, "path": "/secret", "error": "EACCES", "opens": 1}
    livedin.put(store, lines())
    return store


def asked(sonde, store, *args):
    return json.loads(sonde("disk", "--json", "--from", AT - 100, "--to", AT, *args, store=store, check=True).stdout)


def test_a_disk_has_all_requests_and_those_it_lies_on_come_first(sonde, made):
    sda, dm = asked(sonde, made)["rows"]
    assert (sda["disk"], sda["under"], dm["disk"], dm["under"]) == ("sda", [], "dm-0", ["sda"])
    assert (sda["reads"], sda["read_bytes"], sda["writes"], sda["others"]) == (200, 200 << 20, 910, 7)  # sonde's own, too
    assert (dm["reads"], dm["read_bytes"], dm["errors"]) == (53, (50 << 20) + 3 * 512, 3)
    assert (sda["busy_us"], sda["in_flight"], sda["queue_us"]) == (50 * 10**6, 2, 20000)
    text = sonde("disk", "--from", AT - 100, "--to", AT, store=made, check=True).stdout
    assert "50.0 %" in text.splitlines()[1] and text.splitlines()[2].split()[-1] == "sda"


def test_quantiles_lie_in_their_step(sonde, made):
    sda = asked(sonde, made)["rows"][0]
    assert 64 <= sda["write_p50_us"] < 128 and 65536 <= sda["write_p99_us"] < 131072
    assert sda["write_hist"] == [{"us": 64, "n": 900}, {"us": 65536, "n": 10}]


def test_who_asked_has_a_row_for_each_disk_and_no_byte_twice(sonde, made):
    who = asked(sonde, made)["who"]
    assert {(w["comm"], w["disk"]): (w["reads"], w["writes"], w["pid"]) for w in who} == {
        ("postgres", "sda"): (0, 900, 21), ("tar", "sda"): (200, 0, None), ("tar", "dm-0"): (53, 0, 30)}
    assert who[0]["comm"] == "postgres" and who[0]["container"] == "db" and who[0]["us"] == 90 * 100 * 10 + 700 + 20000
    by = asked(sonde, made, "--by", "process")["who"]
    assert sorted((w["pid"], w["disk"], w["reads"]) for w in by if w["comm"] == "tar") == [(30, "dm-0", 53), (30, "sda", 100), (31, "sda", 100)]
    assert {w["comm"] for w in asked(sonde, made, "--self")["who"]} == {"postgres", "tar", "sonde-disk"}


def test_with_a_filter_a_disk_has_the_requests_of_what_is_selected(sonde, made):
    answer = asked(sonde, made, "db")
    assert [(d["disk"], d["reads"], d["writes"], d["others"]) for d in answer["rows"]] == [("sda", 0, 900, 7)]
    assert {w["comm"] for w in answer["who"]} == {"postgres"}


def test_the_slowest_request_comes_first_with_its_thread_and_failure(sonde, made):
    rows = asked(sonde, made, "--slow")["rows"]
    assert [(r["us"], r["queue_us"], r["thread"], r["failed"]) for r in rows] == [
        (70000, 7000, "walwriter", False), (51000, 5100, "walwriter", True), (900, 90, "walwriter", False)]
    assert rows[0]["time_ns"] == (AT - 10) * 10**9 and rows[0]["container"] == "db"
    assert len(asked(sonde, made, "--slow", "-n", "1")["rows"]) == 1


def test_calls_that_wait_are_summed_by_file(sonde, made):
    row, = asked(sonde, made, "--fsync")["rows"]
    assert (row["file"], row["call"], row["calls"], row["us"], row["pid"]) == ("/var/lib/postgresql/pg_wal/1", "fdatasync", 100, 200000, 21)
    assert 1024 <= row["p50_us"] < 2048 and 16384 <= row["p99_us"] * 2 < 65536


def test_opens_that_fail_are_summed_by_path_and_command(sonde, made):
    rows = asked(sonde, made, "--opens")["rows"]
    assert [(r["comm"], r["path"], r["error"], r["opens"], r["pid"]) for r in rows] == [
        ("tar", "/etc/none", "ENOENT", 8, None), ("postgres", "/secret", "EACCES", 1, 21)]


def test_two_questions_at_once_and_words_that_do_not_exist_are_refused(sonde, made):
    for args, said in ((["--slow", "--fsync"], "give one"), (["--by", "shoe"], "must be one of command, process, container")):
        done = sonde("disk", *args, store=made)
        assert done.returncode == 2 and said in done.stderr


def test_without_the_family_it_says_which_to_record(sonde, tmp_path):
    store = str(tmp_path / "store")
    livedin.put(store, [livedin.run("cpu", AT - 100, AT, 10, 10101010), livedin.cpu(AT - 50, ("a", "", 1, 3, ["main"]))])
    done = sonde("disk", "--from", AT - 100, "--to", AT, store=store)
    assert done.returncode == 4 and "disk" in done.stderr and "--families" in done.stderr
