# SPDX-License-Identifier: Apache-2.0
"""The servers and the client of shop.py, for tests of which request was made for which."""
import contextlib
import json
import os
import subprocess
import sys
import time

import servers
from containers import cgroup_roots

SHOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "shop.py")


class Shop:
    """nginx, a server of Python threads, Redis and PostgreSQL, and a client, all in one cgroup, which a capture can have for itself."""

    def __init__(self, folder, container, prefix):
        self.prefix, self.running, self.children = prefix, [], []
        try:
            self.begin(folder, container)
        except BaseException:
            self.end()
            raise

    def server(self, name, port, argv):
        r = servers.Running([name])
        self.running.append(r)
        servers.wait_port(port, r.start([*self.prefix, servers.find(name), *argv]))

    def talks(self, *args):
        self.children.append(subprocess.Popen([*self.prefix, sys.executable, SHOP, *map(str, args)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        return self.children[-1]

    def begin(self, folder, container):
        redis, web = servers.free_port(), servers.free_port()
        self.running.append(servers.postgres(folder, load=False))
        for root in cgroup_roots():  # what it starts from now on is in there
            with contextlib.suppress(OSError), open(os.path.join(root, "docker", container, "cgroup.procs"), "w", encoding="utf-8") as f:
                f.write(str(self.running[0].started[0][0].pid))
        self.server("redis-server", redis, ["--port", str(redis), "--bind", "127.0.0.1", "--save", "", "--dir", folder])
        shop = int(self.talks(redis, self.running[0].at[3]).stdout.readline())
        conf = os.path.join(folder, "shop.conf")
        with open(conf, "w", encoding="utf-8") as f:
            f.write(f"worker_processes 1; pid {folder}/shop.pid; error_log /dev/null; daemon off; user root;\nevents {{}} http {{ access_log off;\n"
                    f"server {{ listen 127.0.0.1:{web}; location / {{ proxy_pass http://127.0.0.1:{shop}; }} }} }}\n")
        self.server("nginx", web, ["-c", conf, "-p", folder])
        self.client = self.talks("ask", web)

    def ask(self, path, trace):
        """What the server says it asked for. The request is alone in its second, and so in its bucket: all of it is kept."""
        time.sleep(time.time() // 1 + 1 - time.time())
        self.client.stdin.write(f"{path} {trace}\n")
        self.client.stdin.flush()
        return json.loads(self.client.stdout.readline())["asked"]

    def end(self):
        for child in reversed(self.children):
            child.stdin.close()
            child.wait(30)
            child.stdout.close()
        for r in reversed(self.running):
            r.stop()
