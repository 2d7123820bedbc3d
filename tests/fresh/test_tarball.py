# SPDX-License-Identifier: Apache-2.0
"""The static tarball on new systems: glibc of four ages, and musl. From the unpacked folder, then installed, then taken away.
make long-package."""
import glob
import json
import os
import re
import subprocess
import time

import pytest
from roots import BUILD, ROOT, root_of

SYSTEMS = ["bullseye", "bookworm", "trixie", "focal", "noble", "musl"]
BURN = os.path.join(BUILD, "tests/workloads/burn-static")


OF_THE_HOST = {"sonde-debuginfod": ["libc.so.6"], "sonde-nvml": ["libc.so.6"], "sonde-push": ["libm.so.6", "libc.so.6"]}  # they load a library of the host's
OLD = ("bullseye", "focal", "musl")  # no glibc 2.34


def tarball():
    made = glob.glob(f"{BUILD}/sonde-*-x86_64.tar.xz")
    if not made:
        pytest.skip("missing: the tarball (make tarball)")
    return made[0]


NAME = "sonde-{}-x86_64".format(re.match(r"sonde \((.+?)\)", open(f"{ROOT}/debian/changelog", encoding="utf-8").readline()).group(1))


@pytest.fixture(params=SYSTEMS)
def system(request):
    with root_of(request.param) as r:
        r.name = request.param
        r.put(tarball(), "/tmp/sonde.tar.xz")
        r.put(BURN, "/tmp/burn", 0o755)
        yield r


def rows(text):
    return json.loads(text)["rows"]


def burn_is_hottest(r, sonde, store):
    told = json.loads(r.run(f"{sonde} stacks --comm burn --type cpu --json", SONDE_STORE=store))
    first = told["rows"][0]
    assert first["function"] == "burn_leaf" and first["self_samples"] > 0.8 * told["samples"] > 10, told


def test_it_is_small_and_no_program_needs_a_library_but_those_that_load_one_of_the_hosts():
    assert os.path.getsize(tarball()) <= 12 << 20
    for path in glob.glob(f"{BUILD}/tarball/{NAME}/bin/*") + glob.glob(f"{BUILD}/tarball/{NAME}/libexec/sonde/*"):
        dynamic, head = (subprocess.run(["readelf", "-W", o, path], capture_output=True, text=True, check=True).stdout for o in ("-d", "-hl"))
        needed = re.findall(r"\(NEEDED\).*\[(.+?)\]", dynamic)
        if os.path.basename(path) in OF_THE_HOST:
            assert needed == OF_THE_HOST[os.path.basename(path)], (path, needed)
            continue
        assert not needed and "INTERP" not in head, path
        assert re.search(r"Type:\s+DYN", head) and "GNU_RELRO" in head and re.search(r"FLAGS_1.*NOW.*PIE", dynamic), path
        assert re.search(r"GNU_STACK.* RW +0x", head), path


def test_from_the_download_to_a_flame_graph_in_the_unpacked_folder(system):
    r = system
    began = time.monotonic()
    r.run("cd /tmp && tar -xJf sonde.tar.xz")
    r.run(f"cd /tmp/{NAME} && ./sonde record -d 3s -- /tmp/burn 3000", SONDE_STORE="/tmp/store")
    assert "next:" in r.said and "bin/sonde flame" in r.said, r.said  # as it is typed in that folder
    r.run(f"cd /tmp/{NAME} && ./sonde flame -o /tmp/x.html", SONDE_STORE="/tmp/store")
    took = time.monotonic() - began
    print(f"{r.name}: {took:.1f} s from the download to a flame graph, 3 of them recording")
    assert "Content-Security-Policy" in r.run("head -c 3000 /tmp/x.html")
    burn_is_hottest(r, f"/tmp/{NAME}/sonde", "/tmp/store")


