# SPDX-License-Identifier: Apache-2.0
"""The guests, two at a time: each boots once, and every test of a kernel reads its report.

SONDE_KERNELS chooses among the kernels by name ("5.10 newest"); SONDE_KERNEL_SECONDS is the length of a workload;
SONDE_KERNEL_STEPS ("offcpu", with commas) leaves out all other steps of guest.sh.
What the guests said stays under build/kernels/log.
"""
import concurrent.futures
import os
import shutil
import sys
import threading

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import debian  # noqa: E402
import guest  # noqa: E402
import initrd  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.path.join(ROOT, os.environ.get("B", "build"))
CACHE = os.path.join(ROOT, "build", "kernels")
PROGRAMS = ["sonde", "sonde-cpu", "sonde-offcpu", "sonde-net", "sonde-l7", "sonde-host", "sonde-mem", "sonde-disk", "sonde-probe", "sonde-maps", "sonde-index", "sonde-pstack"]
BORROWED = ["/usr/bin/xz"]  # a program of Debian's own, built without frame pointers
PYTHON = "/usr/bin/python3.11"
# an interpreter of Debian's, and what it cannot begin without
PYTHON_FILES = [f"/usr/lib/python3.11/encodings/{name}.py" for name in ("__init__", "aliases", "utf_8")]
LOADS = ["shares", "shares-cpp", "shares-go", "onecall", "burn", "waits", "connstorm", "thrash"]
SECONDS = float(os.environ.get("SONDE_KERNEL_SECONDS", "8"))
WANTED = os.environ.get("SONDE_KERNELS", "").split() or list(debian.KERNELS)
STEPS = "steps=" + os.environ["SONDE_KERNEL_STEPS"] if os.environ.get("SONDE_KERNEL_STEPS") else ""
MODULES = {"disks": ["loop", "dm_mod", "dm_crypt", "dm_mirror", "dm_delay", "md_mod", "raid1", "xfs", "btrfs"], "swap": ["lzo_rle", "zram", "loop", "dm_mod", "dm_delay"]}  # of these steps
DISK_TOOLS = ["/usr/sbin/dmsetup", "/usr/sbin/mke2fs", "/usr/bin/dd"] + [tool for tool in ("/usr/sbin/mdadm", "/usr/sbin/lvm", "/usr/sbin/mkfs.xfs", "/usr/sbin/mkfs.btrfs") if os.path.exists(tool)]
AT_ONCE = 2
LIMIT = 260 + 20 * SECONDS


def wants_modules():
    """Of the steps that are asked for by name."""
    return [name for step in os.environ.get("SONDE_KERNEL_STEPS", "").split(",") for name in MODULES.get(step, [])]


def archive(folder):
    path = os.path.join(folder, "initrd")
    loads = [os.path.join(BUILD, "tests", "workloads", name) for name in LOADS] + [os.path.join(HERE, "scripts.py")]
    initrd.make(path, [os.path.join(BUILD, "bin", name) for name in PROGRAMS], [p for p in loads if os.path.exists(p)],
                BORROWED + (DISK_TOOLS if wants_modules() else []) + ([PYTHON, *PYTHON_FILES] if os.path.exists(PYTHON) else []), os.path.join(HERE, "guest.sh"))
    return path


TWICE = []  # guests that did not come to their end at first: (kernel, why)


def run(name, image, folder, stop):
    """One guest. A Report, or the reason why there is none. One that does not come to its end, on a machine that others use
    too, is booted once more, and that is told at the end; its first log stays beside the second."""
    try:
        vmlinuz = debian.kernel(name, CACHE)
        if wants_modules():
            whole = os.path.join(CACHE, f"initrd-{name}")
            initrd.with_folder(image, debian.modules(name, CACHE, wants_modules()), "lib/modules", whole)
            image = whole
    except debian.Gone as e:
        return str(e)
    shutil.rmtree(f"{folder}.first", ignore_errors=True)
    told = boot(vmlinuz, image, folder, stop)
    if told.whole or stop.is_set():
        return told
    TWICE.append((name, told.why))
    os.rename(folder, f"{folder}.first")
    return boot(vmlinuz, image, folder, stop)


def boot(vmlinuz, image, folder, stop):
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    return guest.boot(vmlinuz, image, folder, LIMIT, stop, f"seconds={SECONDS:g} {STEPS}")


def pytest_terminal_summary(terminalreporter):
    for name, why in TWICE:
        terminalreporter.write_line(f"booted twice: {name}: {why}")


@pytest.fixture(scope="session")
def guests():
    if not shutil.which(guest.QEMU):
        pytest.skip(f"missing: {guest.QEMU} (sh scripts/deps.sh kernels)")
    os.makedirs(CACHE, exist_ok=True)
    try:
        image = archive(CACHE)
    except initrd.Missing as e:
        pytest.skip(str(e))
    stop = threading.Event()
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        yield {name: pool.submit(run, name, image, os.path.join(CACHE, "log", name), stop) for name in WANTED}
        stop.set()


@pytest.fixture(scope="session", params=WANTED)
def report(request, guests):
    """What the guest of this kernel told; `report.name` is the kernel's."""
    told = guests[request.param].result()
    if isinstance(told, str):
        pytest.skip(f"missing: {told}")
    told.name = request.param
    return told
