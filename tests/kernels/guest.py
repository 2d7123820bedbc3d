# SPDX-License-Identifier: Apache-2.0
"""One guest: a kernel of Debian's in qemu, which runs guest.sh as its first process and reports on a serial line.

The CPU is emulated (TCG): no virtualisation is asked of the host. cx16=off: qemu 7.2 gets cmpxchg16b wrong under load.
no_timer_check: that boot test fails where the host is busy. What the kernel patches in its own code (a tracepoint that is switched
on) the other CPU may still meet as the int3 that stood there meanwhile: the guest panics ("Oops: int3", seen with the newest
kernel in one boot of some), and is booted once more (conftest.py).
The report is a file of sections:

    === NAME
    what the step printed; lines of its stderr begin with "! "
    === NAME ends STATUS
"""
import json
import os
import re
import socket
import subprocess
import threading
import time

QEMU = "qemu-system-x86_64"
MEMORY_MB = 1024
ASLEEP_S = 2
CPUS = 2   # of a guest: what it may take of them in the time of its limit
WALL = 6


class Section:
    def __init__(self, name, status, lines):
        self.name, self.status = name, status
        self.out = "\n".join(line for line in lines if not line.startswith("! "))
        self.err = "\n".join(line[2:] for line in lines if line.startswith("! "))

    def json(self):
        return json.loads(self.out)

    def told(self):
        """Each line that is a JSON object."""
        return [json.loads(line) for line in self.out.splitlines() if line.startswith("{")]

    def __repr__(self):
        return f"{self.name}: exit {self.status}\n{self.out[-3000:]}\n{self.err[-3000:]}"


class Report:
    """What a guest told. `whole` is False where it did not come to its end; `console` is the kernel's own talk."""

    def __init__(self, text, console, seconds, ended):
        self.sections, self.seconds, self.console = {}, seconds, console
        found = re.finditer(r"^=== (\S+)\n(.*?)^=== \1 ends (\d+)$", text.replace("\r", ""), re.M | re.S)
        for name, body, status in (m.groups() for m in found):
            self.sections[name] = Section(name, int(status), body.splitlines())
        self.whole = "bye" in self.sections
        self.why = "" if self.whole else (
            f"the guest {'ended' if ended else 'was still running'} after {seconds:.0f} s; last section: "
            f"{list(self.sections)[-1:]}; unfinished: {text[-1500:]}\nconsole: {console[-3000:]}")


def cpu_seconds(pid):
    """What it has computed so far, all threads together; 0: it is gone."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
            fields = f.read().rpartition(")")[2].split()
    except OSError:
        return 0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def until(child, seconds, stop):
    """Wait for its end; at its limit, or when we stop, it is killed. Did it end by itself? The limit is CPU time, as a machine that
    others use gives an emulated CPU little of it: the verifier alone takes half a minute there. Who gets none at all is waited for
    WALL times as long."""
    end = time.monotonic() + WALL * seconds
    while time.monotonic() < end and cpu_seconds(child.pid) < CPUS * seconds and not stop.is_set():
        try:
            child.wait(0.5)
            return True
        except subprocess.TimeoutExpired:
            continue
    child.kill()
    child.wait()
    return False


def wake(qmp):
    """Each time the guest sleeps (S3), wake it after a while. An alarm of its own would be missed by a guest that is long in
    going to sleep. `qmp` is the socket of qemu's monitor, which ends with qemu."""
    with qmp, qmp.makefile("r", encoding="utf-8") as said:
        qmp.sendall(b'{"execute": "qmp_capabilities"}')
        for line in said:
            if json.loads(line).get("event") == "SUSPEND":
                time.sleep(ASLEEP_S)
                qmp.sendall(b'{"execute": "system_wakeup"}')


def boot(kernel, initrd, folder, timeout, stop, words="", memory_mb=MEMORY_MB):
    """Run one guest to its end (or its limit, or until the event `stop`). Its report."""
    log, report = f"{folder}/console.log", f"{folder}/report.log"
    ours, theirs = socket.socketpair()
    command = [QEMU, "-chardev", f"socket,id=qmp,fd={theirs.fileno()}", "-mon", "chardev=qmp,mode=control",
               "-accel", "tcg,thread=multi", "-cpu", "max,la57=off,cx16=off", "-smp", str(CPUS), "-m", str(memory_mb),
               "-display", "none", "-monitor", "none", "-nodefaults", "-no-reboot", "-net", "none",
               "-serial", f"file:{log}", "-serial", f"file:{report}", "-kernel", kernel, "-initrd", initrd,
               "-append", f"console=ttyS0 panic=-1 quiet no_timer_check {words}"]
    began = time.monotonic()
    with open(f"{folder}/qemu.log", "wb") as out:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, pass_fds=[theirs.fileno()])
        theirs.close()
        threading.Thread(target=wake, args=(ours,), daemon=True).start()
        ended = until(child, timeout, stop)
    texts = []
    for path in (report, log, f"{folder}/qemu.log"):
        try:
            with open(path, encoding="utf-8", errors="replace") as f:
                texts.append(f.read())
        except FileNotFoundError:
            texts.append("")
    return Report(texts[0], texts[1] + texts[2], time.monotonic() - began, ended)
