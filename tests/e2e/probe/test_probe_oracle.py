# SPDX-License-Identifier: Apache-2.0
"""Family probe beside two programs that nobody here wrote: strace's count of a system call, perf's of a tracepoint."""
import os
import subprocess
import sys

import pytest

from conftest import need, sql_all

PROGRAM = "sonde-probe"


def told(store, probe, pid):
    """(hits of this process, its errors, what the probe left out, told)."""
    hits = sql_all(store, "SELECT coalesce(sum(hits), 0) AS hits, coalesce(sum(errors), 0) AS errors FROM probe_stats WHERE probe = ? AND pid = ?", (probe, pid))[0]
    lost = sql_all(store, "SELECT coalesce(sum(lost + unpaired), 0) AS n FROM probes WHERE probe = ?", (probe,))[0]["n"]
    return hits["hits"], hits["errors"], lost


def test_a_system_call_is_counted_as_strace_counts_it(capture, store):
    need("strace")
    base, table = os.path.dirname(store), store + ".strace"
    work = ("import os, sys\nfor i in range(41): os.chdir(sys.argv[1])\n"
            "for i in range(17):\n try: os.chdir(sys.argv[1] + '/none')\n except OSError: pass\nprint(os.getpid())")
    cap = capture("--probe", "calls=syscall:chdir rate 0", program=PROGRAM)
    done = subprocess.run(["strace", "-c", "-U", "calls,errors,name", "-e", "trace=chdir", "-o", table, sys.executable, "-c", work, base],
                          capture_output=True, text=True, timeout=120, check=False)
    cap.stop()
    if done.returncode:
        pytest.skip(f"missing: a strace that works here ({done.stderr[-200:]})")
    with open(table, encoding="utf-8") as f:
        calls, errors, _ = next(line.split() for line in f if line.split()[-1:] == ["chdir"])
    assert (int(calls), int(errors)) == (58, 17)
    hits, failed, lost = told(store, "calls", int(done.stdout))
    assert hits <= 58 <= hits + lost and failed <= 17 <= failed + lost  # what the kernel leaves out it counts (decision 0285)


def test_a_tracepoint_is_counted_as_perf_counts_it(capture, store):
    need("perf")
    table = store + ".perf"
    work = "import os, signal\nfor i in range(39): os.kill(os.getpid(), signal.SIGWINCH)\nprint(os.getpid())"
    cap = capture("--probe", "signals=tracepoint:signal:signal_generate(sig) sig==28 rate 0", program=PROGRAM)
    done = subprocess.run(["perf", "stat", "-x", ",", "-o", table, "-e", "signal:signal_generate", "--filter", "sig == 28", "--", sys.executable, "-c", work],
                          capture_output=True, text=True, timeout=120, check=False)
    cap.stop()
    if done.returncode:
        pytest.skip(f"missing: a perf that counts tracepoints here ({done.stderr[-200:]})")
    with open(table, encoding="utf-8") as f:
        counted = next(line.split(",")[0] for line in f if ",signal:signal_generate," in line)
    assert int(counted) == 39
    hits, _, lost = told(store, "signals", int(done.stdout))
    assert hits <= 39 <= hits + lost
