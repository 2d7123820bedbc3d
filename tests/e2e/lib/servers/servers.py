# SPDX-License-Identifier: Apache-2.0
"""Debian's own programs under load, each started by the test in a new folder, on loopback, and ended by it.

A program is a function (folder) -> Running; it raises Missing where the machine lacks it. `executables` are the names
under which its work is found in a profile.
"""
import os
import shutil
import signal
import socket
import subprocess
import textwrap
import time


class Missing(Exception):
    pass


class Running:
    """Processes that were started, ended in reverse order. `load` runs a command over and over until the end."""

    def __init__(self, executables, pids=()):
        self.executables = executables
        self.started = []
        self.stop_with = []

    def start(self, argv, sig=signal.SIGTERM, **kw):
        kw.setdefault("stdout", subprocess.DEVNULL)
        kw.setdefault("stderr", subprocess.DEVNULL)
        p = subprocess.Popen(argv, stdin=subprocess.DEVNULL, start_new_session=True, **kw)
        self.started.append((p, sig))
        return p

    def load(self, argv, **kw):
        quoted = " ".join("'" + a.replace("'", "'\\''") + "'" for a in argv)
        return self.start(["sh", "-c", f"while :; do {quoted}; done"], signal.SIGKILL, **kw)

    def stop(self):
        for p, sig in reversed(self.started):
            try:
                os.killpg(p.pid, sig)
            except ProcessLookupError:
                pass
            try:
                p.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(p.pid, signal.SIGKILL)
                p.wait()


def find(name, *places):
    found = shutil.which(name) or next((p for p in places if os.path.exists(p)), None)
    if not found:
        raise Missing(name)
    return found


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_port(port, p, seconds=30):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if p.poll() is not None:
            raise Missing(f"a server that starts (exit {p.returncode})")
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise Missing("a server that listens in time")


def nginx(folder):
    server, wrk = find("nginx"), find("wrk")
    port = free_port()
    with open(os.path.join(folder, "index.html"), "w") as f:
        f.write("x" * 4000)
    conf = os.path.join(folder, "nginx.conf")
    with open(conf, "w") as f:
        f.write(f"worker_processes 1; pid {folder}/pid; error_log /dev/null; daemon off; user root;\n"
                "events {} http { access_log off; gzip on; gzip_types *; gzip_min_length 1;\n"
                f"server {{ listen 127.0.0.1:{port}; root {folder}; }} }}\n")
    r = Running(["nginx"])
    wait_port(port, r.start([server, "-c", conf, "-p", folder]))
    r.load([wrk, "-t1", "-c8", "-d60s", "-H", "Accept-Encoding: gzip", f"http://127.0.0.1:{port}/index.html"])
    return r


