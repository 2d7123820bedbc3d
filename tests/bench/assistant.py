#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""assistant: what each tool of sonde mcp takes and says over a large host (makescale): bytes of the answer, seconds, CPU seconds of its
verbs (which other load of the machine changes less), and the most memory of one.

    tests/bench/assistant.py [--store DIR] [--only TOOL...] [--keep FILE] [--write docs/BENCHMARKS.md] [-- OPTIONS OF makescale]

By itself: 500 containers, 20 000 operations, a million stacks, fifteen minutes; a store that is not there yet is made. --only with --keep measures in parts: the
table has what FILE has from before, too. Ends with 1 where an answer has more than 14 000 bytes.
"""
import argparse
import datetime
import json
import os
import resource
import subprocess
import sys
import tempfile
import time

import bench

END = 1795140000  # 2026-11-20 02:00 UTC
SIZE = ["--containers", "500", "--processes", "2000", "--operations", "20000", "--stacks", "1000000", "--seconds", "900"]
NEEDS = {view: {"function": "function_1$"} for view in ("callers", "callees", "lines")}
MOST = 14000


class Server:
    def __init__(self, store):
        self.child = subprocess.Popen([os.path.join(bench.BIN, "sonde"), "mcp", "--timeout", "300s", "--memory", "4096", "--store", store], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE)
        self.n = 0

    def ask(self, method, **params):
        self.n += 1
        self.child.stdin.write((json.dumps({"jsonrpc": "2.0", "id": self.n, "method": method, "params": params}) + "\n").encode())
        self.child.stdin.flush()
        return json.loads(self.child.stdout.readline())["result"]

    def used(self):
        """CPU seconds of the verbs that have ended."""
        with open(f"/proc/{self.child.pid}/stat", encoding="ascii") as f:
            user, system = f.read().rsplit(") ", 1)[1].split()[13:15]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def close(self):
        self.child.stdin.close()
        self.child.wait()


def rows(store, span, only):
    server = Server(store)
    for tool in server.ask("tools/list")["tools"]:
        if only and tool["name"] not in only:
            continue
        takes = tool["inputSchema"]["properties"]
        for view in takes.get("view", {}).get("enum", [None]):
            arguments = {**{k: v for k, v in span.items() if k in takes}, **({"view": view} if view else {}), **NEEDS.get(view, {}),
                         **({"query": "SELECT * FROM cpu_samples"} if "query" in takes else {})}
            began, before = time.monotonic(), server.used()
            answer = server.ask("tools/call", name=tool["name"], arguments=arguments)
            took = time.monotonic() - began
            size = len(json.dumps(answer["structuredContent"], separators=(",", ":"), ensure_ascii=False).encode())
            yield f"{tool['name']} {view or ''}".strip(), size, took, server.used() - before, "" if not answer["isError"] else json.dumps(answer["structuredContent"])[:160]
    server.close()


def kept_of(path):
    if path and os.path.exists(path):
        with open(path, encoding="utf-8") as f:
            return json.load(f)
    return {"rows": {}, "mb": 0}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--store")
    p.add_argument("--only", nargs="*", default=[])
    p.add_argument("--keep")
    p.add_argument("--write")
    p.add_argument("extra", nargs="*")
    a = p.parse_args()
    with tempfile.TemporaryDirectory(prefix="sonde-assistant-") as base:
        store = a.store or f"{base}/store"
        if not os.path.isdir(store):
            os.makedirs(store)
            subprocess.run([os.path.join(bench.BUILD, "tests", "makescale"), store, str(END), *SIZE, *a.extra], check=True)
        out = [f"Machine: {bench.machine()}. Date: {datetime.date.today()}. Command: `{bench.command()}`.", "", "| tool | bytes | seconds | CPU seconds | |", "|---|---|---|---|---|"]
        kept = kept_of(a.keep)
        for name, size, took, used, wrong in rows(store, {"from": str(END - 900), "to": str(END)}, a.only):
            kept["rows"][name] = [size, took, used, wrong]
            print(f"| {name} | {size} | {took:.1f} | {used:.1f} | {wrong} |", flush=True)
        kept["mb"] = max(kept["mb"], resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)
        out += [f"| {name} | {size} | {took:.1f} | {used:.1f} | {wrong} |" for name, (size, took, used, wrong) in kept["rows"].items()]
        worst = max(size for size, _, _, _ in kept["rows"].values())
        out += ["", f"Longest answer {worst} bytes; most memory of one process {kept['mb']:.0f} MB."]
        print(out[-1])
    if a.keep:
        with open(a.keep, "w", encoding="utf-8") as f:
            json.dump(kept, f)
    if a.write:
        bench.put_between(a.write, "assistant", "\n".join(out))
    return int(worst > MOST)


if __name__ == "__main__":
    sys.exit(main())
