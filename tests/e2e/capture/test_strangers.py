# SPDX-License-Identifier: Apache-2.0
"""Files that a process chose: each is refused or survived, nothing outside its root is read, and the capture goes on."""
import hashlib
import os
import shutil
import subprocess
import tempfile
import time

import pytest

from conftest import ROOT, WORKLOADS, Capture, Work, need, need_root, scale, sql_all

STOLEN = "stolen_from_the_host"


@pytest.fixture(autouse=True)
def as_root():
    need_root()


def make_root(path):
    """A root of its own, as a container has: the static workloads, /tmp, and glibc for the dynamic ones."""
    for folder in ("bin", "tmp", "lib", "usr/lib/debug", "proc"):
        os.makedirs(f"{path}/{folder}")
    for name in ("jit-static", "burn-static", "flip-dl", "libred.so", "libblue.so"):
        shutil.copy(f"{WORKLOADS}/{name}", f"{path}/bin/")
    done = subprocess.run(["ldd", f"{WORKLOADS}/flip-dl"], capture_output=True, text=True, check=True)
    for word in done.stdout.split():
        if word.startswith("/"):
            os.makedirs(f"{path}{os.path.dirname(word)}", exist_ok=True)
            shutil.copy(word, f"{path}{word}")
    return path


@pytest.fixture
def root(scratch):
    return make_root(f"{scratch}/root")


def inside(root):
    return ["unshare", "-m", "-p", "--fork", "--kill-child", "--propagation", "private", "chroot", root]


def leaves(store, exe, root=""):
    """{leaf function: samples} of the processes of that program, whatever its comm is. Its path is what it said at its
    exec, or, if it ran before, what /proc says: the same below its root."""
    return {r["function"]: r["n"] for r in sql_all(
        store, "SELECT c.function, sum(c.samples) AS n FROM cpu_samples c JOIN processes p ON p.id = c.process_id "
               "WHERE p.exe IN (?, ?) GROUP BY 1", (exe, root + exe))}


def everything(store):
    return "\n".join(r["function"] for r in sql_all(store, "SELECT DISTINCT function FROM functions"))


# ---- traps: those of one sort are recorded together, each in a root of its own ----

class Traps:
    """A folder with a root for each kind of trap, a store, and one recording of all: what it counted, how long its end took."""

    def __init__(self, base, kinds):
        need_root()
        self.base, self.store = base, os.path.join(base, "store")
        self.roots = {kind: make_root(os.path.join(base, kind)) for kind in kinds}
        self.works, self.capture = [], None

    def program(self, kind, name):
        """The path in its root of a copy that its exe tells apart."""
        os.rename(f"{self.roots[kind]}/bin/{name}", f"{self.roots[kind]}/bin/{name}-{kind}")
        return f"/bin/{name}-{kind}"

    def work(self, kind, name, *args, argv0):
        self.works.append(Work(name, *args, argv0=argv0, prefix=inside(self.roots[kind])))
        return self.works[-1]

    def record(self):
        self.capture = Capture(self.store, "--freq", "499").start()

    def stop(self):
        began = time.monotonic()
        self.done = self.capture.stop()
        self.ending_s = time.monotonic() - began
        for w in self.works:
            w.close()

    def leaves(self, kind, name):
        return leaves(self.store, f"/bin/{name}-{kind}", self.roots[kind])

    def close(self):
        for w in self.works:
            w.close()
        if self.capture:
            self.capture.close()
        shutil.rmtree(self.base, ignore_errors=True)


@pytest.fixture(scope="module")
def traps():
    made = []

    def begin(*kinds):
        base = tempfile.mkdtemp(prefix="sonde-test-")
        os.chmod(base, 0o755)
        made.append(Traps(base, kinds))
        return made[-1]
    yield begin
    for t in made:
        t.close()


def own_build_id(path, kind):
    """What stands for another file is not answered from its index."""
    note = b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0"
    with open(path, "r+b") as f:
        at = f.read().index(note) + len(note)
        f.seek(at)
        f.write(hashlib.sha1(kind.encode()).digest())


def put(path, kind, target=""):
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "link":
        os.symlink(target, path)
    elif kind == "device":
        os.mknod(path, 0o666 | 0o020000, os.makedev(1, 5))  # /dev/zero
    elif kind == "sparse":
        with open(path, "wb") as f:
            f.truncate(100 * 10**9)
    elif kind == "short":
        with open(path, "wb") as f:
            f.write(open(target, "rb").read()[:3000])


