# SPDX-License-Identifier: Apache-2.0
"""What keeps sonded from recording is said with what, why, its fix and its exit code."""
import os
import re
import shutil
import subprocess

import pytest
from conftest import BIN, ROOT, need, need_root
from sonded import Sonded, until

NOBODY = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]


@pytest.fixture(autouse=True)
def root():
    need_root()
    need("setpriv")


def refused(*args, prefix=()):
    env = {k: v for k, v in os.environ.items() if not k.startswith("SONDE_")} | {"SONDE_CONFIG": "/nonexistent"}
    return subprocess.run([*prefix, os.path.join(BIN, "sonded"), *args], env=env, capture_output=True, text=True, timeout=60,
                          check=False)


def told(done, code, phrase, *words):
    """Refused as the table of sonded(8) says, with a fix."""
    with open(os.path.join(ROOT, "docs/man/sonded.8"), encoding="ascii") as f:
        table = f.read().split(".Sh DIAGNOSTICS")[1].split("\n.Sh ")[0]
    assert (str(code), phrase) in re.findall(r"^\.It (\d) Dq (.*)$", table, re.M)
    assert done.returncode == code and phrase in done.stderr and "fix:" in done.stderr, (done.returncode, done.stderr)
    for word in words:
        assert word in done.stderr, done.stderr


def test_each_refusal_of_the_table_is_one_that_a_test_makes():
    with open(os.path.join(ROOT, "docs/man/sonded.8"), encoding="ascii") as f:
        table = re.findall(r"^\.It (\d) Dq (.*)$", f.read().split(".Sh DIAGNOSTICS")[1].split("\n.Sh ")[0], re.M)
    with open(__file__, encoding="ascii") as f:
        made = re.findall(r'told\([^\n]*?, (\d), "([^"]*)"', f.read())
    assert set(table) == set(made)


def test_a_wrong_command_line_is_said():
    told(refused("--bogus"), 2, "there is no option", "--bogus")
    told(refused("cpu"), 2, "takes options only", "cpu")
    told(refused("--families", "cpu,ofcpu"), 2, "unknown family", "'ofcpu'", "offcpu", "--families")
    told(refused("--freq", "0"), 2, "is not", "--freq", "1 to 4999")


