# SPDX-License-Identifier: Apache-2.0
"""Debian's own Go programs, each started by the test in a new folder, on loopback, and ended by it; under a load of
its own kind. Nothing is installed: packages are unpacked under build/live and kept. As in servers.py, a program that
cannot be had raises Missing."""
import fcntl
import http.client
import os
import socket
import subprocess
import threading
import time

import goheap
from conftest import BUILD
from servers import Missing, Running, free_port

CACHE = os.path.join(BUILD, "live")
SUITE = "bookworm"


def unpacked(*packages):
    """The folder that contains them."""
    debian = goheap.gomatrix.debian
    os.makedirs(CACHE, exist_ok=True)
    with open(os.path.join(CACHE, "lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for package in packages:
            root = os.path.join(CACHE, package)
            if os.path.isdir(root):
                continue
            try:
                apt = debian.Suite(SUITE, False, CACHE)
                apt.update()
                deb = apt.download(package)
            except (debian.Gone, subprocess.TimeoutExpired) as e:
                raise Missing(f"{package}: {e}") from None
            subprocess.run(["dpkg", "-x", deb, root + ".part"], check=True)
            os.unlink(deb)
            os.rename(root + ".part", root)
    return os.path.join(CACHE, packages[0])


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost")
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)


class GoProgram:
    """What runs: `pid`, `path` of its executable, `profile` (of /debug/pprof/heap, None: it offers none)."""

    def __init__(self, running, process, where, work, profile="/debug/pprof/heap"):
        self.running, self.pid, self.where, self.work, self.profile = running, process.pid, where, work, profile
        self.path = f"/proc/{self.pid}/exe"
        self.ends = threading.Event()
        self.worker = threading.Thread(target=self.go_on)
        self.done = 0

    def connection(self):
        if isinstance(self.where, int):
            return http.client.HTTPConnection("127.0.0.1", self.where, timeout=20)
        return UnixConnection(self.where)

    def get(self, path):
        c = self.connection()
        try:
            c.request("GET", path)
            answer = c.getresponse()
            body = answer.read().decode("utf-8", "replace")
        finally:
            c.close()
        assert answer.status == 200, (path, answer.status, body[:200])
        return body

    def ready(self, path):
        until = time.monotonic() + 30
        while time.monotonic() < until:
            try:
                return self.get(path)
            except (OSError, AssertionError, http.client.HTTPException):
                time.sleep(0.1)
        raise Missing(f"{path} does not answer")

    def go_on(self):
        while not self.ends.is_set():
            try:
                self.work(self)
                self.done += 1
            except (OSError, http.client.HTTPException, subprocess.SubprocessError):
                pass
            self.ends.wait(0.002)

    def stop(self):
        self.ends.set()
        if self.worker.is_alive():
            self.worker.join()
        self.running.stop()


def started(argv, folder, where, ready, work, profile="/debug/pprof/heap", env=None):
    r = Running({os.path.basename(argv[0])})
    log = open(os.path.join(folder, "log"), "wb")
    p = GoProgram(r, r.start(argv, cwd=folder, stdout=log, stderr=log, env=dict(os.environ, HOME=folder, **(env or {}))), where,
                  work, profile)
    log.close()
    try:
        p.ready(ready)
    except Missing:
        p.stop()
        raise
    p.worker.start()
    return p


# ---- the programs ----

def etcd(folder):
    path = os.path.join(unpacked("etcd-server"), "usr/bin/etcd")
    port, peer = free_port(), free_port()

    def put(p):
        c = p.connection()
        for i in range(50):
            c.request("POST", "/v3/kv/put", '{"key":"%s","value":"%s"}' % ("Zm9v" * (i + 1), "YmFy" * 200))
            c.getresponse().read()
        c.close()
    url, peers = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{peer}"
    return started([path, "--data-dir", os.path.join(folder, "data"), "--listen-client-urls", url, "--advertise-client-urls", url,
                    "--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers, "--initial-cluster", f"default={peers}",
                    "--enable-pprof", "--unsafe-no-fsync"], folder, port, "/health", put)


def prometheus(folder):
    path = os.path.join(unpacked("prometheus"), "usr/bin/prometheus")
    port = free_port()
    with open(os.path.join(folder, "prometheus.yml"), "w", encoding="ascii") as f:
        f.write("global: {scrape_interval: 1s}\nscrape_configs:\n  - job_name: own\n    static_configs:\n"
                f"      - targets: ['127.0.0.1:{port}']\n")

    def query(p):
        p.get("/api/v1/query?query=sum(rate(prometheus_http_requests_total%5B1m%5D))by(handler)")
        p.get("/metrics")
    return started([path, f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
                    f"--web.listen-address=127.0.0.1:{port}", "--storage.tsdb.retention.time=1h"], folder, port, "/-/ready", query)


def caddy(folder):
    path = os.path.join(unpacked("caddy"), "usr/bin/caddy")
    port, admin = free_port(), free_port()
    with open(os.path.join(folder, "Caddyfile"), "w", encoding="ascii") as f:
        f.write("{\n\tadmin 127.0.0.1:%d\n\tauto_https off\n}\nhttp://127.0.0.1:%d {\n\tencode gzip\n\ttemplates\n\troot * %s\n"
                "\tfile_server browse\n}\n" % (admin, port, folder))

    def browse(p):
        c = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        for _ in range(20):
            c.request("GET", "/", headers={"Accept-Encoding": "gzip"})
            c.getresponse().read()
        c.close()
    return started([path, "run", "--config", os.path.join(folder, "Caddyfile"), "--adapter", "caddyfile"], folder, admin,
                   "/config/", browse, env={"XDG_DATA_HOME": folder, "XDG_CONFIG_HOME": folder})


def hugo(folder):
    root = unpacked("hugo", "libsass1", "libwebp7")
    port = free_port()
    site = os.path.join(folder, "site")
    for sub in ("content/posts", "layouts/_default"):
        os.makedirs(os.path.join(site, sub))
    files = {"hugo.toml": 'baseURL = "http://localhost/"\n', "config.toml": 'baseURL = "http://localhost/"\ntitle = "t"\n',
             "layouts/_default/single.html": "<h1>{{ .Title }}</h1>{{ .Content }}",
             "layouts/_default/list.html": "{{ range .Pages }}<p>{{ .Title }}</p>{{ end }}"}
    files.update({f"content/posts/{i}.md": f"---\ntitle: Post {i}\n---\n" + "*some* text, [a link](x)\n\n" * 50 for i in range(200)})
    for name, text in files.items():
        with open(os.path.join(site, name), "w", encoding="ascii") as f:
            f.write(text)
    paths = ":".join(os.path.join(CACHE, p, "usr/lib/x86_64-linux-gnu") for p in ("libsass1", "libwebp7"))

    def rebuild(p):
        with open(os.path.join(site, "content/posts/0.md"), "a", encoding="ascii") as f:
            f.write("more\n\n")
        p.ends.wait(0.5)
        p.get("/posts/")
    return started([os.path.join(root, "usr/bin/hugo"), "server", "--bind", "127.0.0.1", "--port", str(port), "--source", site],
                   folder, port, "/", rebuild, profile=None, env={"LD_LIBRARY_PATH": paths})


def containerd(folder):
    path = "/usr/bin/containerd"
    if not os.path.exists(path):
        raise Missing("containerd")
    with open(os.path.join(folder, "config.toml"), "w", encoding="ascii") as f:
        f.write(f'version = 2\nroot = "{folder}/root"\nstate = "{folder}/state"\ndisabled_plugins = ["io.containerd.grpc.v1.cri"]\n'
                f'[grpc]\naddress = "{folder}/c.sock"\n[debug]\naddress = "{folder}/d.sock"\n')

    def ask(p):
        subprocess.run(["ctr", "-a", f"{folder}/c.sock", "plugins", "ls"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                       timeout=20, check=False)
        p.get("/debug/vars")
    return started([path, "--config", os.path.join(folder, "config.toml")], folder, f"{folder}/d.sock", "/debug/vars", ask)


def dockerd(folder):
    """Without a bridge, without rules, with a separate store: it cannot disturb another engine."""
    path = next((p for p in ("/usr/sbin/dockerd", "/usr/bin/dockerd") if os.path.exists(p)), None)
    if not path:
        raise Missing("dockerd")
    with open(os.path.join(folder, "docker.json"), "w", encoding="ascii") as f:
        f.write("{}")
    below = containerd(folder)
    below.ends.set()

    def ask(p):
        for what in ("/info", "/version", "/images/json", "/containers/json?all=1"):
            p.get(what)
    try:
        p = started([path, "--debug", "--data-root", f"{folder}/docker", "--exec-root", f"{folder}/exec", "--pidfile",
                     f"{folder}/docker.pid", "--host", f"unix://{folder}/docker.sock", "--containerd", f"{folder}/c.sock",
                     "--bridge", "none", "--iptables=false", "--ip6tables=false", "--ip-forward=false", "--ip-masq=false",
                     "--userland-proxy=false", "--storage-driver", "vfs", "--config-file", f"{folder}/docker.json"], folder, f"{folder}/docker.sock",
                    "/_ping", ask)
    except Missing:
        below.stop()
        raise
    own = p.stop
    p.stop = lambda: (own(), below.stop())
    return p


PROGRAMS = {f.__name__: f for f in (etcd, prometheus, caddy, hugo, containerd, dockerd)}
