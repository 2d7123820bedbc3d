# SPDX-License-Identifier: Apache-2.0
"""Incidents in a small service (servers/incidentapp.py), each part in a container of its own and a network namespace of theirs, recorded by the loaders:
what `sonde explain` must find."""
import contextlib
import os
import secrets
import signal
import subprocess
import sys
import time

from conftest import BIN, LIB, need, need_root
from containers import cgroup_roots, cgroups
from mounts import mounted

APP = os.path.join(LIB, "servers", "incidentapp.py")
PARTS = ("backend", "names", "web", "load", "hog", "writer")
FAMILIES = "cpu,offcpu,host,net,l7"
#: incident -> (what its chain must have, who that is of; None: no matter). Of two at a time each must be in it.
KINDS = {
    "lock": [("lock", "web")],
    "statement": [("sleep", "backend")],
    "hog": [("cpu wait", "web")],
    "function": [("cpu", "web")],
    "errors": [("failing", "web"), ("asked", "backend")],
    "restart": [("restarted|refused|asked", "backend")],
    "loss": [("network", None)],
    "quota": [("quota|cpu wait", "web")],
    "names": [("resolving", "names")],
    "disk": [("disk", "web")],
    "child": [("child", "web")],
    "gc": [("gc|cpu", "web")],
    "ended": [("refused|asked|stopped", "backend")],
    "gone": [("silent", "web")],
    "hang": [("hanging|lock", "web")],
    "burst": [("load", "web")],
    "full": [("failing", "web"), ("disk full", None)],
}
#: (seconds of quiet before it, seconds that it lasts), where that is longer: what is silent must have answered for a while, file systems are looked at every ten seconds
LENGTHS = {"gone": (30, 40), "hang": (30, 40), "full": (20, 25), "burst": (15, 12)}
#: what else may stand in a chain and is no false cause: what implies it
ALSO = {"lock": "sleep", "statement": "asked", "hog": "asked|cpu wait|lock", "function": "lock|cpu wait", "errors": "", "restart": "asked|unknown",
        "loss": "asked|resolving", "quota": "lock|asked", "names": "sleep", "disk": "asked", "child": "", "gc": "lock|cpu wait", "ended": "asked|unknown", "gone": "stopped|restarted|asked",
        "hang": "silent|asked|sleep", "burst": "cpu wait|cpu|lock|asked", "full": "disk|asked"}


class Rig:
    """`ids`: of each part its container's id."""

    def __init__(self, folder, stack):
        need_root()
        need("iptables")
        self.folder, self.running, self.crowd = folder, {}, []
        os.mkdir(os.path.join(folder, "data"))
        stack.enter_context(mounted(os.path.join(folder, "data"), "tmpfs", data="size=64m"))
        self.ids = {part: secrets.token_hex(32) for part in PARTS}
        self.prefix, self.made = {}, {}
        roots = {*cgroup_roots(), *(r for r in ("/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpuacct", "/sys/fs/cgroup/cpu,cpuacct") if os.path.isdir(r))}
        for part, i in self.ids.items():
            self.made[part], self.prefix[part] = stack.enter_context(cgroups({root: f"docker/{i}" for root in roots}))
        for part, paths in self.made.items():
            self.weigh(paths, "cpu.shares", 16384 if part == "hog" else 1024)
        self.space = subprocess.Popen(["unshare", "-n", "sleep", "3600"])
        time.sleep(0.3)
        self.enter("ip", "link", "set", "lo", "up")
        for part in PARTS:
            self.start(part)
            time.sleep(0.3)

    def enter(self, *argv):
        subprocess.run(["nsenter", "-t", str(self.space.pid), "-n", *argv], check=True)

    def start(self, part):
        self.running[part] = subprocess.Popen([*self.prefix[part], "nsenter", "-t", str(self.space.pid), "-n", sys.executable, APP, part, self.folder],
                                              stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if part == "hog":
            self.more = [subprocess.Popen(self.running[part].args, stdin=subprocess.DEVNULL) for _ in range(3)]

    def weigh(self, paths, name, shares):
        """What else runs on this host has next to no weight beside all parts together."""
        for path in paths:
            for where, n in ((path, shares), (os.path.dirname(path), 262144)):
                if os.path.exists(f"{where}/{name}"):
                    with open(f"{where}/{name}", "w", encoding="ascii") as f:
                        f.write(str(n))

    def quota(self, us):
        for path in self.made["web"]:
            for name, text in (("cpu.cfs_quota_us", str(us)), ("cpu.max", f"{'max' if us < 0 else us} 100000")):
                if os.path.exists(f"{path}/{name}"):
                    with open(f"{path}/{name}", "w", encoding="ascii") as f:
                        f.write(text)

    def begin(self, what):
        if what == "quota":
            self.quota(3000)
        elif what == "loss":
            self.enter("iptables", "-A", "INPUT", "-p", "tcp", "--dport", "8081", "-m", "statistic", "--mode", "random", "--probability", "0.25", "-j", "DROP")
        elif what == "restart":
            self.running["backend"].kill()
            self.running["backend"].wait()
            time.sleep(1.5)
            self.start("backend")
        elif what in ("ended", "gone"):
            part = "backend" if what == "ended" else "web"
            self.running[part].kill()
            self.running[part].wait()
        elif what == "burst":
            self.crowd = [subprocess.Popen(self.running["load"].args, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for _ in range(2)]
        elif what == "full":
            with open(os.path.join(self.folder, "data", "filled"), "wb") as f, contextlib.suppress(OSError):
                while f.write(b"x" * (1 << 16)):
                    f.flush()
        else:
            with open(os.path.join(self.folder, what), "w", encoding="ascii"):
                pass

    def end(self, what):
        if what == "quota":
            self.quota(-1)
        elif what == "loss":
            self.enter("iptables", "-F", "INPUT")
        elif what in ("ended", "gone"):
            self.start("backend" if what == "ended" else "web")
        elif what == "burst":
            for p in self.crowd:
                p.kill()
                p.wait()
        elif what == "full":
            os.unlink(os.path.join(self.folder, "data", "filled"))
        elif what != "restart":
            os.unlink(os.path.join(self.folder, what))

    def close(self):
        for p in (*self.running.values(), *self.more, *self.crowd, self.space):
            p.kill()
            p.wait()


def play(folder, store, incidents, quiet=10, during=8):
    """Records them one after the other: {name: (from, to)} and the ids. A name is one kind, or two with + between."""
    windows = {}
    with contextlib.ExitStack() as stack:
        rig = Rig(folder, stack)
        try:
            time.sleep(1)
            child = subprocess.Popen([os.path.join(BIN, "sonde"), "record", "--families", FAMILIES, "--store", store], stdin=subprocess.DEVNULL,
                                     stderr=subprocess.PIPE, text=True)
            began = set()
            while len(began) < 5:
                line = child.stderr.readline()
                assert line, "sonde record ended"
                began |= {w for w in FAMILIES.split(",") if line.startswith(f"recording {w} ")}
            for name in incidents:
                pause, lasts = LENGTHS.get(name, (quiet, during))
                time.sleep(pause)
                begin = time.time()
                for what in name.split("+"):
                    rig.begin(what)
                time.sleep(max(0, begin + lasts - time.time()))
                windows[name] = (begin, time.time())
                for what in name.split("+"):
                    rig.end(what)
                time.sleep(3)
            child.send_signal(signal.SIGINT)
            said = child.communicate(timeout=120)[1]
            assert child.returncode == 0, said
        finally:
            rig.close()
    return windows, rig.ids
