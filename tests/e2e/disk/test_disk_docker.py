# SPDX-License-Identifier: Apache-2.0
"""Family disk and a real Docker engine with overlay2: a container's file as the host sees it, and as the container does."""
import json
import os

import pytest

from conftest import need_root, sql_all
from containers import engine

pytestmark = pytest.mark.docker
SIZE = 1 << 20


@pytest.fixture(scope="module")
def docker():
    e = engine(own_root=True)
    if e.docker("info", "-f", "{{.Driver}}").stdout.strip() != "overlay2":
        e.stop()
        pytest.skip("missing: a Docker engine that keeps its images in overlays (overlay2)")
    yield e, e.image("filed")
    e.stop()


def test_a_containers_files_are_those_of_its_layers_and_volumes(docker, capture, store, sonde):
    """`docker inspect` says where its layers are. It reads a file of its image, and writes to its own layer and to a volume, with fsync."""
    need_root()
    e, image = docker
    put = e.docker("run", "--name", "base", "--network", "none", image, "/bin/busybox", "dd", "if=/dev/urandom", "of=/etc/kept", f"bs={SIZE}", "count=1")
    assert put.returncode == 0, put.stderr
    assert e.docker("commit", "base", "based").returncode == 0  # the file is in a layer of the image
    work = "busybox dd if=/etc/kept of=/data/made bs=4096 conv=fsync; busybox dd if=/etc/kept of=/new bs=8192 conv=fsync; busybox sleep 5"
    ran = e.docker("run", "-d", "--name", "home_db_1", "--network", "none", "-v", "house:/data", "based", "/bin/busybox", "sh", "-c",
                   f"while [ ! -e /data/go ]; do busybox sleep 0.1; done; {work}")
    assert ran.returncode == 0, ran.stderr
    cap = capture("--bucket", "1s", "--container", ran.stdout.strip(), program="sonde-disk", prefix=e.prefix)  # rows with a name are limited, and others use files, too
    told = json.loads(e.docker("inspect", "home_db_1").stdout)[0]
    layers = told["GraphDriver"]["Data"]
    volume = told["Mounts"][0]["Source"]
    with open(f"{volume}/go", "wb"):
        pass
    assert e.docker("wait", "home_db_1").stdout.strip() == "0"
    cap.stop()
    lower = [f for f in layers["LowerDir"].split(":") if os.path.exists(f"{f}/etc/kept")][0]
    want = {(f"{lower}/etc/kept", "read"): ("/etc/kept", SIZE // 4096 + SIZE // 8192 + 2, 2 * SIZE), (f"{volume}/made", "write"): ("/data/made", SIZE // 4096, SIZE),
            (f"{layers['UpperDir']}/new", "write"): ("/new", SIZE // 8192, SIZE)}
    rows = json.loads(sonde("disk", "--calls", "--json", "-n", "0", store=store, check=True).stdout)["rows"]
    got = {(r["file"], r["call"]): (r["seen"], r["calls"], r["bytes"]) for r in rows if r["container"] == "home_db_1" and (r["file"], r["call"]) in want}
    assert got == want, [r for r in rows if r["container"]]
    syncs = sql_all(store, "SELECT file, sum(calls) AS n FROM fsyncs WHERE container = 'home_db_1' GROUP BY 1 ORDER BY 1")
    assert [(r["file"], r["n"]) for r in syncs] == [("/data/made", 1), ("/new", 1)]
    grown = sql_all(store, "SELECT file, seen, sum(grown_bytes) AS n FROM disk_files WHERE container = 'home_db_1' AND grown_bytes > 0 GROUP BY 1, 2 ORDER BY 2")
    assert [(r["file"], r["seen"], r["n"]) for r in grown] == [(f"{volume}/made", "/data/made", SIZE), (f"{layers['UpperDir']}/new", "/new", SIZE)]
    full = sonde("disk", "home_db_1", "--fsync", store=store, check=True).stdout
    assert "/data/made" in full and "home_db_1" in full


def test_a_containers_tmpfs_is_a_device_of_its_own(docker, capture, store, sonde):
    """Two containers with a tmpfs at one path, and /dev/shm: `stat` in each says which device that is. No disk has anything of them."""
    need_root()
    e, image = docker
    work = "while [ ! -e /go/now ]; do busybox sleep 0.1; done; busybox dd if=/dev/zero of=/scratch/made bs=4096 count=256 conv=fsync; busybox dd if=/scratch/made of=/dev/shm/copy bs=8192; busybox sleep 5"
    for name in ("home_a_1", "home_b_1"):
        ran = e.docker("run", "-d", "--name", name, "--network", "none", "--tmpfs", "/scratch", "-v", "go:/go", image, "/bin/busybox", "sh", "-c", work)
        assert ran.returncode == 0, ran.stderr
    minor = {(n, at): e.docker("exec", n, "/bin/busybox", "stat", "-c", "%d", at).stdout.strip() for n in ("home_a_1", "home_b_1") for at in ("/scratch", "/dev/shm")}
    cap = capture("--bucket", "1s", program="sonde-disk", prefix=e.prefix)
    with open(f"{json.loads(e.docker('volume', 'inspect', 'go').stdout)[0]['Mountpoint']}/now", "wb"):
        pass
    for name in ("home_a_1", "home_b_1"):
        assert e.docker("wait", name).stdout.strip() == "0"
    cap.stop()
    rows = json.loads(sonde("disk", "--calls", "--json", "-n", "0", store=store, check=True).stdout)["rows"]
    got = {(r["container"], r["seen"], r["call"]): (r["file"], r["calls"], r["bytes"]) for r in rows if r["seen"] in ("/scratch/made", "/dev/shm/copy")}
    for name in ("home_a_1", "home_b_1"):
        scratch, shm = (f"0:{minor[name, at]}:" for at in ("/scratch", "/dev/shm"))
        assert got[name, "/scratch/made", "write"] == (f"{scratch}/made", 256, SIZE)
        assert got[name, "/scratch/made", "read"] == (f"{scratch}/made", SIZE // 8192 + 1, SIZE)
        assert got[name, "/dev/shm/copy", "write"] == (f"{shm}/copy", SIZE // 8192, SIZE)
        (sync,) = sql_all(store, f"SELECT file, sum(calls) AS n FROM fsyncs WHERE container = '{name}' GROUP BY 1")
        assert (sync["file"], sync["n"]) == ("/scratch/made", 1)
    assert not sql_all(store, "SELECT * FROM disk_files WHERE file LIKE '0:%' AND disk <> ''")
