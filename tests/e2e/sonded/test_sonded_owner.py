# SPDX-License-Identifier: Apache-2.0
"""What root recorded in a store whose folder is the user sonde's, as the package makes it, keeps `sonde up` from nothing; and
`sonde up` ends with an error where something does not record."""
import os
import re
import sqlite3
import subprocess

import pytest
from conftest import BIN, need, need_root, segments, sql_all

USER = 65534


@pytest.fixture(autouse=True)
def root():
    need_root()
    need("unshare")


@pytest.fixture
def host(scratch):
    """host(PROGRAM, ARGS...): runs it where the user sonde exists, as after an installation of the package."""
    passwd = os.path.join(scratch, "passwd")
    with open(passwd, "w", encoding="ascii") as f:
        f.write(f"root:x:0:0:root:/root:/bin/sh\nsonde:x:{USER}:{USER}::/nonexistent:/usr/sbin/nologin\n")
    env = {k: v for k, v in os.environ.items() if not k.startswith("SONDE_")} | {"SONDE_CONFIG": "/nonexistent"}
    script = f'mount --bind {passwd} /etc/passwd && exec "$@"'

    def call(program, *args, **more):
        with open(os.path.join(scratch, "said"), "w+", encoding="utf-8") as said:
            done = subprocess.run(["unshare", "-m", "--propagation", "private", "sh", "-c", script, "sh",
                                   os.path.join(BIN, program), *args], env=env | more, stdin=subprocess.DEVNULL, stdout=said,
                                  stderr=said, timeout=100, check=False)
            said.seek(0)
            done.stderr = said.read()
        return done
    return call


def packaged(store):
    """The folder becomes the user's, and nothing in it."""
    os.makedirs(store, exist_ok=True)
    os.chmod(store, 0o750)
    os.chown(store, USER, USER)


def record(host, store):
    done = host("sonde", "record", "-d", "1s", "--store", store)
    assert done.returncode == 0, done.stderr


def foreign(store):
    """What is not the folder's owner's."""
    return [p for folder, folders, files in os.walk(store) for p in (os.path.join(folder, name) for name in folders + files)
            if os.lstat(p).st_uid != USER]


def runs(store):
    return sum(r["n"] for r in sql_all(store, "select count(*) n from run"))


def up(host, store, *families):
    """It records, as the user, and is stopped."""
    before = runs(store)
    done = host("sonde", "up", *families, "--store", store)
    try:
        assert done.returncode == 0 and "recording into" in done.stderr, done.stderr
        assert f"sonde status --store {store} " in done.stderr, done.stderr
        assert runs(store) > before  # by the time `up` says it
        with open(os.path.join(store, "sonded.lock"), encoding="ascii") as f:
            assert os.stat(f"/proc/{f.read()}").st_uid == USER
    finally:
        assert host("sonde", "down", "--store", store).returncode == 0
    assert not foreign(store)


def test_recordings_of_root_before_the_package_do_not_keep_up_from_recording(host, store):
    record(host, store)
    packaged(store)
    assert foreign(store)
    up(host, store, "cpu", "host")
    assert sql_all(store, "select count(*) n from run where family = 'cpu'")[0]["n"] >= 1


def test_recordings_of_root_belong_to_the_owner_of_the_folder(host, store):
    packaged(store)
    record(host, store)
    assert not foreign(store)
    up(host, store, "cpu")
    record(host, store)
    for verb in (("seal", "--plain", "0", "--keep", "0"), ("prune", "--budget", "1G"), ("symbolize",)):
        done = host("sonde", *verb, "--store", store)
        assert done.returncode in (0, 4), done.stderr
    assert not foreign(store), foreign(store)
    up(host, store, "cpu")


def test_root_records_beside_the_recorder_of_the_user(host, store):
    packaged(store)
    done = host("sonde", "up", "cpu", "--store", store)
    try:
        assert done.returncode == 0, done.stderr
        record(host, store)
        assert not foreign(store)
        again = host("sonde", "up", "host", "--store", store)
        assert again.returncode == 0 and "already running" in again.stderr, again.stderr
    finally:
        host("sonde", "down", "--store", store)
    assert not foreign(store)


def test_a_store_of_root_stays_with_root(host, store):
    record(host, store)
    done = host("sonde", "up", "cpu", "--store", store)
    assert done.returncode == 0, done.stderr
    assert host("sonde", "down", "--store", store).returncode == 0
    assert not [p for p in os.listdir(store) if os.lstat(os.path.join(store, p)).st_uid]


def test_files_of_others_are_not_given_away(host, store, scratch):
    """Links are not followed; a file with a second name, or that sonde does not make, stays as it is."""
    secret, second = os.path.join(scratch, "secret"), os.path.join(scratch, "second")
    for path in (secret, second):
        with open(path, "w", encoding="ascii") as f:
            f.write("root's\n")
    os.mkdir(os.path.join(scratch, "folder"))
    packaged(store)
    os.symlink(secret, os.path.join(store, "removed"))
    os.symlink(os.path.join(scratch, "folder"), os.path.join(store, "images"))
    os.link(second, os.path.join(store, "turn"))
    with open(os.path.join(store, "mine"), "w", encoding="ascii"), open(os.path.join(store, "lock"), "w", encoding="ascii"):
        pass
    done = host("sonded", "--mend", "--store", store)
    assert done.returncode == 0, done.stderr
    assert os.lstat(os.path.join(store, "lock")).st_uid == USER
    for path in (secret, second, os.path.join(scratch, "folder"), os.path.join(store, "mine")):
        assert os.stat(path).st_uid == 0, path
    os.chown(os.path.join(store, "lock"), 0, 0)
    os.chmod(store, 0o777)  # others may have put it there
    assert host("sonded", "--mend", "--store", store).returncode == 0
    assert os.lstat(os.path.join(store, "lock")).st_uid == 0
    assert host("sonded", "--mend", "--store", os.path.join(scratch, "none")).returncode == 0


@pytest.mark.parametrize("version", [24, 999])
def test_up_ends_with_an_error_for_a_store_of_another_version(host, store, version):
    record(host, store)
    for path in segments(store):
        with sqlite3.connect(path) as db:
            db.execute("update meta set value = ? where key = 'schema_version'", (version,))
        db.close()
    for families in ((), ("net", "l7")):
        done = host("sonde", "up", *families, "--store", store)
        assert done.returncode == 6 and f"has schema {version}" in done.stderr and "fix:" in done.stderr, done.stderr
        assert "recording into" not in done.stderr
        assert host("sonde", "down", "--store", store).returncode == 4  # nothing stays


def test_up_of_more_families_says_which_do_not_record(host, store):
    """Whoever asks again gets the same answer, as long as the reason is there."""
    packaged(store)
    assert host("sonde", "up", "cpu", "--store", store).returncode == 0
    os.rename(segments(store)[-1], os.path.join(store, "kept"))  # cpu keeps the file; others find one they do not take
    try:
        with sqlite3.connect(os.path.join(store, "29990101T000000Z-0001.db")) as db:
            db.execute("create table meta(key, value)")
            db.execute("insert into meta values('schema_version', 999)")
        db.close()
        for _ in range(2):
            done = host("sonde", "up", "net", "l7", "--store", store)
            assert done.returncode == 6 and "already running" not in done.stderr, done.stderr
            for family in ("net", "l7"):
                assert re.search(f"sonde-{family} does not record: .*has schema 999.*\n  fix: ", done.stderr), done.stderr
    finally:
        host("sonde", "down", "--store", store)
