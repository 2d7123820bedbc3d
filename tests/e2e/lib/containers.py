# SPDX-License-Identifier: Apache-2.0
"""Containers for tests: one made by hand (a cgroup of Docker's form, no engine), and a Docker engine that the test starts."""
import contextlib
import json
import os
import secrets
import shutil
import subprocess
import tempfile
import time

import pytest

from conftest import WORKLOADS, need, need_root


def cgroup_roots():
    """The hierarchies in which a Docker container would have a cgroup here: v2, and v1's memory and pids."""
    roots = []
    with open("/proc/mounts", encoding="utf-8") as f:
        for line in f:
            _, where, kind, options = line.split()[:4]
            if kind == "cgroup2" or kind == "cgroup" and {"memory", "pids"} & set(options.split(",")):
                roots.append(where)
    return roots


@contextlib.contextmanager
def cgroups(wanted):
    """(made, prefix): of the cgroups {hierarchy's root: path below it} those that could be made, as directories; commands run with
    the prefix are in them. Gone at the end, whatever is in them ended."""
    need_root()
    made = []
    try:
        for root, below in wanted.items():
            path = os.path.join(root, below)
            with contextlib.suppress(OSError):
                os.makedirs(path, exist_ok=True)
                made.append(path)
        join = "".join(f"echo 0 >{path}/cgroup.procs; " for path in made)
        yield made, ["sh", "-c", join + 'exec "$@"', "sh"]
    finally:
        for path in made:
            for _ in range(50):
                try:
                    os.rmdir(path)
                    break
                except OSError:
                    time.sleep(0.1)
            with contextlib.suppress(OSError):
                while not os.path.ismount(path := os.path.dirname(path)):
                    os.rmdir(path)


@contextlib.contextmanager
def fake_container():
    """(id, prefix): commands run with the prefix are in a cgroup docker/ID. Gone at the end."""
    container_id = secrets.token_hex(32)
    with cgroups({root: f"docker/{container_id}" for root in cgroup_roots()}) as (made, prefix):
        if not made:
            pytest.skip("missing: a cgroup hierarchy that can be written")
        yield container_id, prefix


class Engine:
    """A dockerd that the test starts in a new mount namespace, where /var/lib/docker is a temporary folder; or, with `own_root`,
    with another data root that only its configuration names. `bridge`: in a new network namespace, with docker0 and published
    ports there. `prefix`: a command that runs it, in a mount namespace with a journal."""

    def __init__(self, own_root=False, bridge=False, prefix=()):
        self.base = tempfile.mkdtemp(prefix="sonde-docker-")
        self.socket = f"unix://{self.base}/docker.sock"
        os.mkdir(f"{self.base}/data")
        os.mkdir(f"{self.base}/run")
        self.log = open(f"{self.base}/log", "wb")
        with open(f"{self.base}/daemon.json", "w", encoding="utf-8") as f:
            json.dump({"data-root": f"{self.base}/data" if own_root else "/var/lib/docker"}, f)
        mount = "" if own_root else 'mkdir -p /var/lib/docker && mount --bind "$1/data" /var/lib/docker && '
        net = 'ip link set lo up && ' if bridge else ''
        script = (mount + net + 'exec dockerd --config-file "$1/daemon.json" --exec-root "$1/run" --pidfile "$1/pid" --host "$2" '
                  + ('' if bridge else '--bridge none --iptables=false --ip-masq=false'))
        self.daemon = subprocess.Popen([*prefix, "unshare", "-mn" if bridge else "-m", "--propagation", "private", "sh", "-c", script, "sh", self.base,
                                        self.socket], stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
                                       env={k: v for k, v in os.environ.items() if "proxy" not in k.lower()})
        #: to run a command where the engine's files are seen as a host sees them
        self.prefix = ["nsenter", "-t", str(self.daemon.pid), "-m", "--"]

    def docker(self, *args, **kw):
        kw.setdefault("timeout", 120)
        kw.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.run(["docker", "-H", self.socket, *map(str, args)], capture_output=True, text=True, **kw)

    def wait(self, timeout=60):
        end = time.monotonic() + timeout
        while time.monotonic() < end and self.daemon.poll() is None:
            if self.docker("version").returncode == 0:
                return True
            time.sleep(0.5)
        return False

    def image(self, name="sonde-test"):
        """busybox and the static workloads, as an image."""
        root = f"{self.base}/root"
        for folder in ("bin", "tmp", "proc", "sys", "dev", "etc"):
            os.makedirs(f"{root}/{folder}", exist_ok=True)
        shutil.copy(shutil.which("busybox"), f"{root}/bin/busybox")
        os.symlink("busybox", f"{root}/bin/sh")
        for work in ("shares-static", "shares-cpp-static", "shares-rust-static", "shares-go", "burn-static", "jit-static"):
            if os.path.exists(f"{WORKLOADS}/{work}"):
                shutil.copy(f"{WORKLOADS}/{work}", f"{root}/bin/{work}")
        tar = subprocess.run(["tar", "-C", root, "-c", "."], capture_output=True, check=True).stdout
        done = subprocess.run(["docker", "-H", self.socket, "import", "-", name], input=tar, capture_output=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return name

    @staticmethod
    def cgroup_of(container_id, name):
        """A file of its cgroup, of the cpu controller's hierarchy."""
        for root in ("/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup"):
            for path in (f"{root}/docker/{container_id}/{name}", f"{root}/system.slice/docker-{container_id}.scope/{name}"):
                if os.path.exists(path):
                    return path
        raise AssertionError(f"no {name} of container {container_id}")

    def stop(self):
        left = self.docker("ps", "-q").stdout.split()
        if left:
            self.docker("kill", *left)
        self.daemon.terminate()
        try:
            self.daemon.wait(30)
        except subprocess.TimeoutExpired:
            self.daemon.kill()
            self.daemon.wait()
        self.log.close()
        shutil.rmtree(self.base, ignore_errors=True)


def engine(**kw):
    """Started and answering, or a skip that says why not."""
    need_root()
    need("dockerd")
    need("docker")
    need("busybox")
    e = Engine(**kw)
    if not e.wait():
        with open(f"{e.base}/log", errors="replace") as f:
            said = f.read().splitlines()[-3:]
        e.stop()
        pytest.skip(f"missing: a Docker engine that starts here ({' / '.join(said)})")
    return e
