# SPDX-License-Identifier: Apache-2.0
"""Where a Java program is put for a test: a JDK of each version that can be had, in a container made by hand: a cgroup as Docker names it, namespaces of processes and
mounts of its own with a /tmp of its own, user nobody."""
import contextlib
import glob
import os
import shutil

from conftest import need
from containers import fake_container
from scripting import TEMURIN, java_8_root, other_jdk
from sonded import until

VERSIONS = ("8", "11", "17", "21", "25")
NOBODY = 65534


def java_of(version):
    """(how it is called, the root that it needs)."""
    if version == "8":
        return ["/usr/lib/jvm/java-8-openjdk-amd64/jre/bin/java"], java_8_root()
    if version in ("17", "25"):
        java = "java" if version == "17" else TEMURIN
        need(java)
        return [java], ""
    return other_jdk(version), ""


@contextlib.contextmanager
def box(version, folder, class_path):
    """(java, the prefix of its command, its class path there, the container): `folder` becomes its /tmp, with what the class path has."""
    java, root = java_of(version)
    os.makedirs(folder, exist_ok=True)
    os.chmod(folder, 0o1777)
    os.chmod(os.path.dirname(folder), 0o755)
    there = []
    for i, path in enumerate(class_path.split(":")):
        there.append(f"/tmp/{i}.jar" if path.endswith(".jar") else f"/tmp/{i}")
        (shutil.copy if path.endswith(".jar") else shutil.copytree)(path, os.path.join(folder, os.path.basename(there[-1])))
    mounts = f"mount --make-rprivate / && mount --bind {folder} {root}/tmp && mount -t proc proc {root}/proc"
    run = f"setpriv --reuid {NOBODY} --regid {NOBODY} --clear-groups"
    if root:
        os.makedirs(f"{root}/dev", exist_ok=True)
        mounts += f" && mount --bind /dev {root}/dev"
        run = f"chroot --userspec={NOBODY}:{NOBODY} {root}"
    with fake_container() as (container, prefix):
        yield java, [*prefix, "unshare", "--pid", "--mount", "--fork", "--kill-child", "sh", "-c", f'{mounts} && exec {run} "$@"', "sh"], ":".join(there), container


def inner_pid(outer):
    """The process in the namespace that `outer` made, as the host numbers it."""
    found = []

    def look():
        found[:] = [int(p.split("/")[2]) for p in glob.glob("/proc/[0-9]*/stat") if parent(p) == outer]
        return found
    assert until(look, 60)
    return found[0]


def parent(stat):
    try:
        with open(stat, encoding="ascii", errors="replace") as f:
            return int(f.read().rsplit(")", 1)[1].split()[1])
    except OSError:
        return 0
