# SPDX-License-Identifier: Apache-2.0
"""What must hold on each kernel: the real programs load, profile, narrow, follow CPUs, and lose nothing uncounted.

The oracle is what each workload says that it did. A guest's CPU is emulated on a machine that others use too: its timer
interrupts come late or fall together, and its clocks run on while it does not. So CPU time is not compared here
(tests/e2e does, on the real host), and a chain's share is that of the turns of work that the workload did in it:
it may differ by two points and three standard deviations of so many samples.
"""
import math
import re

import pytest

CHAINS = {"C": "shares", "C++": "shares-cpp", "Go": "shares-go"}
# What stands before a program's tables do: some samples where a CPU is fast, many where it is emulated.
EARLY = {"its mappings were not known", "the file's rows were not there yet", "a file was replaced meanwhile"}
SAMPLES_MIN = 200  # for a comparison; fewer come where the machine is too busy for two guests


def rows(report, name):
    return report.sections[name].told()


def done_of(report, name):
    """sonde-cpu's last word in that step."""
    section = report.sections[name]
    assert section.status == 0, section
    return next(o for o in section.told() if o.get("event") == "done")


def told_of(report, name, pick):
    """What a workload of that step printed; `pick` chooses it by a key or a chain."""
    return next(o for o in report.sections[name].told() if "pid" in o and pick(o))


def stacks_of(report, pid):
    """{folded: samples} of one process. A script's child bears the script's name until its exec: both are of that pid."""
    out = {}
    for row in rows(report, "shares-stacks"):
        if row["pid"] == pid and row["comm"] != "init":
            out[row["folded"]] = out.get(row["folded"], 0) + row["samples"]
    return out


def ended(report):
    """How user stacks ended, without those that an exec or exit had taken away."""
    return [row for row in rows(report, "shares-unwinding") if row["complete"] is not None]


def assert_near(seen, did, samples, what, apart=0.02):
    allowed = apart + 3 * math.sqrt(did * (1 - did) / samples)
    assert abs(seen - did) <= allowed, f"{what}: {seen:.3f} seen, {did:.3f} done, {allowed:.3f} allowed"


def enough(samples):
    if samples < SAMPLES_MIN:
        pytest.skip(f"missing: a machine with time for two guests (only {samples} samples of this workload)")


def test_the_kernel_boots_and_the_guest_comes_to_its_end(report):
    assert report.whole, report.why
    version = report.sections["kernel"].out.strip()
    if report.name == "newest":
        assert tuple(map(int, version.split(".")[:2])) > (6, 12)
    else:
        assert version.startswith(report.name + ".")


def test_the_kernel_has_nothing_to_complain_of(report):
    complaints = re.findall(r"^.*(?:\bBUG:|\bOops\b|general protection|Kernel panic|double fault).*$",
                            report.sections["bye"].out, re.M)
    assert not complaints


def test_the_check_finds_all_that_is_needed(report):
    section = report.sections["check"]
    said = section.json()
    assert section.status == 0 and said["ok"], section
    state = {item["name"]: item["state"] for item in said["items"]}
    assert state["programs"] == state["BTF"] == state["kernel symbols"] == "ok"
    assert "fail" not in state.values()


def test_the_check_says_how_memory_is_counted(report):
    items = {item["name"]: item for item in report.sections["check"].json()["items"]}
    assert ("raised at load" in items["memlock"]["text"]) == (report.name == "5.10")


def test_doctor_says_the_same(report):
    said = report.sections["doctor"].json()
    assert said["ok"] and not [row for row in said["rows"] if row["state"] == "fail"]


def test_the_program_that_follows_processes_loads(report):
    said = {item["name"]: item["state"] for item in report.sections["maps-check"].json()["items"]}
    assert said["mapping programs"] == "ok" and said["side-band"] == "ok", said


@pytest.mark.parametrize("language", CHAINS)
def test_every_chain_has_the_share_that_the_workload_gave_it(report, language):
    pids = {row["pid"] for row in rows(report, "shares-processes") if row["comm"] == CHAINS[language]}
    if not pids:
        pytest.skip(f"missing: a compiler for {language}")
    told = told_of(report, "shares", lambda o: "chains" in o and o["pid"] in pids)
    stacks = stacks_of(report, told["pid"])
    seen = {chain: sum(n for folded, n in stacks.items() if f";{chain};" in f";{folded};") for chain in told["chains"]}
    samples = sum(seen.values())
    # the rest is the start, and the language's own runtime, which an emulated CPU keeps busy
    did = sum(told["chains"].values())
    assert samples > 0.4 * sum(stacks.values()) * did / told["cpu_ns"]
    enough(samples)
    for chain, turns in zip(told["chains"], told["turns"]):
        assert_near(seen[chain] / samples, turns / sum(told["turns"]), samples, chain)


