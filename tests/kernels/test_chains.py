# SPDX-License-Identifier: Apache-2.0
"""Family disk where devices lie on others (step `disks`): no byte twice, by the kernel's own counters and by what dd wrote."""
import json
import re

import pytest

PAGE = 4096


@pytest.fixture
def chains(report):
    if "disks-make" not in report.sections:
        pytest.skip("missing: SONDE_KERNEL_STEPS=disks, as it needs modules of the kernels")
    assert report.sections["disks-make"].status == 0, report.sections["disks-make"]
    return report


def rows(report, name):
    return report.sections[f"disks-{name}"].told()


def counted(report, name="use"):
    """disk -> (reads, bytes read, writes, bytes written), by the kernel."""
    told = {}
    for text in report.sections[f"disks-{name}"].out.split("after\n"):
        for line in text.splitlines():
            words = line.split()
            if len(words) >= 14 and words[0].isdigit():
                told.setdefault(words[2], []).append([int(words[i]) * (512 if i in (5, 9) else 1) for i in (3, 5, 7, 9)])
    return {disk: tuple(b - a for a, b in zip(*x)) for disk, x in told.items() if len(x) == 2}


def test_each_disk_has_the_requests_that_the_kernel_counts_there(chains):
    kernel, got = counted(chains), {}
    for r in rows(chains, "blocks"):
        x = got.setdefault(r["disk"], [0, 0, 0, 0])
        if r["op"] in ("read", "write"):
            at = 0 if r["op"] == "read" else 2
            x[at] += r["requests"]
            x[at + 1] += r["bytes"]
    for disk in (f"loop{i}" for i in range(5)):
        assert tuple(got[disk]) == kernel[disk], disk
    assert not [d for d, x in got.items() if d.startswith("dm-") and any(x)]  # devices of bios make no requests


def test_what_was_written_to_a_device_on_top_is_below_it_once(chains):
    put = {(r["disk"], r["comm"]): (r["requests"], r["bytes"]) for r in rows(chains, "blocks") if r["op"] == "write"}
    assert put["loop0", "dd"] == (64, 64 * PAGE)  # the thread that wrote to dm-linear asked
    assert {sum(n for (disk, _), (_, n) in put.items() if disk == d) for d in ("loop2", "loop3")} == {32 * PAGE}
    assert sum(n for (disk, _), (_, n) in put.items() if disk == "loop4") == 3 * PAGE
    under = {r["disk"]: r["under"] for r in rows(chains, "under")}
    assert (under["dm-0"], under["dm-1"], under["dm-2"], under["dm-3"]) == ("loop0", "loop1", "loop2, loop3", "loop4")
    assert {under[f"loop{i}"] for i in range(5)} == {""}  # their files are in memory


def test_mdadm_and_lvm_write_below_once(chains):
    if "disks-tools" not in chains.sections:
        pytest.skip("missing: mdadm and lvm2 on this host")
    assert chains.sections["disks-tools"].status == 0, chains.sections["disks-tools"]
    kernel, put = counted(chains), {}
    for r in rows(chains, "blocks"):
        if r["op"] == "write":
            n, size = put.get(r["disk"], (0, 0))
            put[r["disk"]] = (n + r["requests"], size + r["bytes"])
    by = {(r["disk"], r["comm"]): r["bytes"] for r in rows(chains, "blocks") if r["op"] == "write"}
    under = {r["disk"]: r["under"] for r in rows(chains, "under")}
    assert sorted(under["md0"].split(", ")) == ["loop5", "loop6"] and "md0" not in put
    for disk in ("loop5", "loop6"):  # its data, and the mirror's own records of its state
        assert put[disk] == kernel[disk][2:] and put[disk][1] >= 32 * PAGE, disk
    (volume,) = [d for d, u in under.items() if u == "loop7"]
    assert volume.startswith("dm-") and put["loop7"] == kernel["loop7"][2:] == (16, 16 * PAGE) and by["loop7", "dd"] == 16 * PAGE


def test_a_file_on_a_ciphered_device_has_a_name_where_it_is_changed_and_waited_for(chains):
    files = rows(chains, "files")
    assert [r["dirty"] >= 16 * 65536 for r in files if r["file"] == "/mnt/big" and r["disk"] == ""] == [True]
    assert not [r for r in files if r["file"] == "/mnt/big" and r["disk"] == "loop1"]  # below it are other pages
    for op, key in (("read", "got"), ("write", "put")):
        for disk in ("loop0", "loop1", "loop2", "loop3", "loop4"):
            assert sum(r[key] for r in files if r["disk"] == disk) == sum(r["bytes"] for r in rows(chains, "blocks") if (r["disk"], r["op"]) == (disk, op)), (disk, op)
    assert [(r["call"], r["comm"], r["calls"]) for r in rows(chains, "syncs") if r["file"] == "/mnt/big"] == [("fsync", "dd", 1)]


@pytest.mark.parametrize("kind, disk", [("xfs", "loop8"), ("btrfs", "loop9")])
def test_a_file_system_that_is_a_module_has_its_files_once(chains, kind, disk):
    if f"disks-{kind}" not in chains.sections:
        pytest.skip(f"missing: mkfs.{kind} on this host")
    assert chains.sections[f"disks-{kind}"].status == 0, chains.sections[f"disks-{kind}"]
    got = {r["op"]: (r["requests"], r["bytes"]) for r in rows(chains, f"{kind}-blocks") if r["disk"] == disk}
    zero = got.get("zero", (0, 0))  # the kernel counts these as writes
    assert (*got["read"], got["write"][0] + zero[0], got["write"][1] + zero[1]) == counted(chains, kind)[disk]
    files = {r["file"]: r for r in rows(chains, f"{kind}-files") if r["disk"] == disk}
    big = files[f"/mnt/{kind}/big"]
    direct = 0 if kind == "btrfs" else 4 * 65536  # whose direct reads have no file
    assert big["put"] == 1 << 20 and direct + 16 * PAGE <= big["got"] <= 1 << 20, files
    assert [sum(r[key] for r in files.values()) for key in ("got", "put")] == [got["read"][1], got["write"][1]]


def test_a_device_of_bios_that_fails_has_errors(chains):
    """dm-error answers no request of any disk."""
    errors = {(r["disk"], r["op"]): r["errors"] for r in rows(chains, "blocks") if r["errors"]}
    assert list(errors) == [("dm-4", "read")] and errors["dm-4", "read"] >= 1


def test_what_a_kernel_does_not_tell_is_said_with_the_version_that_does(chains):
    items = {i["name"]: i for i in chains.sections["disks-check"].json()["items"]}
    version = (99,) if chains.name == "newest" else tuple(map(int, chains.name.split(".")))
    for name, since in (("who asks", (6, 5)), ("calls on files", (6, 0)), ("who waits", (6, 2))):
        assert items[name]["state"] == ("ok" if version >= since else "warn"), items[name]
        assert version >= since or re.search(r"kernel \d+\.\d+ or later", json.dumps(items[name])), items[name]


def test_reads_and_writes_of_files_are_counted_or_said_to_be_missing(chains):
    calls = {(r["call"], r["calls"], r["bytes"]) for r in rows(chains, "calls") if r["file"] == "/mnt/big" and r["comm"] == "dd"}
    check = {i["name"]: i for i in chains.sections["disks-check"].json()["items"]}["calls on files"]
    if chains.name == "5.10":
        assert check["state"] == "warn" and "5.12" in json.dumps(check) and not calls
    else:
        assert check["state"] == "ok" and calls == {("write", 16, 1 << 20), ("read", 20, 16 * PAGE + 4 * 65536)}