def test_an_up_that_fails_leaves_nothing_behind(scratch):
    """But what was there before: a folder, and what is in it."""
    home = os.path.join(scratch, "home")
    kept, empty = os.path.join(home, "kept"), os.path.join(home, "empty")
    for path in (home, kept, empty):
        os.mkdir(path)
        os.chown(path, 65534, 65534)
    open(os.path.join(kept, "mine"), "w").close()
    os.chmod(scratch, 0o755)
    env = {"PATH": os.environ["PATH"], "HOME": home, "SONDE_CONFIG": "/nonexistent"}

    def up(*args):
        done = subprocess.run([*NOBODY, os.path.join(BIN, "sonde"), "up", "cpu", *args], env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        assert done.returncode == 5 and "needs privileges" in done.stderr, done.stderr
    up()
    up("--store", f"{home}/a/b/c")
    up("--store", empty)
    assert sorted(os.listdir(home)) == ["empty", "kept"] and not os.listdir(empty)
    up("--store", kept)
    assert "mine" in os.listdir(kept)


def test_up_and_down_say_which_family_was_probably_meant(sonde, store):
    for verb in ("up", "down"):
        done = sonde(verb, "cpuu", store=store)
        assert done.returncode == 2 and "'cpuu'" in done.stderr and f"fix: sonde {verb} cpu" in done.stderr, done.stderr
    assert not os.path.exists(os.path.join(store, "sonded.log"))
    done = sonde("down", store=store)
    assert done.returncode == 4 and "no sonded is running for" in done.stderr and "fix:" in done.stderr and "sonde up" not in done.stderr


def reachable():
    path = BIN
    if subprocess.run([*NOBODY, "test", "-x", path], check=False).returncode:
        pytest.skip("missing: a build that an ordinary user can reach")


def configured(folder, text):
    with open(os.path.join(folder, "sonde.conf"), "w", encoding="ascii") as f:
        f.write(text)
    return refused("--config", folder, "--check-config")


def test_a_bad_configuration_names_its_line(scratch, store):
    with open(os.path.join(scratch, "sonde.conf"), "w", encoding="ascii") as f:
        f.write("[store]\n\nbudgte = 1G\n")
    for more in ([], ["--check-config"]):
        done = refused("--config", scratch, "--store", store, *more)
        told(done, 2, "unknown key", "sonde.conf:3", "budget")
    with open(os.path.join(scratch, "sonde.conf"), "w", encoding="ascii") as f:
        f.write("[limits]\nmemory = lots\n")
    done = refused("--config", scratch, "--store", store)
    told(done, 2, "is not", "sonde.conf:2", "256M")
    told(configured(scratch, "[store\n"), 2, "neither [section] nor key = value", "sonde.conf:1")
    told(configured(scratch, "[store]\nage = 1d" + " " * 300), 2, "the line is too long", "sonde.conf:2")
    told(configured(scratch, "[store]\nage = 1d\nage = 2d\n"), 2, "is already set", "sonde.conf:3", "line 2")
    assert not os.path.exists(store) or not os.listdir(store)


def test_a_configuration_that_cannot_be_read_is_said(scratch, store):
    reachable()
    told(refused("--config", os.path.join(scratch, "none"), "--store", store), 2, "cannot read", "none")
    conf, more = os.path.join(scratch, "sonde.conf"), os.path.join(scratch, "conf.d")
    with open(conf, "w", encoding="ascii") as f:
        f.write("x" * 300000)
    told(refused("--config", scratch, "--store", store), 2, "is not a regular file of at most", conf)
    os.chmod(conf, 0)
    told(refused("--config", scratch, "--store", store, prefix=NOBODY), 5, "cannot read", conf)
    os.unlink(conf)
    os.mkdir(more, 0)
    told(refused("--config", scratch, "--store", store, prefix=NOBODY), 5, "cannot read", more)


def test_a_store_that_may_not_be_written_is_said(scratch):
    reachable()
    os.chmod(scratch, 0o755)
    store = os.path.join(scratch, "store")
    os.mkdir(store, 0o700)
    done = refused("--store", store, prefix=NOBODY)
    told(done, 5, "Permission denied", store)
    told(refused("--store", os.path.join(scratch, "another"), prefix=NOBODY), 5, "Permission denied")


def test_a_store_of_another_user_is_said_to_root(store):
    os.mkdir(store)
    os.chown(store, 65534, 65534)
    told(refused("--store", store), 5, "belongs to another user", store, "nobody", "--store")


def test_a_read_only_file_system_is_said(scratch):
    where = os.path.join(scratch, "disk")
    os.mkdir(where)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", where], check=False).returncode:
        pytest.skip("missing: the right to mount a tmpfs")
    try:
        os.mkdir(os.path.join(where, "store"))
        subprocess.run(["mount", "-o", "remount,ro", where], check=True)
        for store in ("store", "new"):
            done = refused("--store", os.path.join(where, store))
            told(done, 6, "Read-only file system")
    finally:
        subprocess.run(["umount", "-l", where], check=True)


def test_a_second_sonded_of_a_store_is_said(store):
    with Sonded(store) as d:
        told(refused("--store", store), 6, "another sonded", str(d.child.pid))


def test_a_store_that_is_no_folder_is_said(scratch):
    path = os.path.join(scratch, "file")
    with open(path, "w", encoding="ascii"):
        pass
    done = refused("--store", path)
    told(done, 6, "cannot make the store's folder", path)


def part_of_sonde(folder, *names):
    """The programs of an installation that is not whole; what runs one of them."""
    for name in ("sonde", "sonded", "sonde-maps", "sonde-index", *names):
        shutil.copy(os.path.join(BIN, name), folder)
    env = {k: v for k, v in os.environ.items() if not k.startswith("SONDE_")} | {"SONDE_CONFIG": "/nonexistent"}

    def call(name, *args):
        with open(os.path.join(folder, "said"), "w+", encoding="utf-8") as said:
            done = subprocess.run([os.path.join(folder, name), *args], env=env, stdin=subprocess.DEVNULL, stdout=said, stderr=said,
                                  timeout=60, check=False)
            said.seek(0)
            done.stderr = said.read()
        return done
    return call


def failed(d, name):
    try:
        service = d.service(name)
        return service and service["state"] == "failed" and service
    except OSError:
        return None


def test_where_no_family_can_be_started_sonded_and_up_end_with_what_failed_first(scratch, store):
    call = part_of_sonde(scratch)
    for argv in (["sonded", "--background", "--store", store], ["sonde", "up", "--store", store],
                 ["sonde", "up", "goheap", "cpu", "--store", store]):
        done = call(*argv)
        told(done, 3, "is not installed", "sonde-goheap" if "goheap" in argv else "sonde-cpu")
        assert call("sonde", "down", "--store", store).returncode == 4  # nothing goes on
    os.unlink(os.path.join(scratch, "sonde-maps"))
    told(call("sonded", "--background", "--store", store), 3, "is not installed", "sonde-maps")


def test_a_family_that_cannot_be_started_is_said_with_its_fix_and_the_others_record(scratch, store):
    call = part_of_sonde(scratch, "sonde-cpu")
    done = call("sonde", "up", "cpu,offcpu", "--store", store)
    try:
        assert done.returncode == 3, done.stderr
        assert re.search(r"sonde-offcpu does not record: sonde-offcpu is not installed.*\n  fix: install", done.stderr), done.stderr
        assert "sonde-cpu" not in done.stderr and "recording into" in done.stderr
        with open(os.path.join(store, "sonded.log"), encoding="utf-8") as f:
            assert re.search(r"will not be restarted: sonde-offcpu is not installed.*; fix: install", f.read())
        told(call("sonde", "up", "goheap", "--store", store), 3, "is not installed", "sonde-goheap")
        again = call("sonde", "up", "offcpu", "cpu", "--store", store)
        assert again.returncode == 3 and "sonde-offcpu is not installed" in again.stderr and "fix:" in again.stderr, again.stderr
    finally:
        assert call("sonde", "down", "--store", store).returncode == 0


def test_what_was_given_up_is_tried_again_by_a_reload(scratch, store):
    part_of_sonde(scratch)
    os.unlink(os.path.join(scratch, "sonde-maps"))
    with Sonded(store, program=os.path.join(scratch, "sonded"), ready=False) as d:
        assert until(lambda: failed(d, "maps"), 20), d.said()
        for name in ("sonde-maps", "sonde-cpu"):
            shutil.copy(os.path.join(BIN, name), scratch)
        assert not d.running("cpu", seconds=1)
        d.ask(do="reload")
        assert d.running("cpu"), d.said()


def test_a_capability_that_is_missing_is_said_with_the_family_that_lacks_it(scratch):
    reachable()
    os.chmod(scratch, 0o777)
    store = os.path.join(scratch, "store")
    with Sonded(store, prefix=NOBODY, ready=False) as d:
        assert until(lambda: "will not be restarted" in d.said(), 40), d.said()
        service = until(lambda: failed(d, "cpu"))
        assert service and "CAP_" in service["why"] + service["fix"] and service["fix"] and service["exit"] == 5, (service, d.said())
    told(refused("--background", "--families", "cpu", "--store", store, prefix=NOBODY), 5, "this needs privileges", "CAP_")
