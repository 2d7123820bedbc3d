# SPDX-License-Identifier: Apache-2.0
"""loads: what runs beside the agent. Each is started in groups of its own: `load`, and `app` for servers whose CPU time is told apart."""
import json
import os
import shutil
import socket
import subprocess
import time

import bench

PROGRAMS = os.path.join(bench.BUILD, "tests", "bench")
MIX = os.path.join(bench.ROOT, "tests", "bench", "mix")
LOAD = os.path.join(bench.ROOT, "tests", "bench", "peers", "load")
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else "python3"


def free_port():
    """One below those that the kernel gives to clients, which nobody listens on now."""
    for port in range(25000 + os.getpid() % 2000, 32000):
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue
    raise RuntimeError("missing: a free port")


def await_port(port, seconds=20):
    end = time.monotonic() + seconds
    while True:
        with socket.socket() as s:
            if not s.connect_ex(("127.0.0.1", port)):
                return
        if time.monotonic() > end:
            raise RuntimeError(f"nothing listens on port {port}")
        time.sleep(0.1)


def start(argv, group, **kw):
    """A child in `group`, in a session of its own."""
    def enter():
        os.setsid()
        group.enter()
    kw = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL} | kw
    return subprocess.Popen(argv, preexec_fn=enter, **kw)


class Idle:
    agents = ["nothing", "sonded", "sonded, all", "otel 20 Hz"]

    def __init__(self, run):
        self.run = run

    def begin(self):
        pass

    def clients(self):
        """{name: what each said at its end}"""
        return {}


class Busy(Idle):
    """Both CPUs: C without frame pointers, Python."""
    agents = ["nothing", "sonde 99 Hz", "sonde 20 Hz", "otel 20 Hz", "otel 99 Hz", "perf -g", "perf dwarf", "bpftrace 99 Hz"]

    def begin(self):
        start([f"{PROGRAMS}/recurse", "100000"], self.run.load)
        start([PYTHON, f"{MIX}/recurse.py", "100000"], self.run.load)


class Forks(Busy):
    """The same, a compiler that starts again and again, and 100 starts of /bin/true a second."""
    agents = ["nothing", "sonde 99 Hz", "sonde cpu, offcpu", "sonded", "sonded, all", "otel 20 Hz", "otel 99 Hz", "perf -g", "bpftrace 99 Hz"]

    def begin(self):
        super().begin()
        start([f"{PROGRAMS}/spawner", "100000", "100", "/bin/true"], self.run.load)
        start(["sh", "-c", 'while :; do gcc -O2 -c -o /dev/null "$0"; done', f"{MIX}/service.c"], self.run.load)


class Switches(Idle):
    """Four pairs that sleep 1 ms and hand a byte back and forth."""
    agents = ["nothing", "sonde offcpu", "sonde cpu, offcpu", "otel offcpu", "offcputime", "bpftrace offcpu"]

    def begin(self):
        start([f"{PROGRAMS}/pairs", "4", "1000"], self.run.load)


NGINX = """daemon off; worker_processes 1; pid {d}/nginx.pid; error_log {d}/nginx.err; events {{ worker_connections 512; }}
http {{ access_log off; keepalive_requests 100000000; client_body_temp_path {d}/1; proxy_temp_path {d}/2; fastcgi_temp_path {d}/3;
uwsgi_temp_path {d}/4; scgi_temp_path {d}/5; server {{ listen 127.0.0.1:{port}; root {d}/www; }} }}
"""


class Requests(Idle):
    """nginx and Redis, asked 2000 times a second each, at a held schedule."""
    agents = ["nothing", "sonde l7", "sonded, all"]
    rate = 2000

    def begin(self):
        d, port, redis = self.run.folder, free_port(), None
        if not shutil.which("nginx") or not shutil.which("redis-server"):
            raise RuntimeError("missing: nginx and redis-server")
        os.makedirs(f"{d}/www", exist_ok=True)
        os.chmod(d, 0o755)
        with open(f"{d}/www/index.html", "w", encoding="ascii") as f:
            f.write("hello world\n" * 20)
        with open(f"{d}/nginx.conf", "w", encoding="ascii") as f:
            f.write(NGINX.format(d=d, port=port))
        start(["nginx", "-c", f"{d}/nginx.conf", "-p", d], self.run.app)
        await_port(port)
        redis = free_port()
        start(["redis-server", "--port", str(redis), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", d], self.run.app)
        await_port(redis)
        seconds = str(int(self.run.seconds) + 3)
        self.asking = {kind: start([f"{PROGRAMS}/rate", kind, str(at), str(self.rate), "16", seconds], self.run.load, stdout=subprocess.PIPE)
                       for kind, at in (("http", port), ("redis", redis))}

    def clients(self):
        said = {}
        for kind, child in self.asking.items():
            try:
                said[kind] = json.loads(child.communicate(timeout=30)[0])
            except (ValueError, subprocess.TimeoutExpired) as e:
                said[kind] = {"failed": str(e)[:100]}
        return said


LOADS = {"idle": Idle, "busy": Busy, "forks": Forks, "switches": Switches, "requests": Requests}
