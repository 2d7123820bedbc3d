# SPDX-License-Identifier: Apache-2.0
"""What keeps sonded from recording is said with what, why, its fix and its exit code."""
import os
import subprocess

import pytest
from conftest import BIN, need, need_root
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


def reachable():
    path = BIN
    if subprocess.run([*NOBODY, "test", "-x", path], check=False).returncode:
        pytest.skip("missing: a build that an ordinary user can reach")


def test_a_bad_configuration_names_its_line(scratch, store):
    with open(os.path.join(scratch, "sonde.conf"), "w", encoding="ascii") as f:
        f.write("[store]\n\nbudgte = 1G\n")
    for more in ([], ["--check-config"]):
        done = refused("--config", scratch, "--store", store, *more)
        assert done.returncode == 2 and "sonde.conf:3" in done.stderr and "budget" in done.stderr, done.stderr
    with open(os.path.join(scratch, "sonde.conf"), "w", encoding="ascii") as f:
        f.write("[limits]\nmemory = lots\n")
    done = refused("--config", scratch, "--store", store)
    assert done.returncode == 2 and "sonde.conf:2" in done.stderr and "256M" in done.stderr, done.stderr
    assert not os.path.exists(store) or not os.listdir(store)


def test_a_store_that_may_not_be_written_is_said(scratch):
    reachable()
    os.chmod(scratch, 0o755)
    store = os.path.join(scratch, "store")
    os.mkdir(store, 0o700)
    done = refused("--store", store, prefix=NOBODY)
    assert done.returncode == 5 and store in done.stderr and "fix:" in done.stderr, (done.returncode, done.stderr)
    done = refused("--store", os.path.join(scratch, "another"), prefix=NOBODY)
    assert done.returncode == 5 and "fix:" in done.stderr, (done.returncode, done.stderr)


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
            assert done.returncode == 5 and "ead-only" in done.stderr and "fix:" in done.stderr, (done.returncode, done.stderr)
    finally:
        subprocess.run(["umount", "-l", where], check=True)


def test_a_store_that_is_no_folder_is_said(scratch):
    path = os.path.join(scratch, "file")
    with open(path, "w", encoding="ascii"):
        pass
    done = refused("--store", path)
    assert done.returncode == 6 and path in done.stderr and "fix:" in done.stderr, (done.returncode, done.stderr)


def test_a_capability_that_is_missing_is_said_with_the_family_that_lacks_it(scratch):
    reachable()
    os.chmod(scratch, 0o777)
    store = os.path.join(scratch, "store")
    with Sonded(store, prefix=NOBODY, ready=False) as d:
        assert until(lambda: "given up" in d.said(), 40), d.said()

        def failed():
            try:
                return next((s for s in d.ask(do="status")["services"] if s["state"] == "failed"), None)
            except OSError:
                return None
        service = until(failed)
        assert service and "CAP_" in service["why"] + service["fix"] and service["fix"], (service, d.said())
