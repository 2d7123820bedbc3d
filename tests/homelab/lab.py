# SPDX-License-Identifier: Apache-2.0
"""The lab: an engine, its containers, sonded with three families, kills by a seed. It leaves a folder: store/, truth.json,
answers/ (when asked), sonded.log.

    python3 tests/homelab/lab.py --minutes 15 --keep /tmp/lab
"""
import argparse
import contextlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
for place in (HERE, *(os.path.join(os.path.dirname(HERE), "e2e", d) for d in ("", "lib", "lib/servers"))):
    if place not in sys.path:
        sys.path.insert(0, place)

from conftest import BIN  # noqa: E402
from containers import cgroups, engine, fake_container  # noqa: E402
from images import Images  # noqa: E402
from services import BACKUP, JOB, NAMELESS, SERVICES, have_all, make_images  # noqa: E402
from sonded import Sonded, until  # noqa: E402
from truth import Truth, controller  # noqa: E402

SEED = 20261124
FAMILIES = "cpu,offcpu,goheap,host"


def say(text):
    print(f"lab: {time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


@contextlib.contextmanager
def bpf_counted():
    """While it lasts the kernel counts how long each BPF program runs."""
    path = "/proc/sys/kernel/bpf_stats_enabled"
    with open(path, encoding="ascii") as f:
        before = f.read()
    with open(path, "w", encoding="ascii") as f:
        f.write("1")
    try:
        yield
    finally:
        with open(path, "w", encoding="ascii") as f:
            f.write(before)


class Lab:
    def __init__(self, folder, minutes, families=FAMILIES):
        self.folder, self.seconds, self.families = folder, minutes * 60, families
        self.store = os.path.join(folder, "store")
        self.random = random.Random(SEED)
        self.kills, self.marks, self.logs = [], {}, []
        self.over = threading.Event()

    def run_detached(self, name, image, options, command):
        network = [] if "--network" in options else ["--network", "none"]
        done = self.engine.docker("run", "-d", "--name", name, *network, *options, image, *command)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def jobs(self):
        """A container of its own every seven seconds."""
        for n in range(1, 100000):
            if self.over.wait(7):
                return
            image, command = JOB
            self.engine.docker("run", "--rm", "--name", f"job-{n}", "--network", "none", image, *command)

    def begin_sonded(self):
        self.sonded = Sonded(self.store, "--families", self.families, prefix=self.own_prefix, limit=None)

    def end_sonded(self):
        self.logs.append(self.sonded.said())

    def status(self):
        with contextlib.suppress(OSError, ValueError):
            return self.sonded.ask(do="status")
        return None

    def kill_one(self):
        """One of sonde's programs, by the seed; sonded itself is started again, as systemd would."""
        services = {s["name"]: s["pid"] for s in (self.status() or {}).get("services", []) if s["pid"]}
        running = {"sonded": self.sonded.child.pid, **services}
        who = self.random.choice(sorted(running))
        pid = running[who]
        say(f"kill -9 {who}")
        self.kills.append({"at": time.time(), "who": who})
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, 9)
        if who == "sonded":
            self.sonded.child.wait()
            self.end_sonded()
            self.begin_sonded()

    def backup(self):
        say("the backup begins")
        image, command = BACKUP
        self.marks["backup"] = [time.time()]
        self.run_detached("backup", image, [], command)
        self.over.wait(max(25, self.seconds / 10))
        self.engine.docker("kill", "backup")
        self.marks["backup"].append(time.time())
        say("the backup ended")

    def perf(self):
        """What `perf record COMMAND` says while sonde records."""
        if not shutil.which("perf"):
            return None
        done = subprocess.run(["perf", "record", "-o", os.path.join(self.folder, "perf.data"), "--", "true"], capture_output=True,
                              text=True, check=False, stdin=subprocess.DEVNULL)
        return {"exit": done.returncode, "said": done.stderr[-1000:]}

    def record(self):
        began = time.time()
        self.marks["began"] = began
        steps = max(2, int(self.seconds / 75))
        kills = [began + self.seconds * (i + 0.7) / steps for i in range(steps)]
        quiet = (began + 0.3 * self.seconds, began + 0.62 * self.seconds)  # nothing is killed around the known change
        kills = [t for t in kills if not quiet[0] <= t <= quiet[1]]
        middle = began + 0.45 * self.seconds
        backup = threading.Thread(target=self.backup)
        while time.time() < began + self.seconds:
            if kills and time.time() >= kills[0]:
                kills.pop(0)
                self.kill_one()
            if not backup.ident and time.time() >= middle:
                backup.start()
            time.sleep(0.5)
        backup.join()

    def run(self):
        have_all()
        with contextlib.ExitStack() as stack:
            self.engine = engine(own_root=True)
            stack.callback(self.engine.stop)
            say("images")
            with tempfile.TemporaryDirectory(dir=self.folder) as scratch:
                make_images(Images(self.engine, scratch), scratch)
            made, self.own_prefix = stack.enter_context(cgroups({controller("cpuacct"): "sonde-homelab"}))
            stack.enter_context(bpf_counted())
            nameless, prefix = stack.enter_context(fake_container())
            say("containers")
            self.ids = {name: self.run_detached(name, *rest) for name, *rest in SERVICES}
            unshared = subprocess.Popen([*prefix, *NAMELESS], stdin=subprocess.DEVNULL)
            stack.callback(lambda: (unshared.kill(), unshared.wait()))
            self.begin_sonded()
            assert until(lambda: (self.status() or {}).get("sonded", {}).get("ready"), 60), self.sonded.said()
            truth = Truth(self.engine, made[0] if made else None, self.folder, self.status)
            jobs = threading.Thread(target=self.jobs)
            jobs.start()
            perf = self.perf()
            say(f"recording for {self.seconds / 60:g} minutes")
            try:
                self.record()
                stored = subprocess.run([os.path.join(BIN, "sonde"), "status", "--store", self.store, "--json"], capture_output=True,
                                        text=True, check=False, stdin=subprocess.DEVNULL).stdout
            finally:
                self.over.set()
                jobs.join()
                self.marks["ended"] = time.time()
                told = truth.stop()
                self.sonded.stop()
                self.end_sonded()
        with open(os.path.join(self.folder, "sonded.log"), "w", encoding="utf-8") as f:
            f.write("\n".join(self.logs))
        told.update(kills=self.kills, marks=self.marks, ids=self.ids, nameless=nameless, minutes=self.seconds / 60,
                    last_status=stored, perf=perf, families=self.families)
        with open(os.path.join(self.folder, "truth.json"), "w", encoding="utf-8") as f:
            json.dump(told, f)
        say(f"recorded into {self.folder}")


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--minutes", type=float, default=15)
    args.add_argument("--keep", required=True, help="the folder that is left")
    args.add_argument("--families", default=FAMILIES)
    args = args.parse_args()
    os.makedirs(args.keep, exist_ok=True)
    Lab(args.keep, args.minutes, args.families).run()
    from questions import answers, ask_all
    slow = [q for q in ask_all(args.keep) if q["seconds"] > 2 or not answers(q)]
    for q in slow:
        print(f"{q['seconds']:6.2f} s  exit {q['exit']}  sonde {' '.join(q['argv'])}")


if __name__ == "__main__":
    main()
