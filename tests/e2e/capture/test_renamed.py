# SPDX-License-Identifier: Apache-2.0
"""A container that is renamed while sonde records, and one that is meant by its compose service. Docker's files are made by the test, its cgroup,
too; test_docker.py has the engine."""
import json
import os
import time

from conftest import Capture, need_root, sql_all
from containers import fake_container
from sonded import until

AS_DOCKER = ["unshare", "-m", "--propagation", "private", "sh", "-c",
             'mkdir -p /var/lib/docker && mount --bind "$0" /var/lib/docker && exec "$@"']


def named(docker, container, name):
    """As Docker writes it: a new file in the place of the old."""
    own = os.path.join(docker, "containers", container)
    os.makedirs(own, exist_ok=True)
    with open(f"{own}/.tmp", "w", encoding="ascii") as f:
        json.dump({"Name": f"/{name}", "State": {"StartedAt": "2026-01-01T00:00:00Z"}, "Config": {"Image": "shop:1", "Labels": {
            "com.docker.compose.project": "shop", "com.docker.compose.service": "web"}}}, f)
    os.replace(f"{own}/.tmp", f"{own}/config.v2.json")


def test_a_renamed_container_has_its_new_name_at_once_and_is_found_by_the_old(store, scratch, work, sonde):
    need_root()
    docker = os.path.join(scratch, "docker")
    with fake_container() as (container, inside):
        named(docker, container, "shop-web-1")
        c = Capture(store, "--freq", "199", prefix=[*AS_DOCKER, docker]).start()
        try:
            job = work("burn", "300", "12", "still-here", prefix=inside)
            assert until(lambda: sql_all(store, "select 1 from processes where container = 'shop-web-1'")), c.said()
            named(docker, container, "shop-web-old")
            assert until(lambda: sql_all(store, "select 1 from processes where container = 'shop-web-old'"), 8), c.said()
            job.close()
            time.sleep(0.3)
            c.stop()
        finally:
            c.close()
    wanted = {r["pid"] for r in sql_all(store, "select pid from processes where container_id = '" + container + "'")}
    assert wanted
    for value in ("shop-web-old", "shop-web-1", "web", "shop", "shop/web", container[:6]):
        rows = json.loads(sonde("ps", "--container", value, "--json", store=store, check=True).stdout)["rows"]
        assert {r["pid"] for r in rows} and {r["pid"] for r in rows} <= wanted, value
        assert {r["container"] for r in rows} == {"shop-web-old"}, value


def test_a_recording_of_a_compose_service_is_of_all_its_containers(store, scratch, work):
    need_root()
    docker = os.path.join(scratch, "docker")
    with fake_container() as (one, in_one), fake_container() as (two, in_two), fake_container() as (_, in_other):
        named(docker, one, "shop-web-1")
        named(docker, two, "shop-web-2")
        jobs = [work("burn", "100", "8", "job", prefix=p) for p in (in_one, in_two, in_other)]
        c = Capture(store, "--freq", "199", "--duration", "2s", "--container", "shop/web", prefix=[*AS_DOCKER, docker]).start()
        try:
            c.wait()
        finally:
            c.close()
        for job in jobs:
            job.close()
    assert {r["container_id"] for r in sql_all(store, "select distinct container_id from cpu_samples s join processes p on p.id = s.process_id")} == {one, two}
