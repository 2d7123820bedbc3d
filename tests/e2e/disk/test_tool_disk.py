# SPDX-License-Identifier: Apache-2.0
"""`sonde disk` on a store that a test wrote: disks, who asked, slow requests, fsync, failed opens."""
import json

import livedin
import pytest

AT = 1795144200
DB = {"pid": 21, "comm": "postgres", "container": "db", "container_id": "d" * 64, "start": AT - 900}
TAR = {"pid": 30, "comm": "tar", "start": AT - 90}
TAR2 = {**TAR, "pid": 31}
KERNEL = {"pid": 32, "ppid": 2, "exe": "", "comm": "kworker/u8:1-flush-8:0", "start": AT - 900}
MIB = 1 << 20
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
        yield {"fact": "slow_stack_row", "at": AT - 10, "columns": {"disk": "sda", "sector": 0, "at_us": (AT - 10) * 10**6, "stack": "folio_wait_bit_common filemap_read vfs_read"}}
        for at in (AT - 20, AT - 10):
            yield {"fact": "sync_row", "at": at, **DB, "file": "/var/lib/postgresql/pg_wal/1", "call": "fdatasync", "calls": 50, "errors": 0, "us": 100000,
                   "us_1024": 49, "us_16384": 1}
        for us in (1500000, 3500000):
            yield {"fact": "sync_lasting_row", "at": AT - 20 + us // 200000, **TAR, "file": "/backup.tar", "call": "fsync", "calls": 1, "us": us}
        # one that was not back either, and returned: it counts once, with its time
        yield {"fact": "sync_lasting_row", "at": AT - 20, **TAR, "file": "/late", "call": "fsync", "calls": 1, "us": 2000000}
        yield {"fact": "sync_row", "at": AT - 10, **TAR, "file": "/late", "call": "fsync", "calls": 1, "errors": 0, "us": 2300000, "us_2097152": 1}
        for who in (TAR, TAR2):
            yield {"fact": "open_row", "at": AT - 10, **who, "path": "/etc/none", "error": "ENOENT", "opens": 4}
        yield {"fact": "open_row", "at": AT - 10, **DB, "path": "/secret", "error": "EACCES", "opens": 1}
        yield {"fact": "open_row", "at": AT - 10, "columns": {"path": "~other", "error": "ENOENT", "opens": 90}}
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
    assert [r["stack"] for r in rows] == [["folio_wait_bit_common", "filemap_read", "vfs_read"], [], []]


def test_calls_that_wait_are_summed_by_file(sonde, made):
    late, back, row = asked(sonde, made, "--fsync")["rows"]
    assert (late["file"], late["comm"], late["calls"], late["us"], late["lasting_us"], late["p99_us"]) == ("/backup.tar", "tar", 0, 0, 3500000, None)  # it has not returned
    assert (back["file"], back["calls"], back["us"], back["lasting_us"]) == ("/late", 1, 2300000, None)
    assert (row["lasting_us"], row["file"], row["call"], row["calls"], row["us"], row["pid"]) == (None, "/var/lib/postgresql/pg_wal/1", "fdatasync", 100, 200000, 21)
    assert 1024 <= row["p50_us"] < 2048 and 16384 <= row["p99_us"] * 2 < 65536


def test_opens_that_fail_are_summed_by_path_and_command(sonde, made):
    rows = asked(sonde, made, "--opens")["rows"]
    assert [(r["comm"], r["path"], r["error"], r["opens"], r["pid"]) for r in rows] == [
        ("tar", "/etc/none", "ENOENT", 8, None), ("postgres", "/secret", "EACCES", 1, 21), (None, "~other", "ENOENT", 90, None)]


@pytest.fixture(scope="module")
def filed(tmp_path_factory):
    store = str(tmp_path_factory.mktemp("files") / "store")

    def one(at, who, file, disk, **columns):
        return {"fact": "file_row", "at": at, **who, "file": file, "disk": disk, **columns}

    def held(at, who, file, ino, mib, holders=1):
        return {"fact": "held_row", "at": at, **who, "file": file, "ino": ino, "mount": "/data", "bytes": mib * MIB, "holders": holders}

    def lines():
        yield livedin.run("host", AT - 100, AT, 10, 0)
        for at in range(AT - 100, AT, 10):
            gone = (at - AT + 100) // 10
            yield {"fact": "fs_row", "at": at, "mount": "/", "source": "/dev/sda1", "fstype": "ext4", "size": 100 * MIB, "available": 90 * MIB, "inodes": 50, "inodes_free": 40}
            yield {"fact": "fs_row", "at": at, "mount": "/data", "source": "/dev/sda2", "fstype": "ext4", "size": 100 * MIB, "available": (54 - 2 * gone) * MIB}
        yield livedin.run("disk", AT - 100, AT, 10, 0)
        yield {"fact": "device_row", "at": AT - 100, "disk": "dm-0", "under": "sda", "busy_us": 1, "in_flight": 0}
        for at in (AT - 80, AT - 70):
            yield one(at, DB, "/data/wal", "", dirty_bytes=30 * MIB, grown_bytes=3 * MIB)
            yield one(at, DB, "/data/wal", "sda", writes=4, write_bytes=2 * MIB)
            yield one(at, TAR, "/data/wal", "", dirty_bytes=10 * MIB)
            yield one(at, KERNEL, "/data/wal", "sda", writes=80, write_bytes=39 * MIB)  # 1 of that was changed before
            yield one(at, TAR, "/data/big", "dm-0", reads=5, read_bytes=5 * MIB)  # the same requests on both
            yield one(at, TAR, "/data/big", "sda", reads=5, read_bytes=5 * MIB)
            yield one(at, TAR, "/backup", "", dirty_bytes=MIB, grown_bytes=MIB)
        yield one(AT - 70, TAR, "/data/old", "", shrunk_bytes=7 * MIB, dirty_bytes=MIB)
        yield one(AT - 70, KERNEL, "/dev/sda1", "sda", writes=9, write_bytes=MIB)
        yield one(AT - 70, DB, "", "sda", writes=3, write_bytes=3 * MIB)
        yield from (held(AT - 80, DB, "/data/log.1", 7, 500), held(AT - 80, TAR, "/data/tmp", 8, 40))
        yield from (held(AT - 20, DB, "/data/log.1", 7, 600, 3), held(AT - 20, SELF, "/data/own", 9, 900))
    livedin.put(store, lines())
    return store


def test_what_the_kernel_writes_later_counts_for_who_changed_the_file(sonde, filed):
    rows = {(r["file"], r["comm"]): r for r in asked(sonde, filed, "--files")["rows"]}
    assert {k: (r["read_bytes"] // MIB, r["write_bytes"] // MIB, r["later_bytes"] // MIB, r["dirty_bytes"] // MIB) for k, r in rows.items()} == {
        ("/data/wal", "postgres"): (0, 4, 56, 60), ("/data/wal", "kworker"): (0, 2, 0, 0), ("/data/wal", "tar"): (0, 0, 20, 20), ("/data/big", "tar"): (10, 0, 0, 0), ("/data/old", "tar"): (0, 0, 0, 1),
        ("/backup", "tar"): (0, 0, 0, 2), ("/dev/sda1", "kworker"): (0, 1, 0, 0), (None, "postgres"): (0, 3, 0, 0)}
    assert rows["/data/wal", "postgres"]["grown_bytes"] == 6 * MIB and rows["/data/old", "tar"]["grown_bytes"] == -7 * MIB
    assert (rows["/data/big", "tar"]["disk"], rows["/data/wal", "tar"]["disk"], rows["/data/wal", "tar"]["pid"]) == ("dm-0", "sda", 30)


def test_files_past_the_limit_come_last_as_those_of_their_folder(sonde, tmp_path):
    """However much is read and written of them, and whatever is asked."""
    store, others = str(tmp_path / "store"), ("/data/~other", "/~other", "~other")

    def lines():
        yield livedin.run("disk", AT - 100, AT, 10, 0)
        for n, file in enumerate((*others, "/data/file", "/data/x~other")):
            size = (9 - n) * MIB
            yield {"fact": "file_row", "at": AT - 80, **TAR, "file": file, "disk": "sda", "reads": 5, "read_bytes": size}
            yield {"fact": "call_row", "at": AT - 80, **TAR, "file": file, "call": "read", "calls": 5, "errors": 0, "bytes": size, "us": size}
            yield {"fact": "sync_row", "at": AT - 80, **TAR, "file": file, "call": "fsync", "calls": 1, "errors": 0, "us": size}
    livedin.put(store, lines())
    for how in ("--files", "--calls", "--fsync"):
        assert [r["file"] for r in asked(sonde, store, how)["rows"]] == ["/data/file", "/data/x~other", *others]
        text = sonde("disk", how, "--from", AT - 100, "--to", AT, store=store, check=True).stdout.splitlines()[1:6]
        for line, shown in zip(text, ("/data/file", "/data/x~other", "other files of /data", "other files of /", "other files"), strict=True):
            assert line.rstrip().endswith(f" {shown}"), line


def test_disks_that_lie_on_each_other_in_circles_have_an_answer(sonde, tmp_path):
    """As a damaged store may say; one of them has no name."""
    disks = [f"dm-{i}" for i in range(30)]

    def lines():
        yield livedin.run("disk", AT - 100, AT, 10, 0)
        yield {"fact": "device_row", "at": AT - 100, "disk": "", "under": "dm-1", "busy_us": 1, "in_flight": 0}
        for disk in disks:
            yield {"fact": "device_row", "at": AT - 100, "disk": disk, "under": ", ".join(d for d in disks if d != disk), "busy_us": 1, "in_flight": 0}
        for disk in ("dm-3", "nvme0n1"):
            yield {"fact": "file_row", "at": AT - 80, **TAR, "file": "/data/big", "disk": disk, "reads": 5, "read_bytes": 5 * MIB}

    livedin.put(str(tmp_path / "store"), lines())
    rows = asked(sonde, str(tmp_path / "store"), "--files")["rows"]
    assert sorted((r["disk"], r["read_bytes"] // MIB) for r in rows) == [("dm-3", 5), ("nvme0n1", 5)]


def test_with_a_filter_a_file_has_the_share_of_what_is_selected(sonde, filed):
    rows = asked(sonde, filed, "--files", "db")["rows"]
    assert [(r["file"], r["comm"], r["later_bytes"] // MIB) for r in rows] == [("/data/wal", "postgres", 56), (None, "postgres", 0)]


def test_a_file_system_that_fills_says_when_it_is_full_and_what_grew_most(sonde, filed):
    data, root = asked(sonde, filed, "--full")["rows"]
    assert (data["mount"], data["left"], data["filled_bytes"]) == ("/data", 36 * MIB, 18 * MIB)
    assert data["full_s"] == pytest.approx(36 / 18 * 90)
    assert [(b["file"], b["comm"], b["container"], b["grown_bytes"]) for b in data["by"]] == [("/data/wal", "postgres", "db", 6 * MIB)]
    assert (root["mount"], root["full_s"], root["filled_bytes"]) == ("/", None, 0)
    assert (data["deleted_bytes"], root["deleted_bytes"]) == (600 * MIB, None)  # deleted files that are open
    assert [b["file"] for b in root["by"]] == ["/backup"]


def test_deleted_files_are_those_of_the_last_look_and_sondes_own_are_left_out(sonde, filed):
    answer = asked(sonde, filed, "--deleted")
    assert [(r["file"], r["bytes"], r["comm"], r["pid"], r["holders"], r["mount"]) for r in answer["rows"]] == [("/data/log.1", 600 * MIB, "postgres", 21, 3, "/data")]
    assert answer["bytes"] == 600 * MIB
    assert {r["file"] for r in asked(sonde, filed, "--deleted", "--to", AT - 50)["rows"]} == {"/data/log.1", "/data/tmp"}


def test_two_questions_at_once_and_words_that_do_not_exist_are_refused(sonde, made):
    for args, said in ((["--slow", "--fsync"], "give one"), (["--files", "--by", "process"], "give one"), (["--by", "shoe"], "must be one of command, process, container")):
        done = sonde("disk", *args, store=made)
        assert done.returncode == 2 and said in done.stderr


def test_without_the_family_it_says_which_to_record(sonde, tmp_path):
    store = str(tmp_path / "store")
    livedin.put(store, [livedin.run("cpu", AT - 100, AT, 10, 10101010), livedin.cpu(AT - 50, ("a", "", 1, 3, ["main"]))])
    done = sonde("disk", "--from", AT - 100, "--to", AT, store=store)
    assert done.returncode == 4 and "disk" in done.stderr and "--families" in done.stderr


def test_processes_and_containers_have_the_time_of_their_requests_and_of_fsync_once(sonde, made):
    """tar read from dm-0, whose requests come again at sda: those count."""
    answer = {r["pid"]: r for r in json.loads(sonde("ps", "--json", "--sort", "disk", "--from", AT - 100, "--to", AT, store=made, check=True).stdout)["rows"]}
    assert {pid: (r["comm"], r["disk_ns"], r["fsync_ns"]) for pid, r in answer.items()} == {
        21: ("postgres", (90 * 100 * 10 + 700 + 20000) * 1000, 200 * 10**6), 30: ("tar", 10 * 10 * 100 * 1000, 2300 * 10**6), 31: ("tar", 10 * 10 * 100 * 1000, 0)}
    db, = [r for r in json.loads(sonde("containers", "--json", "--from", AT - 100, "--to", AT, store=made, check=True).stdout)["rows"] if r["container"] == "db"]
    assert (db["disk_ns"], db["fsync_ns"]) == ((90 * 100 * 10 + 700 + 20000) * 1000, 200 * 10**6)
    text = sonde("containers", "--sort", "disk", "--from", AT - 100, "--to", AT, store=made, check=True).stdout.splitlines()
    assert "DISK" in text[0] and "FSYNC" in text[0] and text[1].split()[0] == "db"


def test_a_timeline_has_how_busy_disks_were_where_family_host_was_not_recorded(sonde, made):
    rows = json.loads(sonde("timeline", "--of", "disk", "--json", "--from", AT - 100, "--to", AT, store=made, check=True).stdout)["rows"]
    assert {r["who"]: max(v for v in r["by_column"] if v is not None) for r in rows} == {"[sda]": pytest.approx(0.5), "[dm-0]": pytest.approx(0.1)}
