#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""load: a host that drowns, for a bounded time, and what it does, as JSON.

    tests/drowning/load.py --busy 60 --seconds 60 --truth FILE

Busy programs of many kinds, each a file that nobody has seen before; forks, writes, a compiler, redis and nginx with clients. Each process has a session of its own, as
services and terminals have (with autogroup that is a scheduling group). Everything ends with this program, whatever ends it.
"""
import argparse
import concurrent.futures
import contextlib
import ctypes
import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

PYTHON = """
import time
def leaf_{n}(k):
    s = 0
    for i in range(k):
        s = (s * 31 + i) % 1000003
    return s
def deep_{n}(d):
    return leaf_{n}(3000) if d == 0 else deep_{n}(d - 1)
def work_{n}(until):
    while time.monotonic() < until:
        deep_{n}(10)
work_{n}(time.monotonic() + {limit})
"""
NODE = """
function leaf_{n}(k) {{ let s = 0; for (let i = 0; i < k; i++) s = (s * 31 + i) % 1000003; return s; }}
function deep_{n}(d) {{ return d == 0 ? leaf_{n}(30000) : deep_{n}(d - 1) + 1; }}
function work_{n}(until) {{ while (Date.now() < until) deep_{n}(10); }}
work_{n}(Date.now() + {limit} * 1000);
"""
RUBY = """
def leaf_{n}(k) s = 0; i = 0; while i < k; s = (s * 31 + i) % 1000003; i += 1; end; s end
def deep_{n}(d) d == 0 ? leaf_{n}(3000) : deep_{n}(d - 1) + 1 end
def work_{n}(t) deep_{n}(10) while Process.clock_gettime(Process::CLOCK_MONOTONIC) < t end
work_{n}(Process.clock_gettime(Process::CLOCK_MONOTONIC) + {limit})
"""
PHP = """<?php
function leaf_{n}($k) {{ $s = 0; for ($i = 0; $i < $k; $i++) $s = ($s * 31 + $i) % 1000003; return $s; }}
function deep_{n}($d) {{ return $d == 0 ? leaf_{n}(3000) : deep_{n}($d - 1) + 1; }}
function work_{n}($t) {{ while (microtime(true) < $t) deep_{n}(10); }}
work_{n}(microtime(true) + {limit});
"""
JAVA = """
public class Busy{n} {{
    static long sink;
    static long leaf_{n}(int k) {{ long s = 0; for (int i = 0; i < k; i++) s = (s * 31 + i) % 1000003; return s; }}
    static long deep_{n}(int d) {{ return d == 0 ? leaf_{n}(30000) : deep_{n}(d - 1) + 1; }}
    static void work_{n}(long t) {{ while (System.nanoTime() < t) sink += deep_{n}(10); }}
    public static void main(String[] a) {{ work_{n}(System.nanoTime() + {limit}L * 1000000000L); }}
}}
"""
GO = """package main
import ("os"; "time")
var sink uint64
//go:noinline
func leaf_{n}(x uint64) uint64 {{ for i := uint64(0); i < 20000; i++ {{ x = x*6364136223846793005 + {n} }}; return x }}
//go:noinline
func mid_{n}(x uint64) uint64 {{ return leaf_{n}(x) + 1 }}
//go:noinline
func work_{n}(t time.Time) {{ for i := uint64(0); time.Now().Before(t); i++ {{ sink += mid_{n}(i) }} }}
func main() {{ work_{n}(time.Now().Add({limit} * time.Second)); os.Exit(int(sink & 0)) }}
"""
RUST = """
use std::time::{{Duration, Instant}};
#[inline(never)] fn leaf_{n}(mut x: u64) -> u64 {{ for _ in 0..20000 {{ x = std::hint::black_box(x.wrapping_mul(6364136223846793005).wrapping_add({n})); }} x }}
#[inline(never)] fn mid_{n}(x: u64) -> u64 {{ std::hint::black_box(leaf_{n}(x)) + 1 }}
#[inline(never)] fn work_{n}(t: Instant) -> u64 {{ let mut s = 0u64; while Instant::now() < t {{ s = s.wrapping_add(mid_{n}(s)); }} s }}
fn main() {{ std::process::exit((std::hint::black_box(work_{n}(Instant::now() + Duration::from_secs({limit}))) & 0) as i32) }}
"""

C_KINDS = (("frame pointers", ("-fno-omit-frame-pointer",)), ("no frame pointers", ("-fomit-frame-pointer",)),
           ("static", ("-fomit-frame-pointer", "-static")), ("stripped", ("-fomit-frame-pointer", "-s")))
LIMIT_S = 1200  # after what each process ends by itself, whatever becomes of its parent


def c_source(n, paths):
    """main > work_n > one of `paths` functions mid_n_k > leaf_n_k, by turns."""
    keep = "__attribute__((noinline, noclone))"
    out = ["#include <stdlib.h>\n#include <unistd.h>\nstatic volatile unsigned long sink;"]
    for k in range(paths):
        out.append(f"{keep} unsigned long leaf_{n}_{k}(unsigned long x) {{ for (long i = 0; i < {20000 + 97 * k}; i++)"
                   f" x = x * 6364136223846793005UL + {2 * k + 1}; return x; }}")
        out.append(f"{keep} unsigned long mid_{n}_{k}(unsigned long x) {{ char pad[{16 + k % 7 * 24}]; pad[x % sizeof(pad)] = (char)x;"
                   f" sink += pad[x % sizeof(pad)]; return leaf_{n}_{k}(x) + 1; }}")
    table = ", ".join(f"mid_{n}_{k}" for k in range(paths))
    out.append(f"static unsigned long (*const path[])(unsigned long) = {{ {table} }};")
    out.append(f"{keep} void work_{n}(void) {{ for (unsigned long i = 0;; i++) sink += path[i % {paths}](i); }}")
    out.append(f"int main(void) {{ alarm({LIMIT_S}); work_{n}(); }}")
    return "\n".join(out) + "\n"


def runs(*argv):
    """That it begins and ends well."""
    try:
        return subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=120,
                              check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def write(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return path


def begin():
    """In each child: a session of its own, no core, and an end with its parent."""
    os.setsid()
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def cpu_seconds(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except OSError:
        return None


def native_programs(folder, n_c):
    """Makes executables, each another file. [(kind, argv, are its functions named, number)]"""
    jobs = []
    for i in range(n_c if shutil.which("gcc") else 0):
        kind, flags = C_KINDS[i % len(C_KINDS)]
        n = 100 + i
        out = os.path.join(folder, f"busy{n}")
        argv = ["gcc", "-O2", *flags, "-o", out, write(folder, f"busy{n}.c", c_source(n, 3 + i % 5 * 40))]
        jobs.append((f"c, {kind}", argv, out, kind != "stripped", n))
    for n in (200, 201) if shutil.which("rustc") else ():
        out = os.path.join(folder, f"busy{n}")
        argv = ["rustc", "-O", "-C", "strip=symbols", "-o", out, write(folder, f"busy{n}.rs", RUST.format(n=n, limit=LIMIT_S))]
        jobs.append(("rust, stripped", argv, out, False, n))
    for n in (300, 301) if shutil.which("go") else ():
        out = os.path.join(folder, f"busy{n}")
        argv = ["go", "build", "-o", out, write(folder, f"busy{n}.go", GO.format(n=n, limit=LIMIT_S))]
        jobs.append(("go", argv, out, True, n))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        made = list(pool.map(lambda j: runs(*j[1]), jobs))
    return [(kind, [out], named, n) for (kind, _, out, named, n), ok in zip(jobs, made) if ok]


def script_programs(folder):
    """What is installed, one of each language before a second one."""
    rows = [("python", [sys.executable, write(folder, f"p{n}.py", PYTHON.format(n=n, limit=LIMIT_S))], n) for n in range(6)]
    if shutil.which("node"):
        rows += [("node", ["node", write(folder, f"n{n}.js", NODE.format(n=n, limit=LIMIT_S))], n) for n in range(10, 14)]
    if shutil.which("javac"):
        for n in range(20, 24):
            if runs("javac", "-d", folder, write(folder, f"Busy{n}.java", JAVA.format(n=n, limit=LIMIT_S))):
                rows.append(("java", ["java", "-Xmx64m", "-XX:+UseSerialGC", "-cp", folder, f"Busy{n}"], n))
    if shutil.which("ruby"):
        jit = ["--yjit"] if runs("ruby", "--yjit", "-e", "1") else []
        rows += [("ruby yjit" if with_jit else "ruby", ["ruby", *with_jit, write(folder, f"r{n}.rb", RUBY.format(n=n, limit=LIMIT_S))], n)
                 for n, with_jit in ((30, jit), (31, []))]
    if shutil.which("php"):
        jit = ["-dopcache.enable_cli=1", "-dopcache.file_update_protection=0", "-dopcache.jit_buffer_size=32M", "-dopcache.jit=tracing"]
        rows += [("php jit" if with_jit else "php", ["php", *with_jit, write(folder, f"h{n}.php", PHP.format(n=n, limit=LIMIT_S))], n)
                 for n, with_jit in ((40, jit), (41, []))]
    seen = {}
    turns = []
    for kind, argv, n in rows:
        seen[argv[0]] = seen.get(argv[0], 0) + 1
        turns.append((seen[argv[0]], len(turns), (kind, argv, True, n)))
    return [row for _, _, row in sorted(turns)]


def forker(rate):
    """Starts and reaps /bin/true `rate` times a second."""
    return (f"import os, time\nt = time.monotonic(); end = t + {LIMIT_S}\n"
            "while t < end:\n"
            f"    for i in range({max(1, rate // 10)}):\n"
            "        os.waitpid(os.posix_spawn('/bin/true', ['true'], {}), 0)\n"
            "    t += 0.1\n    time.sleep(max(0, t - time.monotonic()))\n")


def writer(folder, mib):
    """Writes and syncs `mib` MiB a second into a file of 64 MiB at most."""
    return (f"import os, time\nf = os.open({os.path.join(folder, 'written')!r}, os.O_CREAT | os.O_WRONLY); b = os.urandom(1 << 20); n = 0\n"
            f"t = time.monotonic(); end = t + {LIMIT_S}\n"
            "while t < end:\n"
            f"    for i in range({mib}):\n"
            "        os.pwrite(f, b, (n % 64) << 20); n += 1\n"
            "    os.fsync(f)\n    t += 1\n    time.sleep(max(0, t - time.monotonic()))\n")


def compiler(folder):
    """Compiles one file again and again: what `make` does to a host."""
    source = write(folder, "again.c", c_source(900, 200))
    return (f"import subprocess, time\nend = time.monotonic() + {LIMIT_S}\n"
            "while time.monotonic() < end:\n"
            f"    subprocess.run(['gcc', '-O2', '-c', '-o', {source + '.o'!r}, {source!r}], check=False)\n")


HTTP_CLIENT = """
import http.client, sys, time
end = time.monotonic() + {limit}
while time.monotonic() < end:
    try:
        c = http.client.HTTPConnection("127.0.0.1", {port}, timeout=5)
        for _ in range(100):
            c.request("GET", "/"); c.getresponse().read(); time.sleep(0.005)
    except OSError:
        time.sleep(0.1)
