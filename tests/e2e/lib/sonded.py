# SPDX-License-Identifier: Apache-2.0
"""A sonded of a test's own: started in the foreground, asked over its socket, and ended whatever happens."""
import ctypes
import json
import os
import signal
import socket
import subprocess
import tempfile
import threading
import time

from conftest import BIN


def alive(pid):
    """Is it running? (A zombie that its parent has not reaped is not.)"""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
            return f.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


PATIENCE = 5  # on a busy host all takes longer, and who waits for what comes loses nothing


def until(what, seconds=30, every=0.05):
    """Wait for `what` to be true of the world, as long as it takes on a machine that is otherwise idle, times PATIENCE; its last value."""
    end = time.monotonic() + seconds * PATIENCE
    while not (got := what()) and time.monotonic() < end:
        time.sleep(every)
    return got


class Hung:
    """A process whose first thread stands still, as in an endless loop or a call that does not return; its other threads go on, and
    a signal that kills it does."""

    def __init__(self, pid):
        self.pid, self.stands = pid, threading.Event()
        self.thread = threading.Thread(target=self.hold)
        self.thread.start()
        assert self.stands.wait(10)

    def hold(self):
        ptrace = ctypes.CDLL(None, use_errno=True).ptrace
        ptrace.argtypes, seize, interrupt = [ctypes.c_long] * 4, 0x4206, 0x4207
        assert not ptrace(seize, self.pid, 0, 0) and not ptrace(interrupt, self.pid, 0, 0)
        os.waitpid(self.pid, 0x40000000)  # __WALL
        self.stands.set()
        while True:
            try:
                if not os.WIFSTOPPED(os.waitpid(self.pid, 0x40000000)[1]):
                    return
            except ChildProcessError:
                return


class Sonded:
    def __init__(self, store, *args, env=None, prefix=(), ready=True, program=os.path.join(BIN, "sonded"),
                 limit="0", families="cpu", session=True):
        """`families`: where neither arguments nor a configuration say which; None: what sonded takes by itself. `session`: it leads
        one, as under systemd."""
        self.store = store
        if families and not {"--families", "--config"} & set(args) and not {"SONDE_FAMILIES", "SONDE_CONFIG"} & set(env or {}):
            env = dict(env or {}, SONDE_FAMILIES=families)
        self.talk = tempfile.TemporaryFile()
        full = {k: v for k, v in os.environ.items() if not k.startswith("SONDE_")} | {"SONDE_CONFIG": "/nonexistent"} | (env or {})
        self.child = subprocess.Popen([*prefix, program, "--store", store, *(["--cpu", limit] if limit else []), *args], env=full,
                                      stdin=subprocess.DEVNULL, stdout=self.talk, stderr=self.talk, start_new_session=session)
        if ready:
            ended = until(lambda: self.child.poll() is not None or self.is_ready(), 60)
            if not ended:  # nobody else ends it
                self.end()
            assert ended and self.child.poll() is None, self.said()

    def __enter__(self):
        return self

    def end(self):
        if self.child.poll() is None:
            self.child.terminate()
            try:
                self.child.wait(60)
            except subprocess.TimeoutExpired:
                self.child.kill()
                self.child.wait()

    def __exit__(self, *_):
        self.end()
        assert "failed (code 2)" not in self.said(), self.said()  # what it starts understands it

    def said(self):
        self.talk.seek(0)
        return self.talk.read().decode("utf-8", "replace")

    def ask(self, **request):
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(120)
            s.connect(os.path.join(self.store, "control.sock"))
            s.sendall(json.dumps(request).encode() + b"\n")
            data = b""
            while chunk := s.recv(65536):
                data += chunk
        return json.loads(data)

    def is_ready(self):
        try:
            return self.ask(do="status")["sonded"]["ready"]
        except (OSError, ValueError):
            return False

    def service(self, name):
        return next((s for s in self.ask(do="status")["services"] if s["name"] == name), None)

    def pids(self):
        return [s["pid"] for s in self.ask(do="status")["services"] if s["pid"]]

    def running(self, name, other_than=0, seconds=40):
        """The pid of a service that runs and is not `other_than`."""
        def look():
            s = self.service(name)
            return s and s["state"] == "running" and s["pid"] != other_than and s["pid"]
        return until(look, seconds)

    def stop(self, sig=signal.SIGTERM):
        """Seconds that it took."""
        began = time.monotonic()
        self.child.send_signal(sig)
        self.child.wait(120)
        return time.monotonic() - began
