# SPDX-License-Identifier: Apache-2.0
"""sonde-maps: what it tells of processes and mappings is what happened; clients, files and crashes do not disturb it."""
import json
import os
import shutil
import signal
import socket
import stat
import struct
import subprocess
import tempfile
import threading
import time

import procfs
import pytest

from conftest import BIN, WORKLOADS, Capture, need_root, scale
from sonded import until

MP_WANT_INDEX, MP_WANT_DAMAGED = 64, 1
READY, REFUSED, ROWS = 1, 2, 3


@pytest.fixture(autouse=True)
def as_root():
    need_root()


class Stream:
    """sonde-maps --print --json, read by a thread."""

    def __init__(self):
        self.rows, self.watermark = [], 0
        self.child = subprocess.Popen([f"{BIN}/sonde-maps", "--print", "--json"], stdout=subprocess.PIPE, text=True)
        self.thread = threading.Thread(target=self.read)
        self.thread.start()
        self.wait(lambda: any(r["type"] == "seeded" for r in self.rows))

    def read(self):
        for line in self.child.stdout:
            row = json.loads(line)
            self.rows.append(row)
            if row["type"] == "watermark":
                self.watermark = row["time_ns"]

    def wait(self, what, timeout=90):
        end = time.monotonic() + timeout
        while not what():
            assert time.monotonic() < end and self.child.poll() is None, "sonde-maps did not tell it"
            time.sleep(0.02)

    def settle(self):
        """Until all that happened up to now has been told."""
        now = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        self.wait(lambda: self.watermark > now)

    def of(self, kind, **want):
        return [r for r in self.rows if r["type"] == kind and all(r[k] == v for k, v in want.items())]

    def paths(self):
        return {r["id"]: r["path"] for r in self.of("image")}

    def close(self):
        self.child.terminate()
        self.child.wait()
        self.thread.join()
        self.child.stdout.close()


@pytest.fixture
def stream():
    s = Stream()
    yield s
    s.close()


class Client:
    """A client of the socket (mapsproto.h)."""

    def __init__(self, path):
        self.s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.s.connect(path)
        self.s.settimeout(0.2)
        self.images, self.index, self.alive, self.kinds, self.rows = {}, {}, {}, [], {}

    def message(self, kind, m, fds):
        self.kinds.append(kind)
        if kind == 3:
            start, = struct.unpack_from("<Q", m, 16)
            tgid, = struct.unpack_from("<I", m, 40)
            self.alive[tgid] = start
        elif kind == 4:
            start, tgid = struct.unpack_from("<QI", m, 16)
            if self.alive.get(tgid) == start:
                del self.alive[tgid]
        elif kind == 5:
            image, = struct.unpack_from("<I", m, 8)
            size, = struct.unpack_from("<I", m, 48)
            self.images[image] = m[56:56 + size].decode()
        elif kind == 6:
            image, state, n, k = struct.unpack_from("<4I", m, 8)
            if state == ROWS:
                self.rows[image] = os.dup(fds[0])
                return
            self.index[image] = (state, m[24:24 + n].decode(), m[25 + n:25 + n + k].decode(), len(fds))
        elif kind == 9:
            self.alive.clear()

    def take(self):
        try:
            data, fds, _, _ = socket.recv_fds(self.s, 70000, 4)
        except TimeoutError:
            return False
        assert data, "sonde-maps closed the connection"
        at = 0
        while at < len(data):
            kind, size = struct.unpack_from("<II", data, at)
            self.message(kind, data[at:at + size], fds)
            at += size
        for fd in fds:
            os.close(fd)
        return True

    def until(self, what, timeout=120):
        end = time.monotonic() + timeout
        while not what():
            assert time.monotonic() < end, (self.index, self.kinds[-5:])
            self.take()

    def want(self, path, flags=0):
        """Ask for the index of the newest image of that path; (state, key, reason, descriptors)."""
        self.until(lambda: path in self.images.values())
        image = max(i for i, p in self.images.items() if p == path)
        self.index.pop(image, None)
        self.s.send(struct.pack("<6I", MP_WANT_INDEX, 24, image, flags, 1, 0))
        self.until(lambda: image in self.index)
        return self.index[image]


