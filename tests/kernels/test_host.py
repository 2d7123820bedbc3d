# SPDX-License-Identifier: Apache-2.0
"""What must hold of sonde-host on each kernel: kills for want of memory are explained, of a cgroup that is gone at once and of the host."""


def kills(report):
    return report.sections["host-oom"].json()["rows"]


def test_both_were_killed(report):
    section = report.sections["host"]
    assert section.status == 0, section
    assert "hog ended with 137" in section.out and "\nended with 137" in section.out, section


def test_a_host_without_memory_is_explained_with_who_held_it(report):
    (story,) = [r for r in kills(report) if not r.get("limit_bytes")]
    assert story["comm"] == "tail", story
    holders = story["tasks"]
    assert holders[0]["name"] == "tail" and holders[0]["pid"] == story["pid"] and holders[0]["bytes"] > 64 << 20, story
    assert any(t["name"].startswith("sonde") for t in holders), "the kernel's table has all that ran"
    told = [e for e in report.sections["host-events"].json()["rows"] if e["kind"] == "oom kill" and e["pid"] == story["pid"]]
    assert [e["detail"] for e in told] == ["the host had no memory left"], told


def test_a_cgroup_that_is_removed_at_once_has_its_kill_and_its_cpu_time(report):
    (story,) = [r for r in kills(report) if r.get("limit_bytes")]
    assert story["limit_bytes"] == 32 << 20 and story["comm"] == "tail", story
    (hog,) = report.sections["host-hog"].told()
    assert hog["oom_kills"] == 1 and hog["cpu_us"] > 0, hog