def test_every_program_runs_there(system):
    r = system
    r.run("cd /tmp && tar -xJf sonde.tar.xz")
    for name in r.run(f"ls /tmp/{NAME}/libexec/sonde").split():
        if name != "sonde-debuginfod" and not (name in OF_THE_HOST and r.name in OLD):
            assert name in r.run(f"/tmp/{NAME}/libexec/sonde/{name} --help", status=None) + r.said, (name, r.status)
            assert r.status in (0, 2), (name, r.status, r.said)
    sonde = f"/tmp/{NAME}/sonde"
    r.run(f"{sonde} doctor", status=None)
    assert r.status in (0, 3), r.said
    r.run(f"/tmp/burn 3000 >/dev/null & {sonde} record --families cpu,offcpu,goheap -d 3s", SONDE_STORE="/tmp/store")
    assert rows(r.run(f"{sonde} ps --json", SONDE_STORE="/tmp/store"))[0]["user"] == "root"
    assert "sleep" in r.run(f"sleep 20 & sleep 0.1; {sonde} pstack -p $!; kill $!")
    r.run(f"{sonde} symbolize", status=None, SONDE_STORE="/tmp/store")
    assert r.status in (0, 4), r.said
    r.run(f"{sonde} seal", SONDE_STORE="/tmp/store")
    burn_is_hottest(r, sonde, "/tmp/store")
    r.run(f"{sonde} symbolize --debuginfod", status=3, SONDE_STORE="/tmp/store", DEBUGINFOD_URLS="http://127.0.0.1:1")
    assert "fix:" in r.said and ("libdebuginfod" in r.said or "does not run here" in r.said), r.said


def test_a_recorder_in_the_background_is_started_asked_and_ended(system):
    r = system
    r.run("cd /tmp && tar -xJf sonde.tar.xz")
    sonde, env = f"/tmp/{NAME}/sonde", {"SONDE_STORE": "/tmp/store"}
    r.run(f"{sonde} up cpu", **env)
    try:
        r.run("/tmp/burn 4000", **env)
        status = json.loads(r.run(f"{sonde} status --json", **env))["sonded"]
        assert [s for s in status["services"] if s["name"] == "cpu" and s["state"] == "running"], status
    finally:
        r.run(f"{sonde} down", status=None, **env)
    burn_is_hottest(r, sonde, "/tmp/store")


def test_installed_and_taken_away_again_it_leaves_nothing_but_what_was_recorded(system):
    r = system
    r.run("cd /tmp && tar -xJf sonde.tar.xz")
    before = set(r.names("sonde"))
    said = r.run(f"/tmp/{NAME}/install.sh")
    assert [name for name in OF_THE_HOST if f"{name} does not run here" in said] == (["sonde-nvml", "sonde-push"] if r.name in OLD else []), said
    for path in ("bin/sonde", "libexec/sonde/sonde-cpu", "share/man/man1/sonde.1", "share/bash-completion/completions/sonde",
                 "libexec/sonde/sonde-scrape", "libexec/sonde/sonde-pprof", "libexec/sonde/sonde-push", "lib/systemd/system/sonde-pprof.socket",
                 "lib/systemd/system/sonde-pprof@.service", "lib/systemd/system/sonde-push.service", "lib/systemd/system/sonded.service", "share/doc/sonde/libraries/libc6-dev"):
        r.run(f"test -f /usr/local/{path}")
    assert r.run("sed -n 's/^ExecStart=//p' /usr/local/lib/systemd/system/sonded.service").strip() == "/usr/local/libexec/sonde/sonded"
    r.run("sonde record -d 2s -- /tmp/burn 2000", SONDE_STORE="/tmp/store")
    r.run(f"/tmp/{NAME}/install.sh")  # once more over itself, as an upgrade does
    burn_is_hottest(r, "sonde", "/tmp/store")
    r.run(f"/tmp/{NAME}/install.sh --uninstall")
    left = set(r.names("sonde")) - before - {"/tmp/store", "sonde", "/var/lib/sonde"}
    assert not [p for p in left if not p.startswith("/tmp/")], left
    burn_is_hottest(r, f"/tmp/{NAME}/sonde", "/tmp/store")
