# SPDX-License-Identifier: Apache-2.0
"""Files that a process chose: each is refused or survived, nothing outside its root is read, and the capture goes on."""
import contextlib
import os
import shutil
import subprocess
import time

import pytest

from conftest import WORKLOADS, need, need_root, scale, sql_all

STOLEN = "stolen_from_the_host"


@pytest.fixture(autouse=True)
def as_root():
    need_root()


@pytest.fixture
def root(scratch):
    """A root of its own, as a container has: the static workloads, /tmp, and glibc for the dynamic ones."""
    for folder in ("bin", "tmp", "lib", "usr/lib/debug", "proc"):
        os.makedirs(f"{scratch}/root/{folder}")
    for name in ("jit-static", "burn-static", "flip-dl", "libred.so", "libblue.so"):
        shutil.copy(f"{WORKLOADS}/{name}", f"{scratch}/root/bin/")
    done = subprocess.run(["ldd", f"{WORKLOADS}/flip-dl"], capture_output=True, text=True, check=True)
    for word in done.stdout.split():
        if word.startswith("/"):
            os.makedirs(f"{scratch}/root{os.path.dirname(word)}", exist_ok=True)
            shutil.copy(word, f"{scratch}/root{word}")
    return f"{scratch}/root"


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


@pytest.mark.parametrize("kind", ["fifo", "link", "dir", "sparse"])
def test_a_perf_map_that_is_none(capture, work, store, root, scratch, kind):
    host = os.path.join(scratch, "host.map")
    with open(host, "w", encoding="ascii") as f:
        f.write(f"0 ffffffffffffffff {STOLEN}\n")
    os.chmod(host, 0o644)
    c = capture("--freq", 499)
    work("jit-static", 2, kind, host, argv0="/bin/jit-static", prefix=inside(root)).told()
    began = time.monotonic()
    done = c.stop()
    assert time.monotonic() - began < 5
    assert done["samples"] + sum(done["lost"].values()) == done["seen"]
    seen = leaves(store, "/bin/jit-static", root)
    assert sum(seen.values()) > 50  # as many as it got a CPU for
    assert STOLEN not in everything(store)


@contextlib.contextmanager
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
    yield


@pytest.mark.parametrize("kind", ["fifo", "link", "device", "sparse", "short"])
def test_a_library_whose_path_became_something_else(capture, work, store, root, kind):
    """The process still runs the old file; its path now names a trap. Names of the trap's target never appear."""
    w = work("flip-dl", "/bin/libred.so", "/bin/libred.so", 60000, 4, argv0="/bin/flip-dl", prefix=inside(root))
    time.sleep(0.5)
    os.unlink(f"{root}/bin/libred.so")
    with put(f"{root}/bin/libred.so", kind, f"{WORKLOADS}/libblue.so"):
        c = capture("--freq", 499)
        time.sleep(2)
        began = time.monotonic()
        done = c.stop()
    w.close()
    assert time.monotonic() - began < 5
    assert done["samples"] + sum(done["lost"].values()) == done["seen"]
    seen = leaves(store, "/bin/flip-dl", root)
    assert sum(seen.values()) > 50, seen
    assert not [f for f in seen if f.startswith("blue_")]


@pytest.mark.parametrize("kind", ["fifo", "link", "device", "sparse"])
def test_a_debug_file_that_is_none(capture, work, store, root, scratch, kind):
    need("objcopy")
    debug = os.path.join(scratch, "burn-static.debug")
    subprocess.run(["objcopy", "--only-keep-debug", f"{root}/bin/burn-static", debug], check=True)
    subprocess.run(["objcopy", "--strip-all", f"--add-gnu-debuglink={debug}", f"{root}/bin/burn-static"], check=True)
    with put(f"{root}/bin/burn-static.debug", kind, debug):
        c = capture("--freq", 499)
        work("burn-static", 1500, argv0="/bin/burn-static", prefix=inside(root)).told()
        done = c.stop()
    assert done["samples"] + sum(done["lost"].values()) == done["seen"]
    seen = leaves(store, "/bin/burn-static", root)
    assert sum(seen.values()) > 50
    assert "burn_leaf" not in seen, "a name from outside its root"


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


def test_a_file_with_libcs_build_id_does_not_change_libcs_names(capture, work, store, scratch):
    """A library that claims libc's build-id, busy beside a process that is busy in the real libc."""
    need("gcc")
    libc = next(w for w in subprocess.run(["ldd", f"{WORKLOADS}/flip-dl"], capture_output=True, text=True).stdout.split()
                if "/libc.so" in w)
    notes = subprocess.run(["readelf", "-n", libc], capture_output=True, text=True, check=True).stdout
    build_id = notes.split("Build ID:")[1].split()[0]
    source = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "workloads")
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
