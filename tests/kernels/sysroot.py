# SPDX-License-Identifier: Apache-2.0
"""The root file system of the guest whose first process is systemd: sonde as `make install` puts it, Debian's systemd of
this machine with the few units that it needs to come up, and judge.sh, a service, which reports.

Everything is copied from an archive in memory to a tmpfs first: services have mount namespaces of their own, which the
kernel does not make of a rootfs.
"""
import os
import re
import subprocess
import tempfile

import initrd

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PROGRAMS = ["/lib/systemd/systemd", "/lib/systemd/systemd-journald", "/lib/systemd/systemd-shutdown",
            "/lib/systemd/systemd-cgroups-agent", "/bin/systemctl", "/bin/journalctl", "/bin/systemd-sysusers",
            "/bin/systemd-tmpfiles", "/bin/mount", "/bin/umount", "/usr/bin/setpriv", "/bin/kill"]
UNITS = ["sysinit.target", "basic.target", "local-fs.target", "local-fs-pre.target", "swap.target", "sockets.target",
         "timers.target", "paths.target", "slices.target", "multi-user.target", "shutdown.target", "umount.target",
         "final.target", "systemd-journald.service", "systemd-journald.socket", "systemd-journald-dev-log.socket"]
INIT = """#!/bin/busybox sh
/bin/busybox mount -t tmpfs -o mode=755,size=700m root /newroot
for name in bin etc lib lib64 load sbin usr var; do [ ! -e /$name ] || /bin/busybox cp -a /$name /newroot/; done
for name in dev proc sys run tmp; do /bin/busybox mkdir /newroot/$name; done
/bin/busybox chmod 1777 /newroot/tmp
exec /bin/busybox switch_root /newroot /lib/systemd/systemd
"""
TARGET = """[Unit]
Requires=basic.target judge.service
After=basic.target
AllowIsolate=yes
"""
JUDGE = """[Unit]
Requires=basic.target
After=basic.target
[Service]
Type=oneshot
ExecStart=/bin/busybox sh /etc/judge.sh
TimeoutStartSec=infinity
StandardOutput=tty
StandardError=kmsg
TTYPath=/dev/ttyS1
"""
ETC = {
    "etc/passwd": "root:x:0:0:root:/root:/bin/sh\n", "etc/group": "root:x:0:\n", "etc/shadow": "", "etc/gshadow": "",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\n", "etc/machine-id": "0123456789abcdef0123456789abcdef\n",
    "etc/os-release": "ID=debian\n", "etc/hostname": "guest\n", "etc/systemd/system/default.target": TARGET,
    "etc/systemd/system/judge.service": JUDGE,
    "etc/systemd/system/sysinit.target.d/journal.conf": "[Unit]\nWants=systemd-journald.service systemd-journald.socket\n",
    # the CPU is emulated: what takes a second elsewhere takes ten here
    "etc/systemd/system.conf": "[Manager]\nDefaultTimeoutStartSec=300\nLogTarget=kmsg\n",
}


def install(archive):
    """What `make install` puts where."""
    with tempfile.TemporaryDirectory() as where:
        done = subprocess.run(["make", "-C", ROOT, "--no-print-directory", "install", f"DESTDIR={where}"], capture_output=True,
                              text=True, check=False, env={k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS")})
        if done.returncode:
            raise initrd.Missing(f"make install: {done.stderr[-300:]}")
        for folder, _, files in os.walk(where):
            for name in files:
                path = os.path.join(folder, name)
                inside = os.path.relpath(path, where)
                if not re.match(r"usr/share/", inside):
                    archive.copy(path, inside, os.stat(path).st_mode & 0o777)


def curl(archive):
    """sonde-push loads it when it runs."""
    found = next((p for p in ("/usr/lib/x86_64-linux-gnu/libcurl.so.4", "/usr/lib64/libcurl.so.4") if os.path.exists(p)), None)
    if not found:
        raise initrd.Missing("missing: libcurl.so.4 (package libcurl4)")
    archive.copy(found, found)


def make(path, workloads):
    archive = initrd.Archive()
    for name in ("newroot", "dev", "proc", "sys", "run", "tmp", "var/lib", "var/log", "root"):
        archive.folder(name)
    archive.copy("/bin/busybox", "bin/busybox")
    archive.copy("/bin/busybox", "bin/sh")
    for program in PROGRAMS:
        archive.copy(program, program)
    for unit in UNITS:
        archive.copy(f"/lib/systemd/system/{unit}", f"lib/systemd/system/{unit}", 0o644)
    for name, text in ETC.items():
        archive.file(name, text.encode(), 0o644)
    archive.copy(os.path.join(workloads, "burn"), "load/burn")
    curl(archive)
    install(archive)
    archive.script(os.path.join(HERE, "judge.sh"), "etc/judge.sh")
    archive.copy(os.path.join(HERE, "receiver.sh"), "etc/receiver.sh")
    archive.file("init", INIT.encode())
    archive.write(path)
