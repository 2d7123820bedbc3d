# SPDX-License-Identifier: Apache-2.0
"""Real programs in scripting languages, started without any option: servers under load, a build, a compiler. How many of their samples show the script, whole."""
import glob
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

import pytest

from conftest import BUILD, ROOT, need, need_root
from scripting import script_share, unpacked

SHOP = os.path.join(ROOT, "tests", "workloads", "shop")
SECONDS = 8

pytestmark = pytest.mark.live


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def until(true, seconds=120):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)


def http(port):
    with socket.create_connection(("127.0.0.1", port)) as s:
        s.sendall(b"GET / HTTP/1.0\r\nHost: shop\r\n\r\n")
        return b"".join(iter(lambda: s.recv(65536), b""))


def fastcgi(path, script=f"{SHOP}/index.php", query="n=30", **more):
    def record(kind, content):
        return struct.pack(">BBHHBB", 1, kind, 1, len(content), 0, 0) + content
    told = {"SCRIPT_FILENAME": script, "REQUEST_METHOD": "GET", "QUERY_STRING": query, **more}
    params = b"".join(struct.pack("BB", len(k), len(v)) + k.encode() + v.encode() for k, v in told.items())
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(path)
        s.sendall(record(1, struct.pack(">HB5x", 1, 0)) + record(4, params) + record(4, b"") + record(5, b""))
        return b"".join(iter(lambda: s.recv(65536), b""))


def thirty(page):
    return page.count(b"<li>") == 30


def answers(ask, good=thirty):
    try:
        return good(ask())
    except OSError:
        return False


def measure(sonde, store, runtime, pids, ask, loop, needs, good=thirty):
    """Loads the server while it is recorded. `loop`: functions of the interpreter below which a script runs; None: every stack that has
    Java in it. `needs`: functions of the shop that must be met."""
    until(lambda: answers(ask, good))
    stop = threading.Event()

    def load():
        while not stop.is_set():
            assert answers(ask, good)
    for _ in range(20):
        assert answers(ask, good)
    sonde("pstack", *(a for p in pids() for a in ("-p", p)), store=store)  # makes the indexes
    threads = [threading.Thread(target=load) for _ in range(2)]
    for t in threads:
        t.start()
    try:
        sonde("record", "--families", "cpu", "--freq", "199", "--duration", f"{SECONDS}s", *(a for p in pids() for a in ("--pid", p)),
              store=store, check=True)
    finally:
        stop.set()
        for t in threads:
            t.join()
    whole, shown, missing, unnamed, met = script_share(store, runtime, tuple(loop))
    assert shown + missing > 50, "the server had no time"
    assert whole >= 0.95 * (shown + missing) and unnamed <= 0.01 * shown
    assert needs <= met, met


def fpm_here():
    fpm = (sorted(glob.glob("/usr/sbin/php-fpm[78].[0-9]")) or [None])[-1]
    if not fpm:
        pytest.skip("missing: php-fpm")
    return fpm


class Fpm:
    """php-fpm with two workers, which listens at `at`."""

    def __init__(self, fpm, folder, *options):
        conf, self.at = os.path.join(folder, "fpm.conf"), os.path.join(folder, "fpm.sock")
        with open(conf, "w", encoding="utf-8") as f:
            f.write(f"[global]\nerror_log = {folder}/log\ndaemonize = no\n[www]\nuser = root\ngroup = root\nlisten = {self.at}\npm = static\n"
                    "pm.max_children = 2\npm.max_requests = 0\n")
        self.server = subprocess.Popen([fpm, "-R", "-y", conf, *options])

    def workers(self):
        with open(f"/proc/{self.server.pid}/task/{self.server.pid}/children", encoding="ascii") as f:
            return f.read().split()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.send_signal(signal.SIGTERM)
        self.server.wait(20)


@pytest.mark.parametrize("opcache", ["1", "0"])
def test_php_fpm_under_load(sonde, store, scratch, opcache):
    need_root()
    fpm = fpm_here()
    with Fpm(fpm, scratch, "-d", f"opcache.enable={opcache}") as server:
        measure(sonde, store, "php", server.workers, lambda: fastcgi(server.at), {"execute_ex"},
                {"{main}", "App\\Shop::basket", "App\\Shop::compare", "App\\View::row", "usort"})


