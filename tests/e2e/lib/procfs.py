# SPDX-License-Identifier: Apache-2.0
"""What /proc says of a process, read while it goes on: what is gone by the time that it is read is left out."""
import os


def links(pid):
    """What its descriptors are, as /proc names them."""
    found = []
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            found.append(os.readlink(f"/proc/{pid}/fd/{fd}"))
        except OSError:
            pass
    return found


def fdinfo(pid):
    """One dictionary per descriptor, of the lines of /proc/PID/fdinfo/FD."""
    found = []
    for fd in os.listdir(f"/proc/{pid}/fdinfo"):
        try:
            with open(f"/proc/{pid}/fdinfo/{fd}", encoding="ascii") as f:
                found.append({k: v.strip() for k, v in (line.split(":", 1) for line in f if ":" in line)})
        except OSError:
            pass
    return found


def of_threads(pid, name):
    """The text of /proc/PID/task/TID/NAME of each thread."""
    found = []
    for tid in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{tid}/{name}", encoding="ascii", errors="replace") as f:
                found.append(f.read())
        except OSError:
            pass
    return found


def children(pid):
    """The pids of those that its threads started and that are there."""
    return sorted({int(p) for said in of_threads(pid, "children") for p in said.split()})
