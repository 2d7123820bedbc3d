# SPDX-License-Identifier: Apache-2.0
"""Family net: what it stores of connections is what the programs at both ends know of them, and what the kernel counted."""
import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

from conftest import LIB, BIN, Capture, need, need_root, sql_all
from containers import engine
from sonded import Sonded, until

TALK = os.path.join(LIB, "nettalk.py")


class Talker:
    """A child that talks (nettalk.py); `inside`: the command that runs it elsewhere."""

    def __init__(self, *args, inside=()):
        self.p = subprocess.Popen([*inside, sys.executable, TALK, *map(str, args)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                  start_new_session=True)
        self.said = self.read()
        self.pid = self.said["pid"]

    def read(self):
        line = self.p.stdout.readline()
        return json.loads(line) if line else None

    def tell(self, line):
        self.p.stdin.write((line if isinstance(line, str) else json.dumps(line)) + "\n")
        self.p.stdin.flush()

    def ask(self, line):
        self.tell(line)
        return self.read()

    def end(self):
        self.p.stdin.close()
        self.p.wait(timeout=180)
        self.p.stdout.close()


@pytest.fixture
def talker():
    made = []

    def make(*args, **kw):
        made.append(Talker(*args, **kw))
        return made[-1]
    yield make
    for t in made:
        if t.p.poll() is None:
            os.killpg(t.p.pid, signal.SIGKILL)  # what it was run by, and what it has made, too
        t.p.stdin.close()
        t.p.wait()
        t.p.stdout.close()


@pytest.fixture(autouse=True)
def rights():
    need_root()


@pytest.fixture
def net(capture, store):
    cap = capture(program="sonde-net")
    assert until(lambda: rows(store, "SELECT 1 FROM netns_stats"), 20)
    return cap


def rows(store, query):
    try:
        return sql_all(store, query)
    except Exception:  # the store is being made
        return []


SUMS = ("attempts", "opened", "refused", "timed_out", "unreachable", "given_up", "failed", "closed", "reset_in", "reset_out", "broken",
        "tx_bytes", "rx_bytes", "retrans")


def sums(store, where):
    got = sql_all(store, f"SELECT {', '.join(f'sum({c}) AS {c}' for c in SUMS)} FROM flows WHERE {where}")
    return {c: n for c in SUMS if (n := sum(r[c] or 0 for r in got))}


def sums_kept(store, where):
    """Without what was sent anew: that is the kernel's doing, also on this host where it is busy. A test below compares it with the kernel's count."""
    return {c: n for c, n in sums(store, where).items() if c != "retrans"}


CLOSINGS = {"server_first": "closed", "client_first": "closed", "half": "closed", "unread": "reset", "linger": "reset"}


@pytest.mark.parametrize(("family", "address", "to"), [("4", "127.0.0.1", "127.0.0.1"), ("6", "::1", "::1"), ("mapped", "::", "127.0.0.1")])
def test_bytes_and_ends_are_what_both_programs_know_however_it_is_closed(net, store, talker, family, address, to):
    server, client = talker("serve", family, address), talker("client")
    port = server.said["port"]
    want = {"c": {"tx_bytes": 0, "rx_bytes": 0}, "s": {"tx_bytes": 0, "rx_bytes": 0}}
    for i, mode in enumerate(CLOSINGS):
        server.tell(mode)
        c = client.ask({"address": to, "port": port, "ask": 1000 + i, "reply": 100_000 + i, "mode": mode})
        s = server.read()
        want["c"]["rx_bytes"] += c["rx"]
        want["s"]["tx_bytes"] += s["tx"]
        want["c"]["tx_bytes"] += c["tx"]
        want["s"]["rx_bytes"] += c["tx"]
    net.stop()
    got_c = sums_kept(store, f"pid = {client.pid} AND peer_pid = {server.pid} AND side = 'client' AND peer = '{to}' AND port = {port}")
    got_s = sums_kept(store, f"pid = {server.pid} AND peer_pid = {client.pid} AND side = 'server' AND peer = '{to}' AND port = {port}")
    assert got_c == {"attempts": 5, "opened": 5, "closed": 3, "reset_in": 2, **want["c"]}
    assert got_s == {"opened": 5, "closed": 3, "reset_out": 2, **want["s"]}


def test_bytes_are_exact_where_both_ends_close_at_once(net, store, talker):
    n, size = 5000, 7
    two = talker("together", n, size)
    assert two.ask("go") == {"closed": n}
    net.stop()
    at = f"port = {two.said['port']} AND side = "
    assert sums_kept(store, f"pid = {two.said['child']} AND peer_pid = {two.pid} AND {at} 'client'") == {
        "attempts": n, "opened": n, "closed": n, "tx_bytes": n * size, "rx_bytes": n * size}, sql_all(
            store, f"SELECT pid, peer_pid, side, peer, sum(opened) FROM flows WHERE port = {two.said['port']} GROUP BY 1, 2, 3, 4")
    assert sums_kept(store, f"pid = {two.pid} AND peer_pid = {two.said['child']} AND {at} 'server'") == {
        "opened": n, "closed": n, "tx_bytes": n * size, "rx_bytes": n * size}


def test_bytes_are_exact_by_sendfile_splice_and_io_uring_and_of_sockets_that_others_have_too(net, store, talker):
    """A duplicated one, one that a program was started with, one that was passed on: it stays the opener's, and is one connection."""
    ways = talker("ways")
    told = {way: ways.ask(way) for way in ("sendfile", "splice", "dup", "inherited", "passed", "io_uring")}
    net.stop()
    by_ring = 300_000 if told["io_uring"]["tx"] else 0  # some kernels have it not, or allow it to nobody
    assert {way: (t["tx"], t["rx"]) for way, t in told.items()} == {"sendfile": (300_000, 300_000), "splice": (300_000, 300_000), "dup": (3000, 3000),
                                                                   "inherited": (5000, 5000), "passed": (1000, 1000), "io_uring": (by_ring, by_ring)}
    n, total, at = len(told), sum(t["tx"] for t in told.values()), f"port = {ways.said['port']} AND side = "
    assert sums_kept(store, f"pid = {ways.pid} AND peer_pid = {ways.said['taker']} AND {at} 'client'") == {
        "attempts": n, "opened": n, "closed": n, "tx_bytes": total}
    assert sums_kept(store, f"pid = {ways.said['taker']} AND peer_pid = {ways.pid} AND {at} 'server'") == {"opened": n, "closed": n, "rx_bytes": total}


def test_a_fin_is_no_byte_where_connections_close_while_the_capture_ends(net, store, talker):
    still = talker("idle", 200)
    assert until(lambda: rows(store, f"SELECT 1 FROM flows WHERE pid = {still.pid} AND open_now = 200"), 30)
    still.tell("close")
    net.stop()
    assert still.read() == {"closed": 400}
    got = sums_kept(store, f"pid = {still.pid} AND port = {still.said['port']}")
    assert got.pop("closed", 0) <= 400 and got == {"attempts": 200, "opened": 400}


def alone():
    """The command that runs something in a network namespace of its own, with lo up."""
    need("unshare")
    need("ip")
    return ("unshare", "-n", "sh", "-c", 'ip link set lo up && exec "$@"', "sh")


def enter(pid, *command):
    return subprocess.run(["nsenter", "-t", str(pid), "-n", *command], check=True, capture_output=True, text=True).stdout


def netns_of(pid):
    return os.stat(f"/proc/{pid}/ns/net").st_ino


@contextlib.contextmanager
def second_sockets():
    """The kernel's own count of sockets that were made for a handshake which another socket had got, by their port."""
    folder = "/sys/kernel/tracing/instances/sonde-test-net"
    need("a mounted tracefs", "/sys/kernel/tracing/instances")
    os.makedirs(folder, exist_ok=True)

    def write(name, text):
        with open(f"{folder}/{name}", "w", encoding="ascii") as f:
            f.write(text)

    def counted(port):
        with open(f"{folder}/trace", encoding="utf-8", errors="replace") as f:
            return sum(f"sport={port} " in line for line in f)
    try:
        write("buffer_size_kb", "1024")
        write("events/sock/inet_sock_set_state/filter", "oldstate == 3 && newstate == 7")
        write("events/sock/inet_sock_set_state/enable", "1")
        yield counted
    finally:
        write("events/sock/inet_sock_set_state/enable", "0")
        os.rmdir(folder)


def test_a_handshake_that_ends_on_two_cpus_at_once_is_one_connection(net, store, work):
    if os.cpu_count() < 2:
        pytest.skip("missing: a second CPU")
    with second_sockets() as counted:
        told = work("twoacks", 500).told()
        seconds = counted(told["port"])
    net.stop()
    if not seconds:
        pytest.skip("missing: two packets that were handled at once")
    assert sums(store, f"side = 'server' AND port = {told['port']}") == {"opened": 500, "reset_out": 500}, seconds
    assert not sql_all(store, f"SELECT 1 FROM connections WHERE port = {told['port']} AND result = 'failed'")


def test_each_failure_is_told_as_what_it_is(net, store, talker):
    need("iptables")
    client = talker("client", inside=alone())
    enter(client.pid, "sh", "-c", "echo 1 > /proc/sys/net/ipv4/tcp_syn_retries")
    if os.path.exists("/proc/sys/net/ipv4/tcp_syn_linear_timeouts"):
        enter(client.pid, "sh", "-c", "echo 0 > /proc/sys/net/ipv4/tcp_syn_linear_timeouts")
    enter(client.pid, "iptables", "-A", "INPUT", "-p", "tcp", "--dport", "81", "-j", "DROP")
    enter(client.pid, "iptables", "-A", "INPUT", "-p", "tcp", "--dport", "82", "-j", "REJECT", "--reject-with", "icmp-host-unreachable")
    for port, mode, result in ((80, "", "refused"), (81, "", "timed_out"), (82, "", "unreachable"), (81, "give_up", "given_up")):
        assert "error" in client.ask({"address": "127.0.0.1", "port": port, "ask": 16, "reply": 0, "mode": mode})
    net.stop()
    assert sums(store, f"pid = {client.pid} AND port = 80") == {"attempts": 1, "refused": 1}
    got = sums(store, f"pid = {client.pid} AND port = 81")
    assert {**got, "retrans": 0} == {"attempts": 2, "timed_out": 1, "given_up": 1, "retrans": 0} and got["retrans"] >= 1
    assert {**sums(store, f"pid = {client.pid} AND port = 82"), "retrans": 0} == {"attempts": 1, "unreachable": 1, "retrans": 0}
    told = sql_all(store, f"SELECT port, result FROM connections WHERE pid = {client.pid}")
    assert sorted((r["port"], r["result"]) for r in told) == [(80, "refused"), (81, "given_up"), (81, "timed_out"), (82, "unreachable")]


def test_a_connection_from_before_the_start_has_both_ends_and_counts_from_then_on(capture, store, talker):
    server, client = talker("serve", "4", "127.0.0.1"), talker("client")
    port = server.said["port"]
    server.tell("server_first")
    client.ask({"address": "127.0.0.1", "port": port, "mode": "keep"})
    net = capture(program="sonde-net")
    assert until(lambda: rows(store, f"SELECT 1 FROM flows WHERE pid = {client.pid} AND open_now = 1"), 20)
    client.ask({"mode": "use", "ask": 5000, "reply": 70000})
    server.read()
    net.stop()
    at = f"port = {port} AND side = "
    assert sums_kept(store, f"pid = {client.pid} AND peer_pid = {server.pid} AND {at} 'client'") == {"closed": 1, "tx_bytes": 5000, "rx_bytes": 70000}
    assert sums_kept(store, f"pid = {server.pid} AND peer_pid = {client.pid} AND {at} 'server'") == {"closed": 1, "tx_bytes": 70000, "rx_bytes": 5000}


def test_who_handles_a_connection_has_it_and_not_who_listens(net, store, talker):
    server, client = talker("serve", "4", "127.0.0.1", 0, "fork"), talker("client")
    server.tell("client_first")
    client.ask({"address": "127.0.0.1", "port": server.said["port"], "ask": 100, "reply": 2000, "mode": "client_first"})
    child = server.read()["pid"]
    net.stop()
    assert sums_kept(store, f"pid = {child} AND peer_pid = {client.pid} AND side = 'server'") == {
        "opened": 1, "closed": 1, "tx_bytes": 2000, "rx_bytes": 100}
    assert not sums(store, f"pid = {server.pid} AND side = 'server'")


def test_a_connection_of_a_killed_process_ends_and_is_told(net, store, talker):
    server, client = talker("serve", "4", "127.0.0.1"), talker("client")
    server.tell("server_first")
    client.tell({"address": "127.0.0.1", "port": server.said["port"], "ask": 100, "reply": 2000, "mode": "killed"})
    server.read()
    client.p.wait()
    net.stop()
    assert sums_kept(store, f"pid = {client.pid} AND peer_pid = {server.pid}") == {"attempts": 1, "opened": 1, "closed": 1, "tx_bytes": 100, "rx_bytes": 2000}


TCP = {"active_opens": "ActiveOpens", "passive_opens": "PassiveOpens", "attempt_fails": "AttemptFails", "estab_resets": "EstabResets",
       "retrans_segs": "RetransSegs"}
SEEN = {"active_opens": "seen_attempts", "passive_opens": "seen_accepted", "attempt_fails": "seen_fails", "estab_resets": "seen_resets",
        "retrans_segs": "seen_retrans"}


def kernel_counts(pid):
    names, values = (line.split()[1:] for line in open(f"/proc/{pid}/net/snmp") if line.startswith("Tcp:"))
    told = dict(zip(names, map(int, values)))
    return {c: told[k] for c, k in TCP.items()}


def test_what_the_kernel_counted_in_a_namespace_is_told_with_its_processes(capture, store, talker):
    """Loss, refusals, resets: what is told and what the kernel counts are the same, and no socket is left behind."""
    need("iptables")
    server = talker("serve", "4", "127.0.0.1", inside=alone())
    into = ("nsenter", "-t", str(server.pid), "-n")
    client, port = talker("client", inside=into), server.said["port"]
    enter(server.pid, "iptables", "-A", "INPUT", "-p", "tcp", "--dport", str(port), "-m", "statistic", "--mode", "nth", "--every", "11", "--packet", "5", "-j", "DROP")
    net = capture(program="sonde-net")
    netns = netns_of(server.pid)
    assert until(lambda: rows(store, f"SELECT 1 FROM netns_stats WHERE netns = '{netns}'"), 20)
    for i in range(40):
        mode = list(CLOSINGS)[i % len(CLOSINGS)]
        server.tell(mode)
        client.ask({"address": "127.0.0.1", "port": port, "ask": 1000, "reply": 100_000, "mode": mode})
        server.read()
        client.ask({"address": "127.0.0.1", "port": 1, "ask": 16, "reply": 0})
    counted = kernel_counts(server.pid)
    net.stop()
    got = sql_all(store, f"SELECT {', '.join(f'sum({c}) AS {c}, sum({s}) AS {s}' for c, s in SEEN.items())} FROM netns_stats WHERE netns = '{netns}'")[0]
    for column, seen in SEEN.items():
        assert got[column] == got[seen], (column, got)
        assert abs(counted[column] - got[column]) <= (2 if column == "retrans_segs" else 0), (column, counted, got)
    assert got["active_opens"] == 80 and got["retrans_segs"] > 5
    flows = sums(store, f"pid IN ({client.pid}, {server.pid})")
    assert flows["retrans"] <= got["retrans_segs"] and flows["refused"] == 40 and flows["opened"] == 80


def test_a_full_backlog_is_told_of_its_listener(net, store):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen(1)
        port = s.getsockname()[1]
        waiting = [socket.create_connection(("127.0.0.1", port)) for _ in range(2)]
        with socket.socket() as c, pytest.raises(TimeoutError):
            c.settimeout(1.3)
            c.connect(("127.0.0.1", port))
        assert until(lambda: rows(store, f"SELECT 1 FROM listeners WHERE port = {port} AND dropped > 0"), 20)
        net.stop()
        for c in waiting:
            c.close()
    row = sql_all(store, f"SELECT pid, address, open_to, max(backlog) AS backlog, max(backlog_max) AS room, sum(dropped) AS dropped"
                         f" FROM listeners WHERE port = {port}")[0]
    assert (row["pid"], row["address"], row["open_to"], row["backlog"], row["room"]) == (os.getpid(), "127.0.0.1", "host", 2, 1)
    assert row["dropped"] >= 1


def test_a_scan_of_ports_has_bounded_rows_and_exact_sums_and_hides_nobody(net, store, talker):
    other = talker("client")
    for port in range(20000, 21500):
        with socket.socket() as c, pytest.raises(ConnectionRefusedError):
            c.connect(("127.0.0.2", port))
    assert "error" in other.ask({"address": "127.0.0.1", "port": 1, "ask": 16, "reply": 0})
    net.stop()
    got = sql_all(store, f"SELECT peer, count(*) AS n, sum(attempts) AS attempts, sum(refused) AS refused FROM flows WHERE pid = {os.getpid()}"
                         " AND (peer = '127.0.0.2' OR peer = '~other') GROUP BY 1")
    assert sum(r["attempts"] for r in got) == sum(r["refused"] for r in got) == 1500
    assert sum(r["n"] for r in got) < 1400 and any(r["peer"] == "~other" for r in got)
    assert sql_all(store, f"SELECT count(*) AS n FROM connections WHERE pid = {os.getpid()}")[0]["n"] <= 16 * 8
    assert [r["result"] for r in sql_all(store, f"SELECT result FROM connections WHERE pid = {other.pid}")] == ["refused"]


def test_the_verbs_say_who_talked_to_whom(net, store, talker, sonde):
    server, client = talker("serve", "4", "127.0.0.1"), talker("client")
    server.tell("server_first")
    client.ask({"address": "127.0.0.1", "port": server.said["port"], "ask": 100, "reply": 2000, "mode": ""})
    client.ask({"address": "127.0.0.1", "port": 1, "ask": 16, "reply": 0})
    server.read()
    net.stop()
    edges = json.loads(sonde("map", "--json", "--pid", client.pid, store=store, check=True).stdout)["rows"]
    assert [(x["to"]["name"], x["port"], x["opened"], x["refused"]) for x in sorted(edges, key=lambda x: x["port"])] == [
        ("127.0.0.1", 1, 0, 1), (edges[0]["from"]["name"], server.said["port"], 1, 0)]
    flows = json.loads(sonde("net", "--json", "--by", "process", "--pid", server.pid, store=store, check=True).stdout)["rows"]
    assert [(x["other"]["pid"], x["tx_bytes"], x["rx_bytes"]) for x in flows] == [(client.pid, 2000, 100)]
    text = sonde("net", "--failed", "--pid", client.pid, store=store, check=True).stdout
    assert "1 refused" in text and str(server.said["port"]) not in text
    assert re.search(r"tcp +\d+ .* host ", sonde("net", "--listen", "--pid", server.pid, store=store, check=True).stdout)
    dot = sonde("map", "--dot", store=store, check=True).stdout
    assert dot.startswith("digraph") and "1 refused" in dot


def test_addresses_have_the_names_that_programs_asked_for(capture, store, scratch, talker, sonde):
    """By DNS, as family l7 saw it answered, and by the /etc/hosts that the process sees."""
    hosts = os.path.join(scratch, "hosts")
    with open(hosts, "w", encoding="ascii") as f:
        f.write("127.0.0.1 localhost\n10.99.0.6 backup.lan backup\n10.99.0.5 not-this-one\n")
    named = talker("named", inside=("unshare", "-n", "-m", "sh", "-c", f'mount --bind {hosts} /etc/hosts && ip link set lo up &&'
                                    ' ip addr add 10.99.0.5/32 dev lo && ip addr add 10.99.0.6/32 dev lo && exec "$@"', "sh"))
    caps = [capture(program="sonde-net"), capture(program="sonde-l7")]
    assert until(lambda: rows(store, "SELECT 1 FROM netns_stats"), 20)
    for name, address, port in (("db.example.com", "10.99.0.5", 81), (None, "10.99.0.6", 82)):
        assert named.ask({"name": name, "address": address, "port": port}) == {"done": port}
    for cap in caps:
        cap.stop()
    edges = json.loads(sonde("map", "--json", "--pid", named.pid, store=store, check=True).stdout)["rows"]
    assert [(x["to"], x["port"], x["refused"]) for x in edges if x["protocol"] == "tcp"] == [
        ({"name": "backup.lan", "kind": "address"}, 82, 1), ({"name": "db.example.com", "kind": "address"}, 81, 1)]
    flows = json.loads(sonde("net", "--json", "--pid", named.pid, store=store, check=True).stdout)["rows"]
    assert sorted((x["peer_name"], x["peer"], x["class"]) for x in flows if x["protocol"] == "tcp") == [
        ("backup.lan", "10.99.0.6", "lan"), ("db.example.com", "10.99.0.5", "lan")]
    assert sql_all(store, f"SELECT DISTINCT name, address, how FROM peer_names WHERE pid = {named.pid} ORDER BY how, name") == [
        {"name": "db.example.com", "address": "10.99.0.5", "how": "dns"}, {"name": "backup.lan", "address": "10.99.0.6", "how": "hosts"},
        {"name": "not-this-one", "address": "10.99.0.5", "how": "hosts"}]
    assert "db.example.com (10.99.0.5)" in sonde("net", "--failed", "--pid", named.pid, store=store, check=True).stdout


@pytest.fixture
def following(store, sonde):
    """sonde VERB --live on a pipe, once it follows. Where nothing comes it ends after a while, so that whoever reads fails."""
    begun, ends = [], []

    def begin(*args):
        p = subprocess.Popen([f"{BIN}/sonde", *map(str, args), "--live", "--store", str(store)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        begun.append(p)
        ends.append(threading.Timer(120, p.kill))
        ends[-1].start()
        for line in p.stderr:
            if "new edges" in line:
                return p
        raise AssertionError("it ended")
    yield begin
    for end in ends:
        end.cancel()
    for p in begun:
        p.kill()
        p.wait()
        p.stdout.close()
        p.stderr.close()


def test_new_edges_come_as_lines_while_somebody_follows(net, store, talker, sonde, following):
    server, client = talker("serve", "4", "127.0.0.1"), talker("client")
    text, rows_of = following("net"), following("map", "--json", "--pid", client.pid)
    server.tell("server_first")
    client.ask({"address": "127.0.0.1", "port": server.said["port"], "mode": "keep"})
    client.ask({"address": "127.0.0.1", "port": 1, "ask": 16, "reply": 0})
    assert any(re.match(rf"\d\d:\d\d:\d\d  .* to .*, tcp {server.said['port']}: 1 opened$", line.strip()) for line in text.stdout)
    edges = [json.loads(rows_of.stdout.readline()) for _ in range(2)]
    assert sorted((x["schema"], x["port"], x["opened"], x["refused"]) for x in edges) == [
        ("sonde.net-live/1", 1, 0, 1), ("sonde.net-live/1", server.said["port"], 1, 0)]
    for p in (text, rows_of):
        p.send_signal(signal.SIGINT)
        assert p.wait(timeout=180) == 0


def test_following_ends_when_nobody_reads(net, store, following):
    p = following("net", "--json")
    p.stdout.close()
    assert p.wait(timeout=180) == 0


def test_what_cannot_be_followed_is_refused(net, store, sonde):
    for wrong in (("net", "--failed"), ("net", "--from", "-1h"), ("map", "--at", "now"), ("map", "--dot"), ("map", "-o", "x.svg")):
        done = sonde(*wrong, "--live", store=store)
        assert done.returncode == 2 and "--live" in done.stderr and "  fix: sonde " in done.stderr, done


@pytest.mark.parametrize("path", ["{}/a.sock", "ABSTRACTsonde-test-{}"])
def test_unix_sockets_and_datagrams_are_edges_with_both_ends(net, store, scratch, talker, path):
    path = path.format(scratch if "/" in path else os.getpid())
    two = talker("pair", path)
    child, shown = two.said["child"], path.replace("ABSTRACT", "@")
    assert until(lambda: rows(store, f"SELECT 1 FROM flows WHERE pid = {child} AND protocol = 'unix'"), 30)
    net.stop()
    got = sql_all(store, "SELECT DISTINCT pid, side, protocol, peer, port, peer_pid, open_now, tx_bytes FROM flows"
                         f" WHERE pid IN ({two.pid}, {child}) AND protocol <> 'tcp'")
    assert sorted(tuple(r.values()) for r in got) == sorted([
        (child, "client", "unix", shown, None, two.pid, 1, None), (two.pid, "server", "unix", shown, None, child, 1, None),
        (child, "client", "udp", "127.0.0.1", two.said["udp"], two.pid, 1, None)])
    heard = sql_all(store, f"SELECT DISTINCT protocol, address, port, open_to FROM listeners WHERE pid = {two.pid}")
    assert sorted((r["protocol"], r["address"], r["port"], r["open_to"]) for r in heard) == [
        ("udp", "127.0.0.1", two.said["udp"], "host"), ("unix", shown, None, "host")]


def test_bytes_of_short_unix_connections_and_of_datagrams_are_exact(net, store, scratch, talker):
    if subprocess.run(["grep", "-q", "btf_trace_sock_send_length", "/sys/kernel/btf/vmlinux"], check=False).returncode:
        pytest.skip("missing: the tracepoint sock_send_length (6.3)")
    path, n = f"{scratch}/s.sock", 300
    two = talker("short", path, n).said
    net.stop()
    got = sql_all(store, "SELECT pid, side, protocol, peer, port, CASE protocol WHEN 'unix' THEN peer_pid END AS other, sum(tx_bytes) AS tx, sum(rx_bytes) AS rx FROM flows"
                         f" WHERE pid IN ({two['pid']}, {two['child']}) AND protocol <> 'tcp' AND coalesce(tx_bytes, rx_bytes) > 0 GROUP BY 1, 2, 3, 4, 5, 6")
    assert sorted(tuple(r.values()) for r in got) == sorted([
        (two["pid"], "server", "unix", path, None, two["child"], 1000 * n, 100 * n), (two["child"], "client", "unix", path, None, two["pid"], 100 * n, 1000 * n),
        (two["child"], "client", "udp", "127.0.0.1", two["udp"], None, 33 * n, None)])


def test_sonded_records_it_and_an_edge_is_there_soon(store, talker, sonde):
    with Sonded(store, families="net"):
        assert until(lambda: rows(store, "SELECT 1 FROM netns_stats"), 60)
        server, client = talker("serve", "4", "127.0.0.1"), talker("client")
        server.tell("server_first")
        begun = time.monotonic()
        client.ask({"address": "127.0.0.1", "port": server.said["port"], "mode": "keep"})
        assert until(lambda: rows(store, f"SELECT 1 FROM edges WHERE pid = {client.pid} AND peer_pid = {server.pid} AND open_now = 1"), 30)
        print(f"after {time.monotonic() - begun:.1f} s")
        edges = json.loads(sonde("map", "--json", "--last", "1m", "--pid", client.pid, store=store, check=True).stdout)["rows"]
        assert [(x["port"], x["opened"], x["open_now"]) for x in edges] == [(server.said["port"], 1, 1)]


def test_both_ends_are_one_edge_through_address_translation(capture, store, talker):
    """Two namespaces, joined by a pair of interfaces; the client asks an address that nobody has, and is seen as another one."""
    need("iptables")
    server, client = talker("serve", "4", "0.0.0.0", inside=alone()), talker("client", inside=alone())
    enter(client.pid, "ip", "link", "add", "va", "type", "veth", "peer", "name", "vb", "netns", str(server.pid))
    for pid, link, address in ((client.pid, "va", "10.77.0.1/24"), (server.pid, "vb", "10.77.0.2/24")):
        enter(pid, "ip", "addr", "add", address, "dev", link)
        enter(pid, "ip", "link", "set", link, "up")
    enter(client.pid, "ip", "addr", "add", "10.77.0.9/24", "dev", "va")
    enter(client.pid, "ip", "route", "add", "10.78.0.0/24", "dev", "va")
    port = server.said["port"]
    enter(client.pid, "iptables", "-t", "nat", "-A", "OUTPUT", "-p", "tcp", "-d", "10.78.0.5", "--dport", "8080", "-j", "DNAT",
          "--to-destination", f"10.77.0.2:{port}")
    enter(client.pid, "iptables", "-t", "nat", "-A", "POSTROUTING", "-p", "tcp", "-d", "10.77.0.2", "-j", "SNAT", "--to-source", "10.77.0.9")
    net = capture(program="sonde-net")
    assert until(lambda: rows(store, "SELECT 1 FROM netns_stats"), 20)
    for mode in ("server_first", "client_first"):
        server.tell(mode)
        client.ask({"address": "10.78.0.5", "port": 8080, "ask": 300, "reply": 5000, "mode": mode})
        server.read()
    net.stop()
    assert sums_kept(store, f"pid = {client.pid} AND peer_pid = {server.pid} AND peer = '10.78.0.5' AND port = 8080") == {
        "attempts": 2, "opened": 2, "closed": 2, "tx_bytes": 600, "rx_bytes": 10000}
    assert sums_kept(store, f"pid = {server.pid} AND peer_pid = {client.pid} AND peer = '10.77.0.9' AND port = {port}") == {
        "opened": 2, "closed": 2, "tx_bytes": 10000, "rx_bytes": 600}


@pytest.mark.docker
def test_containers_that_talk_through_a_published_port_are_one_edge(store, sonde):
    """docker run -p: another container asks the bridge's address, and the engine translates it."""
    e = engine(bridge=True)
    net = None
    try:
        image = e.image()
        e.docker("run", "-d", "--name", "web", "-p", "8080:80", image, "/bin/sh", "-c", "echo hello >/tmp/x; exec busybox httpd -f -p 80 -h /tmp")
        net = Capture(store, program="sonde-net", prefix=e.prefix).start()
        assert until(lambda: rows(store, "SELECT 1 FROM netns_stats"), 20)
        done = e.docker("run", "--name", "asks", image, "/bin/sh", "-c", "for i in 1 2 3; do busybox wget -q -O - http://172.17.0.1:8080/x; done")
        assert done.stdout == "hello\n" * 3, done.stderr
        net.stop()
    finally:
        e.docker("rm", "-f", "web", "asks")
        if net:
            net.close()
        e.stop()
    edges = json.loads(sonde("map", "--json", store=store, check=True).stdout)["rows"]
    known = [(x["from"]["name"], x["to"]["name"], x["port"], x["opened"]) for x in edges if x["protocol"] == "tcp" and x["from"]["name"] == "asks"]
    assert known == [("asks", "web", 8080, 3)], edges