def redis(folder):
    server, bench = find("redis-server"), find("redis-benchmark")
    port = free_port()
    r = Running(["redis-server", "redis-check-rdb"])  # Debian's redis-server is a link to redis-check-rdb
    wait_port(port, r.start([server, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", folder]))
    r.load([bench, "-p", str(port), "-n", "100000000", "-q", "-t", "set,lpush,lrange_100,zadd"])
    return r


def postgres(folder, load=True, settings=("fsync=off",)):
    place = "/usr/lib/postgresql/15/bin/"
    tools = {n: find(n, place + n) for n in ("initdb", "postgres", "pgbench")}
    port = free_port()
    data = os.path.join(folder, "data")
    os.chmod(folder, 0o755)
    shutil.chown(folder, "postgres")
    user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
    if not os.path.exists(place + "initdb"):
        raise Missing("postgresql-15")
    subprocess.run([*user, place + "initdb", "-D", data, "-A", "trust", "-N"], check=True, capture_output=True)
    r = Running(["postgres"])
    wait_port(port, r.start([*user, place + "postgres", "-D", data, "-p", str(port), "-k", folder, "-c",
                             "listen_addresses=127.0.0.1", *(x for s in settings for x in ("-c", s))], signal.SIGINT))
    at = r.at = ["-h", "127.0.0.1", "-p", str(port), "-U", "postgres", "postgres"]
    for _ in range(100):
        if not subprocess.run([tools["pgbench"], "-i", "-q", *at], capture_output=True).returncode:
            break
        time.sleep(0.1)
    if load:
        r.load([tools["pgbench"], "-S", "-c", "2", "-T", "60", *at])
    return r


def mariadb(folder, load=True):
    server, setup, bench = find("mariadbd", "/usr/sbin/mariadbd"), find("mariadb-install-db"), load and find("sysbench")
    port = free_port()
    data, sock = os.path.join(folder, "data"), os.path.join(folder, "sock")
    subprocess.run([setup, f"--datadir={data}", "--user=root", "--auth-root-authentication-method=normal",
                    "--skip-test-db"], check=True, capture_output=True)
    r = Running(["mariadbd"])
    wait_port(port, r.start([server, "--no-defaults", f"--datadir={data}", f"--socket={sock}", f"--port={port}",
                             "--bind-address=127.0.0.1", "--user=root", f"--pid-file={folder}/pid"]), 60)
    client = find("mariadb")
    r.at = ["-h", "127.0.0.1", "-P", str(port), "-u", "root", "--protocol=tcp"]
    if not load:
        return r
    subprocess.run([client, "-S", sock, "-u", "root", "-e", "create database sbtest"], check=True, capture_output=True)
    base = [bench, "--db-driver=mysql", f"--mysql-socket={sock}", "--mysql-user=root", "--tables=1",
            "--table-size=2000", "--threads=2", "--time=60", "oltp_read_write"]
    subprocess.run([*base, "prepare"], check=True, capture_output=True)
    r.load([*base, "run"])
    return r


PYTHON = textwrap.dedent("""
    import json, re, hashlib, zlib
    def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
    def work():
        d = {str(i): [i, i * 2.5, "x" * 20] for i in range(2000)}
        s = json.dumps(d); json.loads(s); re.findall(r"x+[0-9]*", s); zlib.compress(s.encode()); sorted(d, key=d.get)
        fib(18); hashlib.sha256(s.encode()).hexdigest()
    while True: work()
""")

NODE = textwrap.dedent("""
    const zlib = require('zlib'), crypto = require('crypto');
    function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
    for (;;) {
      const d = {}; for (let i = 0; i < 3000; i++) d['k' + i] = [i, i * 2.5, 'x'.repeat(20)];
      const s = JSON.stringify(d); JSON.parse(s); s.match(/x+[0-9]*/g);
      zlib.deflateSync(s); crypto.createHash('sha256').update(s).digest('hex'); fib(20);
      Object.keys(d).sort((a, b) => d[a][0] - d[b][0]);
    }
""")

JAVA = textwrap.dedent("""
    import java.util.*;
    public class Churn {
      public static void main(String[] a) {
        List<byte[]> keep = new ArrayList<>();
        long n = 0;
        while (true) {
          keep.add(new byte[10000]);
          if (keep.size() > 3000) keep.subList(0, 1500).clear();
          n += String.valueOf(n).hashCode();
          if (n == 42) System.gc();
        }
      }
    }
""")


def python3(folder):
    r = Running(["python3.11"])
    r.start([find("/usr/bin/python3", "/usr/bin/python3"), "-c", PYTHON])
    return r


def node(folder):
    r = Running(["node"])
    r.start([find("node"), "-e", NODE])
    return r


def java(folder):
    path = os.path.join(folder, "Churn.java")
    with open(path, "w") as f:
        f.write(JAVA)
    subprocess.run([find("javac"), "-d", folder, path], check=True, capture_output=True)
    r = Running(["java"])
    r.start([find("java"), "-Xmx64m", "-cp", folder, "Churn"])
    return r


def gcc(folder):
    path = os.path.join(folder, "big.c")
    with open(path, "w") as f:
        f.write("#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <math.h>\n")
        for i in range(400):
            f.write(f"int f{i}(int x, char *s){{int a[64];for(int i=0;i<64;i++)a[i]=x*i+{i};"
                    f"switch(x%7){{case 0:return a[3];case 1:return strlen(s)+a[x&63];case 2:printf(\"%d\",a[1]);}}"
                    f"double d=sin(x)*{i};while(x-->0)d+=a[x&63]*d;return (int)d;}}\n")
    r = Running(["cc1"])
    r.load([find("gcc"), "-O2", "-c", "-o", "/dev/null", path])
    return r


def clang(folder):
    r = gcc(folder)
    r.stop()
    r = Running(["clang"])
    r.load([find("clang"), "-O2", "-c", "-o", "/dev/null", os.path.join(folder, "big.c")])
    return r


def rustc(folder):
    path = os.path.join(folder, "big.rs")
    with open(path, "w") as f:
        f.write("#![allow(dead_code)] use std::collections::HashMap;\n")
        for i in range(150):
            f.write(f"pub fn f{i}(x: &HashMap<String, Vec<u64>>) -> u64 {{ x.iter().filter(|(k, _)| k.len() > {i})"
                    f".flat_map(|(_, v)| v.iter()).map(|v| v.wrapping_mul({i}u64)).fold(0, |a, b| a ^ b) }}\n")
        f.write("fn main() {}\n")
    r = Running(["rustc"])
    env = {k: v for k, v in os.environ.items() if k != "MAKEFLAGS"}
    r.load([find("rustc"), "-C", "opt-level=2", "--crate-type", "lib", "--emit", "obj", "-o", os.path.join(folder, "o"), path],
           env=env)
    return r


GO = textwrap.dedent("""
    package main
    import ("crypto/sha256"; "encoding/json"; "fmt"; "os"; "runtime/pprof"; "sort"; "strings"; "sync"; "time")
    func fib(n int) int { if n < 2 { return n }; return fib(n-1) + fib(n-2) }
    func work(n int) int {
        m := map[string][]float64{}
        for i := 0; i < 2000; i++ { k := fmt.Sprintf("key%d", i); m[k] = append(m[k], float64(i)*2.5) }
        b, _ := json.Marshal(m); var back map[string][]float64; json.Unmarshal(b, &back)
        keys := []string{}; for k := range back { keys = append(keys, strings.Repeat(k, 3)) }
        sort.Strings(keys); s := sha256.Sum256(b); return int(s[0]) + fib(20) + len(keys) + n
    }
    func main() {
        var wg sync.WaitGroup
        if len(os.Args) > 1 { // profile yourself: FILE SECONDS
            f, _ := os.Create(os.Args[1]); pprof.StartCPUProfile(f); d, _ := time.ParseDuration(os.Args[2])
            go func() { time.Sleep(d); pprof.StopCPUProfile(); f.Close(); os.Exit(0) }()
        }
        for g := 0; g < 2; g++ { wg.Add(1); go func(g int) { for { work(g); time.Now().Format(time.RFC3339) } }(g) }
        fmt.Fprintln(os.Stderr, "working"); wg.Wait()
    }
""")


def go_build(folder, compiler):
    path = os.path.join(folder, "main.go")
    with open(path, "w") as f:
        f.write(GO)
    out = os.path.join(folder, "goload")
    env = dict(os.environ, GO111MODULE="off", CGO_ENABLED="0", GOFLAGS="", GOTOOLCHAIN="local", GOPROXY="off",
               GOCACHE=os.path.join(folder, "cache"), HOME=folder)
    subprocess.run([compiler, "build", "-o", out, path], check=True, capture_output=True, env=env)
    return out


def go(folder, compiler):
    r = Running(["goload"])
    r.start([go_build(folder, compiler)])
    return r


def go_debian(folder):
    return go(folder, find("/usr/lib/go-1.19/bin/go", "/usr/lib/go-1.19/bin/go"))


def go_new(folder):
    return go(folder, find("/usr/local/go/bin/go", "/usr/local/go/bin/go"))


PROGRAMS = {"nginx": nginx, "redis": redis, "postgres": postgres, "mariadb": mariadb, "python3": python3, "node": node,
            "java": java, "gcc": gcc, "clang": clang, "rustc": rustc, "go-1.19": go_debian, "go-1.26": go_new}