def serve(sonde, store, command, runtime, loop, needs, env=None, workers=False):
    port = free_port()
    server = subprocess.Popen([a.replace("PORT", str(port)) for a in command], env=dict(os.environ, **(env or {})), stderr=subprocess.DEVNULL)

    def pids():
        children = open(f"/proc/{server.pid}/task/{server.pid}/children", encoding="ascii").read().split()
        return children if workers else [str(server.pid)]
    try:
        measure(sonde, store, runtime, pids, lambda: http(port), loop, needs)
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(20)


def test_webrick_under_load(sonde, store):
    need_root()
    need("ruby", "/usr/bin/ruby")
    if subprocess.run(["/usr/bin/ruby", "-e", "require 'webrick'"], capture_output=True, check=False).returncode:
        pytest.skip("missing: webrick")
    serve(sonde, store, ["/usr/bin/ruby", f"{SHOP}/shop.rb", "PORT"], "ruby", {"rb_vm_exec", "rb_yield"}, {"basket", "compare", "page", "sort"})


def test_gunicorn_and_flask_under_load(sonde, store):
    need_root()
    folder = os.path.join(BUILD, "pythons", "flask")
    if not os.path.isdir(folder) and subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--target", folder, "gunicorn==23.0.0",
                                                     "flask==3.1.2"], capture_output=True, check=False).returncode:
        shutil.rmtree(folder, ignore_errors=True)
        pytest.skip("missing: gunicorn and flask by pip")
    serve(sonde, store, ["/usr/bin/python3", "-m", "gunicorn", "-w", "2", "-b", "127.0.0.1:PORT", "shop:flask_app()"], "python",
          {"_PyEval_EvalFrameDefault"}, {"Shop.basket", "Flask.wsgi_app"}, {"PYTHONPATH": f"{folder}:{SHOP}"}, workers=True)


def test_uwsgi_which_embeds_python_under_load(sonde, store):
    """Its interpreter is a library of a program that is no Python; threads beside processes."""
    need_root()
    usr = unpacked("bookworm", ["uwsgi-core", "uwsgi-plugin-python3"])
    plugin = (glob.glob(f"{usr}/lib/uwsgi/plugins/python3*_plugin.so") or [None])[0]
    if not plugin or b"not found" in subprocess.run(["ldd", plugin, f"{usr}/bin/uwsgi-core"], capture_output=True, check=False).stdout:
        pytest.skip("missing: libraries of Debian's uwsgi")
    serve(sonde, store, [f"{usr}/bin/uwsgi-core", "--plugin", plugin, "--http-socket", "127.0.0.1:PORT", "--master", "--processes", "2", "--threads", "2",
                         "--pythonpath", SHOP, "--module", "shop:plain", "--disable-logging", "--die-on-term"], "python",
          {"_PyEval_EvalFrameDefault"}, {"Shop.basket", "plain"}, workers=True)


SINATRA = """
require 'webrick'
require 'sinatra/base'
class App < Sinatra::Base
  set :environment, :production
  def taxed(price) = (price * 1.19).round(2)
  def basket(n)
    (1..400).map { |i| { id: i, price: taxed(i * 7 % 101) } }.sort_by { |row| [row[:price], row[:id]] }.first(n)
  end
  get('/') { basket(30).map { |row| "<li>#{row[:id]}: #{row[:price]}</li>" }.join }
end
App.run!(port: PORT, bind: '127.0.0.1', server: 'webrick', quiet: true)
"""


