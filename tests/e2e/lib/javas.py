# SPDX-License-Identifier: Apache-2.0
"""Java for tests: the workloads' classes, and JDKs besides this host's."""
import os
import shutil
import subprocess

import pytest

from conftest import BUILD, ROOT, need
from scripting import unpacked

TEMURIN = "/usr/lib/jvm/temurin-25-jdk-amd64/bin/java"
JDKS = ("11", "21")


def compiled(name="JavaStand", release=11):
    """A folder with the classes of a workload, for this JDK and later."""
    need("javac")
    source = os.path.join(ROOT, "tests", "workloads", "scripts", f"{name}.java")
    folder = os.path.join(BUILD, "java", name if release == 11 else f"{name}.{release}")
    if not os.path.exists(f"{folder}/{name}.class") or os.path.getmtime(f"{folder}/{name}.class") < os.path.getmtime(source):
        made = f"{folder}.{os.getpid()}"
        done = subprocess.run(["javac", "-Xlint:-options", "--release", str(release), "-d", made, source], capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"missing: a javac that knows --release {release}")
        shutil.rmtree(folder, ignore_errors=True)
        os.rename(made, folder)
    return folder


def other_jdk(version):
    """Debian's, of another suite."""
    if version == "11":
        return [f"{unpacked('bullseye', ['openjdk-11-jre-headless'])}/lib/jvm/java-11-openjdk-amd64/bin/java"]
    suite = {"8": "sid", "21": "trixie"}[version]
    usr = unpacked(suite, f"openjdk-{version}-jre-headless libc6 zlib1g libstdc++6 libgcc-s1".split())
    java = f"{usr}/lib/jvm/java-{version}-openjdk-amd64/{'jre/' if version == '8' else ''}bin/java"
    return [f"{usr}/lib64/ld-linux-x86-64.so.2", "--library-path", f"{usr}/lib/x86_64-linux-gnu", java]