"""


def free_port():
    with socket.socket() as s:
        for port in range(20000 + os.getpid() % 5000, 32000):
            with contextlib.suppress(OSError):
                s.bind(("127.0.0.1", port))
                return port
    raise OSError("no free port")


def servers(folder):
    """[(kind, argv)] of redis and nginx, and of a client of each that keeps it busy; each where its program is installed."""
    rows = []
    if shutil.which("redis-server") and shutil.which("redis-benchmark"):
        port = str(free_port())
        rows.append(("redis", ["redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", folder]))
        rows.append(("redis client", ["sh", "-c", f"while :; do redis-benchmark -p {port} -c 4 -n 20000 -q -t get,set; sleep 0.1; done"]))
    if shutil.which("nginx"):
        port = free_port()
        where = "".join(f"{k}_temp_path {folder}/{k}; " for k in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        conf = write(folder, "nginx.conf", f"daemon off; pid {folder}/nginx.pid; error_log {folder}/nginx.log; worker_processes 2; events {{}}\n"
                     f"http {{ access_log off; {where} server {{ listen 127.0.0.1:{port}; root {folder}; location / {{ return 200 'well'; }} }} }}\n")
        rows.append(("nginx", ["nginx", "-p", folder, "-e", f"{folder}/nginx.log", "-c", conf]))
        rows.append(("nginx client", [sys.executable, "-c", HTTP_CLIENT.format(limit=LIMIT_S, port=port)]))
    return rows


def storm(rate, seconds):
    """Processes that fork and execute `rate` times a second, or as often as the host can."""
    return [sys.executable, "-c",
            "import os, time\nt = time.monotonic(); end = t + " + str(seconds) + "\n"
            "while time.monotonic() < end:\n"
            f"    for i in range({max(1, rate // 20)}):\n"
            "        os.waitpid(os.posix_spawn('/bin/true', ['true'], {}), 0)\n"
            "    t += 0.05\n    time.sleep(max(0, t - time.monotonic()))\n"]


class Load:
    """The processes: `started` has pid, kind, program, named, script and n of each; used as a context."""

    def __init__(self, busy=60, n_c=20, forks=100, writes=8, serves=True, compiles=True):
        self.busy, self.n_c, self.forks, self.writes, self.serves, self.compiles = busy, n_c, forks, writes, serves, compiles
        self.folder, self.children, self.started = tempfile.mkdtemp(prefix="drowning-"), [], []
        os.chmod(self.folder, 0o755)
        self.natives = native_programs(self.folder, n_c)
        self.scripts = script_programs(self.folder)

    def start(self, argv, **more):
        child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=begin)
        self.children.append(child)
        self.started.append({**more, "pid": child.pid, "program": os.path.basename(argv[0])})

    def __enter__(self):
        try:
            scripts = self.scripts[:self.busy // 3]
            rest = self.busy - len(scripts)
            for kind, argv, named, n in scripts + [self.natives[i % len(self.natives)] for i in range(rest)]:
                self.start(argv, kind=kind, named=named, n=n, script=len(argv) > 1)
            if self.forks:
                self.start([sys.executable, "-c", forker(self.forks)], kind="forks", named=True, n=None, script=False)
            if self.writes:
                self.start([sys.executable, "-c", writer(self.folder, self.writes)], kind="writes", named=True, n=None, script=False)
            if self.compiles:
                self.start([sys.executable, "-c", compiler(self.folder)], kind="compiles", named=True, n=None, script=False)
            for kind, argv in servers(self.folder) if self.serves else ():
                self.start(argv, kind=kind, named=kind.endswith("client"), n=None, script=False)  # Debian strips servers
        except BaseException:
            self.__exit__()
            raise
        return self

    def truth(self):
        return {"busy": self.busy, "processes": [{**p, "cpu_s": cpu_seconds(p["pid"])} for p in self.started]}

    def __exit__(self, *_):
        for child in self.children:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--busy", type=int, default=60, help="busy processes (default 60)")
    args.add_argument("--seconds", type=int, default=60, help="how long after all have begun (default 60, at most 1100)")
    args.add_argument("--programs", type=int, default=20, help="executables made from C (default 20)")
    args.add_argument("--forks", type=int, default=100, help="processes begun a second (default 100; 0: none)")
    args.add_argument("--writes", type=int, default=8, help="MiB written and synced a second (default 8; 0: none)")
    args.add_argument("--no-servers", action="store_true", help="without redis, nginx and their clients")
    args.add_argument("--no-compile", action="store_true", help="without a compiler that runs all the time")
    args.add_argument("--truth", help="file for the JSON; else it is printed")
    a = args.parse_args()
    for s in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(s, lambda *_: sys.exit(130))
    with Load(a.busy, a.programs, a.forks, a.writes, not a.no_servers, not a.no_compile) as load:
        kinds = {}
        for p in load.started:
            kinds[p["kind"]] = kinds.get(p["kind"], 0) + 1
        print("begun:", ", ".join(f"{n} {kind}" for kind, n in kinds.items()), flush=True)
        time.sleep(min(a.seconds, LIMIT_S - 100))
        text = json.dumps(load.truth(), indent=1)
    if a.truth:
        write(".", a.truth, text + "\n")
    else:
        print(text)


if __name__ == "__main__":
    main()
