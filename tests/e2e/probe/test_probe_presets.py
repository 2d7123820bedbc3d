# SPDX-License-Identifier: Apache-2.0
"""Each preset about the kernel and about C++ and libvirt: it counts what the program, the kernel or libvirt's own log says."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

import pytest

from conftest import need, need_root, sql_all

pytestmark = pytest.mark.long
PROGRAM = "sonde-probe"
# Works after a line, says what it did as JSON, ends after another.
WORK = """import ctypes, errno, json, mmap, os, resource, socket, sys, time
c = ctypes.CDLL(None, use_errno=True)
print('ready', flush=True)
input()
told = {}
%s
print(json.dumps(told), flush=True)
input()
"""
FORKS = """
told['pids'] = []
for i in range(13):
    pid = os.fork()
    if not pid: os._exit(0)
    os.waitpid(pid, 0)
    told['pids'].append(pid)
"""
CALLS = """
for i in range(23):
    try: open('/none/of/this')
    except FileNotFoundError: pass
for i in range(200): c.sched_yield()
for i in range(40): c.getpgid(-5)
for i in range(7): time.sleep(.02)
for i in range(5): os.setuid(0)
for i in range(6): c.syscall(321, 99, 0, 0)
for i in range(4): c.clock_settime(77, ctypes.create_string_buffer(16))
for i in range(3): c.ptrace(99, 1234, 0, 0)
server = socket.socket(); server.bind(('127.0.0.1', 0)); server.listen(50)
for i in range(9): socket.create_connection(server.getsockname()).close()
shut = socket.socket(); shut.bind(('127.0.0.1', 0))
for i in range(4):
    try: socket.create_connection(shut.getsockname())
    except ConnectionRefusedError: pass
"""
FAULTS = """
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
m = mmap.mmap(-1, 1500 * 4096)
c.madvise(ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(m))), ctypes.c_size_t(1500 * 4096), 15)
for i in range(1500): m[i * 4096] = 1
told['faults'] = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
"""
MOVES = """
def moves():
    with open('/proc/self/sched') as f: return int(next(line.split()[-1] for line in f if line.startswith('se.nr_migrations')))
cpus = sorted(os.sched_getaffinity(0))
before = moves()
for i in range(40): os.sched_setaffinity(0, {cpus[i % 2]})
told['moves'] = moves() - before
"""
REFUSED = """
os.setgroups([]); os.setresgid(65534, 65534, 65534); os.setresuid(65534, 65534, 65534)
for i in range(5): c.chroot(b'/')
"""
DROPS = """
there = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
for i in range(17): there.sendto(bytes([0x45, 0, 0, 24]) + bytes(4) + bytes([64, 253, 0, 0, 127, 0, 0, 1, 127, 0, 0, 1]) + b'none', ('127.0.0.1', 0))
"""
SENDS_AGAIN = """
import subprocess, threading
def again():
    with open('/proc/self/net/snmp') as f: names, values = (line.split() for line in f if line.startswith('Tcp:'))
    return int(values[names.index('RetransSegs')])
server = socket.socket(); server.bind(('127.0.0.1', 0)); server.listen(5)
told['port'] = server.getsockname()[1]
subprocess.run(['iptables', '-A', 'INPUT', '-p', 'tcp', '--dport', str(told['port']), '-m', 'statistic', '--mode', 'nth', '--every', '7', '--packet', '3', '-j', 'DROP'], check=True)
before = again()
client = socket.create_connection(server.getsockname())
other, _ = server.accept()
def reads():
    n = 0
    while n < 3000000: n += len(other.recv(65536))
