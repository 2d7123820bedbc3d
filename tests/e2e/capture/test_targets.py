# SPDX-License-Identifier: Apache-2.0
"""[targets]: which processes are gone into. sonded gives sonde-goheap the Go programs that the configuration allows, and takes
them back when they have ended or the configuration changes."""
import glob
import json
import os
import secrets
import shutil
import signal
import subprocess
import tempfile

import pytest

from conftest import WORKLOADS, need, need_root, sql_all
from containers import cgroup_roots, cgroups
from sonded import Sonded, until


@pytest.fixture(autouse=True)
def as_root():
    need_root()


@pytest.fixture
def go_programs(scratch):
    """Two Go programs, by two names: {name: process}."""
    program = os.path.join(WORKLOADS, "heapwork-go")
    need("build/tests/workloads/heapwork-go (a Go compiler)", program)
    running = {}
    for name in ("open-go", "closed-go"):
        shutil.copy(program, os.path.join(scratch, name))
        os.mkdir(os.path.join(scratch, "of-" + name))
        running[name] = subprocess.Popen([os.path.join(scratch, name), os.path.join(scratch, "of-" + name)], stdin=subprocess.PIPE,
                                         stdout=subprocess.DEVNULL)
    yield running
    for child in running.values():
        child.kill()
        child.wait()
        child.stdin.close()


def given(d):
    return d.service("goheap").get("targets")


def read(store):
    return {r["comm"] for r in sql_all(store, "SELECT DISTINCT comm FROM process_notes WHERE family = 'goheap'")}


def test_a_loader_goes_into_the_processes_that_the_configuration_allows(store, scratch, go_programs):
    conf = os.path.join(scratch, "sonde.conf")

    def configure(targets):
        with open(conf, "w", encoding="ascii") as f:
            f.write("[record]\nfamilies = goheap\n[targets]\n" + targets)
    configure("include = command:open-* command:closed-*\nexclude = command:closed-go\n")
    with Sonded(store, "--config", scratch) as d:
        assert d.running("goheap"), d.said()
        assert until(lambda: given(d) == 1), (d.service("goheap"), d.said())
        assert until(lambda: "open-go" in read(store), 40), d.said()
        assert read(store) == {"open-go"}
        configure("include = command:open-* command:closed-*\n")
        d.child.send_signal(signal.SIGHUP)
        assert until(lambda: given(d) == 2), d.said()
        assert until(lambda: read(store) == {"open-go", "closed-go"}, 40), (read(store), d.said())
        go_programs["open-go"].kill()
        assert until(lambda: given(d) == 1), d.said()
        d.stop()


