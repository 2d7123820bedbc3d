# SPDX-License-Identifier: Apache-2.0
"""What must hold of sonde-l7 on each kernel: its programs load, and see each byte of a program that knows how many it moved."""


def test_its_programs_load(report):
    section = report.sections["l7-check"]
    said = section.json()
    assert section.status == 0 and said["ok"], section


def test_every_byte_is_seen_at_both_ends(report):
    section = report.sections["l7"]
    assert section.status == 0, section
    told = next(o for o in section.told() if "opened" in o and "tx" in o)
    rows = {r["side"]: r for r in report.sections["l7-bytes"].told()}
    assert all(r["seen"] == r["told"] for r in rows.values())
    done = next(o for o in section.told() if o.get("event") == "done")
    moved = told["tx"] + told["rx"]
    if done["lost"]["missed"]:  # from 7.0 on (decision 0229)
        assert all(0.98 * moved <= r["seen"] <= moved for r in rows.values()), (rows, done)
        return
    assert {s: r["seen"] for s, r in rows.items()} == dict.fromkeys(("client", "server"), moved)
    assert done["lost_total"] == 0
