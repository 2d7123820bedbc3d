# SPDX-License-Identifier: Apache-2.0
"""Requests inside the JDK's own TLS, by sonde-java's agent and family l7: each one is counted as often as the programs did it, and nothing but that."""
import glob
import json
import os
import shutil
import signal
import subprocess
import textwrap
import time

import pytest

from conftest import BIN, need, need_root, sql_all
from scripting import TEMURIN, compiled, java_8_root, other_jdk, unpacked, with_its_settings
from servers import free_port
from sonded import until
from tlsservers import asked, certificate

THREAD_DUMP = "Full thread dump"
WARNING = "A Java agent has been loaded dynamically"


class Talker:
    """A program of JavaTls, in a session of its own, as a service is; each line that it is given has one line of JSON as its answer."""

    def __init__(self, *args, java=("java",), options=(), prefix=(), classes=None, main="JavaTls", cwd=None):
        if not prefix:
            need(java[0])
        self.child = subprocess.Popen([*prefix, *java, "-Xmx128m", *options, "-cp", classes or compiled("JavaTls", 8), main, *args], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=cwd, start_new_session=True)
        self.port = int(self.child.stdout.readline())

    @property
    def pid(self):
        return self.child.pid

    def ask(self, line="counts"):
        self.child.stdin.write(f"{line}\n".encode())
        self.child.stdin.flush()
        return json.loads(self.child.stdout.readline())

    def close(self):
        """What it said on its standard error."""
        if not self.child.stdin.closed:
            self.child.stdin.close()
            self.said = self.child.stderr.read().decode()
            self.child.wait(60)
        return self.said


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    need("keytool")
    path = str(tmp_path_factory.mktemp("keys") / "keys.p12")
    subprocess.run(["keytool", "-genkeypair", "-alias", "k", "-keyalg", "RSA", "-keysize", "2048", "-dname", "CN=localhost", "-ext", "san=dns:localhost,ip:127.0.0.1",
                    "-storetype", "PKCS12", "-keystore", path, "-storepass", "changeit", "-validity", "3650", "-J-Dkeystore.pkcs12.legacy"], check=True,
                   capture_output=True)
    os.chmod(path, 0o644)
    return path


@pytest.fixture
def talker(keys):
    need_root()
    running = []

    def begin(how, *args, **kw):
        running.append(Talker(how, keys, *args, **kw))
        return running[-1]
    yield begin
    for t in running:
        assert THREAD_DUMP not in t.close()


@pytest.fixture
def folders(scratch):
    return ["--record-dir", os.path.join(scratch, "recorded"), "--tls-dir", os.path.join(scratch, "agents")]


def begun(capture, folders, *pids, only=True, store=None):
    """Family l7, and the agent in each of these programs."""
    if shutil.which("javac") is None:
        pytest.skip("missing: a JDK, with which the agent is built")
    more = {"store": store} if store else {}
    which = [x for p in pids for x in ("--pid", p)]
    l7 = capture("--java-dir", folders[3], *which, program="sonde-l7", **more)
    java = capture(*folders, "--tls", "only" if only else "on", *which, program="sonde-java", **more)
    assert until(lambda: java.said().count("inside its TLS are read") == len(pids), 180), java.said()
    return l7, java


def ended(java):
    """With --tls only it stores no data of its own, and says that with its status."""
    java.child.send_signal(signal.SIGINT)
    assert java.wait(120) and java.rc in (0, 130), java.said()


def expected(counts):
    return {(f"GET {path}", "200"): n for path, n in counts.items()}


def with_answers(got, older=1):
    """Of a connection that is older than the recording an answer to what was not seen may be on its way: the answer of its first
    question has no status (protocol.h). A client that closes an idle connection after five seconds has none; where the machine
    is quick it has one."""
    without = [key for key in got if key[1] == ""]
    assert len(without) <= older and all(got[key] == 1 for key in without), got
    for path, _ in without:
        got[path, "200"] = got.get((path, "200"), 0) + got.pop((path, ""))
    return got


def check(store, server, port, counted_before, *sides):
    counts = server.ask()
    did = {p: n - counted_before.get(p, 0) for p, n in counts.items() if n > counted_before.get(p, 0)}
    for side in sides:
        assert with_answers(asked(store, port, side)) == expected(did), side
    return did


@pytest.mark.live
def test_requests_inside_the_jdks_tls_are_counted_as_the_server_counts_them(capture, store, talker, folders):
    """A server by SSLEngine and a client by SSLSocket; one connection is older than the agents, and goes on."""
    server, client = talker("server"), talker("client")
    url = f"https://localhost:{server.port}/"
    assert client.ask(f"{url}before 1") == [8000]
    before = server.ask()
    l7, java = begun(capture, folders, server.pid, client.pid)
    assert client.ask(f"{url}item 20") == [6000] * 10 + [7000] * 10
    ended(java)
    assert client.ask(f"{url}after 1")
    l7.stop()
    did = check(store, server, server.port, {**before, "/after0": 1}, "client", "server")
    assert len(did) == 20 and not os.listdir(folders[3]), did
    said = sql_all(store, "SELECT state, mode, reason FROM java_recorded")
    assert [tuple(s.values()) for s in said] == [("recorded", "TLS alone", "")] * 2, said
    for t in (server, client):
        assert t.close() == ""


