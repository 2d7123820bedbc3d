# SPDX-License-Identifier: Apache-2.0
"""The containers of the lab. Each is (name, image, docker's options, command); what is known of each stands beside it."""
import glob
import os
import shutil
import subprocess

from conftest import need

HERE = os.path.dirname(os.path.abspath(__file__))
POSTGRES = "/usr/lib/postgresql/15"

NGINX = """worker_processes 1; pid /tmp/pid; error_log /dev/null; daemon off; user root;
events {} http { access_log off; gzip on; gzip_types *; gzip_min_length 1; client_body_temp_path /tmp/b; proxy_temp_path /tmp/p;
fastcgi_temp_path /tmp/f; uwsgi_temp_path /tmp/u; scgi_temp_path /tmp/s;
server { listen 127.0.0.1:8080; root /data; } }
"""

# the container of the crash loop is started anew by Docker, with pauses that double up to a minute; the hog lives longer than
# Docker's ten seconds, and is started anew at once
SERVICES = [
    ("worker", "python", [], ["/usr/bin/python3.11", "/worker.py"]),
    ("cache", "redis", [], ["/usr/bin/redis-server", "--bind", "127.0.0.1", "--save", "", "--dir", "/data"]),
    ("cacheload", "redis", ["--network", "container:cache"],
     ["/bin/sh", "-c", "while :; do /usr/bin/redis-benchmark -n 10000 -c 4 -q -t set,lpush,lrange_100 >/dev/null 2>&1; sleep 2; done"]),
    ("web", "nginx", [], ["/usr/sbin/nginx", "-c", "/nginx.conf", "-p", "/tmp"]),
    ("webload", "nginx", ["--network", "container:web"],
     ["/bin/sh", "-c", "while :; do /usr/bin/wrk -t1 -c4 -d1s -H 'Accept-Encoding: gzip' http://127.0.0.1:8080/index.html >/dev/null 2>&1; sleep 4; done"]),
    ("db", "postgres", ["--user", "70:70"],
     ["/bin/sh", "-c", f"{POSTGRES}/bin/initdb -D /data/pg -A trust -N >/dev/null && exec {POSTGRES}/bin/postgres -D /data/pg "
                       "-c listen_addresses=127.0.0.1 -k /tmp -c dynamic_shared_memory_type=mmap"]),
    ("dbload", "postgres", ["--user", "70:70", "--network", "container:db"],
     ["/bin/sh", "-c", f"until {POSTGRES}/bin/pgbench -h 127.0.0.1 -i -q postgres >/dev/null 2>&1; do sleep 1; done; "
                       f"while :; do {POSTGRES}/bin/pgbench -h 127.0.0.1 -n -C -c 2 -R 12 -T 60 postgres >/dev/null 2>&1; sleep 1; done"]),
    ("memhog", "base", ["-m", "48m", "--memory-swap", "48m", "--restart", "always"], ["/bin/sh", "-c", "sleep 12; exec tail /dev/zero"]),
    ("crashloop", "base", ["--restart", "always"], ["/bin/sh", "-c", "sleep 0.3; echo cannot read config >&2; exit 1"]),
    ("throttled", "base", ["--cpus", "0.3"], ["/bin/sh", "-c", "while :; do :; done"]),
    ("goapp", "goapp", [], ["/bin/goapp"]),
    ("build", "base", [], ["/bin/sh", "-c", "while :; do i=0; while [ $i -lt 25 ]; do /bin/busybox true; i=$((i+1)); done; "
                                            "echo x | gzip >/dev/null; usleep 200000; done"]),
    ("muslapp", "musl", [], ["/bin/muslapp"]),
    ("idle", "base", [], ["/bin/sleep", "1000000"]),
]

#: started again and again under names of their own, as cron does
JOB = ("base", ["/bin/sh", "-c", "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done; sleep 0.5"])
#: the known change: a little before the middle, for a tenth of the time
BACKUP = ("base", ["/bin/sh", "-c", "yes 'a line of a file that is backed up' | gzip -9 >/dev/null"])
#: in no runtime's file: a cgroup as Docker names them, made by hand
NAMELESS = ["unshare", "-mpf", "--mount-proc", "--kill-child", "sh", "-c", "while :; do i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done; sleep 0.1; done"]


def have_all():
    for program in ("dockerd", "docker", "busybox", "redis-server", "redis-benchmark", "nginx", "wrk", "go", "musl-gcc", "/usr/bin/python3.11",
                    f"{POSTGRES}/bin/postgres"):
        need(program)


def make_images(images, folder):
    go, musl = os.path.join(folder, "goapp"), os.path.join(folder, "muslapp")
    env = dict(os.environ, GO111MODULE="off", CGO_ENABLED="0", GOFLAGS="", GOTOOLCHAIN="local", GOPROXY="off")
    subprocess.run(["go", "build", "-o", go, os.path.join(HERE, "goapp.go")], check=True, env=env)
    subprocess.run(["musl-gcc", "-O2", "-g", "-I", os.path.dirname(os.path.dirname(HERE)), "-o", musl, os.path.join(HERE, "muslapp.c")], check=True)
    with open(os.path.join(HERE, "worker.py"), encoding="utf-8") as f:
        worker = f.read()
    images.make("base")
    images.make("python", ["/usr/bin/python3.11"], ["/usr/lib/python3.11"], {"/worker.py": worker})
    images.make("redis", [shutil.which("redis-server"), shutil.which("redis-benchmark")])
    images.make("nginx", [shutil.which("nginx"), shutil.which("wrk")], files={"/nginx.conf": NGINX, "/data/index.html": "x" * 4000})
    tools = [p for p in glob.glob(f"{POSTGRES}/bin/*") if os.path.basename(p) in ("postgres", "initdb", "pgbench", "psql")]
    images.make("postgres", tools, [f"{POSTGRES}/lib", "/usr/share/postgresql/15", "/usr/share/zoneinfo"], owner=70)
    images.make("goapp", {"/bin/goapp": go})
    images.make("musl", {"/bin/muslapp": musl, "/lib/ld-musl-x86_64.so.1": "/lib/ld-musl-x86_64.so.1"})
