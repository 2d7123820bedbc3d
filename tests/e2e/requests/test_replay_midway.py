# SPDX-License-Identifier: Apache-2.0
"""sonde replay of connections whose begin is not there: cut at each packet, and within it, as by a capture that begins then. Each is what it is when it is whole, or
unknown: never another protocol."""
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
