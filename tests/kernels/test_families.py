# SPDX-License-Identifier: Apache-2.0
"""What must hold of each family on each kernel: what it cannot do without loads and attaches."""
import pytest


@pytest.mark.parametrize("family", ["cpu", "offcpu", "net", "l7", "host", "mem", "disk"])
def test_its_programs_load(report, family):
    section = report.sections[f"check-{family}"]
    assert section.status == 0 and section.json()["ok"], section