def assert_ended_well(t):
    assert t.ending_s < 5
    assert t.done["samples"] + sum(t.done["lost"].values()) == t.done["seen"]


PERF_MAPS = ("fifo", "link", "dir", "sparse")


@pytest.fixture(scope="module")
def perf_maps(traps):
    t = traps(*PERF_MAPS)
    host = os.path.join(t.base, "host.map")
    with open(host, "w", encoding="ascii") as f:
        f.write(f"0 ffffffffffffffff {STOLEN}\n")
    os.chmod(host, 0o644)
    programs = {kind: t.program(kind, "jit-static") for kind in PERF_MAPS}
    t.record()
    for kind, program in programs.items():
        t.work(kind, "jit-static", 2, kind, host, argv0=program)
    for w in t.works:
        w.told()
    t.stop()
    return t


@pytest.mark.long
@pytest.mark.parametrize("kind", PERF_MAPS)
def test_a_perf_map_that_is_none(perf_maps, kind):
    assert_ended_well(perf_maps)
    assert sum(perf_maps.leaves(kind, "jit-static").values()) > 20  # as many as it got a CPU for
    assert STOLEN not in everything(perf_maps.store)


LIBRARIES = ("fifo", "link", "device", "sparse", "short")


@pytest.fixture(scope="module")
def libraries(traps):
    t = traps(*LIBRARIES)
    for kind, root in t.roots.items():
        own_build_id(f"{root}/bin/libred.so", kind)
        t.work(kind, "flip-dl", "/bin/libred.so", "/bin/libred.so", 60000, 60, argv0=t.program(kind, "flip-dl"))
    end = time.monotonic() + 20
    for kind, root in t.roots.items():
        while not mapped(f"{root}/bin/libred.so"):
            assert time.monotonic() < end, kind
            time.sleep(0.02)
        os.unlink(f"{root}/bin/libred.so")
        put(f"{root}/bin/libred.so", kind, f"{WORKLOADS}/libblue.so")
    t.record()
    time.sleep(2.5)
    t.stop()
    return t


def mapped(path):
    """Some process runs code of that file."""
    inode = f" {os.stat(path).st_ino} "
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as f:
                if any(inode in line and "r-xp" in line and line.rstrip().endswith("/libred.so") for line in f):
                    return True
        except OSError:
            pass
    return False


@pytest.mark.long
@pytest.mark.parametrize("kind", LIBRARIES)
def test_a_library_whose_path_became_something_else(libraries, kind):
    """The process still runs the old file; its path now names a trap. Names of the trap's target never appear."""
    assert_ended_well(libraries)
    seen = libraries.leaves(kind, "flip-dl")
    assert sum(seen.values()) > 20, seen
    assert not [f for f in seen if f.startswith("blue_")]


DEBUG_FILES = ("fifo", "link", "device", "sparse")


@pytest.fixture(scope="module")
def debug_files(traps):
    need("objcopy")
    t = traps(*DEBUG_FILES)
    programs = {}
    for kind, root in t.roots.items():
        program, debug = f"{root}/bin/burn-static", os.path.join(t.base, f"of-{kind}", "burn-static.debug")
        os.mkdir(os.path.dirname(debug))
        own_build_id(program, kind)
        subprocess.run(["objcopy", "--only-keep-debug", program, debug], check=True)
        subprocess.run(["objcopy", "--strip-all", f"--add-gnu-debuglink={debug}", program], check=True)
        put(f"{program}.debug", kind, debug)
        programs[kind] = t.program(kind, "burn-static")
    t.record()
    for kind, program in programs.items():
        t.work(kind, "burn-static", 700, argv0=program)
    for w in t.works:
        w.told()
    t.stop()
    return t


@pytest.mark.long
@pytest.mark.parametrize("kind", DEBUG_FILES)
def test_a_debug_file_that_is_none(debug_files, kind):
    assert_ended_well(debug_files)
    seen = debug_files.leaves(kind, "burn-static")
    assert sum(seen.values()) > 20
    assert "burn_leaf" not in seen, "a name from outside its root"


