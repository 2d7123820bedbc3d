#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""serve: how long the served page takes, in a real browser, over a generated busy day (makeday: 50 million samples) that is archived.

    tests/bench/serve.py [--hours 24] [--days 1] [--rounds 5] [--kept DIR] [--write docs/BENCHMARKS.md]

With --days the generated hours stand there so many times, a day earlier each time. --kept: the store is made there, or was made there before.
Each view is opened anew in a browser that remembers nothing, and timed by the browser: from the start of the navigation until all is drawn, or from
the pointer let go until table and picture are drawn. The bytes are those on the way, packed. What a live viewer costs is the CPU
time of one round of its questions, with the children, while something is recorded all the time, by the page's own period (5 to 30 s, 100 times as long as a
round takes; the flame graph in each third). CPU time of sonde is that of
sonde-serve and its children, that of the page its main thread's.
"""
import argparse
import datetime
import glob
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import bench
import realdays

sys.path[:0] = [os.path.join(bench.ROOT, "tests", "e2e", d) for d in ("", "lib", "lib/servers")]
from browser import Page  # noqa: E402
from serving import Serve  # noqa: E402

AT = 1795144200  # makeday's end
VIEW = (("timeline", {}), ("ps", {"number": 2000}), ("containers", {"number": 1000}), ("flame", {"group": "process", "nodes": 5000}))


def store_of(folder, hours, days):
    program = os.path.join(bench.BUILD, "tests", "makeday")
    plain = folder if days == 1 else folder + ".plain"
    subprocess.run([program, plain, "--hours", str(hours)], check=True, stdout=subprocess.DEVNULL)
    if days > 1:
        os.makedirs(folder)
        for back in range(days):
            for path in glob.glob(f"{plain}/*.db"):
                shutil.copy(path, f"{folder}/copy")
                os.rename(f"{folder}/copy", f"{folder}/{realdays.name_at(realdays.earlier(f'{folder}/copy', back))}")
        shutil.rmtree(plain)
    bench.end_segment(folder)
    subprocess.run([os.path.join(bench.BIN, "sonde-seal"), "--store", folder, "--quiet"], check=True)
    assert bench.archives(folder), "nothing was archived"


def size_of(folder):
    return sum(os.path.getsize(os.path.join(folder, f)) for f in os.listdir(folder) if f.endswith(".db"))


def opened(page, serve, query):
    page.start(1280, 900)
    page.do("open", url=serve.url + query, wait=False)
    page.until("return performance.getEntriesByName('shown').length > 0", timeout=60)
    return page.js("return performance.getEntriesByName('shown')[0].startTime")


def brushed(page, left, right):
    """Seconds from the pointer let go to all drawn, of a brush from `left` to `right` of the strip."""
    page.js("performance.clearMarks(); addEventListener('pointerup', () => { window.let_go = performance.now(); }, {capture: true, once: true})")
    box = page.box("#band")
    page.do("drag", x=box["x"] + box["width"] * left, y=box["y"] + 60, x2=box["x"] + box["width"] * right, y2=box["y"] + 60)
    page.until("return performance.getEntriesByName('shown').length > 0", timeout=60)
    return page.js("return performance.getEntriesByName('shown')[0].startTime - window.let_go")


def way_bytes(serve, range_):
    ask = [("/", {}), ("/app.js", {}), ("/app.css", {}), ("/api/v1/help", {}), ("/api/v1/status", {}), *((f"/api/v1/{v}", {**range_, **q}) for v, q in VIEW)]
    return sum(len(serve.ask(path, headers={"Accept-Encoding": "gzip"}, **query)[2]) for path, query in ask)


def used_s(pid):
    """CPU seconds of a process and of its children that have ended."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        return sum(map(int, f.read().rsplit(")", 1)[1].split()[11:15])) / os.sysconf("SC_CLK_TCK")


