# SPDX-License-Identifier: Apache-2.0
"""Docker on cgroup version 2: a real dockerd on a Debian kernel in qemu, whose containers sonde-cpu names from outside, and of
one of which sonde-offcpu says that a quota holds it back. The oracles are docker inspect and the container's cpu.stat.
make long-docker-v2."""
import os
import shutil
import threading

import guest
import initrd
import pytest
from conftest import BUILD, CACHE, HERE, debian

LIMIT = 1500  # an emulated CPU, on a machine that others use
SONDE = ["sonde", "sonde-cpu", "sonde-offcpu", "sonde-host", "sonde-maps", "sonde-index"]
ENGINE = ["dockerd", "containerd", "containerd-shim-runc-v2", "runc", "docker"]
BY_HAND = "1123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"


def make(path):
    archive = initrd.Archive()
    for name in ("dev", "proc", "sys", "run", "tmp", "etc", "var/lib", "var/run", "image/bin", "image/proc", "image/dev", "image/sys",
                 "image/tmp", "image/etc"):
        archive.folder(name)
    archive.copy("/bin/busybox", "bin/busybox")
    for name in SONDE:
        archive.copy(os.path.join(BUILD, "bin", name), "sonde/" + name)
    for name in ENGINE:
        archive.copy(shutil.which(name), "usr/bin/" + name)
    archive.copy("/bin/busybox", "image/bin/sh")
    for name in ("cat", "tail", "sleep", "true"):
        archive.copy("/bin/busybox", "image/bin/" + name)
    archive.copy(os.path.join(BUILD, "tests", "workloads", "burn-static"), "image/bin/burn-static")
    archive.file("etc/passwd", b"root:x:0:0:root:/root:/bin/sh\n", 0o644)
    archive.file("etc/group", b"root:x:0:\n", 0o644)
    archive.script(os.path.join(HERE, "docker.sh"), "init")
    archive.write(path)


@pytest.fixture(scope="session")
def judged():
    for program in (guest.QEMU, "/bin/busybox", *ENGINE):
        if not shutil.which(program):
            pytest.skip(f"missing: {program} (sh scripts/deps.sh kernels; docker.io)")
    os.makedirs(CACHE, exist_ok=True)
    image, folder = os.path.join(CACHE, "initrd-docker"), os.path.join(CACHE, "log", "docker")
    try:
        vmlinuz = debian.kernel("6.1", CACHE)
        make(image)
    except (debian.Gone, initrd.Missing) as e:
        pytest.skip(f"missing: {e}")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    report = guest.boot(vmlinuz, image, folder, LIMIT, threading.Event(), memory_mb=2048)
    assert report.whole, report.why
    return report


def by_cgroup(judged):
    """{cgroup: its containers}: an instance each."""
    found = {}
    for row in judged.sections["containers"].json()["rows"]:
        found.setdefault(row["cgroup"], []).append(row)
    return found


def inspected(judged):
    """{name: (id, restarts, image)}"""
    assert judged.sections["inspect"].status == 0, judged.sections["inspect"]
    rows = (line.split() for line in judged.sections["inspect"].out.splitlines())
    return {name.lstrip("/"): (id_, int(restarts), image) for name, id_, restarts, image in rows}


def test_the_engine_is_a_real_one_on_version_2_alone(judged):
    assert judged.sections["engine"].status == 0, judged.sections["engine"]
    version, driver, server = judged.sections["engine"].out.split()
    assert (version, driver) == ("2", "cgroupfs") and server
    id_ = inspected(judged)["host-view"][0]
    assert f"0::/docker/{id_}" in judged.sections["contain"].out.splitlines()


def test_a_container_has_its_name_image_project_and_restarts(judged):
    told = inspected(judged)
    rows = by_cgroup(judged)
    for name, (id_, restarts, image) in told.items():
        instances = rows[f"/docker/{id_}"]
        for row in instances:
            assert (row["name"], row["runtime"], row["runtime_id"], row["image"]) == (name, "docker", id_, image)
        assert sorted(row["restarts"] for row in instances) == list(range(restarts + 1)), instances
    assert told["web-1"][1] == 1
    assert {(row["project"], row["service"]) for row in rows[f"/docker/{told['web-1'][0]}"]} == {("shop", "web")}


