# SPDX-License-Identifier: Apache-2.0
"""What a workload says it did is what the profile shows: whole chains, their shares and order, CPU time."""
import os
import shutil
import subprocess
import tempfile
import time

import pytest

from conftest import BIN, WORKLOADS, Capture, Work, about, is_charged, need_root, scale, sql_all, stolen_ns, tolerance

pytestmark = pytest.mark.alone  # compares CPU time with what the kernel charged

FREQ, SECONDS = 2497, scale(3, 30)  # some 7500 samples of each: 3.5 standard deviations of a half are 2 points
LANGUAGES = {"C": "shares", "C++": "shares-cpp", "Rust": "shares-rust", "Go": "shares-go", "static C": "shares-static"}


def stacks_of(store, pid):
    """{folded: samples} of one process."""
    out = {}
    for row in sql_all(store, "SELECT s.folded, sum(c.samples) AS n FROM cpu_samples c JOIN stacks s ON s.id = c.stack_id "
                              "WHERE c.pid = ? GROUP BY 1", (pid,)):
        out[row["folded"]] = out.get(row["folded"], 0) + row["n"]
    return out


def share_of_chain(stacks, chain):
    all_ = sum(stacks.values())
    return sum(n for folded, n in stacks.items() if f";{chain};" in f";{folded};") / all_ if all_ else 0.0


def assert_shares(stacks, told):
    """Each whole chain within 2 points of what the workload did, or what chance does to few samples; their order the same."""
    total, samples = sum(told["chains"].values()), sum(stacks.values())
    did = {chain: ns / total for chain, ns in told["chains"].items()}
    seen = {chain: share_of_chain(stacks, chain) for chain in did}
    top = sorted(stacks.items(), key=lambda i: -i[1])[:6]
    for chain in did:
        assert seen[chain] == about(did[chain], samples), f"{chain}\ntop: {top}"
    order = sorted(did, key=did.get)
    assert order == sorted(did, key=seen.get)


def indexed(store, names, base):
    """Each program has run once, and is known: its first samples have no rows, and on a busy machine they are many."""
    for work in [Work(name, 0.2) for name in names]:
        work.told()
    end = time.monotonic() + 60
    for name in names:
        done = subprocess.run([os.path.join(BIN, "sonde-index"), os.path.join(WORKLOADS, name), "-o", os.path.join(base, "index")],
                              capture_output=True, text=True, check=True)
        build_id = done.stdout.split("-")[0]
        while not any(key.startswith(build_id) for key in os.listdir(os.path.join(store, "images"))):
            assert time.monotonic() < end, name
            time.sleep(0.02)


@pytest.fixture(scope="module")
def recorded():
    """Two at a time, as there are two CPUs: one capture, what each one told, the store."""
    need_root()
    base = tempfile.mkdtemp(prefix="sonde-test-")
    store = os.path.join(base, "store")
    c = Capture(store, "--freq", str(FREQ)).start()
    there = [(language, name) for language, name in {**LANGUAGES, "jit": "jit", "one call": "onecall"}.items()
             if os.path.exists(os.path.join(WORKLOADS, name))]
    indexed(store, [name for _, name in there], base)
    told = {}
    for i in range(0, len(there), 2):
        stolen = stolen_ns()
        works = {language: Work(name, SECONDS) for language, name in there[i:i + 2]}
        told.update({language: w.told() for language, w in works.items()})
        stolen = stolen_ns() - stolen
        for language in works:
            told[language]["stolen_ns"] = stolen
    c.stop()
    yield told, store, SECONDS * 1e9
    c.close()
    shutil.rmtree(base, ignore_errors=True)


@pytest.mark.long
@pytest.mark.parametrize("language", LANGUAGES)
def test_every_chain_has_the_share_that_the_workload_gave_it(recorded, language):
    told, store, _ = recorded
    if language not in told:
        pytest.skip(f"missing: a compiler for {language}")
    assert_shares(stacks_of(store, told[language]["pid"]), told[language])


@pytest.mark.parametrize("language", LANGUAGES)
def test_samples_times_period_is_utime_plus_stime(recorded, language):
    told, store, wall_ns = recorded
    if language not in told:
        pytest.skip(f"missing: a compiler for {language}")
    rows = sql_all(store, "SELECT sum(cpu_ns) AS ns FROM cpu_samples WHERE pid = ?", (told[language]["pid"],))
    used = told[language]["cpu_ns"]
    seen, allowed = sum(r["ns"] or 0 for r in rows), tolerance(0.02, used, wall_ns, FREQ)
    assert is_charged(seen, used, allowed, told[language]["stolen_ns"]), (seen, told[language], allowed)


def test_code_made_at_run_time_has_the_names_of_its_perf_map(recorded):
    told, store, _ = recorded
    assert_shares(stacks_of(store, told["jit"]["pid"]), told["jit"])


def test_time_in_one_system_call_shows_its_path_in_the_kernel(recorded):
    all_, store, _ = recorded
    told = all_["one call"]
    stacks = stacks_of(store, told["pid"])
    kernel = told["kernel_ns"] / (told["kernel_ns"] + told["user_ns"])
    path = sum(n for folded, n in stacks.items()
               if folded.find("do_syscall_64") < folded.find("__x64_sys_getrandom") and "do_syscall_64" in folded)
    assert path / sum(stacks.values()) == pytest.approx(kernel, abs=0.02)
    # it begins in the program that made the call
    assert sum(n for folded, n in stacks.items() if "main;" in folded) / sum(stacks.values()) > 0.95


@pytest.mark.long
def test_a_narrow_capture_of_one_process_has_its_shares(capture, work, store):
    w = work("shares", scale(5, 20))
    time.sleep(0.2)
    c = capture("--freq", 997, "--pid", w.pid)
    told = w.told()
    c.wait()
    assert_shares(stacks_of(store, told["pid"]), told)
