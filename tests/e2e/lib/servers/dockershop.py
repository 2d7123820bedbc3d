# SPDX-License-Identifier: Apache-2.0
"""The shop of netshop in containers of a real engine: nginx with a published port, gunicorn behind a Unix socket in a volume, PostgreSQL, Redis and a worker on
a bridge with IPv4 and IPv6, a Redis and a prober on the host's network; and who asks from outside of containers, on the host and in a network namespace of its own.

Nothing is pulled: the one image has no program, the host's own /usr is mounted into each container."""
import contextlib
import os
import shutil
import stat
import subprocess
import sys
import tempfile

from containers import engine
from conftest import need
from sonded import until

HERE = os.path.dirname(os.path.abspath(__file__))
POSTGRES = "/usr/lib/postgresql/15/bin"
NET4, NET6, GATE = "172.28.0", "fd00:28::", "172.28.0.1"
ADDRESS = {"db": 10, "cache": 11, "app": 12, "worker": 13, "web": 14}
FAR = "10.77.0"  # between the host and the network namespace
NGINX = """worker_processes 1; pid /tmp/pid; error_log /tmp/error; daemon off; user root; events {}
http { access_log off; client_body_temp_path /tmp/b; proxy_temp_path /tmp/p; fastcgi_temp_path /tmp/f; uwsgi_temp_path /tmp/u; scgi_temp_path /tmp/s;
  server { listen 80; listen [::]:80; location / { proxy_pass http://unix:/shared/shop.sock; } } }
"""
WORKER = "#!/usr/bin/python3\nimport sys\nsys.path.insert(0, '/shop')\nimport netshop\nnetshop.work()\n"
#: asks URL N times, a connection each time; "URL N" a line
ASKER = """#!/usr/bin/python3
import sys, urllib.request as u
for line in sys.stdin:
    url, n = line.split()
    sold = 0
    for _ in range(int(n)):
        try:
            sold += u.urlopen(url, timeout=5).read() == b"sold\\n"
        except OSError as e:
            print(e, file=sys.stderr)
    print(sold, flush=True)
"""


class Asker:
    def __init__(self, *command):
        self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def ask(self, url, n=1):
        self.child.stdin.write(f"{url} {n}\n")
        self.child.stdin.flush()
        return int(self.child.stdout.readline() or 0)

    def end(self):
        self.child.stdin.close()
        self.child.stdout.close()
        self.child.wait(timeout=180)


def write(path, text, mode=0o644):
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    os.chmod(path, mode)


