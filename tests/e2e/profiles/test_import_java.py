# SPDX-License-Identifier: Apache-2.0
"""Recordings of each JDK on this host, and of async-profiler where it is: `jfr` of the JDK and the program itself say what they hold."""
import collections
import glob
import json
import os
import re
import shutil
import subprocess

import pytest
from conftest import need, sql_all

SOURCE = """
import java.util.concurrent.locks.LockSupport;
public class Shop {
  static final Object till = new Object();
  static volatile long sink;
  static long add(int n) { long s = 0; for (int i = 0; i < n; i++) s += i * 31L ^ (s >>> 3); return s; }
  static byte[] crate() { return new byte[200000]; }
  static void refuse() { throw new IllegalStateException("no"); }
  public static void main(String[] a) throws Exception {
    final long end = System.currentTimeMillis() + 2000;
    Thread owner = new Thread(() -> { while (System.currentTimeMillis() < end) synchronized (till) { LockSupport.parkNanos(20_000_000L); } }, "owner");
    Thread asker = new Thread(() -> { while (System.currentTimeMillis() < end) synchronized (till) { sink++; } }, "asker");
    owner.start(); asker.start();
    int refused = 0;
    while (System.currentTimeMillis() < end) {
      sink += add(2000000) + crate().length;
      try { refuse(); } catch (IllegalStateException e) { refused++; }
    }
    owner.join(); asker.join();
    System.out.println("refused " + refused);
  }
}
"""
EVENTS = {"ExecutionSample": "period=10 ms", "NativeMethodSample": "period=20 ms", "ObjectAllocationSample": "throttle=1000/s",
          "ObjectAllocationInNewTLAB": "", "ObjectAllocationOutsideTLAB": "", "JavaMonitorEnter": "threshold=1 ms", "ThreadPark": "threshold=1 ms",
          "JavaMonitorWait": "threshold=1 ms", "ThreadSleep": "threshold=1 ms", "JavaExceptionThrow": "", "JVMInformation": "", "ActiveSetting": ""}
KINDS = {"mutex": ["jdk.JavaMonitorEnter"], "block": ["jdk.ThreadPark", "jdk.JavaMonitorWait", "jdk.ThreadSleep"], "exception": ["jdk.JavaExceptionThrow"]}


def jdks():
    found = {os.path.realpath(p) for p in glob.glob("/usr/lib/jvm/*/bin/java") + glob.glob(os.path.join(os.environ.get("SONDE_JDKS", "/none"), "*/bin/java"))}
    return sorted(found)


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    need("javac")
    folder = str(tmp_path_factory.mktemp("shop"))
    with open(f"{folder}/Shop.java", "w", encoding="utf-8") as f:
        f.write(SOURCE)
    with open(f"{folder}/all.jfc", "w", encoding="utf-8") as f:
        f.write('<configuration version="2.0">' + "".join(
            f'<event name="jdk.{n}"><setting name="enabled">true</setting><setting name="stackTrace">true</setting>'
            + (f'<setting name="{s.split("=")[0]}">{s.split("=")[1]}</setting>' if s else "") + "</event>" for n, s in EVENTS.items()) + "</configuration>")
    subprocess.run(["javac", "--release", "8", "-nowarn", "-d", folder, f"{folder}/Shop.java"], check=True, capture_output=True)
    return folder


def counted(path):
    """By type, from `jfr summary`."""
    text = subprocess.run(["jfr", "summary", path], capture_output=True, text=True, check=True).stdout
    return {m[1]: int(m[2]) for m in re.finditer(r"^ ([a-z]+\.\w+) +(\d+) ", text, re.M) if int(m[2])}


def events(path, name):
    text = subprocess.run(["jfr", "print", "--json", "--stack-depth", "100", "--events", name, path], capture_output=True, text=True, check=True).stdout
    return [e["values"] for e in json.loads(text)["recording"]["events"]]


def leaf(values):
    frames = (values["stackTrace"] or {"frames": []})["frames"]
    if not frames:
        return "[no stack]"
    m = frames[0]["method"]
    return m["type"]["name"].replace("/", ".") + "." + m["name"]


def seconds(span):
    return round(float(re.fullmatch(r"PT([\d.]+)S", span)[1]) * 1e9)


def leaves(store, kind, of):
    return {r["function"]: r["v"] for r in sql_all(store, f"SELECT function, sum({of}) AS v FROM amounts WHERE type = '{kind}' GROUP BY 1")}


