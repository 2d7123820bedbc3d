# SPDX-License-Identifier: Apache-2.0
"""New, empty systems: roots of Debian and Ubuntu by debootstrap, kept in the build folder, and one with musl and busybox, made by
hand. A test gets a fresh layer over one, in a mount namespace of its own, with this kernel's /proc, /sys and /dev."""
import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, os.environ.get("B", "build"))
KEPT = os.path.join(BUILD, "roots")
sys.path.insert(0, os.path.join(ROOT, "tests", "kernels"))
import debian  # noqa: E402

UBUNTU_KEYS = os.environ.get("UBUNTU_KEYRING", "/usr/share/keyrings/ubuntu-archive-keyring.gpg")
UBUNTU = os.environ.get("UBUNTU_ARCHIVE", "http://archive.ubuntu.com/ubuntu")
# suite -> (the archive, the keys that it is signed by)
SUITES = {"bullseye": (None, debian.KEYRING), "bookworm": (None, debian.KEYRING), "trixie": (None, debian.KEYRING),
          "focal": (UBUNTU, UBUNTU_KEYS), "noble": (UBUNTU, UBUNTU_KEYS)}
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def debootstrapped(suite):
    """The folder of a minbase root, made at the first call."""
    where, done = os.path.join(KEPT, suite), os.path.join(KEPT, f"{suite}.done")
    if os.path.exists(done):
        return where
    archive, keys = SUITES[suite]
    archive = archive or debian.archives()[False]
    if not shutil.which("debootstrap") or not archive or not os.path.exists(keys):
        pytest.skip(f"missing: debootstrap, or the archive of {suite}, or its keys ({keys})")
    shutil.rmtree(where, ignore_errors=True)
    os.makedirs(KEPT, exist_ok=True)
    scripts = "/usr/share/debootstrap/scripts"
    script = suite if os.path.exists(f"{scripts}/{suite}") else "jammy"  # all of Ubuntu's are the same one
    made = subprocess.run(["nice", "debootstrap", f"--keyring={keys}", "--variant=minbase", "--include=xz-utils,ca-certificates", suite,
                           where, archive, f"{scripts}/{script}"], capture_output=True, text=True, check=False)
    if made.returncode:
        last = (made.stdout + made.stderr).strip().splitlines()[-1:]
        pytest.skip(f"missing: {suite} from its archive ({re.sub(r'[a-z]+://[^ ]+', 'URI', ''.join(last))})")
    with open(done, "w", encoding="ascii"):
        return where


def made_of_musl():
    """busybox, musl's libc, and no glibc: what a container of Alpine's kind has."""
    where = os.path.join(KEPT, "musl")
    busybox, musl = "/bin/busybox", "/lib/x86_64-linux-musl/libc.so"
    for path in (busybox, musl):
        if not os.path.exists(path):
            pytest.skip(f"missing: {path} (sh scripts/deps.sh package)")
    if not os.path.exists(f"{where}/bin/sh"):
        for folder in ("bin", "sbin", "usr/bin", "usr/sbin", "usr/local/bin", "lib", "etc", "tmp", "root", "proc", "sys", "dev", "var/lib"):
            os.makedirs(f"{where}/{folder}", exist_ok=True)
        shutil.copy(busybox, f"{where}/bin/busybox")
        shutil.copy(musl, f"{where}/lib/ld-musl-x86_64.so.1")
        with open(f"{where}/etc/passwd", "w", encoding="ascii") as f:
            f.write("root:x:0:0:root:/root:/bin/sh\n")
        with open(f"{where}/etc/group", "w", encoding="ascii") as f:
            f.write("root:x:0:\n")
        for name in subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True).stdout.split():
            with contextlib.suppress(FileExistsError):
                os.symlink("busybox", f"{where}/bin/{name}")
    return where


class Root:
    """A system of its own above `base`: what is written there is gone at the end."""

    def __init__(self, base):
        self.dir = tempfile.mkdtemp(prefix="sonde-root-")
        script = ('mount -t tmpfs -o mode=0755 layer "$1" && mkdir "$1/up" "$1/work" "$1/root" && '
                  'mount -t overlay -o "lowerdir=$2,upperdir=$1/up,workdir=$1/work" root "$1/root" && '
                  'for m in proc sys dev; do mount --rbind "/$m" "$1/root/$m" || exit 1; done && echo ready && exec sleep infinity')
        self.holder = subprocess.Popen(["unshare", "-m", "--propagation", "private", "sh", "-c", script, "sh", self.dir, base],
                                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if self.holder.stdout.readline() != "ready\n":
            said = self.holder.communicate()[1]
            shutil.rmtree(self.dir, ignore_errors=True)
            pytest.skip(f"missing: a mount namespace with an overlay ({said.strip()})")
        self.enter = ["nsenter", "-t", str(self.holder.pid), "-m", "--"]

    def command(self, line, **env):
        told = {"HOME": "/root", "PATH": PATH, "LANG": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive", **env}
        return [*self.enter, "chroot", f"{self.dir}/root", "env", "-i",
                *[f"{k}={v}" for k, v in told.items()], "/bin/sh", "-c", line]

    def run(self, line, status=0, timeout=300, **env):
        """It is run by the root's own shell; its standard output. `status`: None: any."""
        done = subprocess.run(self.command(line, **env), capture_output=True, text=True, errors="replace", timeout=timeout,
                              stdin=subprocess.DEVNULL, check=False)
        self.said = done.stdout + done.stderr
        self.status = done.returncode
        assert status is None or done.returncode == status, f"{line}\n{self.said[-3000:]}"
        return done.stdout

    def put(self, path, to, mode=0o644):
        """A file of this machine, as one of there."""
        with open(path, "rb") as f:
            subprocess.run([*self.enter, "sh", "-c", 'mkdir -p "${1%/*}" && cat >"$1" && chmod "$2" "$1"', "sh", f"{self.dir}/root{to}", f"{mode:o}"],
                           stdin=f, check=True)

    def names(self, word):
        """Every file and folder whose name holds the word, and every account."""
        found = self.run(f"find / -xdev -name '*{word}*' | sort; cut -d: -f1 /etc/passwd /etc/group | grep -x '{word}' || :")
        return [line for line in found.splitlines() if line]

    def close(self):
        for pid in self.inside():
            with contextlib.suppress(OSError):
                os.kill(pid, 9)
        self.holder.kill()
        self.holder.communicate()
        shutil.rmtree(self.dir, ignore_errors=True)

    def inside(self):
        """Processes that are left in there."""
        mine, found = os.readlink(f"/proc/{self.holder.pid}/ns/mnt"), []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/{pid}/ns/mnt") == mine and int(pid) != self.holder.pid:
                    found.append(int(pid))
        return found


@contextlib.contextmanager
def root_of(suite):
    if os.geteuid():
        pytest.skip("missing: root")
    r = Root(made_of_musl() if suite == "musl" else debootstrapped(suite))
    try:
        yield r
    finally:
        r.close()