def viewers(serve, rounds):
    """CPU and wall seconds of one round of a live viewer, and MB of sonde-serve with three of them at a time."""
    def one(verb, query):
        assert serve.ask(f"/api/v1/{verb}", headers={"Accept-Encoding": "gzip"}, **{"from": AT - 900, "to": AT, **query})[0] == 200

    def look(questions):
        asking = [threading.Thread(target=one, args=x) for x in questions]
        for t in asking:
            t.start()
        for t in asking:
            t.join()
    before, t0 = used_s(serve.child.pid), time.monotonic()
    for i in range(3 * rounds):
        look(VIEW if i % 3 == 0 else VIEW[:3])
    cpu, wall = (used_s(serve.child.pid) - before) / (3 * rounds), (time.monotonic() - t0) / (3 * rounds)
    look(VIEW * 3)
    with open(f"/proc/{serve.child.pid}/status", encoding="ascii") as f:
        peak = next(int(line.split()[1]) for line in f if line.startswith("VmHWM"))
    return cpu, wall, peak / 1024


def table(opts, base):
    store = opts.kept or f"{base}/store"
    if not glob.glob(f"{store}/*.db"):
        store_of(store, opts.hours, opts.days)
    size = size_of(store)
    serve, page = Serve(store), Page(1280, 900)
    hour, day = f"?from={AT - 3600}&to={AT}", f"?from={AT - opts.hours * 3600}&to={AT}"
    views = {"first view, an hour, drawn": ("0.5", lambda: opened(page, serve, hour)), "- a brush of ten minutes, table and picture drawn": ("0.5", lambda: brushed(page, 0.6, 0.766)),
            f"first view, {opts.hours} hours, drawn": ("", lambda: opened(page, serve, day)),
            f"- a brush of nearly all of the {opts.hours} hours": ("1.5", lambda: brushed(page, 0.01, 0.99))}
    seen = {name: [] for name in views}
    for _ in range(opts.rounds):
        for name, (_, run) in views.items():
            before = used_s(serve.child.pid)
            wall = run() / 1000
            spent = page.do("metrics")["TaskDuration"]
            seen[name].append((wall, used_s(serve.child.pid) - before, spent - (last if name.startswith("-") else 0)))
            last = spent
    cpu, wall, peak = viewers(serve, opts.rounds)
    period = min(30, max(5, 100 * wall))
    out = [f"Machine: {bench.machine()}. Date: {datetime.date.today()}. Command: `{bench.command()}` ({size / 1e6:.0f} MB; {opts.rounds} rounds, the median; "
           f"load average {os.getloadavg()[0]:.1f}).", "", "| what | wall s (lowest-highest) | CPU s of sonde | of the page | to reach |", "|---|---|---|---|---|"]
    for name, v in seen.items():
        walls = [x[0] for x in v]
        out.append(f"| {name} | {statistics.median(walls):.3f} ({min(walls):.3f}-{max(walls):.3f}) | {statistics.median(x[1] for x in v):.2f} | {statistics.median(x[2] for x in v):.2f} | {views[name][0]} |")
    out += ["", "| what | measured | to reach |", "|---|---|---|",
            f"| first view on the way, packed, kB | {way_bytes(serve, {'from': AT - 3600, 'to': AT}) / 1000:.0f} | 200 |",
            f"| one live viewer of the last 15 min: CPU s a round, of {wall:.2f} s; % of a core, a round each {period:.0f} s | {cpu:.2f}; {cpu / period * 100:.1f} | 2 |",
            f"| sonde-serve with three viewers, peak MB | {peak:.0f} | 60 |"]
    page.close()
    serve.close()
    return "\n".join(out)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=int, default=24)
    parser.add_argument("--days", type=int, default=1)
    parser.add_argument("--kept")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--write", help="put the table between the markers of this file")
    opts = parser.parse_args()
    base = tempfile.mkdtemp(prefix="sonde-serve-")
    try:
        text = table(opts, base)
    finally:
        shutil.rmtree(base, ignore_errors=True)
    print(text)
    if opts.write:
        bench.put_between(opts.write, "serve", text)


if __name__ == "__main__":
    main()
