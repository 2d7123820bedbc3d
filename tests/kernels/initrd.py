# SPDX-License-Identifier: Apache-2.0
"""The root file system of the guests: sonde's programs as they were built, with the libraries that ldd names, busybox,
and the workloads. A cpio archive in the "newc" format (Documentation/driver-api/early-userspace/buffer-format.rst of
the kernel), uncompressed: the guest's CPU is emulated.
"""
import os
import re
import shutil
import stat
import subprocess


class Missing(Exception):
    """A program that the guests need is not here."""


def libraries(program):
    """The files that the loader maps for `program`, at the paths where it looks for them."""
    done = subprocess.run(["ldd", program], capture_output=True, text=True, check=False)
    if "not found" in done.stdout:
        raise Missing(f"{program}: {re.search(r'.*not found.*', done.stdout).group(0).strip()}")
    return [] if done.returncode else re.findall(r"(/\S+) \(0x", done.stdout)


class Archive:
    """name in the guest -> (mode, bytes). Folders come by themselves."""

    def __init__(self):
        self.entries = {}

    def folder(self, name):
        name = name.strip("/")
        if name and name not in self.entries:
            self.folder(os.path.dirname(name))
            self.entries[name] = (stat.S_IFDIR | 0o755, b"")

    def file(self, name, data, mode=0o755):
        name = name.strip("/")
        self.folder(os.path.dirname(name))
        self.entries[name] = (stat.S_IFREG | mode, data)

    def copy(self, path, name, mode=0o755):
        if not os.path.exists(path):
            raise Missing(f"missing: {path}")
        with open(path, "rb") as f:
            self.file(name, f.read(), mode)
        for library in libraries(path):
            if library.strip("/") not in self.entries:
                with open(library, "rb") as f:
                    self.file(library, f.read())

    def script(self, path, name):
        """A script that reports in sections."""
        for source, to in ((path, name), (os.path.join(os.path.dirname(os.path.abspath(__file__)), "section.sh"), "etc/section.sh")):
            with open(source, "rb") as f:
                self.file(to, f.read())

    def write(self, path):
        with open(path, "wb") as out:
            for number, (name, (mode, data)) in enumerate(self.entries.items(), 1):
                self.member(out, number, name, mode, data)
            self.member(out, 0, "TRAILER!!!", 0, b"")

    @staticmethod
    def member(out, number, name, mode, data):
        """Header of thirteen 8-digit hexadecimal fields, name, contents, each padded to 4 bytes."""
        raw = name.encode() + b"\0"
        fields = (number, mode, 0, 0, 2 if stat.S_ISDIR(mode) else 1, 0, len(data), 0, 0, 0, 0, len(raw), 0)
        head = b"070701" + b"".join(b"%08x" % f for f in fields) + raw
        out.write(head + b"\0" * (-len(head) % 4))
        out.write(data)
        out.write(b"\0" * (-len(data) % 4))


def with_folder(image, folder, name, path):
    """The image with one folder more: the kernel unpacks archives that follow each other."""
    archive = Archive()
    for file in sorted(os.listdir(folder)):
        with open(os.path.join(folder, file), "rb") as f:
            archive.file(f"{name}/{file}", f.read(), 0o644)
    archive.write(path + ".more")
    with open(path, "wb") as out:
        for part in (image, path + ".more"):
            with open(part, "rb") as f:
                shutil.copyfileobj(f, out)
    os.unlink(path + ".more")


def make(path, programs, workloads, borrowed, script):
    """Write the archive: `programs` to /sonde, `workloads` to /load, `borrowed` where they are, `script` as /init."""
    archive = Archive()
    for name in ("dev", "proc", "sys", "run", "tmp", "etc", "var/lib"):
        archive.folder(name)
    archive.copy("/bin/busybox", "bin/busybox")
    for program in programs:
        archive.copy(program, "sonde/" + os.path.basename(program))
    for workload in workloads:
        archive.copy(workload, "load/" + os.path.basename(workload))
    for program in borrowed:
        archive.copy(program, program)
    archive.script(script, "init")
    archive.write(path)
