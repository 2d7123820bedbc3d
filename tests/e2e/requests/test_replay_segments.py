# SPDX-License-Identifier: Apache-2.0
"""sonde replay: what TCP does to a conversation and does not change it: segments that come again, otherwise cut, too early, or hold nothing new; numbers that wrap; ports that are used again; packets
of which only the first bytes were kept; connections whose begin is not there."""
import json
import os
import re
import socket
import struct
import subprocess

import numbered
import pytest
from conftest import BIN
from test_replay import KEPT, NAMES, packets, tcp_payload
from test_replay_each import EACH, login
from test_replay_made import ACK, FIN, PUSH, RST, SYN, START, Made

SIDES = (0, 1)


def plain(x, who, data):
    x.say(who, data)


def keepalive(x, who, data):
    """A probe: the byte before the next one, with any content, and one without a byte."""
    x.packet(who, ACK, b"\xff", x.next[who] - 1)
    x.packet(who, ACK, b"", x.next[who] - 1)
    x.say(who, data)


def again(x, who, data):
    """Twice, the second time with the byte before it."""
    x.say(who, data)
    x.packet(who, PUSH | ACK, data, x.next[who] - len(data))
    if len(data) > 1:
        x.packet(who, PUSH | ACK, data[1:], x.next[who] - len(data) + 1)


def otherwise_cut(x, who, data):
    """The first half, then all but its first byte, then all."""
    at, half = x.next[who], (len(data) + 1) // 2
    x.packet(who, PUSH | ACK, data[:half], at)
    x.packet(who, PUSH | ACK, data[1:], at + 1)
    x.packet(who, PUSH | ACK, data, at)
    x.next[who] += len(data)


def backwards(x, who, data):
    """Each byte is sent before the one that it follows."""
    at = x.next[who]
    for i in reversed(range(len(data))):
        x.packet(who, PUSH | ACK, data[i:i + 1], at + i)
    x.next[who] += len(data)


def window_probe(x, who, data):
    """The first byte alone, refused and sent three times, then all."""
    at = x.next[who]
    for _ in range(3):
        x.packet(who, ACK, data[:1], at)
    x.packet(who, PUSH | ACK, data, at)
    x.next[who] += len(data)


def other_side_acks(x, who, data):
    for i in range(0, len(data), 7):
        x.packet(who, PUSH | ACK, data[i:i + 7], x.next[who])
        x.next[who] += len(data[i:i + 7])
        x.packet(1 - who, ACK)


HOW = [plain, keepalive, again, otherwise_cut, backwards, window_probe, other_side_acks]


def talk(x, name, say, ends=True):
    _, turns, ask, answer, _ = EACH[name]
    for who, data in [*turns, (0, ask), (1, answer), (0, ask), (1, answer)]:
        x.made.now += 1000
        say(x, who, data)
    if ends:
        x.fin()


def told(made):
    return [(r["operation"], r["result"], r["status"], r["request_bytes"], r["response_bytes"]) for r in made.rows()]


@pytest.fixture
def made(tmp_path):
    return Made(tmp_path / "x.pcap")


@pytest.fixture(params=[n for n in EACH if n != "tls"])
def name(request):
    return request.param


@pytest.fixture
def want(name, tmp_path):
    one = Made(tmp_path / "plain.pcap")
    talk(one.connect(EACH[name][0]), name, plain)
    return told(one)


@pytest.mark.parametrize("say", HOW[1:], ids=lambda h: h.__name__)
def test_it_makes_no_difference(made, name, want, say):
    talk(made.connect(EACH[name][0]), name, say)
    assert told(made) == want


def test_numbers_that_wrap_make_no_difference(made, name, want):
    x = made.connect(EACH[name][0], opened=False)
    x.next = [2**32 - 10, 2**32 - 20]
    x.packet(0, SYN)
    x.next[0] += 1
    x.packet(1, SYN | ACK)
    x.next[1] += 1
    packet = x.packet
    x.packet = lambda side, flags, data=b"", at=None: wrapped(x, packet, side, flags, data, at)
    talk(x, name, otherwise_cut)
    assert told(made) == want


