# SPDX-License-Identifier: Apache-2.0
"""sonde replay: captures that are written here, packet by packet, so that each time and byte is known."""
import json
import os
import shutil
import socket
import struct
import subprocess

import pytest
from conftest import BIN

START = 1_600_000_000 * 1_000_000  # us
HTTP = b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n"
FINE = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
SYN, FIN, RST, PUSH, ACK = 2, 1, 4, 8, 16


def ipv4(source, target, protocol, payload):
    return struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(payload), 1, 0, 64, protocol, 0, socket.inet_aton(source), socket.inet_aton(target)) + payload


def ipv6(source, target, protocol, payload):
    return struct.pack("!IHBB16s16s", 6 << 28, len(payload), protocol, 64, socket.inet_pton(socket.AF_INET6, source),
                       socket.inet_pton(socket.AF_INET6, target)) + payload


def ether(kind, payload):
    return b"\2\0\0\0\0\2\2\0\0\0\0\1" + struct.pack("!H", kind) + payload


def plain(ip):
    return ether(0x86dd if ip[0] >> 4 == 6 else 0x0800, ip)


class Made:
    """A capture of TCP connections; times are us from START. `wrap` makes a frame of an IP packet."""

    def __init__(self, path, wrap=plain, v6=False):
        self.path, self.now, self.frames, self.wrap, self.v6 = str(path), 0, [], wrap, v6

    def at(self, us):
        self.now = us
        return self

    def connect(self, port, opened=True, sides="cs"):
        return Conn(self, port, opened, sides)

    def write(self):
        with open(self.path, "wb") as f:
            f.write(struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1))
            for us, frame in self.frames:
                f.write(struct.pack("<IIII", *divmod(START + us, 1_000_000), len(frame), len(frame)) + frame)
        return self.path

    def rows(self):
        self.write()
        done = subprocess.run([os.path.join(BIN, "sonde"), "replay", self.path, "-r", "--json"], capture_output=True, text=True, timeout=60)
        assert done.returncode in (0, 4), done.stderr
        self.said = done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    def told(self):
        """(operation, result, status) of each."""
        return [(r["operation"], r["result"], r["status"]) for r in self.rows()]

    def times(self):
        """(operation, begin, latency or None) in us."""
        return [(r["operation"], r["begin_ns"] // 1000 - START, r["latency_ns"] and r["latency_ns"] // 1000) for r in self.rows()]


class Conn:
    def __init__(self, made, port, opened, sides):
        self.made, self.ports, self.sides, self.next = made, (50000, port), sides, [100, 900]
        if opened:
            self.packet(0, SYN)
            self.next[0] += 1
            self.packet(1, SYN | ACK)
            self.next[1] += 1
            self.packet(0, ACK)

    def packet(self, side, flags, data=b"", at=None):
        """One packet; `at`: where it stands in the stream, else behind all that was sent."""
        self.made.now += 1
        if "cs"[side] not in self.sides:
            return
        tcp = struct.pack("!HHIIBBHHH", self.ports[side], self.ports[1 - side], self.next[side] if at is None else at, self.next[1 - side],
                          0x50, flags, 9999, 0, 0) + data
        ends = ("fd00::1", "fd00::2") if self.made.v6 else ("10.1.0.1", "10.1.0.2")
        ip = (ipv6 if self.made.v6 else ipv4)(ends[side], ends[1 - side], 6, tcp)
        self.made.frames.append((self.made.now, self.made.wrap(ip)))

    def say(self, side, data, us=None):
        self.made.now = us - 1 if us else self.made.now
        self.packet(side, PUSH | ACK, data)
        self.next[side] += len(data)

    def ask(self, data, us=None):
        self.say(0, data, us)

    def answer(self, data, us=None):
        self.say(1, data, us)

    def parts(self, side, data, sent, size):
        """Parts of `size` bytes at their times: ((which, us), ...)."""
        for n, us in sent:
            self.made.now = us - 1
            self.packet(side, PUSH | ACK, data[n * size:(n + 1) * size], self.next[side] + n * size)
        self.next[side] += len(data)

    def fin(self):
        for side in (0, 1):
            self.packet(side, FIN | ACK)
            self.next[side] += 1

    def reset(self, side=1):
        self.packet(side, RST | ACK)


@pytest.fixture
def made(tmp_path):
    return Made(tmp_path / "x.pcap")


# what a server sends of itself

def test_a_pushed_message_has_its_own_time_and_bytes(made):
    x = made.connect(6379)
    x.ask(b"*2\r\n$9\r\nSUBSCRIBE\r\n$1\r\na\r\n", 1000)
    x.answer(b"*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n", 2000)
    x.answer(b"*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$2\r\n", 7_000_000)  # in two pieces
    x.answer(b"hi\r\n", 8_000_000)
    y = made.connect(4222)
    y.answer(b'INFO {"server_id":"x"}\r\n')
    y.ask(b"CONNECT {}\r\nSUB F 1\r\n", 8_500_000)
    y.answer(b"MSG F 1 2\r\nhi\r\n", 9_000_000)
    rows = made.rows()
    assert [(r["operation"], r["result"], r["begin_ns"] // 1000 - START, r["response_bytes"]) for r in rows[1:]] == [
        ("message", "one-way", 7_000_000, 32), ("MSG F", "one-way", 9_000_000, 15)]


# times and holes

@pytest.mark.parametrize("late", range(4))
def test_an_answer_is_there_when_all_of_it_is(made, late):
    x = made.connect(80)
    x.ask(HTTP, 1000)
    x.parts(1, b"HTTP/1.1 200 OK\r\nContent-Length: 380\r\n\r\n" + b"z" * 380, [(n, 1100 + n) for n in range(4) if n != late] + [(late, 300_000)], 105)
    x.ask(HTTP, 400_000)
    x.answer(FINE, 400_500)
    x.fin()
    assert made.times() == [("GET x/a", 1000, 299_000), ("GET x/a", 400_000, 500)]


@pytest.mark.parametrize("late", (1, 2))
def test_a_request_is_sent_when_all_of_it_is(made, late):
    x = made.connect(80)
    x.parts(0, b"POST /p HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\n" + b"y" * 99,
            [(n, 1000 + n) for n in range(3) if n != late] + [(late, 200_000)], 50)
    x.answer(FINE, 201_000)
    x.fin()
    row, = made.rows()
    assert row["begin_ns"] // 1000 - START == 1000 and row["sent_ns"] // 1000 - START == 200_000 and row["latency_ns"] == 200_000_000


# what was seen is counted

def test_what_hangs_at_the_end_and_what_is_seen_of_one_side_alone_is_unknown(made):
    made.connect(80, opened=False).ask(HTTP, 1000)
    assert made.told() == [("GET x/a", "blind", "")]
    for sides in ("c",):
        for opened in (True, False):
            one = Made(made.path)
            x = one.connect(80, opened, sides)
            for _ in range(3):
                x.ask(HTTP)
                x.answer(FINE)
            x.fin()
            assert one.told() == 3 * [("GET x/a", "blind", "")]
    whole = Made(made.path)
    x = whole.connect(80)
    x.ask(HTTP, 1000)
    x.answer(FINE, 1100)
    x.ask(HTTP, 2000)
    assert whole.told() == [("GET x/a", "ok", "200"), ("GET x/a", "blind", "")]


def test_answers_alone_are_told_to_be_that(made):
    x = made.connect(80, sides="s")
    x.ask(HTTP)
    x.answer(FINE)
    x.fin()
    assert made.told() == [] and "only the server's side was captured" in made.said


# what is cut off

@pytest.mark.parametrize("how", ("fin", "reset"))
@pytest.mark.parametrize("answer", (b"HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\nhi", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
                                    b"HTTP/1.1 200 OK\r\n"))
def test_an_answer_that_is_cut_off_is_not_ok(made, how, answer):
    x = made.connect(80)
    x.ask(HTTP)
    x.answer(answer)
    getattr(x, how)()
    assert made.told() == [("GET x/a", "no-answer", "cut")]


def test_an_answer_that_ends_with_its_connection_is_whole_but_for_a_reset(tmp_path):
    for how, result in (("fin", ("GET x/a", "ok", "200")), ("reset", ("GET x/a", "no-answer", "cut"))):
        made = Made(tmp_path / "x.pcap")
        x = made.connect(80)
        x.ask(HTTP)
        x.answer(b"HTTP/1.1 200 OK\r\n\r\nhi")
        getattr(x, how)()
        assert made.told() == [result]


def test_an_answer_that_ends_with_its_connection_was_there_with_its_last_byte(made):
    x = made.connect(80)
    x.ask(b"GET /a HTTP/1.0\r\nHost: x\r\n\r\n", 10_000)
    x.answer(b"HTTP/1.0 200 OK\r\n\r\nabc", 10_500)
    x.answer(b"def", 10_700)
    made.at(5_000_000)
    x.fin()
    assert made.times() == [("GET x/a", 10_000, 700)]


PROXIES = {
    "1": b"PROXY TCP4 192.0.2.1 192.0.2.2 50000 80\r\n",
    "1, unknown": b"PROXY UNKNOWN\r\n",
    "2": b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c" + bytes(12),
    "2, local": b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0",
    "2, with more": b"\r\n\r\n\0\r\nQUIT\n\x21\x21\0\x2a" + bytes(36) + b"\x20\0\3abc",
}


@pytest.mark.parametrize("apart", (False, True))
@pytest.mark.parametrize("name", PROXIES)
def test_what_a_balancer_says_first_hides_no_request(made, name, apart):
    x = made.connect(80)
    if apart:
        x.ask(PROXIES[name], 5000)
    x.ask(HTTP if apart else PROXIES[name] + HTTP, 10_000)
    x.answer(FINE, 10_300)
    x.fin()
    (row,) = made.rows()
    assert (row["operation"], row["result"], row["latency_ns"], row["request_bytes"], row["begin_ns"] // 1000 - START) == ("GET x/a", "ok", 300_000, len(HTTP), 10_000)


def test_empty_lines_before_a_request_are_none_of_it(made):
    x = made.connect(80)
    for _ in range(2):
        x.ask(b"\r\n\r\n")
        x.ask(HTTP)
        x.answer(FINE)
    x.fin()
    assert made.told() == 2 * [("GET x/a", "ok", "200")]


# PostgreSQL

def pg(kind, body=b""):
    return kind + struct.pack("!I", len(body) + 4) + body


PG_START = struct.pack("!II", 17, 196608) + b"user\0ann\0"[:8] + b"\0"
PG_READY = pg(b"R", bytes(4)) + pg(b"Z", b"I")


@pytest.mark.parametrize("code", (b"28P01", b"28000", b"53300", b"57P03"))
def test_an_error_that_ends_a_connection_of_postgres_keeps_its_code(made, code):
    x = made.connect(5432)
    x.ask(PG_START, 1000)
    x.answer(pg(b"E", b"SFATAL\0VFATAL\0C" + code + b"\0Mno\0\0"), 3000)
    x.fin()
    assert made.told() == [("CONNECT", "error", code.decode())] and made.times() == [("CONNECT", 1000, 2000)]


def test_parse_and_bind_are_part_of_what_is_executed(made):
    x = made.connect(5432)
    x.ask(PG_START)
    x.answer(PG_READY)
    ask = pg(b"P", b"\0select $1\0\0\0") + pg(b"B", b"\0\0\0\0\0\1" + struct.pack("!I", 200_000) + b"v" * 200_000 + b"\0\0") + pg(b"E", bytes(5)) + pg(b"S")
    for i in range(0, len(ask), 1400):
        x.ask(ask[i:i + 1400])
    x.answer(pg(b"1") + pg(b"2") + pg(b"C", b"SELECT 1\0") + pg(b"Z", b"I"))
    x.fin()
    assert [(r["operation"], r["result"], r["request_bytes"]) for r in made.rows()][1] == ("select ?", "ok", len(ask))


# what must not be stored

@pytest.mark.parametrize("target", ("http://ann:fern-77@h/", "HTTP://ann:fern-77@h/", "http://ann:fern-77@h?x", "ftp://ann:fern-77@h/"))
@pytest.mark.parametrize("args", ((), ("--payload", "full")))
def test_a_password_in_a_target_is_not_told(made, target, args):
    for line in (f"GET {target}", "CONNECT ann:fern-77@h:443", "OPTIONS ann:fern-77@h"):
        x = made.connect(8080)
        x.ask(line.encode() + b" HTTP/1.1\r\nHost: ann:fern-77@h\r\n\r\n")
        x.answer(FINE)
        x.reset()
    assert len(made.rows()) == 3
    done = subprocess.run([os.path.join(BIN, "sonde"), "replay", made.path, "--json", *args], capture_output=True, text=True, check=True, timeout=60)
    assert "h" in done.stdout and "fern" not in done.stdout and "ann" not in done.stdout


# tunnels

def outer(protocol, payload, v6=False):
    return plain(ipv6("fd09::1", "fd09::2", protocol, payload) if v6 else ipv4("192.0.2.1", "192.0.2.2", protocol, payload))


def outer_udp(port, payload, v6=False):
    return outer(17, struct.pack("!HHHH", 40404, port, 8 + len(payload), 0) + payload, v6)


def kind(ip):
    return 0x86dd if ip[0] >> 4 == 6 else 0x0800


def gre(flags, protocol, rest, payload):
    return struct.pack("!HH", flags, protocol) + rest + payload


def label(n, bottom):
    return struct.pack("!I", n << 12 | bottom << 8 | 64)


VXLAN = struct.pack("!II", 0x08000000, 9 << 8)
TUNNELS = {
    "vxlan": lambda ip: outer_udp(4789, VXLAN + plain(ip)),
    "vxlan of Linux": lambda ip: outer_udp(8472, VXLAN + plain(ip)),
    "vxlan over v6": lambda ip: outer_udp(4789, VXLAN + plain(ip), True),
    "vxlan gpe": lambda ip: outer_udp(4790, struct.pack("!II", 0x0c000000 | (2 if ip[0] >> 4 == 6 else 1), 9 << 8) + ip),
    "vxlan of a vlan": lambda ip: outer_udp(4789, VXLAN + ether(0x8100, struct.pack("!HH", 3, kind(ip)) + ip)),
    "geneve": lambda ip: outer_udp(6081, struct.pack("!BBHI", 0, 0, 0x6558, 9 << 8) + plain(ip)),
    "geneve with options": lambda ip: outer_udp(6081, struct.pack("!BBHI", 2, 0, kind(ip), 9 << 8) + bytes(8) + ip),
    "gre": lambda ip: outer(47, gre(0, kind(ip), b"", ip)),
    "gre over v6": lambda ip: outer(47, gre(0, kind(ip), b"", ip), True),
    "gre with all": lambda ip: outer(47, gre(0xb000, kind(ip), bytes(12), ip)),
    "nvgre": lambda ip: outer(47, gre(0x2000, 0x6558, struct.pack("!I", 9 << 8), plain(ip))),
    "erspan 1": lambda ip: outer(47, gre(0, 0x88be, b"", plain(ip))),
    "erspan 2": lambda ip: outer(47, gre(0x1000, 0x88be, bytes(4) + struct.pack("!II", 0x10000000, 0), plain(ip))),
    "erspan 3": lambda ip: outer(47, gre(0x1000, 0x22eb, bytes(4) + struct.pack("!III", 0x20000000, 0, 0), plain(ip))),
    "pptp": lambda ip: outer(47, gre(0x3081, 0x880b, bytes(12), b"\xff\3" + (b"\0\x57" if ip[0] >> 4 == 6 else b"\x21") + ip)),
    "ip in ip": lambda ip: outer(41 if ip[0] >> 4 == 6 else 4, ip),
    "ip in v6": lambda ip: outer(41 if ip[0] >> 4 == 6 else 4, ip, True),
    "gtp": lambda ip: outer_udp(2152, struct.pack("!BBHI", 0x30, 255, len(ip), 7) + ip),
    "gtp with an extension": lambda ip: outer_udp(2152, struct.pack("!BBHIHBB", 0x34, 255, len(ip) + 8, 7, 0, 0, 0x85) + b"\1\x10\x09\0" + ip),
    "l2tp": lambda ip: outer_udp(1701, struct.pack("!HHH", 2, 1, 1) + b"\xff\3" + (b"\0\x57" if ip[0] >> 4 == 6 else b"\0\x21") + ip),
    "l2tp with all": lambda ip: outer_udp(1701, struct.pack("!HHHHHHH", 0x4a02, len(ip) + 17, 1, 1, 0, 0, 1) + b"\0" + (b"\x57" if ip[0] >> 4 == 6 else b"\x21") + ip),
    "l2tp 3": lambda ip: outer(115, struct.pack("!I", 7) + plain(ip)),
    "l2tp 3 with a cookie": lambda ip: outer(115, struct.pack("!I", 7) + b"cookie!!" + bytes(4) + plain(ip)),
    "l2tp 3 over udp": lambda ip: outer_udp(1701, struct.pack("!HHI", 3, 0, 7) + b"cook" + plain(ip)),
    "gue": lambda ip: outer_udp(6080, struct.pack("!BBH", 0, 41 if ip[0] >> 4 == 6 else 4, 0) + ip),
    "gue with fields": lambda ip: outer_udp(6080, struct.pack("!BBH", 2, 41 if ip[0] >> 4 == 6 else 4, 0) + bytes(8) + ip),
    "gue of version 1": lambda ip: outer_udp(6080, ip),
    "nsh": lambda ip: ether(0x894f, struct.pack("!BBBBI", 15, 0xc6, 1, 2 if ip[0] >> 4 == 6 else 1, 511) + bytes(16) + ip),
    "nsh in vxlan gpe": lambda ip: outer_udp(4790, struct.pack("!II", 0x0c000004, 9 << 8) + struct.pack("!BBBBI", 15, 0xc2, 2, 3, 511) + plain(ip)),
    "mac in mac": lambda ip: ether(0x88a8, struct.pack("!HHI", 5, 0x88e7, 9) + plain(ip)),
    "mpls": lambda ip: ether(0x8847, label(16, 0) + label(17, 1) + ip),
    "mpls of ethernet": lambda ip: ether(0x8847, label(16, 1) + bytes(4) + plain(ip)),
    "pppoe": lambda ip: ether(0x8864, struct.pack("!BBHHH", 0x11, 0, 1, len(ip) + 2, 0x57 if ip[0] >> 4 == 6 else 0x21) + ip),
    "qinq": lambda ip: ether(0x88a8, struct.pack("!HHHH", 1, 0x8100, 2, kind(ip)) + ip),
    "qinq of old": lambda ip: ether(0x9100, struct.pack("!HHHH", 1, 0x8100, 2, kind(ip)) + ip),
    "pppoe in a vlan": lambda ip: ether(0x8100, struct.pack("!HHBBHHH", 1, 0x8864, 0x11, 0, 1, len(ip) + 2, 0x57 if ip[0] >> 4 == 6 else 0x21) + ip),
    "gre in vxlan": lambda ip: outer_udp(4789, VXLAN + outer(47, gre(0, kind(ip), b"", ip))),
}


@pytest.mark.parametrize("v6", (False, True), ids=("v4", "v6"))
@pytest.mark.parametrize("tunnel", TUNNELS)
def test_what_is_in_a_tunnel_is_told(tmp_path, tunnel, v6):
    made = Made(tmp_path / "x.pcap", TUNNELS[tunnel], v6)
    x = made.connect(80)
    for us in (1000, 2000):
        x.ask(HTTP, us)
        x.answer(FINE, us + 300)
    x.fin()
    rows = made.rows()
    assert [(r["operation"], r["result"], r["latency_ns"], r["service"]) for r in rows] == 2 * [
        ("GET x/a", "ok", 300_000, "[fd00::2]:80" if v6 else "10.1.0.2:80")]


def test_datagrams_that_are_nothing_known_are_told_with_the_tunnels_that_are_read(tmp_path):
    made = Made(tmp_path / "x.pcap", lambda ip: outer_udp(4791, VXLAN + plain(ip)))
    x = made.connect(80)
    x.ask(HTTP)
    assert not made.rows() and "datagrams" in made.said and "VXLAN" in made.said


def nested(ip, deep):
    for _ in range(deep):
        ip = ipv4("192.0.2.1", "192.0.2.2", 4, ip)
    return plain(ip)


def test_tunnels_are_in_each_other_up_to_a_depth(tmp_path):
    for deep, told in ((8, [("GET x/a", "ok", "200")]), (9, []), (500, [])):
        made = Made(tmp_path / "x.pcap", lambda ip, deep=deep: nested(ip, deep))
        x = made.connect(80)
        x.ask(HTTP)
        x.answer(FINE)
        x.fin()
        assert made.told() == told
        assert told or "IP in IP" in made.said


def test_a_tunnel_whose_packets_come_in_fragments_is_put_together(tmp_path):
    made = Made(tmp_path / "x.pcap", TUNNELS["vxlan"])
    x = made.connect(80)
    x.ask(HTTP)
    x.answer(b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n" + b"z" * 900)
    x.fin()
    cut = []
    for n, (us, frame) in enumerate(made.frames):
        packet, size = frame[34:], 200
        for at in range(0, len(packet), size):
            part = packet[at:at + size]
            head = struct.pack("!HHH", 20 + len(part), n + 1, at // 8 | (0x2000 if at + size < len(packet) else 0))
            cut.append((us, frame[:16] + head + frame[22:34] + part))
    made.frames = cut
    assert made.told() == [("GET x/a", "ok", "200")]


def test_a_datagram_to_a_tunnels_port_may_be_none(made):
    x = made.connect(80)
    x.ask(HTTP)
    x.answer(FINE)
    x.fin()
    made.frames += [(made.now, outer_udp(port, b"\x08" + bytes(n))) for port in (4789, 8472, 4790, 6081, 6635) for n in (0, 3, 7, 8, 40)]
    assert made.told() == [("GET x/a", "ok", "200")]


# Kafka

def text16(s):
    return struct.pack("!h", len(s)) + s


def kafka(x, api, version, n, answer):
    ask = struct.pack("!hhi", api, version, n) + text16(b"cl") + bytes(8)
    x.ask(struct.pack("!i", len(ask)) + ask)
    answer = struct.pack("!ii", len(answer) + 4, n) + answer
    for i in range(0, len(answer), 60_000):
        x.answer(answer[i:i + 60_000])


def test_a_code_of_kafka_is_found_behind_the_records_of_other_partitions(made):
    x = made.connect(9092)
    kafka(x, 18, 0, 1, bytes(6))
    for n, codes in enumerate(((0, 0, 6), (0, 0, 0), (1, 0, 0)), 2):
        fetched = b"".join(struct.pack("!ihqqii", i, code, 0, 0, 0, 300_000) + bytes(300_000) for i, code in enumerate(codes))
        kafka(x, 1, 4, n, struct.pack("!ii", 0, 1) + text16(b"t") + struct.pack("!i", len(codes)) + fetched)
    x.fin()
    rows = made.rows()
    assert [(r["result"], r["status"]) for r in rows[1:]] == [("error", "6"), ("ok", ""), ("error", "1")]
    assert {r["response_bytes"] for r in rows[1:]} == {8 + 8 + 3 + 4 + 3 * 300_030}


# what belongs to a question

def my(seq, b):
    return len(b).to_bytes(3, "little") + bytes([seq]) + b


def test_the_data_of_a_parameter_is_part_of_what_is_executed(made):
    x = made.connect(3306, opened=False)
    x.ask(my(0, b"\x16insert into t values (?)"), 1000)
    x.answer(my(1, b"\0" + struct.pack("<IHHBH", 7, 0, 1, 0, 0)) + my(2, b"d") + my(3, b"\xfe\0\0\2\0"), 1100)
    for us in (2000, 3000):
        x.ask(my(0, b"\x18" + struct.pack("<IH", 7, 0) + b"v" * 1000), us)
    execute = my(0, b"\x17" + struct.pack("<IBI", 7, 0, 1) + b"\0\1\xfc\0")
    x.ask(execute, 4000)
    x.answer(my(1, bytes([0, 1, 0, 2, 0, 0, 0])), 5000)
    row = made.rows()[-1]
    assert (row["result"], row["request_bytes"], row["latency_ns"]) == ("ok", 2 * 1011 + len(execute), 3_000_000)


def test_a_message_of_several_packets_is_one(made):
    x = made.connect(3306, opened=False)
    x.ask(my(0, b"\x0e"))
    x.answer(my(1, bytes([0, 0, 0, 2, 0, 0, 0])))
    ask = my(0, b"\3insert into t values ('" + b"v" * (0xffffff - 24)) + my(1, b"v" * 99 + b"')")
    for i in range(0, len(ask), 60_000):
        x.ask(ask[i:i + 60_000])
    x.answer(my(2, bytes([0, 1, 0, 2, 0, 0, 0])))
    row = made.rows()[-1]
    assert (row["operation"][:13], row["result"], row["request_bytes"]) == ("insert into t", "ok", len(ask))


def amqp(kind, channel, body):
    return struct.pack("!BHI", kind, channel, len(body)) + body + b"\xce"


@pytest.mark.parametrize("pushed", (True, False))
def test_a_message_of_amqp_is_its_content_too(made, pushed):
    def content(method, args):
        return (amqp(1, 1, struct.pack("!HH", 60, method) + args), amqp(2, 1, struct.pack("!HHQH", 60, 0, 5000, 0)), amqp(3, 1, bytes(4000)), amqp(3, 1, bytes(1000)))
    x = made.connect(5672, opened=False)
    x.ask(amqp(1, 1, struct.pack("!HH", 20, 10) + b"\0"), 500)
    x.answer(amqp(1, 1, struct.pack("!HH", 20, 11) + bytes(4)), 600)
    parts = content(60, b"\1t" + bytes(9) + b"\2ex\1k") if pushed else content(40, b"\0\0\2ex\1k\0")
    for i, part in enumerate(parts):
        x.say(int(pushed), part, 7000 + i * 1000)
    row = made.rows()[-1]
    whole = sum(map(len, parts))
    assert (row["operation"], row["result"], row["begin_ns"] // 1000 - START) == ("DELIVER ex k" if pushed else "PUBLISH ex k", "one-way", 7000)
    assert (row["request_bytes"], row["response_bytes"]) == ((0, whole) if pushed else (whole, 0)) and row["sent_ns"] // 1000 - START == 10_000


def test_what_a_server_says_last_is_told_whoever_speaks_first(made):
    for port, first, told in ((3306, b"\x17\0\0\0\xff\x10\x04Too many connections", ("CONNECT", "error", "1040")),
                              (6379, b"-ERR max number of clients reached\r\n", ("CONNECT", "error", "ERR")),
                              (6379, b"-DENIED Redis is running in protected mode\r\n", ("CONNECT", "error", "DENIED")),
                              (11211, b"ERROR Too many open connections\r\n", ("CONNECT", "error", "ERROR"))):
        one = Made(made.path)
        x = one.connect(port)
        x.answer(first)
        x.fin()
        assert one.told() == [told]


# files of pcapng with several interfaces, and links that are rarely captured: what tshark counts in them is counted

def block(kind, body, order="<"):
    body += b"\0" * (-len(body) % 4)
    size = len(body) + 12
    return struct.pack(order + "II", kind, size) + body + struct.pack(order + "I", size)


def section(order="<"):
    return block(0x0a0d0d0a, struct.pack(order + "IHHq", 0x1a2b3c4d, 1, 0, -1), order)


def option(code, value, order="<"):
    return struct.pack(order + "HH", code, len(value)) + value + b"\0" * (-len(value) % 4)


def interface(link, snap=262144, order="<", *options):
    return block(1, struct.pack(order + "HHI", link, 0, snap) + b"".join(options) + (option(0, b"") if options else b""), order)


def packet(which, at, data, order="<"):
    return block(6, struct.pack(order + "IIIII", which, at >> 32, at & 0xffffffff, len(data), len(data)) + data, order)


def sll(ip):
    return struct.pack("!HHH8sH", 0, 1, 6, bytes(8), 0x800) + ip


def talked(wrap=lambda ip: ip):
    """[(us from START, frame)] of two requests of 1 ms each."""
    made = Made(os.devnull, wrap=wrap)
    x = made.connect(80)
    for i in (1000, 3000):
        x.ask(HTTP, i)
        x.answer(FINE, i + 1000)
    x.fin()
    return made.frames


IP = [(START + us, frame) for us, frame in talked()]
RAW, ETHERNET, SLL, BLUETOOTH = 101, 1, 113, 201
NANO = option(9, b"\x09")
FILES = {
    "one": section() + interface(RAW) + b"".join(packet(0, us, f) for us, f in IP),
    "big endian": section(">") + interface(RAW, 0, ">") + b"".join(packet(0, us, f, ">") for us, f in IP),
    "snap lengths that differ": section() + interface(RAW, 65535) + interface(RAW, 9000) + b"".join(packet(i % 2, us, f) for i, (us, f) in enumerate(IP)),
    "links that differ": section() + interface(ETHERNET) + interface(RAW) + b"".join(packet(i % 2, us, f if i % 2 else ether(0x800, f)) for i, (us, f) in enumerate(IP)),
    "clocks that differ": section() + interface(RAW, 0, "<", NANO) + interface(RAW) + b"".join(packet(i % 2, us if i % 2 else us * 1000, f) for i, (us, f) in enumerate(IP)),
    "another link first": section() + interface(BLUETOOTH) + interface(RAW) + packet(0, START, b"what") + b"".join(packet(1, us, f) for us, f in IP),
    "two sections": section() + interface(RAW) + b"".join(packet(0, us, f) for us, f in IP[:4]) + section(">") + interface(SLL, 0, ">") +
                    b"".join(packet(0, us, sll(f), ">") for us, f in IP[4:]),
    "other blocks between": section() + interface(RAW) + b"".join(block(0xbad, b"abc") + packet(0, us, f) + block(5, bytes(12)) for us, f in IP),
    "an interface that comes late": section() + interface(ETHERNET) + packet(0, IP[0][0], ether(0x800, IP[0][1])) + interface(RAW) + b"".join(packet(1, us, f) for us, f in IP[1:]),
    "seconds to add": section() + interface(RAW, 0, "<", option(14, struct.pack("<q", 1_500_000_000))) + b"".join(packet(0, us - 1_500_000_000_000_000, f) for us, f in IP),
    "a clock of halves": section() + interface(RAW, 0, "<", option(9, b"\x9e")) + b"".join(packet(0, (us << 30) // 1_000_000 + 1, f) for us, f in IP),
    "packets of old": section() + interface(RAW) + b"".join(block(2, struct.pack("<HHIIII", 0, 9, us >> 32, us & 0xffffffff, len(f), len(f)) + f) for us, f in IP),
}


def told(path, *args):
    return subprocess.run([os.path.join(BIN, "sonde"), "replay", str(path), "-r", *args], capture_output=True, text=True, timeout=60)


def lines(done):
    return [line.split()[:3:2] + line.split()[-4:] for line in done.stdout.splitlines()]


WANT = [[f"2020-09-13T12:26:40.00{ms}000Z", "ms", "GET", "x/a", "ok", "200"] for ms in (1, 3)]


@pytest.mark.parametrize("name", FILES)
def test_whatever_interfaces_a_file_has_its_requests_are_told(tmp_path, name):
    path = tmp_path / "x.pcapng"
    path.write_bytes(FILES[name])
    done = told(path)
    assert done.returncode == 0 and lines(done) == WANT, (done.stdout, done.stderr)
    assert ("1 of 10 packets are not read: they are of other links (BLUETOOTH" in done.stderr) == (name == "another link first"), done.stderr
    with open(path, "rb") as f:
        piped = subprocess.run([os.path.join(BIN, "sonde"), "replay", "-", "-r"], stdin=f, capture_output=True, text=True, timeout=60)
    assert piped.stdout == done.stdout
    if shutil.which("tshark"):
        asked = subprocess.run(["tshark", "-r", str(path), "-Y", "http.request", "-T", "fields", "-e", "frame.number"], capture_output=True, text=True, check=True).stdout
        assert len(asked.split()) == len(WANT)


def test_packets_without_a_time_are_told(tmp_path):
    path = tmp_path / "x.pcapng"
    path.write_bytes(section() + interface(RAW) + b"".join(block(3, struct.pack("<I", len(f)) + f) for _, f in IP))
    assert [line[2:] for line in lines(told(path))] == [line[2:] for line in WANT]


def test_what_is_no_pcapng_is_told_as_that(tmp_path):
    path, whole = tmp_path / "x.pcapng", FILES["one"]
    path.write_bytes(whole[:-7])
    done = told(path)
    assert done.returncode == 0 and lines(done) == WANT and "ends within a block: this is what came before" in done.stderr
    for broken, why in ((whole[:20], "ends within a block"), (section() + b"no block at all", "no block of pcapng"), (section() + packet(0, 0, IP[0][1]), "makes no sense"),
                        (section() + interface(RAW) + packet(3, 0, IP[0][1]), "makes no sense"), (section(">")[:8] + bytes(20), "no block of pcapng")):
        path.write_bytes(broken)
        done = told(path)
        assert done.returncode == 1 and why in done.stderr, done.stderr
    path.write_bytes(section() + interface(BLUETOOTH) + packet(0, 0, b"what"))
    done = told(path)
    assert done.returncode == 2 and "BLUETOOTH" in done.stderr


def test_heads_within_heads_without_end_are_passed_over(tmp_path):
    path = tmp_path / "x.pcapng"
    path.write_bytes(section() + interface(ETHERNET) + interface(RAW) + packet(0, START, bytes(14) + b"\xaa\xaa\3\0\0\0\0\0" * 1_000_000) +
                     b"".join(packet(1, us, f) for us, f in IP))
    done = told(path)
    assert done.returncode == 0 and lines(done) == WANT, done.stderr


def nflog(ip):
    fields = struct.pack("<HH", 8, 1) + b"\x08\0\1\0" + struct.pack("<HH", 6, 10) + b"x\0\0\0" + struct.pack("<HH", 4 + len(ip), 9) + ip
    return struct.pack("!BBH", 2, 0, 5) + fields + b"\0" * (-len(fields) % 4)


def snapped(ip):
    return b"\2\0\0\0\0\2\2\0\0\0\0\1" + struct.pack("!H", len(ip) + 8) + b"\xaa\xaa\3\0\0\0\x08\0" + ip


LINKS = {
    "PPP": (9, lambda ip: b"\xff\3\0\x21" + ip),
    "PPP, compressed": (9, lambda ip: b"\x21" + ip),
    "PPP in HDLC": (50, lambda ip: b"\xff\3\0\x21" + ip),
    "PPPoE": (51, lambda ip: struct.pack("!BBHHH", 0x11, 0, 1, len(ip) + 2, 0x21) + ip),
    "Cisco HDLC": (104, lambda ip: b"\x0f\0\x08\0" + ip),
    "NFLOG": (239, nflog),
    "SNAP": (1, snapped),
    "SNAP in a VLAN": (1, lambda ip: ether(0x8100, struct.pack("!HH", 3, len(ip) + 8) + snapped(ip)[14:])),
}


@pytest.mark.parametrize("name", LINKS)
def test_links_that_are_rarely_captured_are_read(tmp_path, name):
    link, wrap = LINKS[name]
    path = tmp_path / "x.pcapng"
    path.write_bytes(section() + interface(link) + b"".join(packet(0, START + us, f) for us, f in talked(wrap)))
    done = told(path)
    assert lines(done) == WANT, (done.stdout, done.stderr)
    if shutil.which("tshark"):
        asked = subprocess.run(["tshark", "-r", str(path), "-Y", "http.request", "-T", "fields", "-e", "frame.number"], capture_output=True, text=True, check=True).stdout
        assert len(asked.split()) == len(WANT)
