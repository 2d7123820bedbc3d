# SPDX-License-Identifier: Apache-2.0
"""sonde replay: files of pcapng with several interfaces, and links that are rarely captured. What tshark counts in the same files is counted."""
import os
import shutil
import struct
import subprocess

import pytest
from conftest import BIN
from test_replay_made import FINE, HTTP, START, Made, ether


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