@pytest.mark.long
@pytest.mark.parametrize("java", jdks() or [None], ids=lambda p: p.split("/")[-3] if p else "none")
def test_what_jfr_says_is_what_is_imported(sonde, shop, tmp_path, java):
    need("jfr")
    need("java", java)
    path, store = f"{tmp_path}/x.jfr", str(tmp_path / "store")
    done = subprocess.run([java, f"-XX:StartFlightRecording=filename={path},settings={shop}/all.jfc", "-cp", shop, "Shop"], capture_output=True, text=True)
    if done.returncode or not os.path.exists(path):
        pytest.skip(f"missing: a JDK whose flight recorder starts ({java})")
    said, n = sonde("import", path, store=store, check=True).stderr, counted(path)
    assert sql_all(store, "SELECT sum(samples) AS n, sum(cpu_ns) AS ns FROM cpu_samples") == [
        {"n": n["jdk.ExecutionSample"], "ns": n["jdk.ExecutionSample"] * 10**7}]
    for kind, types in KINDS.items():
        rows = [v for t in types if t in n for v in events(path, t)]
        assert sum(leaves(store, kind, "n").values()) == len(rows), said
        want = collections.Counter()
        for v in rows:
            want[leaf(v)] += 1 if kind == "exception" else seconds(v["duration"])
        got = leaves(store, kind, "value")
        assert set(got) == set(want) and all(abs(got[k] - want[k]) <= 2 * len(rows) for k in want)  # jfr prints rounded spans
    first = [t for t in ("jdk.ObjectAllocationSample", "jdk.ObjectAllocationInNewTLAB") if t in n][0]
    rows = [(leaf(v), v["weight"]) for v in events(path, first)] if first.endswith("Sample") else [
        (leaf(v), v.get("tlabSize") or v["allocationSize"]) for t in (first, "jdk.ObjectAllocationOutsideTLAB") if t in n for v in events(path, t)]
    want = collections.Counter()
    for k, w in rows:
        want[k] += w
    assert leaves(store, "alloc", "value") == want and sum(leaves(store, "alloc", "n").values()) == len(rows)
    own = int(re.search(r"refused (\d+)", done.stdout)[1])
    thrown = sql_all(store, "SELECT sum(n) AS n FROM amounts WHERE type = 'exception' AND stack_id IN"
                     " (SELECT stack_id FROM stack_frames WHERE function = 'Shop.refuse')")[0]["n"]
    assert thrown == own or (thrown or 0) < own and "25" in java  # 25 takes at most 100 a second
    threads = {r["thread"] for r in sql_all(store, "SELECT DISTINCT thread FROM amounts WHERE type IN ('mutex', 'block')")}
    assert "owner" in threads
    pid = sql_all(store, "SELECT DISTINCT pid, comm FROM processes")
    assert len(pid) == 1 and pid[0]["comm"] == "java" and pid[0]["pid"] == events(path, "jdk.JVMInformation")[0]["pid"]


@pytest.mark.long
def test_recordings_of_async_profiler(sonde, shop, tmp_path):
    need("jfr")
    agent = os.environ.get("SONDE_ASYNC_PROFILER") or shutil.which("libasyncProfiler.so", path="/usr/lib:/opt/async-profiler/lib")
    if not agent:
        pytest.skip("missing: libasyncProfiler.so (SONDE_ASYNC_PROFILER=FILE; it is in the jar tools.profiler:async-profiler)")
    path, store = f"{tmp_path}/x.jfr", str(tmp_path / "store")
    subprocess.run(["java", f"-agentpath:{agent}=start,event=itimer,interval=5ms,alloc=100k,lock=1ms,jfr,file={path}", "-cp", shop, "Shop"],
                   check=True, capture_output=True)
    sonde("import", path, store=store, check=True)
    n = counted(path)
    assert sql_all(store, "SELECT sum(samples) AS n, sum(cpu_ns) AS ns FROM cpu_samples") == [
        {"n": n["jdk.ExecutionSample"], "ns": n["jdk.ExecutionSample"] * 5_000_000}]
    taken = [v for t in ("jdk.ObjectAllocationInNewTLAB", "jdk.ObjectAllocationOutsideTLAB") if t in n for v in events(path, t)]
    assert sum(leaves(store, "alloc", "value").values()) == sum(v.get("tlabSize") or v["allocationSize"] for v in taken)
    assert sum(leaves(store, "mutex", "n").values()) == n.get("jdk.JavaMonitorEnter", 0)
