#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plays what a packet capture holds again, between two sockets of this process, in clear or inside TLS.

l7play.py CAPTURE PROTOCOL TIMES [CERT KEY]
The capture's TCP connections, each TIMES times. With CERT and KEY inside TLS, for which MySQL, PostgreSQL and NATS ask in
clear first. Says that it is ready, plays at a line on standard input, and prints, as JSON, the server's port, the bytes that
programs wrote ("said", and of these "inside" TLS), and those that TCP moved ("moved", by TCP_INFO); then it waits until standard input ends."""
import json
import socket
import ssl
import struct
import sys
import threading

TCP_INFO_RECEIVED = 128  # tcpi_bytes_received of struct tcp_info
SSL_REQUEST = struct.pack("!II", 8, 80877103)


def packets(path):
    """(source, target, sequence number, flags, payload) of each TCP packet over IPv4, as addresses with ports."""
    with open(path, "rb") as f:
        data = f.read()
    at = 24
    while at < len(data):
        size = struct.unpack_from("<I", data, at + 8)[0]
        ip = data[at + 16 + 14:at + 16 + size]  # behind Ethernet
        at += 16 + size
        if len(ip) < 40 or ip[9] != 6:
            continue
        tcp = ip[(ip[0] & 15) * 4:struct.unpack_from("!H", ip, 2)[0]]
        ports = struct.unpack_from("!HH", tcp)
        yield (ip[12:16], ports[0]), (ip[16:20], ports[1]), struct.unpack_from("!I", tcp, 4)[0], tcp[13], tcp[(tcp[12] >> 4) * 4:]


def connections(path):
    """Per connection its turns: [(from the client?, bytes)], in the order of the packets; what was sent again is left out."""
    found, ahead = {}, {}
    for source, target, seq, flags, payload in packets(path):
        if flags & 2:  # SYN
            if not flags & 16:
                found[source, target] = []
            ahead[source, target] = seq + 1
            continue
        for ends, client in (((source, target), True), ((target, source), False)):
            if ends in found and payload and seq == ahead[source, target]:
                found[ends].append((client, payload))
                ahead[source, target] += len(payload)
    return [turns for turns in found.values() if turns]


def with_seq(packet, seq):
    """MySQL's packet with this number."""
    return packet[:3] + bytes([seq]) + packet[4:]


def before_tls(protocol, turns):
    """(what is said in clear to ask for TLS, the rest)."""
    if protocol == "postgres":
        turns = turns[2:] if turns[0][1] == SSL_REQUEST else turns
        return [(True, SSL_REQUEST), (False, b"S")], turns
    if protocol == "nats":
        info = next(t for t in turns if not t[0])
        return [info], [t for t in turns if t is not info]
    if protocol != "mysql":
        return [], turns
    greeting, login, answer = turns[:3]
    able = bytearray(login[1][4:36])
    able[1] |= 8  # CLIENT_SSL
    return ([greeting, (True, struct.pack("<I", 32 | 1 << 24) + bytes(able))],
            [(True, with_seq(login[1], 2)), (False, with_seq(answer[1], 3)), *turns[3:]])


def say(ends, turns):
    for client, data in turns:
        ends[not client].sendall(data)
        left = len(data)
        while left:
            got = ends[client].recv(left)
            assert got
            left -= len(got)
    return sum(len(data) for _, data in turns)


def drain(inside):
    """Reads what the server's library sent of itself (a session's tickets), as a client that goes on would."""
    inside.setblocking(False)
    try:
        inside.recv(1)
    except ssl.SSLWantReadError:
        pass


def play(server, protocol, turns, cert, key):
    """(said, of that inside TLS, moved) of one connection."""
    client = socket.create_connection(server.getsockname())
    ends = [client, server.accept()[0]]
    first, rest = before_tls(protocol, turns) if cert else (turns, [])
    said, inside_said = say(ends, first), 0
    plain = [socket.socket(fileno=e.fileno()) for e in ends] if cert else ends
    if cert:
        there = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        there.load_cert_chain(cert, key)
        here = ssl.create_default_context(cafile=cert)
        done = []
        thread = threading.Thread(target=lambda: done.append(there.wrap_socket(ends[1], server_side=True)))
        thread.start()
        inside = here.wrap_socket(ends[0], server_hostname="localhost")
        thread.join()
        inside_said = say([inside, done[0]], rest)
        ends = [inside, done[0]]
        drain(inside)
    moved = sum(struct.unpack_from("=Q", e.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256), TCP_INFO_RECEIVED)[0] for e in ends)
    for p in plain if cert else []:
        p.detach()
    for e in ends:
        e.close()
    return said + inside_said, inside_said, moved


def main(capture, protocol, times, cert=None, key=None):
    server = socket.create_server(("127.0.0.1", 0))
    turns = connections(capture)
    print(json.dumps({"ready": True}), flush=True)
    sys.stdin.readline()
    done = [play(server, protocol, t, cert, key) for _ in range(int(times)) for t in turns]
    said, inside, moved = (sum(d[i] for d in done) for i in range(3))
    print(json.dumps({"port": server.getsockname()[1], "said": said, "inside": inside, "moved": moved}), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
