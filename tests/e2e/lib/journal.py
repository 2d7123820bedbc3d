# SPDX-License-Identifier: Apache-2.0
"""A real systemd-journald, without systemd, in its own mount namespace with an empty /run."""
import contextlib
import os
import secrets
import signal
import socket
import subprocess

import pytest

from conftest import need_root
from sonded import until

JOURNALD = "/lib/systemd/systemd-journald"
SCRIPT = """
mount -t tmpfs -o mode=755 run /run && mkdir -p /run/log/journal /run/systemd/journal && mount --bind "$1" /etc/machine-id || exit 1
for folder in $2; do mkdir -p "$folder" && mount -t tmpfs -o mode=755 none "$folder" || exit 1; done
exec """ + JOURNALD + "\n"


class Journal:
    def __init__(self, child, machine):
        self.child, self.machine = child, machine
        #: to run a command where this is the host's journal
        self.prefix = ["nsenter", "-t", str(child.pid), "-m", "--"]
        self.root = f"/proc/{child.pid}/root"
        self.folder = f"{self.root}/run/log/journal/{machine}"

    def send(self, *entries, uid=0):
        """As a program of the user writes them, each {field: text}."""
        pid = os.fork()
        if not pid:
            try:
                with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
                    s.connect(f"{self.root}/run/systemd/journal/socket")
                    os.setresuid(uid, uid, uid)
                    for entry in entries:
                        s.send("".join(f"{k}={v}\n" for k, v in entry.items()).encode())
                os._exit(0)
            finally:
                os._exit(1)
        assert os.waitpid(pid, 0)[1] == 0

    def ask(self, *options):
        return subprocess.run([*self.prefix, "journalctl", "-D", "/run/log/journal", "-q", *options], capture_output=True, text=True, check=False).stdout

    def has(self, text, *matches):
        return until(lambda: text in self.ask("-o", "cat", *matches), 20)

    def rotate(self):
        """What is written later is in another file."""
        before = len(os.listdir(self.folder))
        os.kill(self.child.pid, signal.SIGUSR2)
        assert until(lambda: len(os.listdir(self.folder)) > before, 20)


@contextlib.contextmanager
def journal(scratch, empty=(), **env):
    """`empty`: folders that are empty there, too. `env`: of journald, which has words for the forms of its files."""
    need_root()
    if not os.path.exists(JOURNALD):
        pytest.skip("missing: systemd-journald")
    machine = secrets.token_hex(16)
    with open(f"{scratch}/machine-id", "w", encoding="ascii") as f:
        f.write(machine + "\n")
    child = subprocess.Popen(["unshare", "-m", "--propagation", "private", "sh", "-c", SCRIPT, "sh", f"{scratch}/machine-id", " ".join(empty)],
                             stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, **env})
    try:
        j = Journal(child, machine)
        assert until(lambda: os.path.exists(f"{j.root}/run/systemd/journal/socket") and os.path.exists(f"{j.folder}/system.journal"), 20)
        yield j
    finally:
        child.terminate()
        child.wait()