def test_cgroups_of_other_forms_are_told_apart(judged):
    assert judged.sections["by-hand"].status == 0, judged.sections["by-hand"]
    rows = by_cgroup(judged)
    (scope,) = rows[f"/system.slice/docker-{BY_HAND}.scope"]
    assert (scope["runtime"], scope["runtime_id"]) == ("docker", BY_HAND)
    (pod,) = rows[f"/kubepods.slice/kubepods-pod1a_2b.slice/cri-containerd-2{BY_HAND[1:]}.scope"]
    assert (pod["runtime"], pod["runtime_id"]) == ("containerd", "2" + BY_HAND[1:])
    (lxc,) = rows["/lxc.payload.db-1/system.slice/x.service"]
    assert (lxc["runtime"], lxc["name"]) == ("lxc", "db-1")


def test_half_a_cpu_is_told_as_a_quota_and_no_neighbour(judged):
    section = judged.sections["quota"]
    assert section.status == 0 and section.out.startswith("50000 100000\n"), section
    said = dict(line.split() for line in section.out.splitlines()[1:])
    held, held_later = (1000 * int(said[f"{when}throttled_usec"]) for when in ("", "after_"))
    if held < 1e9:
        pytest.skip(f"missing: an emulated CPU with time (held back for {held / 1e9:.1f} s)")
    answer = judged.sections["neighbours"].json()
    (mine,) = [h for h in answer["throttled"] if h["cgroup"].startswith("/docker/")]
    # read once a second, and last some time between the two
    assert 0.9 * held - 0.6e9 <= mine["throttled_ns"] <= held_later + 0.1e9, (mine, held, held_later)
    ready = judged.sections["ready"].json()["rows"][0]["ns"]
    assert ready >= 0.8 * held, (ready, held)
    # who had the CPU meanwhile is told beside it, on a guest that is busy in itself, and not for longer than it waited
    assert "to its CPU quota" in answer["summary"] and sum(r["total_ns"] for r in answer["rows"]) <= 1.02 * ready, answer


def happened(judged, **wanted):
    return [e for e in judged.sections["events"].json()["rows"] if all(e.get(k) == v for k, v in wanted.items())]


def of_container(judged, section, name):
    return [r for r in judged.sections[section].json()["rows"] if r["container"] == name]


def test_a_container_that_met_its_limit_is_told_with_it(judged):
    assert judged.sections["limits"].status == 0, judged.sections["limits"]
    (kill,) = happened(judged, kind="oom kill", name="hog")
    assert kill["detail"] == "met its limit, 48 MiB", kill
    assert [e["detail"] for e in happened(judged, kind="stopped", name="hog")] in (["out of memory"], ["out of memory, says docker"]), happened(judged)
    (story,) = [r for r in judged.sections["oom"].json()["rows"] if r["container"] == "hog"]
    assert story["limit_bytes"] == 48 << 20 and story["own_limit"] and story["tasks"][0]["pid"] == story["pid"]
    (hog,) = of_container(judged, "stats", "hog")
    assert hog["mem_limit"] == 48 << 20 and hog["oom_kills"] == 1 and hog["working"] <= 48 << 20


def test_a_cpu_limit_its_throttling_and_pressure_are_those_of_the_kernels_files(judged):
    line = next(x for x in judged.sections["limits"].out.splitlines() if x.startswith("slow ")).split()
    kernel = dict(zip(line[1:line.index("pressure"):2], map(int, line[2:line.index("pressure"):2])))
    pressure = int(line[-1].split("=")[1])
    (slow,) = of_container(judged, "stats", "slow")
    assert slow["cpu_limit_m"] == 300
    assert slow["throttled_us"] >= kernel["throttled_usec"] > 0 and slow["cpu_us"] >= kernel["usage_usec"], (slow, kernel)
    assert slow["psi_cpu_us"] >= pressure > 0, (slow, pressure)  # it goes on after its files were read
    assert happened(judged, kind="throttled", name="slow") and happened(judged, kind="stopped", name="slow", detail="signal 9 (KILL)")


def test_short_processes_add_up_to_their_containers_counter(judged):
    (short,) = of_container(judged, "stats", "short")
    ended = of_container(judged, "ended", "short")
    told = sum(r["cpu_us"] for r in ended + of_container(judged, "lived", "short"))
    assert sum(r["n"] for r in ended) >= 900, ended
    assert 0.97 * short["cpu_us"] <= told <= 1.01 * short["cpu_us"], (short, told)


def test_a_host_without_memory_is_told_with_who_held_it(judged):
    section = judged.sections["host-oom"]
    assert "ended with 137" in section.out, section
    (kill,) = [e for e in happened(judged, kind="oom kill") if e["comm"] == "tail" and e["name"] != "hog"]
    assert kill["detail"] == "the host had no memory left", kill
    (story,) = [r for r in judged.sections["oom"].json()["rows"] if not r["container"]]
    assert story["tasks"][0]["name"] == "tail" and story["tasks"][0]["bytes"] > 256 << 20, story
