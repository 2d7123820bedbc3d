# SPDX-License-Identifier: Apache-2.0
"""Script frames of samples in machine code that PHP's and Ruby's JIT make: it leads to no caller."""
import json
import os
import subprocess
import time

import pytest

from conftest import need, need_root, sql_all

DEPTH = 10
RUBY = f"""
def leaf(k) s = 0; i = 0; while i < k; s = (s * 31 + i) % 1000003; i += 1; end; s end
def deep(d) d == 0 ? leaf(3000) : deep(d - 1) + 1 end
def work() while true do deep({DEPTH}) end end
work()
"""
PHP = f"""<?php
function leaf($k) {{ $s = 0; for ($i = 0; $i < $k; $i++) $s = ($s * 31 + $i) % 1000003; return $s; }}
function deep($d) {{ return $d == 0 ? leaf(3000) : deep($d - 1) + 1; }}
function work() {{ while (true) deep({DEPTH}); }}
work();
"""
JITS = {
    "ruby": (RUBY, ["ruby", "--yjit"], ["-e", "exit(RubyVM::YJIT.enabled?)"]),
    "php": (PHP, ["php", "-dopcache.enable_cli=1", "-dopcache.file_update_protection=0", "-dopcache.jit_buffer_size=32M", "-dopcache.jit=tracing"],
            ["-r", "exit(opcache_get_status()['jit']['on'] ? 0 : 1);"]),
}


def wait_for_cpu(pid, seconds):
    until = time.monotonic() + 60
    while time.monotonic() < until:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
            if int(f.read().rsplit(")", 1)[1].split()[11]) >= seconds * os.sysconf("SC_CLK_TCK"):
                return
        time.sleep(0.1)
    raise AssertionError(f"process {pid} got no CPU")


@pytest.mark.long
@pytest.mark.parametrize("language", sorted(JITS))
def test_samples_in_a_jit_s_code_are_whole(sonde, store, scratch, language):
    need_root()
    need(language)
    script, argv, check = JITS[language]
    if subprocess.run([*argv, *check], capture_output=True, check=False).returncode:
        pytest.skip(f"missing: {language} with a JIT")
    path = os.path.join(scratch, "busy")
    with open(path, "w", encoding="utf-8") as f:
        f.write(script)
    busy = subprocess.Popen([*argv, path], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        sonde("record", "-d", "1s", "--pid", busy.pid, store=store, check=True)  # its file's rows are kept from now on
        wait_for_cpu(busy.pid, 1.5)  # it has begun, and its hot code is compiled
        sonde("record", "-d", "4s", "--pid", busy.pid, store=store, check=True)
    finally:
        busy.kill()
        busy.wait()
    stacks = sql_all(store, """SELECT s.folded, sum(c.samples) AS n FROM cpu_samples c JOIN stacks s ON s.id = c.stack_id
        WHERE c.run_id = 2 AND c.ts >= 2 + (SELECT min(ts) FROM cpu_samples WHERE run_id = 2) GROUP BY 1""")
    all_, jit = sum(r["n"] for r in stacks), [r for r in stacks if "[anon]" in r["folded"]]
    in_jit = sum(r["n"] for r in jit)
    assert in_jit >= 10 and in_jit >= 0.5 * all_, f"the JIT's code was not met: {stacks}"
    cut = [r for r in jit if "work;" + ";".join(["deep"] * DEPTH) not in r["folded"]]
    assert sum(r["n"] for r in cut) <= 0.03 * in_jit, cut
    rows = sql_all(store, "SELECT complete, sum(samples) AS n FROM unwinding WHERE run_id = 2 AND complete IS NOT NULL GROUP BY 1")
    assert sum(r["n"] for r in rows if r["complete"]) >= in_jit - sum(r["n"] for r in cut), rows


@pytest.mark.long
def test_an_interpreter_in_whose_file_no_sample_is_is_indexed_at_once(sonde, store, scratch):
    """All time goes into code that PHP's JIT made. Nothing has read PHP's file before."""
    need_root()
    need("php")
    script, argv, check = JITS["php"]
    if subprocess.run([*argv, *check], capture_output=True, check=False).returncode:
        pytest.skip("missing: php with a JIT")
    path = os.path.join(scratch, "busy")
    with open(path, "w", encoding="utf-8") as f:
        f.write(script)
    busy = subprocess.Popen([*argv, path], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        wait_for_cpu(busy.pid, 1.5)
        shares = []
        while len(shares) < 8 and max(shares, default=0) < 0.9:  # the first seconds have no names yet; on a busy machine more of them
            sonde("record", "-d", "5s", "--pid", busy.pid, store=store, check=True)
            stacks = sql_all(store, """SELECT s.folded, sum(c.samples) AS n FROM cpu_samples c JOIN stacks s ON s.id = c.stack_id
                WHERE c.run_id = (SELECT max(run_id) FROM cpu_samples) GROUP BY 1""")
            shares.append(sum(r["n"] for r in stacks if "work;deep" in r["folded"]) / sum(r["n"] for r in stacks))
    finally:
        busy.kill()
        busy.wait()
    assert max(shares) >= 0.9, shares
    # what the JIT made of a function is that function
    assert json.loads(sonde("stacks", "--json", "-n", "1", store=store, check=True).stdout)["rows"][0]["function"] == "leaf"
