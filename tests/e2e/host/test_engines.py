# SPDX-License-Identifier: Apache-2.0
"""Engines that keep their files where only they know: found by their processes."""
import json
import os
import secrets
import subprocess
import sys

import pytest

from conftest import need_root, sql_all
from containers import cgroup_roots, cgroups, engine

BURN = "import time\nend = time.process_time() + 0.3\nwhile time.process_time() < end: pass"


def named(store):
    return {r["name"]: r["image"] for r in sql_all(store, "SELECT DISTINCT name, image FROM containers")}


def told(sonde):
    return {r["name"]: r for r in json.loads(sonde("doctor", "--json").stdout)["rows"]}


@pytest.mark.docker
def test_containers_of_a_docker_with_a_data_root_of_its_own_have_their_names(capture, sonde):
    e = engine(own_root=True)
    try:
        image = e.image()
        c = capture("--freq", 499)
        done = e.docker("run", "--rm", "--network", "none", "--name", "elsewhere", image, "/bin/burn-static", 300)
        assert done.returncode == 0, done.stderr
        row = told(sonde)["docker"]
        c.stop()
    finally:
        e.stop()
    assert row["state"] == "ok" and f"{e.base}/data/containers" in row["text"], row
    assert named(c.store).get("elsewhere") == image, named(c.store)


def process_called(name, args, cwd):
    """A process of that name and command line which only waits."""
    return subprocess.Popen([sys.executable, "-c", "import sys, time; open('/proc/self/comm', 'w').write(sys.argv[1]); "
                             "print(flush=True); time.sleep(600)", name, *args], cwd=cwd, stdout=subprocess.PIPE)


def test_podmans_and_containerds_own_folders_are_found_by_their_monitors(capture, sonde, scratch):
    """By the layout of their files: conmon's bundle, and the folder that a shim works in."""
    need_root()
    pod, ctr = secrets.token_hex(32), secrets.token_hex(32)
    storage, tasks = f"{scratch}/store/overlay-containers", f"{scratch}/state/io.containerd.runtime.v2.task/own"
    os.makedirs(f"{storage}/{pod}/userdata")
    os.makedirs(f"{tasks}/{ctr}")
    with open(f"{storage}/containers.json", "w", encoding="utf-8") as f:
        json.dump([{"id": pod, "names": ["podded"], "metadata": json.dumps({"image-name": "fedora:1"})}], f)
    with open(f"{tasks}/{ctr}/config.json", "w", encoding="utf-8") as f:
        json.dump({"annotations": {"nerdctl/name": "shimmed"}}, f)
    monitors = [process_called("conmon", ["-c", pod, "-b", f"{storage}/{pod}/userdata", "-n", "podded"], "/"),
                process_called("containerd-shim-runc-v2"[:15], [], f"{tasks}/{ctr}")]
    try:
        for m in monitors:
            m.stdout.readline()
        with cgroups({r: f"machine.slice/libpod-{pod}.scope" for r in cgroup_roots()}) as (_, in_pod), \
                cgroups({r: f"own/nerdctl-{ctr}.scope" for r in cgroup_roots()}) as (_, in_ctr):
            c = capture("--freq", 499)
            for inside in (in_pod, in_ctr):
                subprocess.run([*inside, sys.executable, "-c", BURN], check=True, timeout=60)
            rows = told(sonde)
            c.stop()
    finally:
        for m in monitors:
            m.kill()
            m.wait()
    said = rows["podman, cri-o"]["text"], rows["containerd"]["text"]
    assert f"{storage}/containers.json" in said[0] and f"{tasks}/ID" in said[1], said
    assert named(c.store).items() >= {"podded": "fedora:1", "shimmed": ""}.items(), named(c.store)


def test_doctor_says_of_which_container_no_file_tells_the_name(sonde):
    container = secrets.token_hex(32)
    with cgroups({r: f"docker/{container}" for r in cgroup_roots()}):
        row = told(sonde)["containers"]
    assert row["state"] == "warn" and "no name" in row["text"] and "id" in row["fix"], row
