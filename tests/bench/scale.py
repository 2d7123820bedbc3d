#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""scale: what each verb takes over hours, days and a fortnight of a large host (makescale), in CPU seconds and peak memory.

    tests/bench/scale.py [--hours 24] [--keep DIR] [--store DIR] [--ranges 1,24] [--verbs WORD...] [--write docs/BENCHMARKS.md]
    tests/bench/scale.py --deep          one file with 200 000 stacks that are 200 deep
    tests/bench/scale.py --host ci --hours 4 --ranges 1,4     20 000 processes an hour that live for seconds; containers: 500 of them;
                                                              operations: 20 000
    tests/bench/scale.py --hours 336 --differ 4 --ranges 1,24,336        a fortnight of four hours again and again, whose stacks repeat

--keep: leave the store there. --store: ask one that is there. Options of makescale go after --.
"""
import argparse
import contextlib
import datetime
import glob
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile

import bench

SONDE = os.path.join(bench.BIN, "sonde")
HOUR = 3600
END = 1795140000  # 2026-11-20 02:00 UTC

# {}: a folder for what is written; FROM, TO: the range, of which some compare it with the time before
QUESTIONS = {
    "overview": ["overview"],
    "status": ["status"],
    "timeline": ["timeline"],
    "timeline --of mem": ["timeline", "--of", "mem"],
    "timeline --of latency": ["timeline", "--of", "latency"],
    "stacks": ["stacks"],
    "stacks --type offcpu": ["stacks", "--type", "offcpu"],
    "top": ["top"],
    "flame html": ["flame", "-o", "{}/x.html"],
    "flame html, cpu": ["flame", "--type", "cpu", "-o", "{}/x.html"],
    "flame json": ["flame", "--json"],
    "flame svg": ["flame", "-o", "{}/x.svg"],
    "pprof": ["flame", "-o", "{}/x.pb.gz"],
    "export folded": ["export", "folded", "-o", "{}/x.folded"],
    "ps": ["ps"],
    "containers": ["containers"],
    "requests": ["requests"],
    "requests --slowest": ["requests", "--slowest"],
    "waits": ["waits"],
    "wakers": ["wakers"],
    "neighbours": ["neighbours"],
    "map": ["map"],
    "net": ["net"],
    "events": ["events"],
    "logs": ["logs"],
    "disk": ["disk"],
    "heap": ["heap"],
    "oom": ["oom"],
    "check": ["check"],
    "diff": ["diff", "--vs-from", "BEFORE", "--vs-to", "FROM"],
    "explain": ["explain", "--before", "SPAN"],
    "report": ["report", "-o", "{}/x.html"],
    "sql @hottest": ["sql", "--timeout", "5m", "@hottest"],
    "sql @who": ["sql", "--timeout", "5m", "@who"],
    "sql @containers": ["sql", "--timeout", "5m", "@containers"],
    "sql @waiting": ["sql", "--timeout", "5m", "@waiting"],
    "sql @minutes": ["sql", "--timeout", "5m", "@minutes"],
    "sql win_requests": ["sql", "--timeout", "5m", "SELECT operation, sum(requests) FROM win_requests GROUP BY 1 ORDER BY 2 DESC LIMIT 20"],
    "sql win_process_stats": ["sql", "--timeout", "5m", "SELECT comm, sum(user_us) FROM win_process_stats GROUP BY 1 ORDER BY 2 DESC LIMIT 20"],
    "sql win_flows": ["sql", "--timeout", "5m", "SELECT container, sum(tx_bytes) FROM win_flows GROUP BY 1 ORDER BY 2 DESC LIMIT 20"],
    "page: timeline": ["timeline", "--json", "--events"],
    "page: processes": ["ps", "--json", "-n", "2000"],
    "page: containers": ["containers", "--json", "-n", "1000"],
    "page: picture": ["flame", "--json", "--group", "process", "--nodes", "5000"],
    "page: functions": ["stacks", "--json", "-n", "500"],
    "page: waits": ["waits", "--json", "-n", "500"],
    "page: changes": ["explain", "--json", "-n", "20", "--before", "SPAN"],
    "page: requests": ["requests", "--json", "-n", "500"],
    "page: running": ["requests", "--json", "--running", "-n", "100"],
    "page: one operation": ["sql", "--timeout", "5m", "--json", "select ts as time, sum(requests) requests, sum(errors) errors, sum(total_ns) total_ns, max(seconds) seconds from win_requests"
                            " where side = 'server' and operation = 'GET /api/v1/resource-4/*/items' group by 1 order by 1"],
    "page: memory": ["timeline", "--json", "--of", "mem", "-n", "200"],
    "page: disk": ["timeline", "--json", "--of", "io", "-n", "200"],
    "page: connections": ["net", "--json", "-n", "500"],
    "page: map": ["map", "--json", "-n", "500"],
    "page: wrong": ["overview", "--json"],
    "page: checks": ["check", "--json", "--all"],
}
NO_RANGE = {"status", "check", "page: checks"}
HOSTS = {"ci": ["--shorts", "20000"], "containers": ["--containers", "500", "--processes", "2000"], "operations": ["--operations", "20000"]}  # options of makescale
MOST = {1: (0.3, 150), 24: (1, 150), 336: (3, 150)}  # asked, by hours: CPU s, MB


def name_at(second):
    return datetime.datetime.fromtimestamp(second, datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ-0001.db")


def copy_at(path, seconds, to):
    """The archive, so many seconds later. Times since 1970 are only in tables of an archive that are rows; processes stay those that they are."""
    shutil.copyfile(path, to)
    with contextlib.closing(sqlite3.connect(to)) as db:
        db.execute("UPDATE meta SET value = value + ?1 WHERE key = 't0'", (seconds,))
        db.execute("UPDATE run SET from_ns = from_ns + ?1, to_ns = to_ns + ?1", (seconds * 10**9,))
        db.commit()


def make_one(folder, began, seconds, extra):
    with tempfile.TemporaryDirectory(dir=os.path.dirname(folder)) as one:
        subprocess.run([os.path.join(bench.BUILD, "tests", "makescale"), one, str(began + seconds), "--seconds", str(seconds), *extra], check=True)
        (path,) = glob.glob(f"{one}/*.db")
        os.rename(path, f"{folder}/{name_at(began)}")


def make(folder, hours, differ, extra):
    """So many hours, archived, of which those after the first `differ` are copies of these, and a newest one of a minute, which stays as it is."""
    first, differ = END - hours * HOUR, differ or hours
    os.makedirs(folder, exist_ok=True)
    make_one(folder, END, 60, extra)
    for n in range(differ):
        make_one(folder, first + n * HOUR, HOUR, extra)
        seal(folder)
    for n in range(differ, hours):
        back = n // differ * differ * HOUR
        copy_at(f"{folder}/{name_at(first + n * HOUR - back)}", back, f"{folder}/{name_at(first + n * HOUR)}")
    return seal(folder)


def seal(folder):
    child = subprocess.Popen([f"{bench.BIN}/sonde-seal", "--store", folder, "--quiet"])
    usage = os.wait4(child.pid, 0)[2]
    return usage.ru_utime + usage.ru_stime


def asked(argv):
    with open(os.devnull, "w", encoding="ascii") as null:
        child = subprocess.Popen([SONDE, *argv], stdin=subprocess.DEVNULL, stdout=null, stderr=subprocess.PIPE)
        said = child.stderr.read().decode(errors="replace")
        _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, child.returncode, said.strip().splitlines()


def words_of(argv, made, hours):
    """What compares has the time before at its side: of all that there is a half each."""
    words = {"BEFORE": END - 2 * hours * HOUR, "FROM": END - hours * HOUR, "SPAN": f"{hours}h"}
    return [str(words.get(word, word.format(made) if word.startswith("{}") else word)) for word in argv]


def range_of(argv, hours, last):
    """The hours that are asked, and its options."""
    compares = "BEFORE" in argv or "SPAN" in argv
    hours = min(hours, last // 2) if compares else hours
    return hours, ["--from", str(END - hours * HOUR), "--to", str(END)]


def marked(value, most, form):
    """More than is asked is bold."""
    text = form.format(value)
    return f"**{text}**" if most and value > most else text


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--hours", type=int, default=24)
    p.add_argument("--differ", type=int, default=0, help="hours that differ; 0: all")
    p.add_argument("--deep", action="store_true")
    p.add_argument("--host", choices=HOSTS)
    p.add_argument("--keep")
    p.add_argument("--store")
    p.add_argument("--ranges", default="1,24")
    p.add_argument("--verbs", nargs="*")
    p.add_argument("--write")
    p.add_argument("extra", nargs="*")
    a = p.parse_args()
    base = None
    if a.deep:
        a.hours, a.ranges, a.extra = 1, "1", ["--stacks", "200000", "--depth", "200", *a.extra]
    if a.host:
        a.extra = [*HOSTS[a.host], *a.extra]
    if a.store:
        folder = a.store
    else:
        base = tempfile.mkdtemp(prefix="sonde-scale-")
        folder = os.path.abspath(a.keep) if a.keep else f"{base}/store"
        make(folder, a.hours, a.differ, a.extra)
    try:
        rows = table(folder, [int(r) for r in a.ranges.split(",")], a.verbs, a.deep)
    finally:
        if base:
            shutil.rmtree(base, ignore_errors=True)
    if a.write:
        bench.put_between(a.write, "scale", rows)
    return 0


def table(folder, ranges, verbs, deep=False):
    size = sum(os.path.getsize(f) for f in glob.glob(f"{folder}/*.db"))
    last = len(glob.glob(f"{folder}/*.db")) - 1
    head = [f"{r} h: CPU s, MB" + (f" (asked {MOST[r][0]}, {MOST[r][1]})" if r in MOST and not deep else " (asked 5, 300)" if deep else "") for r in ranges]
    out = [f"Machine: {bench.machine()}. Date: {datetime.date.today()}. Command: `{bench.command()}` ({size / 1e6:.0f} MB).", "",
           "| question | " + " | ".join(head) + " |", "|---" * (1 + len(ranges)) + "|"]
    print(out[0])
    for name, argv in QUESTIONS.items():
        if verbs and name not in verbs:
            continue
        cells = []
        for hours in ranges:
            most = (5, 300) if deep else MOST.get(hours, (0, 0))
            span, options = range_of(argv, hours, max(last, 2))
            with tempfile.TemporaryDirectory() as made:
                cpu, peak, rc, said = asked([*words_of(argv, made, span), "--store", folder, *([] if name in NO_RANGE else options)])
            cells.append(f"{marked(cpu, most[0], '{:.2f}')}, {marked(peak, most[1], '{:.0f}')}"
                         + (f" (exit {rc}: {said[-1][:80] if said else ''})" if rc not in (0, 4) and "check" not in argv else " (nothing there)" if rc == 4 else ""))
        out.append(f"| {name} | " + " | ".join(cells) + " |")
        print(out[-1], flush=True)
    return "\n".join(out)


if __name__ == "__main__":
    sys.exit(main())