@pytest.mark.live
def test_what_another_program_writes_to_dev_null_is_no_request(capture, store, talker, folders):
    """One that was not attached to, and one that was, but does not know its agent's secret, write what an agent would, of a connection of their own."""
    server, client, other = talker("server"), talker("client"), talker("client")
    url = f"https://localhost:{server.port}/"
    l7, java = begun(capture, folders, client.pid)
    for t in (client, other):
        t.ask(f"{url}real 3")
        fds = [int(f) for f in os.listdir(f"/proc/{t.pid}/fd") if os.readlink(f"/proc/{t.pid}/fd/{f}").startswith("socket:")]
        assert fds
        for fd in fds:
            t.ask(f"forge {fd}")
        t.ask(f"{url}real 1")
    ended(java)
    l7.stop()
    assert asked(store, server.port, "client") == {("GET /real0", "200"): 2, ("GET /real1", "200"): 1, ("GET /real2", "200"): 1}


@pytest.mark.live
def test_http2_by_the_jdks_client_is_counted_as_nginx_logs_it(capture, store, keys, folders, tmp_path):
    """The client's engine works on other threads than those that move the records; 40 requests at once in one connection that begins after the agent."""
    need_root()
    need("nginx", shutil.which("nginx") or "/usr/sbin/nginx")
    cert, key = certificate(str(tmp_path))[:2]
    trust = str(tmp_path / "trust.p12")
    subprocess.run(["keytool", "-importcert", "-noprompt", "-alias", "c", "-file", cert, "-storetype", "PKCS12", "-keystore", trust, "-storepass", "changeit",
                    "-J-Dkeystore.pkcs12.legacy"], check=True, capture_output=True)
    port = free_port()
    (tmp_path / "nginx.conf").write_text(textwrap.dedent(f"""
        daemon off; user root; worker_processes 1; pid {tmp_path}/pid; error_log {tmp_path}/error;
        events {{}}
        http {{ access_log {tmp_path}/access; ssl_certificate {cert}; ssl_certificate_key {key};
            server {{ listen 127.0.0.1:{port} ssl http2; location / {{ return 200 "hello"; }} }} }}"""))
    nginx = subprocess.Popen(["nginx", "-c", tmp_path / "nginx.conf", "-p", tmp_path], start_new_session=True)
    client = Talker(trust, classes=compiled("JavaTls2"), main="JavaTls2")
    try:
        l7, java = begun(capture, folders, client.pid)
        for _ in range(2):
            assert client.ask(f"https://localhost:{port}/item 40") == ["HTTP_2", *[5] * 40]
        ended(java)
        l7.stop()
    finally:
        os.killpg(nginx.pid, signal.SIGTERM)
        nginx.wait()
        client.close()
    with open(tmp_path / "access", encoding="ascii") as f:
        logged = [line.split('"')[1].split()[1] for line in f]
    assert asked(store, port, "client", "http2") == expected({p: logged.count(p) for p in logged}) and len(logged) == 80


@pytest.mark.live
def test_whatever_ends_the_loader_ends_the_agent(capture, store, talker, folders):
    """SIGKILL: the helper takes it back. Helper and loader killed together: the next loader does."""
    server, client = talker("server"), talker("client")
    url = f"https://localhost:{server.port}/"
    for i, both in enumerate((False, True)):
        l7, java = begun(capture, folders, client.pid, store=f"{store}{i}")
        client.ask(f"{url}item 2")
        assert nowhere(client.pid)
        if both:
            for p in glob.glob("/proc/[0-9]*"):
                if parent(p) == java.pid:
                    os.kill(int(p.split("/")[2]), signal.SIGKILL)
        java.child.kill()
        java.child.wait()
        if both:
            assert len(os.listdir(folders[3])) == 1
            java = capture(*folders, "--tls", "only", "--pid", server.pid, program="sonde-java", store=f"{store}n")
        assert until(lambda: not nowhere(client.pid), 60)
        client.ask(f"{url}item 1")
        l7.stop()
        assert with_answers(asked(f"{store}{i}", server.port, "client")) == expected({"/item0": 1, "/item1": 1})


def nowhere(pid):
    """How often it has /dev/null open for writing."""
    return sum(os.readlink(fd) == "/dev/null" for fd in glob.glob(f"/proc/{pid}/fd/[0-9]*"))