reader = threading.Thread(target=reads); reader.start()
client.sendall(bytes(3000000)); reader.join()
told['again'] = again() - before
"""
THROWS = """#include <cstdio>
struct thrown { int n; };
__attribute__((noinline)) static void refuses(int n) { throw thrown{n}; }
int main() {
	int sum = 0;
	puts("ready"); fflush(stdout); getchar();
	for (int i = 0; i < 321; i++) try { refuses(i); } catch (thrown &t) { sum += t.n; }
	printf("{\\"sum\\": %d}\\n", sum); fflush(stdout); getchar(); getchar();
	return 0;
}"""


def keys(store, probe, pid=None):
    where = f"AND pid = {pid}" if pid else ""
    return {r["key"]: r["n"] for r in sql_all(store, f"SELECT key, sum(hits) AS n FROM probe_stats WHERE probe = ? {where} GROUP BY key", (probe,))}


def events(store, probe):
    return [{**json.loads(r["args"]), "ns": r["ns"], "pid": r["pid"]} for r in
            sql_all(store, "SELECT pid, args, ns FROM probe_events WHERE probe = ? ORDER BY at_ns", (probe,))]


def recorded(capture, command, *specs, prefix=(), whole_host=False):
    """(the program's pid, what it said), while the presets are recorded in it, or in the whole host."""
    with subprocess.Popen([*prefix, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as p:
        try:
            assert p.stdout.readline() == "ready\n"
            more = () if whole_host else ("--pid", p.pid)
            cap = capture(*more, *(w for spec in specs for w in ("--probe", spec)), program=PROGRAM)
            p.stdin.write("\n")
            p.stdin.flush()
            said = p.stdout.readline()
            cap.stop()
            p.communicate("\n", timeout=60)
        finally:
            p.kill()
    assert p.returncode == 0
    return p.pid, json.loads(said)


def python(text):
    return [sys.executable, "-c", WORK % text]


def test_processes_that_are_made_and_end(capture, store):
    pid, told = recorded(capture, python(FORKS), "fork rate 1000", "exit rate 1000", whole_host=True)
    made = [e["child_pid"] for e in events(store, "fork") if e["pid"] == pid]
    assert made == told["pids"]
    assert [e["pid"] for e in events(store, "exit") if e["pid"] in told["pids"]] == told["pids"]


def test_system_calls_by_name_result_and_time(capture, store):
    pid, _ = recorded(capture, python(CALLS), "openfail", "syscalls", "slowcalls", "setuid", "bpf", "clockset", "ptrace", "connect")
    assert keys(store, "openfail")["/none/of/this ENOENT"] == 23
    calls = keys(store, "syscalls")
    assert calls["sched_yield ok"] == 200 and calls["getpgid ESRCH"] == 40, calls
    assert keys(store, "slowcalls")["clock_nanosleep"] == 7
    assert [e["uid"] for e in events(store, "setuid")] == [0] * 5 and keys(store, "bpf") == {"99": 6}
    assert [e["clock"] for e in events(store, "clockset")] == [77] * 4
    assert [(e["request"], e["error"]) for e in events(store, "ptrace")] == [(99, "ESRCH")] * 3
    assert keys(store, "connect") == {"ok": 9, "ECONNREFUSED": 4}, pid


def test_mounts_and_unmounts(capture, store):
    folder = os.path.dirname(store)
    text = f"for i in range(3):\n    c.mount(b'nothing', b'{folder}', b'tmpfs', 0, None); c.umount2(b'{folder}', 0)"
    recorded(capture, python(text), "mount", "umount", prefix=("unshare", "-m", "--propagation", "private"))
    assert [(e["source"], e["target"], e["type"]) for e in events(store, "mount")] == [("nothing", folder, "tmpfs")] * 3
    assert [e["target"] for e in events(store, "umount")] == [folder] * 3


def test_page_faults(capture, store):
    pid, told = recorded(capture, python(FAULTS), "faults")
    assert 1500 <= told["faults"] and 1500 <= sum(keys(store, "faults", pid).values()) <= told["faults"] + 300


def test_threads_that_change_their_cpu(capture, store):
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("missing: a second CPU")
    pid, told = recorded(capture, python(MOVES), "mine=migrations comm~'python' rate 1000", "migrations", whole_host=True)
    assert told["moves"] >= 30 and sum(keys(store, "migrations").values()) >= told["moves"], (pid, told)


def test_capabilities_that_are_refused(capture, store):
    if not os.path.exists("/sys/kernel/tracing/events/capability/cap_capable"):
        pytest.skip("missing: tracepoint capability:cap_capable (Linux 6.18 and newer, tracefs mounted)")
    pid, _ = recorded(capture, python(REFUSED), "caps")
    assert keys(store, "caps", pid)["18"] == 5  # CAP_SYS_CHROOT, linux/capability.h


def test_packets_that_the_kernel_drops(capture, store):
    def of_an_unknown_protocol():
        with open("/proc/net/snmp", encoding="utf-8") as f:
            names, values = (line.split() for line in f if line.startswith("Ip:"))
        return int(values[names.index("InUnknownProtos")])
    before = of_an_unknown_protocol()
    recorded(capture, python(DROPS), "drops", whole_host=True)
    did = of_an_unknown_protocol() - before
    assert did >= 17 and any(n >= 17 for n in keys(store, "drops").values()), keys(store, "drops")


def test_segments_that_are_sent_again(capture, store):
    need("iptables"), need("ip")
    work = ["sh", "-c", 'ip link set lo up; exec "$@"', "sh", *python(SENDS_AGAIN)]
    _, told = recorded(capture, work, "retransmits", prefix=("unshare", "-n"), whole_host=True)
    assert told["again"] > 3 and abs(keys(store, "retransmits")[str(told["port"])] - told["again"]) <= 2, told


def numbers(path):
    """{name of a row: sum over CPUs} of /proc/softirqs or /proc/interrupts."""
    with open(path, encoding="utf-8") as f:
        cpus = len(f.readline().split())
        return {line.split()[-1] if path.endswith("interrupts") else line.split(":")[0].strip(): sum(map(int, line.split()[1:1 + cpus]))
                for line in f if line.split()[0][:-1].isdigit() or not path.endswith("interrupts")}


def test_interrupts_are_those_that_the_kernel_counts(capture, store):
    """Between two readings of the kernel's own counts within the recording, and two around it."""
    folder = os.path.dirname(store)
    order = ("HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU")  # vectors, linux/interrupt.h
    around = numbers("/proc/softirqs"), numbers("/proc/interrupts")
    cap = capture(*(w for spec in ("softirq", "hardirq", "softirqtime", "hardirqtime", "timers") for w in ("--probe", spec)), program=PROGRAM)
    within = numbers("/proc/softirqs"), numbers("/proc/interrupts")
    subprocess.run(["dd", "if=/dev/zero", f"of={folder}/direct", "bs=64k", "count=100", "oflag=direct"], check=False, stderr=subprocess.DEVNULL)
    subprocess.run([sys.executable, "-c", "import time\nfor i in range(60): time.sleep(.01)"], check=True)
    within = [{k: v - begin[k] for k, v in numbers(path).items() if k in begin} for path, begin in zip(("/proc/softirqs", "/proc/interrupts"), within)]
    cap.stop()
    around = [{k: v - begin[k] for k, v in numbers(path).items() if k in begin} for path, begin in zip(("/proc/softirqs", "/proc/interrupts"), around)]
    soft, hard, timed = keys(store, "softirq"), keys(store, "hardirq"), keys(store, "hardirqtime")
    lost = sum(r["n"] for r in sql_all(store, "SELECT coalesce(sum(lost + unpaired), 0) AS n FROM probes"))
    for vec, name in enumerate(order):
        assert within[0][name] - lost <= soft.get(str(vec), 0) <= around[0][name], (name, soft)
    names = [n for n, hits in within[1].items() if hits and n.startswith("virtio")]
    for name in names:
        assert within[1][name] - lost <= hard.get(name, 0) <= around[1][name], (name, hard)
        assert timed.get(name, 0) <= around[1][name] and timed.get(name, 0) >= 0.9 * within[1][name] - lost, (name, timed)
    assert sum(keys(store, "timers").values()) >= 60
    assert all(0 < e["ns"] < 10**9 for e in events(store, "hardirqtime"))


def test_exceptions_of_cpp(capture, store, sonde):
    need("g++")
    path = os.path.join(os.path.dirname(store), "throws")
    subprocess.run(["g++", "-O1", "-g", "-fno-omit-frame-pointer", "-x", "c++", "-", "-o", path], input=THROWS, text=True, check=True, timeout=120)
    _, told = recorded(capture, [path], "throws")
    assert told["sum"] == sum(range(321)) and keys(store, "throws") == {"": 321}
    stacks = sonde("stacks", "--type", "probe", "--json", store=store)
    assert stacks.returncode == 0 and "refuses" in stacks.stdout, stacks


def test_calls_that_a_daemon_of_libvirt_answers(capture, store):
    """Its test driver over its socket, beside what virsh's own log says that it sent."""
    need("virsh"), need("libvirtd"), need_root()
    folder = tempfile.mkdtemp(prefix="sonde-virt-")
    with open(f"{folder}/conf", "w", encoding="utf-8") as f:
        f.write(f'listen_tls = 0\nunix_sock_dir = "{folder}"\nauth_unix_rw = "none"\nauth_unix_ro = "none"\n')
    daemon = subprocess.Popen(["unshare", "-m", "--propagation", "private", "sh", "-c",
                               f"mount -t tmpfs tmpfs /run; exec libvirtd -f {folder}/conf -p {folder}/pid"], stderr=subprocess.DEVNULL)
    try:
        virsh = ["virsh", "-c", f"test+unix:///default?socket={folder}/libvirt-sock"]
        for _ in range(120):
            if subprocess.run([*virsh, "list"], capture_output=True, timeout=60, check=False).returncode == 0:
                break
            time.sleep(0.5)
        cap = capture("--probe", "libvirt rate 1000", program=PROGRAM)
        log = f"{folder}/client.log"
        subprocess.run([*virsh, "list --all; dominfo test; nodeinfo; version; list"], check=True, timeout=60, stdout=subprocess.DEVNULL,
                       env=dict(os.environ, LIBVIRT_LOG_FILTERS="1:rpc", LIBVIRT_LOG_OUTPUTS=f"1:file:{log}"))
        cap.stop()
        with open(log, encoding="utf-8") as f:
            sent = re.findall(r"RPC_CLIENT_MSG_TX_QUEUE: .* proc=(\d+) type=0 .* serial=(\d+)", f.read())
    finally:
        daemon.terminate()
        daemon.wait(60)
        shutil.rmtree(folder, ignore_errors=True)
    assert len(sent) > 10
    assert [(e["call"], e["serial"]) for e in events(store, "libvirt")] == [(int(call), int(serial)) for call, serial in sent]
    assert all(e["ns"] > 0 for e in events(store, "libvirt"))