@pytest.mark.long
def test_a_debug_file_inside_its_root_gives_the_names(capture, work, store, root):
    need("objcopy")
    debug = f"{root}/bin/burn-static.debug"
    subprocess.run(["objcopy", "--only-keep-debug", f"{root}/bin/burn-static", debug], check=True)
    subprocess.run(["objcopy", "--strip-all", f"--add-gnu-debuglink={debug}", f"{root}/bin/burn-static"], check=True)
    c = capture("--freq", 499)
    work("burn-static", 1500, argv0="/bin/burn-static", prefix=inside(root)).told()
    c.stop()
    seen = leaves(store, "/bin/burn-static", root)
    assert seen.get("burn_leaf", 0) > 0.9 * sum(seen.values()), seen


@pytest.mark.long
def test_a_debug_package_that_is_installed_later_gives_its_names_to_the_next_recording(capture, work, store, root):
    need("objcopy")
    program = f"{root}/bin/burn-static"
    notes = subprocess.run(["readelf", "-n", program], capture_output=True, text=True, check=True).stdout
    build_id = notes.split("Build ID:")[1].split()[0]
    subprocess.run(["objcopy", "--only-keep-debug", program, f"{root}/later.debug"], check=True)
    subprocess.run(["objcopy", "--strip-all", program], check=True)

    def recorded():
        c = capture("--freq", 499)
        work("burn-static", 1500, argv0="/bin/burn-static", prefix=inside(root)).told()
        c.stop()
        return leaves(store, "/bin/burn-static", root)
    before = recorded()
    assert max(before, key=before.get).startswith("burn-static+0x"), before
    os.makedirs(f"{root}/usr/lib/debug/.build-id/{build_id[:2]}")
    os.rename(f"{root}/later.debug", f"{root}/usr/lib/debug/.build-id/{build_id[:2]}/{build_id[2:]}.debug")
    after = recorded()
    named = sum(after.get(f, 0) for f in ("burn_leaf", "work_turns"))  # the latter is inlined into the former
    assert named > 0.4 * sum(after.values()), after


@pytest.mark.long
def test_a_file_with_libcs_build_id_does_not_change_libcs_names(capture, work, store, scratch):
    """A library that claims libc's build-id, busy beside a process that is busy in the real libc."""
    need("gcc")
    libc = next(w for w in subprocess.run(["ldd", f"{WORKLOADS}/flip-dl"], capture_output=True, text=True).stdout.split()
                if "/libc.so" in w)
    notes = subprocess.run(["readelf", "-n", libc], capture_output=True, text=True, check=True).stdout
    build_id = notes.split("Build ID:")[1].split()[0]
    source = os.path.join(ROOT, "tests", "workloads")
    evil = os.path.join(scratch, "libevil.so")
    # flip-dl asks for red_outer and blue_outer
    with open(os.path.join(scratch, "evil.c"), "w", encoding="ascii") as f:
        f.write("void evil_outer(unsigned long);\nvoid red_outer(unsigned long t) { evil_outer(t); }\n"
                "void blue_outer(unsigned long t) { evil_outer(t); }\n")
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-DCOLOUR=evil",
                    "-D_GNU_SOURCE", f"-Wl,--build-id=0x{build_id}", "-o", evil, f"{source}/flip_lib.c",
                    os.path.join(scratch, "evil.c")], check=True)
    busy = os.path.join(scratch, "busy.c")
    with open(busy, "w", encoding="ascii") as f:
        f.write('#include <stdio.h>\n#include <stdlib.h>\nint main(void) { char b[64]; for (int i = 0; i < 20000000; i++) '
                'snprintf(b, sizeof(b), "%d %s", i, "x"); return 0; }\n')
    subprocess.run(["gcc", "-O1", "-fno-builtin", "-o", f"{scratch}/libcbusy", busy], check=True)
    c = capture("--freq", 499)
    w = work("flip-dl", evil, evil, 1500, scale(3, 10))
    time.sleep(0.7)
    p = subprocess.Popen([f"{scratch}/libcbusy"])
    w.told()
    p.kill()
    p.wait()
    c.stop()
    modules = sql_all(store, "SELECT function, module, sum(samples) AS n FROM cpu_samples WHERE comm = 'libcbusy' "
                             "GROUP BY 1, 2 ORDER BY n DESC")
    assert modules and not [r for r in modules if "evil" in r["function"]], modules
    assert any(r["module"].startswith("libc.so") and "+0x" not in r["function"] for r in modules), modules
    evil_seen = leaves(store, f"{WORKLOADS}/flip-dl")
    assert evil_seen.get("evil_leaf", 0) > 0.8 * sum(evil_seen.values()), evil_seen
