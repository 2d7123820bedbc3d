#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""CPU time that a read or write of the JDK's TLS costs more with sonde-java's agent, in pairs while family l7 records: without, with, without, ... (as root)

    tests/bench/java/tls.py [--pairs 5] [--java java]

The program's own CPU time (JavaTlsCalls), so other work on the machine counts only by what it does to caches. Each figure is a median of the
pairs' differences, with the least and the most."""
import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 3))
BIN = os.path.join(os.path.abspath(os.environ.get("B", os.path.join(ROOT, "build"))), "bin")
RUNS = {"SSLSocket, 100 bytes": "socket 20000 100", "SSLSocket, 4 KB": "socket 20000 4096", "SSLEngine, 100 bytes": "engine 40000 100",
        "SSLEngine, 4 KB": "engine 40000 4096"}


def requests(folder, pid):
    """Family l7, which sees the program's system calls."""
    child = subprocess.Popen([f"{BIN}/sonde-l7", "--java-dir", f"{folder}/agents", "--store", f"{folder}/store", "--pid", str(pid)], stderr=subprocess.DEVNULL)
    time.sleep(15)
    return child


def agent(folder, pid):
    dirs = ["--tls-dir", f"{folder}/agents", "--record-dir", f"{folder}/recorded"]
    with open(f"{folder}/said", "w", encoding="utf-8") as said:
        child = subprocess.Popen([f"{BIN}/sonde-java", "--tls", "only", *dirs, "--store", f"{folder}/store", "--pid", str(pid)], stderr=said)
    for _ in range(1200):
        with open(f"{folder}/said", encoding="utf-8") as f:
            if "inside its TLS are read" in f.read():
                return child
        time.sleep(0.1)
    sys.exit("the agent did not begin")


def ended(child):
    child.send_signal(signal.SIGTERM)
    child.wait()


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--pairs", type=int, default=5)
    p.add_argument("--java", default="java")
    o = p.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(ROOT, "tests", "workloads", "scripts", "JavaTlsCalls.java")
        subprocess.run(["javac", "--release", "8", "-Xlint:-options", "-d", folder, source], check=True)
        subprocess.run(["keytool", "-genkeypair", "-alias", "k", "-keyalg", "RSA", "-keysize", "2048", "-dname", "CN=localhost", "-storetype", "PKCS12", "-keystore",
                        f"{folder}/keys", "-storepass", "changeit", "-validity", "3650"], check=True, capture_output=True)
        jvm = subprocess.Popen([o.java, "-Xmx256m", "-cp", folder, "JavaTlsCalls", f"{folder}/keys"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        jvm.stdout.readline()

        def measured():
            out = {}
            for name, line in RUNS.items():
                for _ in range(3):  # the first ones warm
                    jvm.stdin.write(line + "\n")
                    jvm.stdin.flush()
                    told = json.loads(jvm.stdout.readline())
                out[name] = told["cpu_ns"] / told["calls"] / 1000
            return out
        measured()
        alone = measured()
        l7 = requests(folder, jvm.pid)
        pairs = []
        for _ in range(o.pairs):
            without = measured()
            child = agent(folder, jvm.pid)
            pairs.append((without, measured()))
            ended(child)
        last = measured()
        ended(l7)
        for name in RUNS:
            more = [b[name] - a[name] for a, b in pairs]
            print(f"{name}: {alone[name]:.2f} us a call alone, {statistics.median(a[name] for a, _ in pairs):.2f} with family l7, {statistics.median(more):+.2f} with"
                  f" the agent ({min(more):+.2f} to {max(more):+.2f}); {last[name]:.2f} after its last end")
        jvm.stdin.close()
        jvm.wait()


if __name__ == "__main__":
    main()
