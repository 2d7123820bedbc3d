# SPDX-License-Identifier: Apache-2.0
"""Loop devices for tests: a disk that nobody else uses, and what the kernel counts of it."""
import contextlib
import errno
import fcntl
import os
import subprocess
import tempfile

import pytest
from conftest import need, need_root

SET_FD, CLR_FD, SET_CAPACITY, SET_DIRECT_IO, GET_FREE = 0x4C00, 0x4C01, 0x4C07, 0x4C08, 0x4C82


@contextlib.contextmanager
def device(size, folder="/var/tmp"):
    """(path, file) of a loop device over a file of that folder."""
    need_root()
    with tempfile.NamedTemporaryFile(dir=folder, prefix="sonde-loop-") as file:
        file.truncate(size)
        try:
            control = os.open("/dev/loop-control", os.O_RDWR)
        except OSError:
            pytest.skip("/dev/loop-control is missing")
        for left in range(50, -1, -1):  # another program may take the free one in between
            path = f"/dev/loop{fcntl.ioctl(control, GET_FREE)}"
            fd = os.open(path, os.O_RDWR)
            try:
                fcntl.ioctl(fd, SET_FD, file.fileno())
                break
            except OSError as e:
                os.close(fd)
                if e.errno != errno.EBUSY or not left:
                    raise
        os.close(control)
        try:
            yield path, file.name
        finally:
            with contextlib.suppress(OSError):
                fcntl.ioctl(fd, CLR_FD)
            os.close(fd)


def counted(path):
    """(reads, bytes read, writes, bytes written) so far, as the kernel counts them of a device."""
    with open("/proc/diskstats", encoding="ascii") as f:
        for line in f:
            words = line.split()
            if words[2] == os.path.basename(path):
                reads, _, read, _, writes, _, written = map(int, words[3:10])
                return reads, 512 * read, writes, 512 * written
    raise AssertionError(f"{path} is not in /proc/diskstats")


@contextlib.contextmanager
def mounted(path, kind="ext4", options="noatime"):
    """The folder where a new file system of the device is mounted."""
    need("mkfs." + kind)
    subprocess.run([f"mkfs.{kind}", "-q", "-F" if kind == "ext4" else "-f", path], check=True, capture_output=True)
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="sonde-disk-") as where:
        if subprocess.run(["mount", "-t", kind, "-o", options, path, where], capture_output=True).returncode:
            pytest.skip(f"this kernel has no {kind}, or nothing may be mounted here")
        try:
            yield where
        finally:
            subprocess.run(["umount", where], check=True)
