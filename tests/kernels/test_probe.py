# SPDX-License-Identifier: Apache-2.0
"""Family probe on each kernel: a tracepoint, a system call, a function and a USDT probe with a semaphore count what the programs did."""
import json
import signal

import pytest


@pytest.fixture(scope="module")
def probed(report):
    if "probe" not in report.sections:
        pytest.skip("missing: Debian's python3.11, or SONDE_KERNEL_STEPS without probe")
    section = report.sections["probe"]
    assert section.status == 0, section
    report.collections = next(line["collections"] for line in section.told() if "collections" in line)
    return report


def sums(report, probe):
    return {row["key"]: (row["hits"], row["errors"]) for row in report.sections["probe-sums"].told() if row["probe"] == probe}


def events(report, probe):
    return sorted((json.dumps(json.loads(row["args"]), sort_keys=True), row["n"]) for row in report.sections["probe-events"].told() if row["probe"] == probe)


def test_nothing_is_lost(probed):
    rows = probed.sections["probe-lost"].told()
    assert {row["probe"]: (row["lost"], row["off_us"]) for row in rows if row["probe"] != "interrupts"} == dict.fromkeys(
        ("signals", "folders", "limits", "collections", "wholes", "passes"), (0, 0))


def test_a_tracepoint_counts_the_signals_that_were_sent(probed):
    assert {key: hits for key, (hits, _) in sums(probed, "signals").items()} == {str(int(signal.SIGWINCH)): 12}
    got = [(json.loads(args), n) for args, n in events(probed, "signals")]
    assert {args["sig"] for args, _ in got} == {int(signal.SIGWINCH)} and all(args["comm"] for args, _ in got) and sum(n for _, n in got) == 12


def test_a_system_call_has_its_path_result_and_error(probed):
    assert sums(probed, "folders") == {**{f"/tmp/probe{i} ok": (1, 0) for i in range(1, 6)}, "/tmp/probe1 EEXIST": (2, 2)}
    got = {(json.loads(args)["path"], json.loads(args)["ret"]): n for args, n in events(probed, "folders")}
    assert got == {**{(f"/tmp/probe{i}", 0): 1 for i in range(1, 6)}, ("/tmp/probe1", -17): 2}


def test_a_function_has_its_argument(probed):
    assert {key: hits for key, (hits, _) in sums(probed, "limits").items()} == {"5000": 3, "5001": 3, "5002": 3}


def test_a_usdt_probe_counts_what_the_interpreter_counts(probed):
    assert min(probed.collections) >= 10
    assert {key: hits for key, (hits, _) in sums(probed, "collections").items()} == {str(g): n for g, n in enumerate(probed.collections)}


def test_a_function_is_followed_to_its_end(probed):
    assert {key: hits for key, (hits, _) in sums(probed, "wholes").items()} == {"5000": 3, "5001": 3, "5002": 3}


def test_pairs_of_hooks_are_joined_by_their_keys(probed):
    assert {key: hits for key, (hits, _) in sums(probed, "passes").items()} == {str(g): n for g, n in enumerate(probed.collections)}
    assert sum(hits for hits, _ in sums(probed, "interrupts").values()) > 0
