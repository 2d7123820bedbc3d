# SPDX-License-Identifier: Apache-2.0
"""What a container is called besides its name: its service and project of compose, the beginning of its id, and the names that it had. The
stores are made (tests/workloads/putstore.c)."""
import json
import os
import subprocess

import pytest

from conftest import BUILD, need

AT = 1_800_000_000
WEB1, WEB2, DB, OTHER = ({"container": name, "container_id": digit * 64, "project": project, "service": service, "pid": pid, "comm": comm}
                         for name, digit, project, service, pid, comm in
                         (("shop-web-1", "a", "shop", "web", 11, "nginx"), ("shop-web-2", "b", "shop", "web", 12, "nginx"),
                          ("shop-db-1", "c", "shop", "db", 13, "postgres"), ("blog-web-1", "d", "blog", "web", 14, "apache")))


def put(store, lines):
    program = os.path.join(BUILD, "tests", "putstore")
    need("build/tests/putstore", program)
    subprocess.run([program, store], input="\n".join(map(json.dumps, lines)), text=True, check=True)
    return store


def run(family):
    return {"run": family, "from": AT, "to": AT + 20, "bucket_s": 1, "period_ns": 10**7 if family == "cpu" else 0, "recording": 7}


def used(who, n, at=AT):
    return {"kind": "cpu", "at": at, "n": n, "stack": ["main"], **who}


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    rows = [used(WEB1, 1), used(WEB2, 2), used(DB, 4), used(OTHER, 8), used({"pid": 15, "comm": "cron"}, 16)]
    cgroups = [{"fact": "cgroup_row", "at": AT + 5, "columns": {"cgroup": f"/docker/{i}", "user_us": 1000 * 2**i}, **who} for i, who in enumerate((WEB1, WEB2, DB, OTHER))]
    return put(str(tmp_path_factory.mktemp("shop") / "store"), [run("cpu"), *rows, run("host"), *cgroups])


MEANT = {"web": 11, "shop": 7, "shop/web": 3, "shop/db": 4, "blog": 8, "shop-web-2": 2, "c" * 6: 4, "d" * 64: 8, "!shop": 24, "!web": 20}


@pytest.mark.parametrize("value", MEANT)
def test_a_service_a_project_and_an_ids_beginning_mean_their_containers(sonde, shop, value):
    rows = json.loads(sonde("ps", "--container", value, "--rec", "1", "--json", store=shop, check=True).stdout)["rows"]
    assert sum(r["samples"] or 0 for r in rows) == MEANT[value]
    sql = sonde("sql", "--container", value, "--rec", "1", "--json", "select sum(samples) n from win_cpu_samples", store=shop, check=True)
    assert json.loads(sql.stdout)["rows"][0]["n"] == MEANT[value]


@pytest.mark.parametrize("value,names", [
    ("web", {"shop-web-1", "shop-web-2", "blog-web-1"}), ("shop/db", {"shop-db-1"}), ("shop", {"shop-web-1", "shop-web-2", "shop-db-1"})])
def test_what_a_container_used_is_found_by_its_service(sonde, shop, value, names):
    """Rows of cgroups have the container's name and id alone."""
    rows = json.loads(sonde("containers", "--container", value, "--rec", "1", "--json", store=shop, check=True).stdout)["rows"]
    assert {r["container"] for r in rows} == names
    word = json.loads(sonde("containers", value, "--rec", "1", "--json", store=shop, check=True).stdout)["rows"] if "/" not in value else rows
    assert {r["container"] for r in word} == names


def test_a_part_of_a_name_is_not_looked_for_among_services(sonde, shop):
    """`db` is a service; `post` and `shop-d` are parts of one name each."""
    for word, comm in (("db", "postgres"), ("shop-d", "postgres"), ("blo", "apache")):
        rows = json.loads(sonde("ps", word, "--rec", "1", "--json", store=shop, check=True).stdout)["rows"]
        assert {r["comm"] for r in rows} == {comm}, word


def test_a_renamed_container_is_found_by_both_names_and_a_name_given_again_by_its_new_owner(sonde, tmp_path):
    was, now = dict(WEB1, container="web", service=""), dict(WEB1, container="web-old", service="")
    store = put(str(tmp_path / "one"), [run("cpu"), used(was, 1)])
    put(store, [run("cpu"), used(now, 2, AT + 10)])
    for value in ("web", "web-old"):
        rows = json.loads(sonde("ps", "--container", value, "--rec", "1", "--json", store=store, check=True).stdout)["rows"]
        assert [(r["container"], r["samples"]) for r in rows] == [("web-old", 3)], value
    other = dict(WEB2, container="web", service="")
    store = put(str(tmp_path / "two"), [run("cpu"), used(was, 1)])
    put(store, [run("cpu"), used(now, 2, AT + 10), used(other, 4, AT + 11)])
    for value, n in (("web", 4), ("web-old", 3)):
        rows = json.loads(sonde("ps", "--container", value, "--rec", "1", "--json", store=store, check=True).stdout)["rows"]
        assert sum(r["samples"] for r in rows) == n, value
