# SPDX-License-Identifier: Apache-2.0
"""What must hold of sonde-net on each kernel: its programs load, and count each connection and byte of a program that knows them."""


def test_its_programs_load(report):
    section = report.sections["net-check"]
    said = section.json()
    assert section.status == 0 and said["ok"], section


def test_every_connection_is_counted_with_both_ends(report):
    section = report.sections["net"]
    assert section.status == 0, section
    told = next(o for o in section.told() if "opened" in o and "tx" in o)
    rows = report.sections["net-flows"].told()
    n = told["opened"] + 20
    for side, sent, got in (("client", told["tx"], told["rx"]), ("server", told["rx"], told["tx"])):
        of = [r for r in rows if r["side"] == side]
        opened, closed, tx, rx = (sum(r[k] or 0 for r in of) for k in ("opened", "closed", "tx", "rx"))
        assert (opened, closed, tx, rx) == (n, n, sent, got), rows
        assert any(r["open_now"] for r in of)
    done = next(o for o in section.told() if o.get("event") == "done")
    assert done["lost_total"] == 0


def test_pstack_says_which_sockets_an_epoll_waits_for(report):
    section = report.sections["pstack"]
    assert section.status == 0, section
    watches = [w["peer"] or "" for r in section.json()["rows"] if r["comm"] == "sonde-maps" for w in r["watches"]]
    assert any(peer.startswith("sonde-net ") for peer in watches), watches


def test_the_kernel_counted_as_many(report):
    (row,) = report.sections["net-kernel"].told()
    assert row["opens"] == row["seen"] >= 320