@pytest.mark.parametrize("program", ["/load/shares", "/load/shares-cpp", "/load/shares-go", "/load/onecall", "/usr/bin/xz"])
def test_stacks_reach_their_root(report, program):
    found = [row for row in ended(report) if row["executable"] == program]
    if not found:
        pytest.skip(f"missing: {program}")
    complete = sum(row["samples"] for row in found if row["complete"])
    early = sum(row["samples"] for row in found if row["reason"] in EARLY)
    samples = sum(row["samples"] for row in found)
    enough(samples)
    assert complete > 0.5 * samples, found
    assert complete > 0.97 * (samples - early), found


def test_status_says_how_many_stacks_are_complete(report):
    found = ended(report)
    samples = sum(row["samples"] for row in found)
    said = report.sections["status"].json()["rows"][0]
    assert said["user_samples"] == samples
    assert said["complete_share"] == pytest.approx(sum(row["samples"] for row in found if row["complete"]) / samples)


def test_doctor_has_rows_for_every_file_of_a_process(report):
    section = report.sections["explain"]
    assert section.status == 0, section
    files = {file["path"]: file for file in section.json()["process"]["files"]}
    assert {"/load/shares", "[vdso]"} <= set(files)
    assert all(file["state"] == "ready" and file["rows"] > 0 for file in files.values()), files


def test_time_in_one_system_call_shows_its_path_in_the_kernel(report):
    told = told_of(report, "shares", lambda o: "kernel_ns" in o)
    stacks = stacks_of(report, told["pid"])
    samples = sum(stacks.values())
    enough(samples)
    # what the guest says of user and system time is by its ticks
    path = sum(n for folded, n in stacks.items()
               if folded.find("do_syscall_64") < folded.find("__x64_sys_getrandom") and "do_syscall_64" in folded)
    assert_near(path / samples, told["kernel_ns"] / (told["kernel_ns"] + told["user_ns"]), samples, "getrandom", apart=0.06)


def test_a_short_process_has_its_name_and_arguments(report):
    found = [row for row in rows(report, "shares-processes") if row["comm"] == "burn"]
    assert [row["args"] for row in found] == ["burn 300 1 --note=brief"]
    assert found[0]["exe"] == "/load/burn"


@pytest.mark.parametrize("step", ["shares", "hotplug"])
def test_what_is_stored_and_what_is_lost_is_what_the_probe_saw(report, step):
    """An interrupted loader counts what its store has not confirmed in half a second as lost, though it may come yet."""
    done, sums = done_of(report, step), rows(report, f"{step}-sums")[0]
    assert sums["stored"] >= done["samples"]
    assert done["samples"] + done["lost_total"] == done["seen"] > 0
    assert done["lost_total"] == sum(done["lost"].values())
    assert sums["stored"] + sums["lost"] == done["seen"]


@pytest.mark.parametrize("step", ["command", "cgroup", "name"])
def test_a_narrow_capture_has_what_it_was_narrowed_to_and_no_other(report, step):
    found = rows(report, f"{step}-processes")
    assert sum(row["samples"] for row in found if (row["args"] or "").endswith("inside")) > 5, report.sections[step]
    assert not [row for row in found if (row["args"] or "").endswith("outside")]


def test_a_cpu_that_goes_and_comes_back_is_sampled_again(report):
    if "hotplug-missing" in report.sections:
        pytest.skip("missing: " + report.sections["hotplug-missing"].out)
    assert report.sections["hotplug"].status == 0, report.sections["hotplug"]
    for when in ("before", "without", "after", "again"):
        found = [row for row in rows(report, "hotplug-processes") if row["args"] and row["args"].endswith(f" {when}")]
        samples = sum(row["samples"] for row in found)
        unknown = sum(row["samples"] for row in found if "[unknown]" in row["folded"])
        assert samples >= 10, when
        assert unknown < 0.5 * samples, (when, found)
    assert all(row["args"] for row in rows(report, "hotplug-processes"))