def pair(scratch):
    """Two processes that burn and sleep by turns, by two names."""
    running = {}
    for name in ("open-burn", "closed-burn"):
        with open(os.path.join(scratch, name), "w", encoding="ascii") as f:
            f.write("import time, sys\nwhile True:\n  end = time.process_time() + 0.02\n  while time.process_time() < end: pass\n"
                    "  time.sleep(0.02)\n")
        shutil.copy("/usr/bin/python3", os.path.join(scratch, name + "-exe"))
        running[name] = subprocess.Popen([os.path.join(scratch, name + "-exe"), os.path.join(scratch, name)],
                                         stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    return running


def test_what_the_configuration_excludes_is_counted_and_nothing_is_told_of_it(store, scratch):
    with open(os.path.join(scratch, "sonde.conf"), "w", encoding="ascii") as f:
        f.write("[record]\nfamilies = cpu,offcpu\nfreq = 199\n[targets]\nexclude = command:closed-*\n")
    running = pair(scratch)
    try:
        with Sonded(store, "--config", scratch) as d:
            assert d.running("cpu") and d.running("offcpu"), d.said()
            for kind in ("cpu_samples", "amounts"):
                assert until(lambda k=kind: {"open-burn-exe", "[excluded]"} <= {r["comm"] for r in sql_all(
                    store, f"SELECT DISTINCT comm FROM {k}")}, 40), (kind, d.said())
            d.stop()
    finally:
        for child in running.values():
            child.kill()
            child.wait()
    told = sql_all(store, "SELECT DISTINCT pid, comm, exe, args FROM processes")
    assert not [r for r in told if r["pid"] == running["closed-burn"].pid or "closed" in r["comm"] + r["exe"]], told
    assert [r for r in told if r["pid"] == running["open-burn"].pid]
    # no thread, no id, no stack of it; and of the open one all of that
    rows = sql_all(store, "SELECT DISTINCT c.thread, c.tid, s.folded FROM cpu_samples c JOIN stacks s ON s.id = c.stack_id "
                          "WHERE c.comm = '[excluded]'")
    assert rows and all((r["thread"], r["tid"]) == ("", 0) and "[excluded]" in r["folded"] for r in rows), rows
    text = subprocess.run(["grep", "-l", "-r", "--include=*.db", "closed-burn", store], capture_output=True, text=True, check=False)
    assert not text.stdout, text.stdout


#: who is left out, the rule for it, and its cgroup below the hierarchies' roots. ID: of a container of ours, whose name is vault
CLOSED = {
    "user": ("user:4242", None),
    "a user that it becomes": ("user:4242", None),
    "unit": ("unit:vault-*.service", "system.slice/vault-test.service"),
    "a container's id": ("container:ID", "docker/ID"),
    "a container's name": ("container:vault", "docker/ID"),
    "image": ("image:hashicorp/*", "docker/ID"),
    "a container without a name": ("container:other", "docker/NAMELESS"),
}
ENDS_BADLY = "import os, time\nif BECOME: os.setuid(BECOME)\nend = time.process_time() + 1.5\nwhile time.process_time() < end: pass\nos._exit(1)\n"


@pytest.fixture
def closed_exe():
    """A program that everybody may run, and whose name stands in nothing else."""
    with tempfile.TemporaryDirectory(prefix="sonde-") as folder:
        os.chmod(folder, 0o755)
        path = os.path.join(folder, "closed-" + secrets.token_hex(4))
        shutil.copy("/usr/bin/python3", path)
        yield path


def runs_in(groups, exe, user, become):
    """Start it there, from the first moment on, held back by a quota where the group can have one."""
    def join():
        for group in groups:
            with open(f"{group}/cgroup.procs", "w", encoding="ascii") as f:
                f.write("0")
    for group in groups:
        if os.path.exists(f"{group}/cpu.cfs_quota_us"):
            with open(f"{group}/cpu.cfs_quota_us", "w", encoding="ascii") as f:
                f.write("50000")
    return subprocess.Popen([exe, "-c", ENDS_BADLY.replace("BECOME", str(become))], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, preexec_fn=join,
                            user=user)


def tells_of(store, words):
    """Files of the store that have one of them, live ones too."""
    found = []
    for path in glob.glob(os.path.join(store, "*.db*")):
        with open(path, "rb") as f:
            data = f.read()
        found += [(os.path.basename(path), word) for word in words if word.encode() in data]
    return found


@pytest.mark.long
@pytest.mark.parametrize("kind", CLOSED)
def test_of_what_is_excluded_no_file_of_the_store_tells_whatever_it_does(store, scratch, closed_exe, kind):
    """It takes CPU, is held back by its quota, and ends badly: three families see it, and that is all they say."""
    rule, below = CLOSED[kind]
    container = secrets.token_hex(32)
    below = below and below.replace("ID", container).replace("NAMELESS", container)
    docker = os.path.join(scratch, "docker")
    os.makedirs(os.path.join(docker, "containers", container))
    if "NAMELESS" not in (CLOSED[kind][1] or ""):
        with open(os.path.join(docker, "containers", container, "config.v2.json"), "w", encoding="ascii") as f:
            json.dump({"Name": "/vault", "Config": {"Image": "hashicorp/vault:1.15"}}, f)
    with open(os.path.join(scratch, "sonde.conf"), "w", encoding="ascii") as f:
        f.write("[record]\nfamilies = cpu,offcpu,goheap\nfreq = 199\n[targets]\nexclude = " + rule.replace("ID", container[:12]) + "\n")
    as_docker = ["unshare", "-m", "--propagation", "private", "sh", "-c",
                 'mkdir -p /var/lib/docker && mount --bind "$0" /var/lib/docker && exec "$@"', docker]
    roots = [*cgroup_roots(), *(p for p in ("/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct") if os.path.ismount(p))]
    with cgroups({root: below for root in roots} if below else {}) as (groups, _):
        if below and not groups:
            pytest.skip("missing: a cgroup hierarchy that can be written")
        with Sonded(store, "--config", scratch, prefix=as_docker) as d:
            assert all(d.running(f) for f in ("cpu", "offcpu", "goheap")), d.said()
            for want in ("SELECT 1 FROM cpu_samples WHERE comm = '[excluded]'",
                         "SELECT 1 FROM process_ends WHERE comm = '[excluded]' AND status = 1",
                         *(["SELECT 1 FROM throttling WHERE cgroup = '[excluded]'"] if "/sys/fs/cgroup/cpu/" in "".join(groups) else [])):
                def happens(query=want):
                    runs_in(groups, closed_exe, 4242 if kind == "user" else None, 4242 if "becomes" in kind else 0).wait(60)
                    return sql_all(store, query)
                assert until(happens, 40), (want, d.said())
            d.stop()
    # (the rules themselves stand in the row of the run)
    # (the same unit may live for another test beside this one)
    left = tells_of(store, [os.path.basename(closed_exe), container, "vault:1.15", *(["vault-test"] if kind == "unit" else [])])
    assert not left, (left, sql_all(store, "SELECT DISTINCT pid, comm, exe, cgroup, container FROM processes"))


def test_rules_that_are_none_are_refused_with_the_line(sonde, scratch):
    with open(os.path.join(scratch, "sonde.conf"), "w", encoding="ascii") as f:
        f.write("[targets]\nexclude = command:vault\ninclude = pid:7\n")
    done = sonde("config", "check", env={"SONDE_CONFIG": scratch})
    assert done.returncode == 2 and "sonde.conf:3" in done.stderr and "container:" in done.stderr, done.stderr