def answers(path):
    """Somebody listens there: a socket has its name a moment before."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
        return s.connect_ex(path) == 0


@pytest.fixture
def server(scratch):
    """server(ARGS...) -> (connect, process, stderr's path): a sonde-maps that listens."""
    running = []

    def begin(*args):
        path = os.path.join(scratch, f"socket{len(running)}")
        said = os.path.join(scratch, f"said{len(running)}")
        with open(said, "w", encoding="utf-8") as f:
            child = subprocess.Popen([f"{BIN}/sonde-maps", "--socket", path, *args], stderr=f)
        running.append(child)
        end = time.monotonic() + 60
        while not answers(path):
            assert time.monotonic() < end and child.poll() is None, open(said, encoding="utf-8").read()
            time.sleep(0.02)
        return (lambda: Client(path)), child, path
    yield begin
    for child in running:
        child.kill()
        child.wait()


def processes_of_host():
    """tgid -> start in clock ticks, of those that have not ended (a zombie has)."""
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as f:
                    words = f.read().rpartition(")")[2].split()
                    if words[0] not in "ZX":
                        found[int(name)] = int(words[19])
            except OSError:
                pass
    return found


@pytest.mark.long  # of a process that ends before anybody looked, on a busy host, not all is known
def test_200_processes_of_a_moment_are_all_told_with_their_arguments(stream):
    pids = {}
    for i in range(200):
        p = subprocess.Popen(["/bin/true", f"--number={i}", "--token=abc"], stdout=subprocess.DEVNULL)
        pids[p.pid] = i
        p.wait()
    stream.settle()
    for pid, i in pids.items():
        told = [r for r in stream.of("process", tgid=pid) if r["comm"] == "true"]
        assert told and told[-1]["args"] == f"/bin/true --number={i} --token=***", (pid, told)
        assert told[-1]["exe"].endswith("/true") and told[-1]["ppid"] == os.getpid()
        assert stream.of("exit", tgid=pid)


def test_secrets_in_arguments_are_masked_whatever_program_and_quoting(stream):
    secret = "quiet-heron-9"
    lines = [
        (["mysql", "-uroot", f"-p{secret}", "db"], "mysql -uroot -p*** db"),
        (["docker", "login", "-u", "u", "-p", secret, "h"], "docker login -u u -p *** h"),
        (["zip", "-P", secret, "a.zip"], "zip -P *** a.zip"),
        (["git", "clone", f"https://{secret}@github.com/a/b"], "git clone https://***@github.com/a/b"),
        (["curl", "-d", f'{{\\"password\\":\\"{secret}\\"}}', "x"], 'curl -d {\\"password\\":\\"***\\"} x'),
        (["sh", "-c", f"echo a; curl -su 'u:{secret}' http://h"], "sh -c echo a; curl -su 'u:***' http://h"),
        (["sh", "-c", f'ssh h "mysqladmin password {secret}"'], 'sh -c ssh h "mysqladmin password ***"'),
        (["psql", "-p", "5432", "-c", f"ALTER USER u PASSWORD '{secret}'"], "psql -p 5432 -c ALTER USER u PASSWORD '***'"),
        (["mkdir", "-p", "/data/a"], "mkdir -p /data/a"),
    ]
    pids = {}
    for argv, want in lines:
        p = subprocess.Popen(argv, executable="/bin/true", stdout=subprocess.DEVNULL)
        pids[p.pid] = want
        p.wait()
    stream.settle()
    for pid, want in pids.items():
        told = [r for r in stream.of("process", tgid=pid) if r["comm"] == "true"]
        assert told and told[-1]["args"] == want, (pid, want, told)


def test_the_processes_told_are_those_of_proc(stream):
    before = processes_of_host()
    stream.settle()
    told = list(stream.rows)  # before `after`: what ends later is told later
    after = processes_of_host()
    lasting = {pid: ticks for pid, ticks in before.items() if after.get(pid) == ticks}
    alive = {}
    for r in told:
        if r["type"] == "process":
            alive[r["tgid"]] = r["start_ns"]
        elif r["type"] == "exit":
            alive.pop(r["tgid"], None)
    for pid, ticks in lasting.items():
        assert pid in alive, f"process {pid} was not told"
        assert alive[pid] // 10**7 == ticks, "start time"


def test_the_mappings_told_are_those_of_proc_maps(stream):
    stream.settle()
    pid = os.getpid()
    told = {(r["start"], r["end"]): r for r in stream.of("map", tgid=pid)}
    paths, seen = stream.paths(), 0
    with open(f"/proc/{pid}/maps", encoding="utf-8") as f:
        for line in f:
            range_, perms, offset, _, inode, *path = line.split(maxsplit=5)
            if "x" not in perms or inode == "0":
                continue
            lo, hi = (f"0x{int(x, 16):x}" for x in range_.split("-"))
            assert paths[told[lo, hi]["image"]] == path[0].strip()
            assert int(told[lo, hi]["offset"], 16) == int(offset, 16)
            seen += 1
    assert seen > 3


@pytest.mark.long
def test_exec_every_50_ms_between_two_files_is_told_turn_by_turn(stream):
    red, blue = (os.path.join(WORKLOADS, n) for n in ("flip-red", "flip-blue"))
    until = int((time.clock_gettime(time.CLOCK_MONOTONIC) + scale(3, 20)) * 1000)
    p = subprocess.Popen([red, blue, "50", str(until)], executable=red, stdout=subprocess.PIPE, text=True)
    told = json.loads(p.communicate()[0])
    stream.settle()
    ids = []
    paths = stream.paths()
    for r in stream.of("process", tgid=p.pid):
        if r["comm"] in ("flip-red", "flip-blue") and (not ids or ids[-1][0] != r["exec_id"]):
            ids.append((r["exec_id"], r["comm"]))
    assert [i for i, _ in ids] == list(range(ids[0][0], ids[0][0] + told["execs"] + 1))
    assert [c for _, c in ids] == [("flip-red", "flip-blue")[i % 2] for i in range(told["execs"] + 1)]
    for exec_id, comm in ids:
        mapped = {os.path.basename(paths.get(m["image"], "")) for m in stream.of("map", tgid=p.pid, exec_id=exec_id)}
        assert comm in mapped and len(mapped & {"flip-red", "flip-blue"}) == 1


@pytest.mark.long
def test_two_libraries_in_turn_at_one_address_are_told_in_order(stream):
    red, blue = (os.path.join(WORKLOADS, f"lib{n}.so") for n in ("red", "blue"))
    p = subprocess.Popen([f"{WORKLOADS}/flip-dl", red, blue, "50", str(scale(3, 20))], stdout=subprocess.PIPE, text=True)
    told = json.loads(p.communicate()[0])
    stream.settle()
    paths = stream.paths()
    turns = [paths[m["image"]] for m in stream.of("map", tgid=p.pid)
             if paths.get(m["image"]) in (red, blue) and m["time_ns"]]
    assert turns == [(red, blue)[i % 2] for i in range(told["turns"])]


def test_events_are_told_in_order_of_time_and_never_after_their_watermark(stream):
    for _ in range(100):
        subprocess.run(["/bin/true"], check=True)
    stream.settle()
    told = 0
    seeded = next(i for i, r in enumerate(stream.rows) if r["type"] == "seeded")
    for r in stream.rows[seeded:]:
        if r["type"] == "watermark":
            assert r["time_ns"] >= told
            told = r["time_ns"]
        elif r["type"] in ("exit", "map"):
            assert r["time_ns"] > told


@pytest.mark.long
def test_after_lost_records_all_is_told_anew(server):
    connect, child, _ = server()
    c = connect()
    c.until(lambda: 2 in c.kinds)
    child.send_signal(signal.SIGSTOP)
    for _ in range(scale(2500, 6000)):
        subprocess.run(["/bin/true"], check=True)
    child.send_signal(signal.SIGCONT)
    c.until(lambda: 9 in c.kinds, 40)
    at = len(c.kinds)
    c.until(lambda: 2 in c.kinds[c.kinds.index(9):] and 8 in c.kinds[at:], 40)
    c.until(lambda: os.getpid() in c.alive, 40) # a second loss begins anew
    end = time.monotonic() + 2
    while time.monotonic() < end:
        c.take()
    gone = [pid for pid in c.alive if not os.path.exists(f"/proc/{pid}")]
    assert len(gone) < 5, "dead processes are still told as alive"


@pytest.mark.long
def test_a_client_that_does_not_read_is_seeded_anew_and_holds_up_nobody(server):
    connect, child, _ = server()
    good, slow = connect(), connect()
    good.until(lambda: 2 in good.kinds)
    stop = threading.Event()

    def churn():
        while not stop.is_set():
            subprocess.run(["/bin/sh", "-c", "/bin/true " + "x" * 3000 + "; :"], check=True)
    threads = [threading.Thread(target=churn) for _ in range(2)]
    for t in threads:
        t.start()
    try:
        marks, end = 0, time.monotonic() + scale(12, 30)
        while time.monotonic() < end:
            good.take()
        marks = good.kinds.count(8)
    finally:
        stop.set()
        for t in threads:
            t.join()
    assert marks > scale(12, 30) * 4, "the good client was held up"
    with open(f"/proc/{child.pid}/status", encoding="utf-8") as f:
        rss = int(next(line for line in f if line.startswith("VmRSS")).split()[1])
    assert rss < 40000, "memory grew with the client that does not read"
    slow.until(lambda: 2 in slow.kinds)
    end = time.monotonic() + 3
    while time.monotonic() < end:
        slow.take()
    assert os.getpid() in slow.alive


def test_a_container_like_roots_files_are_indexed_from_its_own_root(server, scratch, store):
    root = os.path.join(scratch, "root")
    os.makedirs(f"{root}/bin")
    shutil.copy(f"{WORKLOADS}/burn-static", f"{root}/bin/inside")
    connect, _, _ = server("--store", store)
    c = connect()
    p = subprocess.Popen(["unshare", "-m", "-p", "--fork", "--kill-child", "chroot", root, "/bin/inside", "4000", "1"],
                         stdout=subprocess.DEVNULL)
    try:
        state, key, reason, fds = c.want("/bin/inside")
    finally:
        p.kill()
        p.wait()
    assert (state, fds) == (READY, 1), reason
    path = os.path.join(store, "images", key)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o640
    assert stat.S_IMODE(os.stat(os.path.dirname(path)).st_mode) == 0o750


def test_rows_come_before_names_and_lines(server, scratch):
    need_root()
    program = os.path.join(scratch, "prog")
    shutil.copy(f"{WORKLOADS}/burn-static", program)  # new: no index is kept of it
    os.truncate(program, 5 << 20)  # what is smaller gets its names with its rows
    connect, _, _ = server("--store", os.path.join(scratch, "store"))
    c = connect()
    child = subprocess.Popen([program, "60000", "1"], stdout=subprocess.DEVNULL)
    try:
        state, key, reason, _ = c.want(program)
        assert state == READY, reason
        rows = c.rows[max(i for i, path in c.images.items() if path == program)]
        said = [subprocess.run([f"{BIN}/sonde-index", how, f"/proc/self/fd/{rows}"], pass_fds=[rows], capture_output=True, text=True,
                               check=True).stdout for how in ("--dump-rows", "--dump")]
        whole = os.path.join(scratch, "store", "images", key)
        assert said[0] and said[0] == subprocess.run([f"{BIN}/sonde-index", "--dump-rows", whole], capture_output=True, text=True,
                                                     check=True).stdout
        names = subprocess.run([f"{BIN}/sonde-index", "--dump", whole], capture_output=True, text=True, check=True).stdout
        assert " main\n" in names and " main\n" not in said[1]
    finally:
        child.kill()
        child.wait()


def test_a_deleted_file_is_indexed_through_its_mapping(server, scratch, store):
    exe = os.path.join(scratch, "deleted")
    shutil.copy(f"{WORKLOADS}/burn-static", exe)
    p = subprocess.Popen([exe, "5000", "1"], stdout=subprocess.DEVNULL)
    time.sleep(0.2)
    os.unlink(exe)
    try:
        connect, _, _ = server("--store", store)
        state, _, reason, fds = connect().want(exe)
    finally:
        p.kill()
        p.wait()
    assert (state, fds) == (READY, 1), reason


def test_a_file_replaced_by_another_one_keeps_its_own_index(server, scratch, store):
    exe = os.path.join(scratch, "replaced")
    shutil.copy(f"{WORKLOADS}/burn-static", exe)
    connect, _, _ = server("--store", store)
    c = connect()
    state, right, _, _ = (lambda p: (c.want(exe), p.kill(), p.wait())[0])(
        subprocess.Popen([exe, "5000", "1"], stdout=subprocess.DEVNULL))
    assert state == READY
    p = subprocess.Popen([exe, "5000", "1"], stdout=subprocess.DEVNULL)
    time.sleep(0.3)
    shutil.copy(f"{WORKLOADS}/jit-static", exe + ".new")
    os.rename(exe + ".new", exe)
    try:
        connect, _, _ = server("--store", tempfile.mkdtemp(dir=scratch))
        state, key, reason, _ = connect().want(exe)
    finally:
        p.kill()
        p.wait()
    assert (state, key) == (READY, right), reason


def fake_index(scratch, what):
    """A sonde-index that says for which file it ran, and then does `what`."""
    path = os.path.join(scratch, "fake-index")
    with open(path, "w", encoding="utf-8") as f:
        f.write(f"#!/bin/sh\nreadlink /proc/$$/fd/4 >>{scratch}/ran\n{what}\n")
    os.chmod(path, 0o755)
    return path


@pytest.mark.parametrize("what,reason", [("kill -SEGV $$", "signal 11"), ("exit 3", "code 3"),
                                         pytest.param("sleep 30", "too long", marks=pytest.mark.long)])
def test_a_file_on_which_sonde_index_fails_is_remembered_and_not_tried_again(server, scratch, store, what, reason):
    exe = os.path.join(scratch, "trap")
    shutil.copy(f"{WORKLOADS}/burn-static", exe)
    program = fake_index(scratch, what)
    p = subprocess.Popen([exe, "40000", "1"], stdout=subprocess.DEVNULL)
    try:
        for _ in range(2):
            connect, child, _ = server("--store", store, "--index", program)
            state, _, said, _ = connect().want(exe)
            assert state == REFUSED and reason in said
            child.terminate()
            child.wait()
    finally:
        p.kill()
        p.wait()
    with open(f"{scratch}/ran", encoding="utf-8") as f:
        assert f.read().splitlines().count(exe) == 1


def test_a_damaged_index_is_made_anew_once_it_is_said(server, scratch, store):
    exe = os.path.join(scratch, "burn")
    shutil.copy(f"{WORKLOADS}/burn-static", exe)
    connect, _, _ = server("--store", store)
    c = connect()
    p = subprocess.Popen([exe, "20000", "1"], stdout=subprocess.DEVNULL)
    try:
        _, key, _, _ = c.want(exe)
        path = os.path.join(store, "images", key)
        with open(path, "rb") as f:
            good = f.read()
        with open(path, "r+b") as f:
            f.write(b"garbage")
        state, again, _, _ = c.want(exe, MP_WANT_DAMAGED)
    finally:
        p.kill()
        p.wait()
    assert (state, again) == (READY, key)
    with open(path, "rb") as f:
        assert f.read() == good


def test_a_damaged_index_is_handed_to_nobody(server, scratch, store):
    exe = os.path.join(scratch, "burn")
    shutil.copy(f"{WORKLOADS}/burn-static", exe)
    connect, _, _ = server("--store", store)
    first = connect()
    p = subprocess.Popen([exe, "20000", "1"], stdout=subprocess.DEVNULL)
    try:
        _, key, _, _ = first.want(exe)
        path = os.path.join(store, "images", key)
        with open(path, "rb") as f:
            good = f.read()
        with open(path, "r+b") as f:  # where no head tells of it
            f.seek(len(good) // 2)
            f.write(bytes(b ^ 255 for b in good[len(good) // 2:len(good) // 2 + 64]))
        state, again, _, _ = connect().want(exe)  # does not say that it is damaged: it will not look
    finally:
        p.kill()
        p.wait()
    assert (state, again) == (READY, key)
    with open(path, "rb") as f:
        assert f.read() == good


def test_the_socket_is_private_and_another_user_is_refused(server):
    _, child, path = server()
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    os.chmod(os.path.dirname(path), 0o755)
    os.chmod(path, 0o666)
    code = ("import socket,sys\ns=socket.socket(socket.AF_UNIX,socket.SOCK_SEQPACKET)\ns.connect(sys.argv[1])\n"
            "s.settimeout(5)\nsys.exit(0 if s.recv(100)==b'' else 1)")
    done = subprocess.run(["/usr/bin/python3", "-c", code, path], user=65534, timeout=120, check=False)
    assert done.returncode == 0
    assert child.poll() is None


def test_a_leftover_socket_is_replaced_and_a_living_one_is_not(server, scratch):
    _, child, path = server()
    done = subprocess.run([f"{BIN}/sonde-maps", "--socket", path], capture_output=True, text=True, timeout=120)
    assert done.returncode == 2 and "another sonde-maps" in done.stderr
    child.kill()
    child.wait()
    again = subprocess.Popen([f"{BIN}/sonde-maps", "--socket", path])
    try:
        end = time.monotonic() + 60
        while True:
            try:
                Client(path)
                break
            except OSError:
                assert time.monotonic() < end
                time.sleep(0.05)
    finally:
        again.terminate()
        ended = again.wait()
    assert (ended, os.path.exists(path)) == (0, False)


@pytest.mark.long
def test_a_killed_sonde_maps_is_replaced_and_the_capture_goes_on(capture, work, sql, store):
    c = capture("--freq", 499)
    w = work("burn", scale(4000, 6000))
    for _ in range(scale(2, 3)):
        time.sleep(1.2)
        with open(f"/proc/{c.pid}/task/{c.pid}/children", encoding="ascii") as f:
            for child in f.read().split():
                with open(f"/proc/{child}/comm", encoding="ascii") as g:
                    if g.read() == "sonde-maps\n":
                        os.kill(int(child), signal.SIGKILL)
    told = w.told()
    done = c.stop()
    assert done["samples"] + sum(done["lost"].values()) == done["seen"]
    rows = sql(store, "SELECT function, sum(samples) AS n, sum(cpu_ns) AS ns FROM cpu_samples WHERE pid = ? GROUP BY 1",
               (told["pid"],))
    named = sum(r["n"] for r in rows if "+0x" not in r["function"])
    assert named > 0.9 * sum(r["n"] for r in rows), rows


@pytest.mark.long
def test_a_root_whose_file_system_does_not_answer_costs_its_own_names_only(server, scratch, store):
    """A container that maps a program from a FUSE mount, whose server then stops answering."""
    root = os.path.join(scratch, "root")
    os.makedirs(f"{root}/mute")
    shutil.copy(f"{WORKLOADS}/burn-static", f"{root}/mute/stuck")
    if not os.path.exists("/dev/fuse"):
        pytest.skip("missing: /dev/fuse")
    code = ("import ctypes,os,sys,subprocess\nroot=sys.argv[1]\nlibc=ctypes.CDLL(None)\n"
            "p=subprocess.Popen(['chroot',root,'/mute/stuck','6000','1'],stdout=subprocess.DEVNULL)\n"
            "import time; time.sleep(0.5)\nfd=os.open('/dev/fuse',os.O_RDWR)\n"
            "o=f'fd={fd},rootmode=40000,user_id=0,group_id=0'.encode()\n"
            "rc=libc.mount(b'x',(root+'/mute').encode(),b'fuse',0,o)\nprint(rc,flush=True)\np.wait()\n")
    p = subprocess.Popen(["unshare", "-m", "--propagation", "private", "/usr/bin/python3", "-c", code, root],
                         stdout=subprocess.PIPE, text=True)
    try:
        if p.stdout.readline() != "0\n":
            pytest.skip("missing: the right to mount FUSE")
        connect, _, _ = server("--store", store)
        c = connect()
        began = time.monotonic()
        c.want("/mute/stuck")
        assert time.monotonic() - began < 5
        subprocess.Popen([f"{WORKLOADS}/burn-static", "300", "1"], stdout=subprocess.DEVNULL).wait()
        state, _, reason, _ = c.want(f"{WORKLOADS}/burn-static")
        assert state == READY, reason
    finally:
        p.kill()
        p.wait()
        p.stdout.close()


def test_what_a_loader_starts_again_is_no_less_than_what_it_started(store):
    """A loader gives up rights when it records (confine.h), and who starts sonde-maps again hands it those that are left."""
    def maps():
        return [int(p) for p in subprocess.run(["pgrep", "-P", str(c.pid), "-x", "sonde-maps"], capture_output=True, text=True, check=False).stdout.split()]

    c = Capture(store).start()
    try:
        [first] = maps()
        os.kill(first, signal.SIGKILL)
        assert until(lambda: maps() not in ([], [first]), 30), c.said()
        [again] = maps()
        assert until(lambda: any("bpf-prog" in link for link in procfs.links(again)), 30), c.said()
        c.stop()
        assert "no BPF program" not in c.said(), c.said()
    finally:
        c.close()
