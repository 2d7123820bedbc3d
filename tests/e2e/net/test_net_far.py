# SPDX-License-Identifier: Apache-2.0
"""A connection to another host has a mark that the other host comes to as well: that host is played here, behind a tunnel device, by a program that chooses its
first sequence number and learns the client's, and so knows what the mark must be."""
import fcntl
import json
import os
import struct
import subprocess
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # this file is a program, too
from conftest import need, need_root
from sonded import until
from test_net import alone, rows

MASK = (1 << 64) - 1
ISN = 0xfffffff0  # of the other host: soon it begins anew


def rotated(x, n):
    return (x << n | x >> 64 - n) & MASK


def siphash(word):
    """SipHash-2-4 of eight bytes, key 0."""
    v = [0x736f6d6570736575, 0x646f72616e646f6d, 0x6c7967656e657261, 0x7465646279746573]

    def turn(n):
        for _ in range(n):
            v[0] = (v[0] + v[1]) & MASK
            v[2] = (v[2] + v[3]) & MASK
            v[1], v[3] = rotated(v[1], 13) ^ v[0], rotated(v[3], 16) ^ v[2]
            v[0] = (rotated(v[0], 32) + v[3]) & MASK
            v[2] = (v[2] + v[1]) & MASK
            v[3], v[1] = rotated(v[3], 21) ^ v[0], rotated(v[1], 17) ^ v[2]
            v[2] = rotated(v[2], 32)
    for m in (word, 8 << 56):
        v[3] ^= m
        turn(2)
        v[0] ^= m
    v[2] ^= 0xff
    turn(4)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def checksum(data):
    data += b"\0" * (len(data) % 2)
    n = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while n >> 16:
        n = (n & 0xffff) + (n >> 16)
    return ~n & 0xffff


def segment(src, dst, sport, dport, seq, ack, flags):
    tcp = struct.pack("!HHIIBBHHH", sport, dport, seq & 0xffffffff, ack & 0xffffffff, 5 << 4, flags, 65535, 0, 0)
    tcp = tcp[:16] + struct.pack("!H", checksum(src + dst + struct.pack("!HH", 6, len(tcp)) + tcp)) + tcp[18:]
    ip = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(tcp), 0, 0, 64, 6, 0) + src + dst
    return ip[:10] + struct.pack("!H", checksum(ip)) + ip[12:] + tcp


def other_host():
    """Run in a namespace: 10.9.9.2 takes each connection that comes, and says the client's first sequence number of each; a byte is acknowledged, and so is a FIN."""
    tun = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(tun, 0x400454ca, struct.pack("16sH", b"far0", 0x1001))  # TUNSETIFF: IFF_TUN | IFF_NO_PI
    for line in ("addr add 10.9.9.1/24 dev far0", "link set far0 up"):
        subprocess.run(["ip", *line.split()], check=True)
    print(json.dumps({"ready": True}), flush=True)
    while True:
        p = os.read(tun, 2000)
        if p[0] >> 4 != 4 or p[9] != 6:
            continue
        head = 4 * (p[0] & 15)
        sport, dport, seq, ack, off, flags = struct.unpack("!HHIIBB", p[head:head + 14])
        size = len(p) - head - 4 * (off >> 4)
        if flags & 2:
            print(json.dumps({"port": sport, "isn": seq}), flush=True)
            os.write(tun, segment(p[16:20], p[12:16], dport, sport, ISN, seq + 1, 0x12))
        elif size or flags & 1:
            os.write(tun, segment(p[16:20], p[12:16], dport, sport, ack, seq + size + (flags & 1), 0x11 if flags & 1 else 0x10))


def talker():
    """Lines: a connection with a byte each; those with "keep" stay open."""
    import socket
    kept = []
    for line in sys.stdin:
        c = socket.create_connection(("10.9.9.2", 4444))
        c.sendall(b"x")
        kept.append(c)
        if line.strip() != "keep":
            kept.pop().close()
        print("{}", flush=True)


def begin(*command):
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    return child


def end(child):
    child.kill()
    child.wait()
    child.stdin.close()
    child.stdout.close()


def test_a_connection_to_another_host_has_the_mark_that_follows_from_both_sequence_numbers(capture, store):
    need_root()
    need("nsenter")
    if not os.path.exists("/dev/net/tun"):
        pytest.skip("missing: /dev/net/tun")
    far = begin(*alone(), sys.executable, os.path.abspath(__file__), "far")
    talks = None
    try:
        if not far.stdout.readline():
            pytest.skip("missing: tunnel devices in a network namespace")
        talks = begin("nsenter", "-t", str(far.pid), "-n", sys.executable, os.path.abspath(__file__), "talk")
        isns = []

        def talk(how):
            talks.stdin.write(how + "\n")
            talks.stdin.flush()
            talks.stdout.readline()
            isns.append(json.loads(far.stdout.readline())["isn"])
        talk("keep")  # it was there before
        net = capture(program="sonde-net")
        assert until(lambda: rows(store, "SELECT 1 FROM flow_marks WHERE peer = '10.9.9.2'"), 30), "what is open has a mark"
        for how in ("close", "keep", "close"):
            talk(how)
        assert until(lambda: rows(store, "SELECT 1 FROM flows WHERE peer = '10.9.9.2' AND closed > 0"), 30)
        net.stop()
    finally:
        for child in filter(None, (talks, far)):
            end(child)
    known = {(siphash((isn + 1 & 0xffffffff) << 32 | (ISN + 1 & 0xffffffff)) >> 4) for isn in isns}
    told = rows(store, "SELECT side, peer, port, mark FROM flow_marks WHERE peer = '10.9.9.2'")
    assert {(r["side"], r["port"]) for r in told} == {("client", 4444)}
    assert {r["mark"] for r in told} <= known and min(known) in {r["mark"] for r in told}, (told, known)


if __name__ == "__main__":
    {"far": other_host, "talk": talker}[sys.argv[1]]()
