# SPDX-License-Identifier: Apache-2.0
"""The units of sonded, sonde-push and sonde-pprof under a real systemd: that of this machine, on a Debian kernel in qemu, sonde installed by `make install`.
Judged by what systemd and the kernel say of it. make long-systemd."""
import base64
import os
import re
import shutil
import threading

import guest
import initrd
import pytest
import sysroot
from conftest import BUILD, CACHE, debian

LIMIT = 900  # an emulated CPU, on a machine that others use


@pytest.fixture(scope="session")
def judged():
    for program in (guest.QEMU, "/lib/systemd/systemd", "/bin/busybox"):
        if not shutil.which(program) and not os.path.exists(program):
            pytest.skip(f"missing: {program} (sh scripts/deps.sh kernels)")
    os.makedirs(CACHE, exist_ok=True)
    image, folder = os.path.join(CACHE, "initrd-systemd"), os.path.join(CACHE, "log", "systemd")
    try:
        vmlinuz = debian.kernel("6.1", CACHE)
        sysroot.make(image, os.path.join(BUILD, "tests", "workloads"))
    except (debian.Gone, initrd.Missing) as e:
        pytest.skip(f"missing: {e}")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    report = guest.boot(vmlinuz, image, folder, LIMIT, threading.Event(), "SYSTEMD_LOG_LEVEL=warning")
    assert report.whole, report.why
    return report


def ends(judged, *names):
    for name in names:
        assert judged.sections[name].status == 0, judged.sections[name]


def facts(judged, name):
    return dict(line.split("=", 1) for line in judged.sections[name].out.splitlines() if "=" in line)


def test_its_user_and_its_folder_are_made(judged):
    ends(judged, "accounts")
    assert re.search(r"^sonde:.*:/usr/sbin/nologin$", judged.sections["accounts"].out, re.M)
    assert re.search(r"^drwxr-x--- .* sonde +sonde ", judged.sections["accounts"].out, re.M)


def test_a_kernel_that_is_stricter_than_others_is_said_and_the_shipped_sysctl_is_enough(judged):
    ends(judged, "paranoia", "refused", "sysctl")
    if int(judged.sections["paranoia"].out) > 2:
        said = judged.sections["refused"].out
        assert "fix: sudo sysctl kernel.perf_event_paranoid=2" in said and "CAP_" not in said, said


def test_it_starts_says_that_it_is_ready_and_records(judged):
    ends(judged, "start", "record")
    told = facts(judged, "show")
    assert told["ActiveState"] == "active" and told["SubState"] == "running" and told["User"] == "sonde"
    assert "families record" in told["StatusText"] and told["NRestarts"] == "0"
    cpu = next(s for s in judged.sections["status"].json()["sonded"]["services"] if s["name"] == "cpu")
    assert cpu["state"] == "running" and cpu["samples"] > 0


def test_it_and_its_children_run_as_its_user_with_no_more_rights_than_the_unit_gives(judged):
    with open(os.path.join(sysroot.ROOT, "supervisor/systemd/sonded.service"), encoding="ascii") as f:
        names = re.search(r"^CapabilityBoundingSet=(.*)$", f.read(), re.M).group(1).split()
    numbers = {"CAP_BPF": 39, "CAP_PERFMON": 38, "CAP_SYS_PTRACE": 19, "CAP_DAC_READ_SEARCH": 2, "CAP_SYSLOG": 34, "CAP_SYS_NICE": 23,
               "CAP_CHOWN": 0, "CAP_SYS_RESOURCE": 24}
    most = sum(1 << numbers[n] for n in names)
    lines = judged.sections["rights"].out.splitlines()
    assert {re.search(r"Name: (\S+)", line).group(1) for line in lines} >= {"sonded", "sonde-cpu", "sonde-maps"}, lines
    for line in lines:
        assert not re.search(r"Uid: 0 ", line) and "NoNewPrivs: 1" in line and "Seccomp: 2" in line, line
        for word in ("CapPrm", "CapBnd"):
            assert int(re.search(word + r": (\w+)", line).group(1), 16) & ~most == 0, line
    assert re.search(r" / / ro[, ]", judged.sections["mounts"].out), judged.sections["mounts"]


def no_rights(lines, name):
    """Each is of a user of its own, without any capability."""
    assert lines and all(f"Name: {name}" in line for line in lines), lines
    for line in lines:
        assert not re.search(r"Uid: 0 ", line) and "NoNewPrivs: 1" in line and "Seccomp: 2" in line, line
        for word in ("CapPrm", "CapBnd"):
            assert int(re.search(word + r": (\w+)", line).group(1), 16) == 0, line


def test_sonde_push_sends_with_its_password_and_has_no_rights(judged):
    ends(judged, "push-start", "pushed", "push-show", "push-status", "push-stop")
    who = base64.b64encode(b"guest:guest-s3cret").decode()
    sent = judged.sections["pushed"].out.splitlines()
    assert sent and all(re.fullmatch(r"POST /\?query=INSERT%20INTO%20sonde\.(cpu_samples|cost)%20FORMAT%20JSONEachRow HTTP/1.1 Authorization: Basic " + who, line) for line in sent), sent
    told = facts(judged, "push-show")
    assert (told["ActiveState"], told["SubState"], told["NRestarts"]) == ("active", "running", "0"), judged.sections["push-journal"]
    no_rights(judged.sections["push-rights"].out.splitlines(), "sonde-push")
    assert "s3cret" not in judged.sections["push-journal"].out


def test_sonde_pprofs_unit_begins_with_sonde_scrape_and_has_no_rights(judged):
    ends(judged, "scrape-start", "scrape-rights")
    no_rights(judged.sections["scrape-rights"].out.splitlines(), "sonde-pprof")


def test_killed_it_comes_back_and_is_reloaded_restarted_and_stopped_in_order(judged):
    ends(judged, "reload", "killed", "restart", "again", "stop")
    assert facts(judged, "restarts") == {"NRestarts": "1", "ActiveState": "active"}
    assert facts(judged, "stopped") == {"ActiveState": "inactive", "Result": "success", "ExecMainStatus": "0"}
    assert judged.sections["left"].out.strip() == ""
    runs = judged.sections["runs"].told()
    assert runs and runs[-1]["state"] == "ended" and not [r for r in runs if r["state"] == "going on"], runs


def test_its_files_are_for_the_group_and_its_words_in_the_journal(judged):
    files = judged.sections["files"].out
    assert re.search(r"^-rw-r----- .*\d{8}T\d{6}Z-\d{4}\.db$", files, re.M), files
    said = judged.sections["journal"].out
    assert re.search(r"ready: (\d) of \1 families record", said), said
    assert "cannot filter own system calls" not in said, said
