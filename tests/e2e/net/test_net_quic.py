# SPDX-License-Identifier: Apache-2.0
"""QUIC is told as such: by the first bytes of a message where family net saw them, else as a guess by the port; and what only looks a little like it is UDP."""
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile

import pytest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # this file is a program, too
from conftest import need, need_root
from sonded import until
from test_net import alone, rows

V1, V2, GREASE = b"\0\0\0\1", b"\x6b\x33\x43\xcf", b"\x1a\x2a\x3a\x4a"
#: port: (how it is sent, the messages); what it is taken for
SAID = {4433: ("send", [b"\xc0" + V1 + b"\x08" + b"c" * 1190]), 4434: ("sendmsg", [b"\xd3" + V2 + b"\x14" + b"c" * 1190]),
        4435: ("writev", [b"\x40" + b"s" * 60, b"\xe0" + V1 + b"\x00" + b"c" * 60]),  # a short header first
        443: ("send", [b"\x40" + b"s" * 60]),                                        # one that was open before says as much
        4436: ("send", [b"\xc0\x00\x01\x00\x00\x01\0\0\0\0\0\0"]),                   # DNS with such a number
        4437: ("send", [b"\xc0" + GREASE + b"\x08" + b"c" * 60]), 4438: ("send", [b"\xc0" + V1 + b"\x15" + b"c" * 60]), 4439: ("send", [b"\xc0" + V1])}
QUIC = {4433, 4434, 4435}


def speak():
    """Run in a namespace of its own: a line, and all is said to a socket of ours each."""
    kept = []
    for port in SAID:
        kept.append(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        kept[-1].bind(("127.0.0.1", port))
    print(json.dumps({"pid": os.getpid()}), flush=True)
    sys.stdin.readline()
    for port, (how, messages) in SAID.items():
        c = socket.socket(socket.AF_INET6 if port == 4434 else socket.AF_INET, socket.SOCK_DGRAM)
        c.connect(("::ffff:127.0.0.1" if port == 4434 else "127.0.0.1", port))
        kept.append(c)
        for m in messages:
            if how == "send":
                c.send(m)
            elif how == "sendmsg":
                c.sendmsg([m[:3], m[3:]] if port != 4434 else [m])
            else:
                os.writev(c.fileno(), [m])
    print("{}", flush=True)
    sys.stdin.read()


def hears_messages():
    need_root()
    if subprocess.run(["grep", "-q", "btf_trace_sock_send_length", "/sys/kernel/btf/vmlinux"], check=False).returncode:
        pytest.skip("missing: the tracepoint sock_send_length (6.3)")


def test_a_message_with_a_long_header_of_a_known_version_is_quic_and_nothing_else_is(capture, store, sonde):
    hears_messages()
    net = capture(program="sonde-net")
    child = subprocess.Popen([*alone(), sys.executable, os.path.abspath(__file__)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        pid = json.loads(child.stdout.readline())["pid"]
        child.stdin.write("\n")
        child.stdin.flush()
        child.stdout.readline()
        assert until(lambda: len(rows(store, f"SELECT DISTINCT port FROM flows WHERE pid = {pid} AND tx_bytes > 0")) == len(SAID), 30)
        net.stop()  # which looks at what is open once more
    finally:
        child.stdin.close()
        child.wait(20)
        child.stdout.close()
    told = rows(store, f"SELECT protocol, port, sum(tx_bytes) AS tx FROM flows WHERE pid = {pid} AND side = 'client' GROUP BY 1, 2")
    assert {(r["protocol"], r["port"]): r["tx"] for r in told} == \
        {("quic" if port in QUIC else "udp", port): sum(map(len, messages)) for port, (_, messages) in SAID.items()}
    known = {port: "first bytes" if port in QUIC else "port" if port == 443 else None for port in SAID}
    for verb in ("net", "map"):
        got = json.loads(sonde(verb, "--json", "--pid", pid, store=store, check=True).stdout)["rows"]
        assert {r["port"]: r["quic"] for r in got if r.get("side", "client") == "client"} == known, verb
        text = sonde(verb, "--pid", pid, store=store, check=True).stdout
        assert " quic 4433 " in text and " udp 443 (QUIC?) " in text and " udp 4436 " in text, text


@pytest.mark.live
def test_what_chromium_sends_is_quic(capture, store):
    hears_messages()
    need("chromium")
    folder = tempfile.mkdtemp(prefix="sonde-quic-")
    sink = [sys.executable, "-c", "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('127.0.0.1', 443)); print('', flush=True)\nwhile True: s.recv(2000); print('', flush=True)"]
    net = capture(program="sonde-net")
    hears = subprocess.Popen([*alone(), *sink], stdout=subprocess.PIPE)
    browser = None
    try:
        hears.stdout.readline()
        browser = subprocess.Popen(["nsenter", "-t", str(hears.pid), "-n", "chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}",
                                    "--origin-to-force-quic-on=127.0.0.1:443", "--dump-dom", "https://127.0.0.1/"], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        hears.stdout.readline()
        assert until(lambda: rows(store, "SELECT 1 FROM flows WHERE port = 443 AND protocol = 'quic' AND comm LIKE 'chrom%' AND tx_bytes >= 1200"), 30)
        net.stop()
    finally:
        for child in filter(None, (browser, hears)):
            child.kill()
            child.wait()
        hears.stdout.close()
        shutil.rmtree(folder, ignore_errors=True)
    assert not rows(store, "SELECT 1 FROM flows WHERE port = 443 AND protocol = 'udp' AND comm LIKE 'chrom%' AND tx_bytes > 0")


if __name__ == "__main__":
    speak()