class DockerShop:
    def __init__(self):
        for program in ("nginx", "gunicorn", "redis-server", "ip", f"{POSTGRES}/initdb"):
            need(program)
        self.engine = engine(bridge=True)
        self.folder = tempfile.mkdtemp(prefix="sonde-shop-")
        os.chmod(self.folder, 0o755)
        self.askers, self.stack, self.primed = {}, contextlib.ExitStack(), 0

    # --- what containers are made of ---

    def image(self):
        root = f"{self.folder}/root"
        for folder in ("usr", "tmp", "proc", "sys", "dev", "etc", "run", "data", "shop", "shared"):
            os.makedirs(f"{root}/{folder}")
        for link in ("bin", "sbin", "lib", "lib64"):
            os.symlink(f"usr/{link}", f"{root}/{link}")
        write(f"{root}/etc/passwd", "root:x:0:0:root:/:/bin/sh\npostgres:x:70:70::/data:/bin/sh\n")
        write(f"{root}/etc/group", "root:x:0:\npostgres:x:70:\n")
        for folder, who in (("data", 70), ("tmp", 0)):
            os.chown(f"{root}/{folder}", who, who)
            os.chmod(f"{root}/{folder}", 0o1777)
        tar = subprocess.run(["tar", "-C", root, "--numeric-owner", "-c", "."], capture_output=True, check=True).stdout
        subprocess.run(["docker", "-H", self.engine.socket, "import", "-", "host"], input=tar, capture_output=True, check=True, timeout=120)

    def files(self):
        for folder in ("shop", "shared"):
            os.makedirs(f"{self.folder}/{folder}")
        shutil.copy(f"{HERE}/netshop.py", f"{self.folder}/shop/netshop.py")
        write(f"{self.folder}/shop/nginx.conf", NGINX)
        write(f"{self.folder}/shop/shopworker", WORKER, 0o755)
        write(f"{self.folder}/shop/asker", ASKER, 0o755)

    def options(self, name, network="shop"):
        at = ["--network", network]
        if network == "shop":
            at += ["--ip", f"{NET4}.{ADDRESS[name]}", "--ip6", f"{NET6}{ADDRESS[name]}"]
        return ["--name", name, *at, "-v", "/usr:/usr:ro", "-v", f"{self.folder}/shop:/shop:ro", "-v", f"{self.folder}/shared:/shared"]

    def start(self, name, *command, network="shop", options=()):
        done = self.engine.docker("run", "-d", *self.options(name, network), *options, "host", *command)
        assert done.returncode == 0, done.stderr

    # --- the shop ---

    def begin(self):
        self.files()
        self.image()
        made = self.engine.docker("network", "create", "--ipv6", "--subnet", f"{NET4}.0/24", "--subnet", f"{NET6}/64", "shop")
        assert made.returncode == 0, made.stderr
        self.start("db", "/bin/sh", "-c", f"{POSTGRES}/initdb -D /data/pg -A trust -N >/dev/null && printf 'host all all 0.0.0.0/0 trust\\nhost all all ::/0 trust\\n' "
                   f">>/data/pg/pg_hba.conf && exec {POSTGRES}/postgres -D /data/pg -k '' -c listen_addresses='*' -c fsync=off -c autovacuum=off "
                   "-c dynamic_shared_memory_type=mmap", options=["--user", "70:70"])
        self.start("cache", "/usr/bin/redis-server", "--bind", "0.0.0.0", "::", "--protected-mode", "no", "--save", "", "--dir", "/tmp")
        self.start("stats", "/usr/bin/redis-server", "--port", "6380", "--bind", "0.0.0.0", "--protected-mode", "no", "--save", "", "--dir", "/tmp", network="host")
        self.start("app", "/usr/bin/gunicorn", "-w", "1", "-b", "unix:/shared/shop.sock", "--chdir", "/shop", "netshop:application",
                   options=["-e", "SHOP_POSTGRES=db:5432", "-e", f"SHOP_REDIS={NET6}{ADDRESS['cache']}:6379"])
        self.start("web", "/usr/sbin/nginx", "-c", "/shop/nginx.conf", "-p", "/tmp", options=["-p", "8080:80"])
        self.begin_askers()
        assert until(self.sold, 60), self.engine.docker("logs", "app").stderr
        self.primed = 0
        self.start("worker", "/shop/shopworker", options=["-e", f"SHOP_POSTGRES=::ffff:{NET4}.{ADDRESS['db']}:5432", "-e", f"SHOP_REDIS={NET6}{ADDRESS['cache']}:6379",
                                                          "-e", f"SHOP_STATS={GATE}:6380"])

    def begin_askers(self):
        """On the host next to the engine, in a container on the host's network, and in a namespace that a cable leads to."""
        inside = ["nsenter", "-t", str(self.engine.daemon.pid), "-n"]
        home = subprocess.Popen(["unshare", "-n", "sleep", "600"])
        self.stack.callback(lambda: (home.kill(), home.wait()))
        assert until(lambda: os.stat(f"/proc/{home.pid}/ns/net").st_ino != os.stat("/proc/self/ns/net").st_ino, 10)
        far = ["nsenter", "-t", str(home.pid), "-n"]
        for command in ([*inside, "ip", "link", "add", "far0", "type", "veth", "peer", "name", "far1", "netns", str(home.pid)],
                        [*inside, "ip", "addr", "add", f"{FAR}.1/24", "dev", "far0"], [*inside, "ip", "link", "set", "far0", "up"],
                        [*far, "ip", "addr", "add", f"{FAR}.2/24", "dev", "far1"], [*far, "ip", "link", "set", "far1", "up"]):
            subprocess.run(command, check=True, capture_output=True)
        for name, way in (("hostasks", inside), ("farasks", far)):
            shutil.copy(f"{self.folder}/shop/asker", f"{self.folder}/shop/{name}")
            self.askers[name[:-4]] = Asker(*way, f"{self.folder}/shop/{name}")
        self.askers["probe"] = Asker("docker", "-H", self.engine.socket, "run", "-i", "--rm", *self.options("probe", "host"), "host", "/shop/asker")

    def sold(self):
        """Asks once, and counts that."""
        self.primed += 1
        return self.askers["host"].ask("http://127.0.0.1:8080/")

    def end(self):
        for asker in self.askers.values():
            with contextlib.suppress(Exception):
                asker.end()
        with contextlib.suppress(Exception):
            left = self.engine.docker("ps", "-aq").stdout.split()
            self.engine.docker("rm", "-f", *left)
        self.stack.close()
        self.engine.stop()
        shutil.rmtree(self.folder, ignore_errors=True)
