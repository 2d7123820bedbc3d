# SPDX-License-Identifier: Apache-2.0
"""Real containers: names of the container and of its functions, from outside, with nothing in it."""
import json
import re
import subprocess
import time

import pytest

from conftest import Capture, sql_all
from containers import engine
from test_shares import assert_shares, stacks_of

pytestmark = pytest.mark.docker


@pytest.fixture(scope="module")
def docker():
    e = engine()
    yield e, e.image()
    e.stop()


def recorded(docker, store, *command, name, options=(), freq=997):
    """Run a container under a capture; what it printed, and the host's pid of its first process."""
    e, image = docker
    c = Capture(store, "--freq", freq, *options, prefix=e.prefix).start()
    try:
        done = e.docker("run", "--rm", "--network", "none", "--name", name, image, *command)
        assert done.returncode == 0, done.stderr
        c.stop()
    finally:
        c.close()
    return json.loads(done.stdout)


@pytest.mark.parametrize("work", ["shares-static", "shares-cpp-static", "shares-rust-static", "shares-go"])
def test_shares_hold_inside_a_container(docker, store, work):
    told = recorded(docker, store, f"/bin/{work}", 6, name=f"web-{work}")
    rows = sql_all(store, "SELECT DISTINCT p.pid, p.container, p.container_id FROM processes p WHERE p.comm LIKE 'shares%' "
                          "AND p.container_id <> ''")
    assert len(rows) == 1 and rows[0]["container"] == f"web-{work}"
    assert re.fullmatch("[0-9a-f]{64}", rows[0]["container_id"])
    assert_shares(stacks_of(store, rows[0]["pid"]), told)


def test_a_container_process_of_50_ms_has_its_name_and_frames(docker, store):
    recorded(docker, store, "/bin/burn-static", 50, 1, "--note=brief", name="brief")
    rows = sql_all(store, "SELECT p.args, p.container, c.function, sum(c.samples) AS n FROM cpu_samples c JOIN processes p "
                          "ON p.id = c.process_id WHERE p.comm = 'burn-static' GROUP BY 1, 2, 3 ORDER BY n DESC")
    assert rows and rows[0]["function"] == "burn_leaf" and rows[0]["container"] == "brief"
    assert rows[0]["args"] == "/bin/burn-static 50 1 --note=brief"


def test_a_perf_map_is_found_by_the_pid_inside_the_container(docker, store):
    told = recorded(docker, store, "/bin/jit-static", 3, name="jitted")
    rows = sql_all(store, "SELECT pid FROM processes WHERE comm = 'jit-static'")
    assert told["pid"] == 1 and rows
    assert_shares(stacks_of(store, rows[0]["pid"]), told)


def test_a_capture_of_one_container_has_nothing_else(docker, store):
    e, image = docker
    started = e.docker("run", "-d", "--rm", "--network", "none", "--name", "only", image, "/bin/burn-static", 30000)
    assert started.returncode == 0, started.stderr
    other = subprocess.Popen(["sh", "-c", "while :; do :; done"])
    c = Capture(store, "--freq", "499", "--container", "only", prefix=e.prefix)
    try:
        c.start()
        time.sleep(3)
        c.stop()
    finally:
        c.close()
        other.kill()
        other.wait()
        e.docker("kill", "only")
    rows = sql_all(store, "SELECT container, comm, sum(samples) AS n FROM cpu_samples GROUP BY 1, 2")
    assert {r["container"] for r in rows} == {"only"}
    assert sum(r["n"] for r in rows) > 499