def wrapped(x, packet, side, flags, data, at):
    kept = list(x.next)
    at = kept[side] if at is None else at
    x.next = [n % 2**32 for n in kept]
    packet(side, flags, data, at % 2**32)
    x.next = kept


def test_an_end_that_comes_before_the_last_bytes_does_not_cut_them(made, name, want):
    """The segment with FIN overtakes the last answer."""
    _, turns, ask, answer, _ = EACH[name]
    x = made.connect(EACH[name][0])
    login(x, turns)
    x.ask(ask)
    x.answer(answer)
    x.ask(ask)
    at = x.next[1]
    x.packet(1, FIN | ACK, b"", at + len(answer))
    x.packet(1, PUSH | ACK, answer, at)
    x.next[1] = at + len(answer) + 1
    x.packet(0, FIN | ACK)
    assert told(made) == want


def test_the_last_bytes_may_come_with_the_end(made, name, want):
    _, turns, ask, answer, _ = EACH[name]
    x = made.connect(EACH[name][0])
    login(x, turns)
    x.ask(ask)
    x.answer(answer)
    x.ask(ask)
    x.packet(1, FIN | PUSH | ACK, answer)
    x.next[1] += len(answer) + 1
    x.packet(0, RST | ACK)
    assert told(made) == want


def test_ports_that_are_used_again_are_another_connection(made, name, want):
    port = EACH[name][0]
    for i in range(3):
        x = made.connect(port, opened=False)
        x.next = [1_000_000_000 * (i + 1), 500_000_000 * (i + 1)]
        x.packet(0, SYN)
        x.next[0] += 1
        x.packet(1, SYN | ACK)
        x.next[1] += 1
        talk(x, name, plain, ends=i != 1)  # one is forgotten without an end
    got = told(made)
    assert len(got) == 3 * len(want) and sorted(got) == sorted(3 * want)


def test_of_packets_that_were_cut_nothing_is_told_wrong(tmp_path, name, want):
    """Of each packet 60, 80 or 120 bytes are kept: results are those that were, or it is unknown."""
    whole = {(w[0], w[1], w[2]) for w in want}
    for keep in (60, 80, 120):
        made = Made(tmp_path / f"{keep}.pcap")
        talk(made.connect(EACH[name][0]), name, plain)
        frames, made.frames = made.frames, []
        made.write()
        with open(made.path, "ab") as f:
            for us, frame in frames:
                f.write(struct.pack("<IIII", *divmod(START + us, 1_000_000), min(keep, len(frame)), len(frame)) + frame[:keep])
        made.write = lambda: None
        for row in made.rows():
            assert row["result"] == "blind" or row["result"] in {w[1] for w in whole}, (keep, row)
            assert row["result"] != "error" and len(made.rows()) <= len(want) + 1


# Cut at each packet, and within it, as by a capture that begins then: each connection is what it is when it is whole, or unknown; never another protocol.
MOST = 40  # packets behind a cut


