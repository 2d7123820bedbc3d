#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""contact: what sonde's first two minutes take on a large host: 2 000 processes that map 1 500 different files, none of them indexed.

    tests/bench/peers/contact.py [--processes 2000] [--files 1500] [--seconds 120] [--families cpu,host] [--write docs/BENCHMARKS.md]

The files are copies of this machine's libraries with a build-id of their own. CPU time is that of sonded and all its children, those
that have ended too, by the kernel's account of their cgroup; and, of it, what sonde-index took (its parents' account of ended children).
"""
import argparse
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path[:0] = [os.path.dirname(os.path.dirname(os.path.abspath(__file__)))]

import always
import bench
import files

from sonded import Sonded  # always.py has put its folder on the path

HOLDER = os.path.join(bench.MIX, "holder")


def build():
    os.makedirs(bench.MIX, exist_ok=True)
    subprocess.run(["gcc", "-O2", "-o", HOLDER, f"{bench.ROOT}/tests/bench/mix/holder.c"], check=True)


def copies(count, folder):
    """[(path, size, offset)] of so many files that no two are the same."""
    known, made = [c for c in files.libraries(400) if os.path.getsize(c[0]) < 1 << 20], []
    for i in range(count):
        path, size, offset, _ = known[i % len(known)]
        with open(path, "rb") as f:
            data = bytearray(f.read())
        at = data.find(b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0")
        if at < 0:
            data += i.to_bytes(4, "little")
        else:
            data[at + 16:at + 20] = i.to_bytes(4, "little")
        to = f"{folder}/lib{i}.so"
        with open(to, "wb") as f:
            f.write(data)
        made.append((to, size, offset))
    return made


@contextlib.contextmanager
def held(processes, made):
    read, write = os.pipe()
    child = subprocess.Popen(["sh", "-c", 'exec 3<&"$0"; exec "$@"', str(read), HOLDER, str(processes), "4"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             text=True, pass_fds=[read])
    os.close(read)
    child.stdin.write("".join(f"{path} {size} {offset}\n" for path, size, offset in made))
    child.stdin.close()
    child.stdout.readline()
    try:
        yield
    finally:
        os.close(write)
        child.wait()


def index_ns(pid):
    """CPU time of the children that sonde-maps has waited for."""
    for p in bench.tree(pid):
        with contextlib.suppress(OSError), open(f"/proc/{p}/stat", encoding="ascii", errors="replace") as f:
            text = f.read()
            if "(sonde-maps)" in text:
                return sum(int(w) for w in text.rsplit(")", 1)[1].split()[13:15]) * 1_000_000_000 // bench.TICK
    return 0


def measure(opts, folder):
    groups = always.Groups()
    groups.make("own")
    try:
        with held(opts.processes, copies(opts.files, folder)):
            with Sonded(f"{folder}/store", "--families", opts.families, "--seal", "no", prefix=always.inside("own"), limit="0") as d:
                found = []
                for at in (opts.seconds / 12, opts.seconds / 2, opts.seconds):
                    time.sleep(max(0, at - (found[-1][0] if found else 0)))
                    found.append((at, always.charged_ns("own") / 1e9, index_ns(d.child.pid) / 1e9))
        indexes = len([n for n in os.listdir(f"{folder}/store/images") if not n.startswith((".", "by"))])
        return found, indexes
    finally:
        groups.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=2000)
    parser.add_argument("--files", type=int, default=1500)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--families", default="cpu,host")
    parser.add_argument("--write", help="put the table between the markers of this file")
    opts = parser.parse_args()
    if os.geteuid() != 0:
        print("missing: root")
        return 77
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    folder = tempfile.mkdtemp(prefix="sonde-bench-")
    build()
    try:
        found, indexes = measure(opts, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    text = "\n".join([
        f"Machine: {bench.machine()}. Date: {time.strftime('%Y-%m-%d')}. Command: `{bench.command()}`.", "",
        f"| {opts.processes} processes with {opts.files} files that sonde has not seen, sonded with {opts.families} | CPU s of all | of it sonde-index | to reach |",
        "|---|---|---|---|", *(f"| after {at:.0f} s | {cpu:.1f} | {index:.1f} | {20 if at == opts.seconds else ''} |" for at, cpu, index in found),
        f"| indexes made | {indexes} | | |"])
    print(text)
    if opts.write:
        bench.put_between(opts.write, "contact", text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