def test_sinatra_under_load(sonde, store, scratch):
    need_root()
    need("ruby", "/usr/bin/ruby")
    usr = unpacked("bookworm", "ruby-sinatra ruby-rack ruby-rack-protection ruby-mustermann ruby-tilt ruby-ruby2-keywords ruby-webrick".split())
    path, port = os.path.join(scratch, "app.rb"), free_port()
    with open(path, "w", encoding="utf-8") as f:
        f.write(SINATRA.replace("PORT", str(port)))
    env = {"RUBYLIB": ":".join([f"{usr}/lib/ruby/vendor_ruby", *glob.glob(f"{usr}/share/rubygems-integration/all/gems/*/lib")])}
    if subprocess.run(["/usr/bin/ruby", "-e", "require 'sinatra/base'; require 'webrick'"], env=dict(os.environ, **env), capture_output=True,
                      check=False).returncode:
        pytest.skip("missing: Debian's sinatra and what it needs")
    server = subprocess.Popen(["/usr/bin/ruby", path], env=dict(os.environ, **env), stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        measure(sonde, store, "ruby", lambda: [str(server.pid)], lambda: http(port), {"rb_vm_exec", "rb_yield"},
                {"basket", "route!"})
    finally:
        server.send_signal(signal.SIGKILL)
        server.wait(20)


def webpack():
    """webpack and something to bundle, of npm, under build/; skips where they cannot be had."""
    at = os.path.join(BUILD, "node-webpack")
    os.makedirs(at, exist_ok=True)
    if not os.path.exists(f"{at}/node_modules/webpack-cli"):
        need("npm")
        if subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "webpack@5.97.1", "webpack-cli@5.1.4", "lodash-es@4.17.21"], cwd=at,
                          capture_output=True, check=False, timeout=300).returncode:
            pytest.skip("missing: webpack of npm")
    with open(f"{at}/index.js", "w", encoding="utf-8") as f:
        f.write("import * as all from 'lodash-es';\nconsole.log(all);\n")
    return at


def indexed(sonde, store, command, library="libjvm"):
    """Makes the indexes of a program that waits for its input, as a host that records always has them."""
    once = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    try:
        until(lambda: library in open(f"/proc/{once.pid}/maps", encoding="utf-8").read() or command[0] == "node")
        sonde("pstack", "-p", once.pid, store=store)
    finally:
        once.kill()
        once.wait(20)
        once.stdin.close()


def test_a_webpack_build(sonde, store, scratch):
    """From its start to its end, of which the last moments cannot be read any more. What Node does before main() of webpack is JavaScript, too."""
    need_root()
    need("node")
    at = webpack()
    indexed(sonde, store, ["node"])
    sonde("record", "--families", "cpu", "--freq", "199", "--", "node", f"{at}/node_modules/webpack/bin/webpack.js", "--mode", "production", "--context", at,
          "--entry", f"{at}/index.js", "-o", f"{scratch}/out", store=store, check=True, cwd=at)
    whole, shown, missing, unnamed, met = script_share(store, "javascript", ("Builtins_JSEntry",))
    if shown + missing < 100:
        pytest.skip(f"missing: time for this program ({shown + missing} samples)")
    assert whole >= 0.85 * (shown + missing) and unnamed <= 0.01 * shown
    assert {"parseStatement"} <= {(name or "").split(".")[-1].split("$")[-1] for name in met} or any("Parser" in (name or "") for name in met), met


def test_a_jvm_at_its_start(sonde, store, scratch):
    """A compiler that ends after seconds: most of it is interpreted."""
    need_root()
    need("javac")
    need("jshell")
    indexed(sonde, store, ["jshell", f"-J-Djava.util.prefs.userRoot={scratch}"])
    sonde("record", "--families", "cpu", "--freq", "499", "--", "javac", "-d", scratch, f"{SHOP}/ShopServer.java", store=store, check=True)
    whole, shown, missing, unnamed, met = script_share(store, "java", ("JavaCalls::call_helper",))
    if shown + missing < 100:
        pytest.skip(f"missing: time for this program ({shown + missing} samples)")
    assert whole >= 0.7 * (shown + missing) and unnamed <= 0.01 * shown
    assert any("javac" in (name or "") or "JavaCompiler" in (name or "") for name in met), sorted(map(str, met))[:40]


def test_a_jvm_server_under_load(sonde, store):
    need_root()
    need("javac")
    folder = os.path.join(BUILD, "java", "ShopServer")
    os.makedirs(folder, exist_ok=True)
    subprocess.run(["javac", "-d", folder, f"{SHOP}/ShopServer.java"], check=True)
    serve(sonde, store, ["java", "-cp", folder, "ShopServer", "PORT"], "java", set(), {"ShopServer.basket", "ShopServer.page"})