@pytest.mark.live
@pytest.mark.parametrize("version", ["8", "11", "17", "21", "25", "26"])
def test_other_jdks(capture, store, keys, folders, version):
    """Both kinds of servers; what was open before the agents goes on, that by sockets in a read that waits. JDK 21 and newer warn of the agent, no other does."""
    need_root()
    kw = {"java": ("java",)}
    if version == "8":
        root = java_8_root()
        shutil.copytree(compiled("JavaTls", 8), f"{root}/tmp/JavaTls", dirs_exist_ok=True)
        shutil.copy(keys, f"{root}/tmp/keys.p12")
        kw = {"java": ("/usr/lib/jvm/java-8-openjdk-amd64/jre/bin/java",), "classes": "/tmp/JavaTls",
              "prefix": ["unshare", "--mount", "sh", "-c", f"mount --make-rprivate / && mount -t proc proc {root}/proc && mount --bind /dev {root}/dev && exec chroot {root} \"$@\"", "sh"]}
        os.makedirs(f"{root}/dev", exist_ok=True)
        keys = "/tmp/keys.p12"
    elif version == "25":
        kw = {"java": (TEMURIN,)}
    elif version == "26":
        usr = unpacked("sid", "openjdk-26-jre-headless libc6 zlib1g libstdc++6 libgcc-s1".split())
        with_its_settings(f"{usr}/lib/jvm/java-26-openjdk-amd64")
        kw = {"java": (f"{usr}/lib64/ld-linux-x86-64.so.2", "--library-path", f"{usr}/lib/x86_64-linux-gnu", f"{usr}/lib/jvm/java-26-openjdk-amd64/bin/java")}
    elif version != "17":
        kw = {"java": other_jdk(version)}
    for how in ("server", "sockets"):
        server, client = Talker(how, keys, **kw), Talker("client", keys, **kw)
        try:
            url = f"https://localhost:{server.port}/"
            client.ask(f"{url}before 1")
            before = server.ask()
            l7, java = begun(capture, folders, server.pid, client.pid, store=f"{store}{how}")
            client.ask(f"{url}item 15")
            ended(java)
            l7.stop()
            assert len(check(f"{store}{how}", server, server.port, before, "client", "server")) == 15
        finally:
            said = [t.close() for t in (server, client)]
        assert all((WARNING in s) == (int(version) >= 21) and THREAD_DUMP not in s for s in said), said


@pytest.mark.live
def test_one_of_another_user_in_namespaces_of_its_own(capture, store, keys, scratch, folders):
    """As in a container: its pid is 1 there, its /tmp another one, its user nobody. Nothing is left in that /tmp."""
    need_root()
    tmp = os.path.join(scratch, "tmp")
    os.mkdir(tmp)
    os.chmod(tmp, 0o1777)
    os.chmod(scratch, 0o755)
    shutil.copytree(compiled("JavaTls", 8), f"{tmp}/classes")
    shutil.copy(keys, f"{tmp}/keys.p12")
    prefix = ["unshare", "--pid", "--mount", "--fork", "--kill-child", "sh", "-c",
              f"mount --make-rprivate / && mount --bind {tmp} /tmp && mount -t proc proc /proc && exec setpriv --reuid 65534 --regid 65534 --clear-groups \"$@\"", "sh"]
    server, client = Talker("server", "/tmp/keys.p12", prefix=prefix, classes="/tmp/classes", cwd="/"), Talker("client", keys)
    try:
        pid = next(p.split("/")[2] for p in glob.glob("/proc/[0-9]*") if parent(p) == server.pid)
        l7, java = begun(capture, folders, pid, only=False)
        client.ask(f"https://localhost:{server.port}/item 5")
        ended(java)
        l7.stop()
        assert len(check(store, server, server.port, {}, "server")) == 5
        assert not [f for f in os.listdir(tmp) if f.startswith((".attach_pid", ".sonde"))]
        said = sql_all(store, "SELECT state, mode FROM java_recorded")
        assert [tuple(s.values()) for s in said] == [("recorded", "TLS")], said
    finally:
        for t in (client, server):
            assert THREAD_DUMP not in t.close()


def parent(proc):
    try:
        with open(f"{proc}/stat", encoding="ascii", errors="replace") as f:
            return int(f.read().rsplit(")", 1)[1].split()[1])
    except OSError:
        return 0


@pytest.mark.live
def test_without_family_l7_no_agent_is_loaded(store, talker, folders):
    client = talker("client")
    with open(f"{store}.said", "wb") as out:
        child = subprocess.Popen([os.path.join(BIN, "sonde-java"), "--store", store, *folders, "--tls", "only", "--pid", str(client.pid)], stderr=out, stdout=out)
        time.sleep(14)
        child.send_signal(signal.SIGINT)
        child.wait(60)
    assert not nowhere(client.pid) and not os.listdir(folders[3])