class Mass:
    """Many connections in one capture: each has addresses of its own, by its number."""

    def __init__(self, path):
        self.path, self.of, self.packets = str(path), [], []

    def connection(self, what, ports, segments, opened=False):
        """Each side's ports; segments: [(0 or 1, bytes)]. Without `opened` it is older than the capture."""
        ends, at = [b"\x0b" + struct.pack(">I", len(self.of))[1:], b"\x0a" + struct.pack(">I", len(self.of))[1:]], [100, 900]
        self.of.append(what)
        for side, flags, data in [(0, 2, b""), (1, 18, b""), (0, 16, b"")][:3 * opened] + [(side, 24, d) for side, d in segments]:
            tcp = struct.pack(">HHIIBBHHH", ports[side], ports[1 - side], at[side], at[1 - side], 0x50, flags, 65535, 0, 0) + data
            self.packets.append(struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(tcp), 0, 0, 64, 6, 0) + ends[side] + ends[1 - side] + tcp)
            at[side] += len(data) + bool(flags & 2)

    def told(self):
        """{number of the connection: what it is told to speak}"""
        with open(self.path, "wb") as f:
            f.write(struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 262144, 101))
            for n, p in enumerate(self.packets):
                f.write(struct.pack("<IIII", *divmod(n * 10, 1000000), len(p), len(p)) + p)
        done = subprocess.run([os.path.join(BIN, "sonde"), "replay", self.path, "-r", "--json"], capture_output=True, text=True, timeout=120)
        assert done.returncode in (0, 4), done.stderr
        out = {}
        for line in done.stdout.splitlines():
            r = json.loads(line)
            number = struct.unpack(">I", b"\0" + socket.inet_aton(re.match(r"[\d.]+", r["service"])[0])[1:])[0]
            out.setdefault(number, set()).add(r["protocol"])
        return out


def talks_of(path):
    """[(ports, segments)] of the capture's TCP connections."""
    talks = {}
    for _, _, _, data in packets(path)[1]:
        where = tcp_payload(data)
        if not where:
            continue
        ip = 14 + (data[14] & 15) * 4
        ends = [(data[26:30], data[ip:ip + 2]), (data[30:34], data[ip + 2:ip + 4])]
        key = tuple(sorted(ends))
        talk = talks.setdefault(key, (ends, []))
        if where[0] < where[1]:
            talk[1].append((int(ends[0] != talk[0][0]), data[where[0]:where[1]]))
    return [([struct.unpack(">H", e[1])[0] for e in ends], segments) for ends, segments in talks.values() if segments]


def apart(segments, n):
    """A program reads a message's length first."""
    return [(side, part) for side, data in segments for part in (data[:n], data[n:]) if part]


def begun_later(mass, what, ports, segments, cuts=24):
    """From each of the first packets on, and from some byte of it on; who is the client is to be found out, too."""
    for way in (segments, apart(segments, 4)):
        for i, (side, data) in list(enumerate(way))[:cuts]:
            for n in sorted({0, 1, 4, 8, 12, len(data) // 2, len(data) - 1}):
                rest = [(side, data[n:])] * (n < len(data)) + way[i + 1:]
                for p in (sorted(ports, reverse=True), sorted(ports)):
                    mass.connection((what, i, n), p, rest[:MOST])


def check(mass, wanted):
    got = mass.told()
    wrong = [(mass.of[i], protocols) for i, protocols in got.items() if protocols - wanted]
    assert not wrong, (len(wrong), wrong[:5])
    return len(got) / len(mass.of)


@pytest.mark.parametrize("name", list(numbered.ALL))
def test_a_length_and_numbers_are_not_taken_for_another_protocol(tmp_path, name):
    port, segments = numbered.ALL[name]
    mass = Mass(tmp_path / "x.pcap")
    begun_later(mass, name, [50000, port], segments)
    share = check(mass, {name.split()[0]} - {"nobodys"})
    assert share > 0.9 or name.split()[0] == "nobodys" or name.split()[-1] == "nameless" or (name == "amqp" and share > 0.45), share


@pytest.mark.parametrize("name", [n for n in NAMES if n != "dns"])
def test_captures_of_servers_are_told_as_whole_ones_or_not_at_all(tmp_path, name):
    talks = talks_of(KEPT[NAMES.index(name)])
    whole, cut = Mass(tmp_path / "whole.pcap"), Mass(tmp_path / "x.pcap")
    for ports, segments in talks:
        whole.connection(name, ports, segments, True)
        begun_later(cut, name, ports, segments, 12)
    wanted = set().union(*whole.told().values())
    assert wanted and check(cut, wanted) > 0
