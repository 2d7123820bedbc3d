# SPDX-License-Identifier: Apache-2.0
"""Every verb, stock query and form of output, asked of the lab's store as its owner would; timed, answers kept to be read."""
import json
import os
import re
import resource
import subprocess
import time

from conftest import BIN, ROOT


def stamp(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def questions(truth, out):
    """(name, argv) of each."""
    marks = truth["marks"]
    whole = ["--from", stamp(marks["began"]), "--to", stamp(marks["ended"])]
    backup = ["--from", stamp(marks["backup"][0] + 1), "--to", stamp(marks["backup"][1] - 1)]
    asked = [(f"bare-{v}", [v]) for v in ("timeline", "explain", "top", "ps", "containers", "stacks", "waits", "neighbours", "wakers",
                                          "heap", "status", "diff", "events", "oom", "check")]
    recorded = truth.get("families", "").split(",")
    asked += [(f"bare-{v}", [v]) for v, family in (("net", "net"), ("map", "net"), ("requests", "l7"), ("trace", "l7")) if family in recorded]
    asked += [(f"whole-{v}", [v, *whole]) for v in ("timeline", "ps", "containers", "stacks", "waits", "neighbours", "wakers", "heap")]
    asked += [(f"json-{v}", [v, *whole, "--json"]) for v in ("timeline", "ps", "containers", "stacks", "waits", "neighbours", "wakers",
                                                              "heap")]
    asked += [("explain-backup", ["explain", *backup]), ("explain-backup-json", ["explain", *backup, "--json"]),
              ("explain-at", ["explain", "--at", stamp(sum(marks["backup"]) / 2)]),
              ("diff-backup", ["diff", *backup, "--baseline", f"{int(truth['minutes'] * 60 / 4)}s"]),
              ("ps-backup", ["ps", *backup]), ("top-at", ["top", "--at", stamp(sum(marks["backup"]) / 2)]),
              ("waits-db", ["waits", "db", *whole]), ("waits-threads", ["waits", *whole, "--by", "thread"]),
              ("waits-containers", ["waits", *whole, "--by", "container"]), ("waits-idle", ["waits", *whole, "--idle"]),
              ("stacks-offcpu", ["stacks", *whole, "--type", "offcpu"]), ("flame-wall", ["flame", *whole, "--type", "wall", "--text"]),
              ("callers", ["stacks", *whole, "--callers", "malloc"]), ("lines", ["lines", *whole, "sort_and_print"]),
              ("heap-growth", ["heap", *whole, "--growth"]), ("heap-alloc", ["heap", *whole, "--alloc"]),
              ("flame-text", ["flame", *whole, "--text"]), ("one-container", ["stacks", "web", *whole]),
              ("one-process", ["stacks", "--comm", "redis-server", *whole]), ("cpu-by-container", ["flame", "db", *whole, "-o", f"{out}/db.html"])]
    for kind in ("cpu", "offcpu", "wall"):
        for form in ("html", "svg", "folded", "pb.gz", "json"):
            asked.append((f"flame-{kind}-{form}", ["flame", *whole, "--type", kind, "-o", f"{out}/{kind}.{form}"]))
    asked += [("report", ["report", *whole, "-o", f"{out}/report.html"]), ("report-backup", ["report", *backup, "-o", f"{out}/backup.html"])]
    asked += [(f"export-{f}", ["export", f, *whole, "-o", f"{out}/export.{f}"]) for f in ("pprof", "folded", "speedscope", "perf-script", "json", "db")]
    for name in sorted(os.listdir(os.path.join(ROOT, "tools", "sql", "queries"))):
        if name.endswith(".sql"):
            asked.append((f"sql-{name[:-4]}", ["sql", f"@{name[:-4]}"]))
    with open(os.path.join(ROOT, "docs", "SCHEMA.md"), encoding="utf-8") as f:
        views = re.findall(r"^### (.+)$", f.read(), re.M)
    for view in sorted({v.strip("` ") for line in views for v in line.split(",")}):
        if re.fullmatch("[a-z_]+", view):
            asked.append((f"view-{view}", ["sql", f"SELECT count(*) AS rows FROM {view}"]))
    return asked


def answers(q):
    """Did it answer, or say that there is nothing? `sonde check` ends with 1 where something is bad, for cron."""
    return q["exit"] in ((0, 1, 4) if q["name"] == "bare-check" else (0, 4))


def cpu_seconds():
    """Of all children that ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def ask_all(folder, more=lambda truth: []):
    """`more` questions beside those."""
    with open(os.path.join(folder, "truth.json"), encoding="utf-8") as f:
        truth = json.load(f)
    out = os.path.join(folder, "answers")
    os.makedirs(out, exist_ok=True)
    results = []
    env = {k: v for k, v in os.environ.items() if not k.startswith("SONDE_")} | {"SONDE_STORE": os.path.join(folder, "store"), "COLUMNS": "120"}
    for name, argv in [*questions(truth, out), *more(truth)]:
        began, used = time.monotonic(), cpu_seconds()
        try:
            done = subprocess.run([os.path.join(BIN, "sonde"), *argv], capture_output=True, text=True, errors="replace", env=env,
                                  timeout=300, stdin=subprocess.DEVNULL, check=False, cwd=out)
            code, said, talk = done.returncode, done.stdout, done.stderr
        except subprocess.TimeoutExpired:
            code, said, talk = -1, "", "over 300 s"
        results.append({"name": name, "argv": argv, "exit": code, "seconds": time.monotonic() - began,
                        "cpu": cpu_seconds() - used, "stderr": talk})
        with open(os.path.join(out, name + ".txt"), "w", encoding="utf-8") as f:
            f.write(f"$ sonde {' '.join(argv)}    (exit {code}, {results[-1]['seconds']:.2f} s)\n{talk}{said}")
    with open(os.path.join(folder, "questions.json"), "w", encoding="utf-8") as f:
        json.dump(results, f, indent=1)
    return results
