# SPDX-License-Identifier: Apache-2.0
"""What `make release` leaves: one version in all of it, sums that hold, and a list that names each file and each library. make long-package."""
import glob
import hashlib
import json
import os
import re
import subprocess

import pytest
from roots import BUILD, ROOT

RELEASE = os.path.join(BUILD, "release")
with open(f"{ROOT}/debian/changelog", encoding="utf-8") as first:
    VERSION = re.match(r"sonde \((.+?)\)", first.readline()).group(1)


@pytest.fixture(scope="module")
def names():
    if not os.path.isdir(RELEASE):
        pytest.skip("missing: a release (make release)")
    return sorted(os.listdir(RELEASE))


def test_it_has_each_thing_that_people_install_of_one_version(names):
    assert names == sorted([f"sonde_{VERSION}_amd64.deb", f"sonde-{VERSION}-x86_64.tar.xz", f"sonde-{VERSION}-x86_64.image.tar.xz",
                            f"sonde-{VERSION}.compose.yaml", f"sonde-{VERSION}.spdx.json", "CHANGES", "SHA256SUMS"])
    told = subprocess.run(["dpkg-deb", "-f", f"{RELEASE}/sonde_{VERSION}_amd64.deb", "Version"], capture_output=True, text=True, check=True).stdout
    said = subprocess.run([*glob.glob(f"{BUILD}/tarball/sonde-*/sonde"), "version"], capture_output=True, text=True, check=True).stdout
    assert told.strip() == VERSION and VERSION in said


def test_the_sums_hold(names):
    assert subprocess.run(["sha256sum", "--strict", "-c", "SHA256SUMS"], cwd=RELEASE, capture_output=True, check=False).returncode == 0
    with open(f"{RELEASE}/SHA256SUMS", encoding="utf-8") as f:
        assert sorted(line.split()[1] for line in f) == [n for n in names if n != "SHA256SUMS"]


def test_the_list_names_each_file_and_each_library_in_the_programs(names):
    with open(f"{RELEASE}/sonde-{VERSION}.spdx.json", encoding="utf-8") as f:
        told = json.load(f)
    files = {x["fileName"][2:]: {c["algorithm"]: c["checksumValue"] for c in x["checksums"]} for x in told["files"]}
    assert set(files) == set(names) - {"SHA256SUMS", f"sonde-{VERSION}.spdx.json"}
    for name, sums in files.items():
        with open(f"{RELEASE}/{name}", "rb") as f:
            assert hashlib.file_digest(f, "sha256").hexdigest() == sums["SHA256"]
    with open(f"{ROOT}/packaging/libraries.txt", encoding="ascii") as f:
        assert len(told["packages"]) == 1 + len(f.read().split())
    assert all(p["versionInfo"] for p in told["packages"]) and told["packages"][0]["versionInfo"] == VERSION
    ids = {"SPDXRef-DOCUMENT"} | {x["SPDXID"] for x in told["packages"] + told["files"]}
    assert all(r["spdxElementId"] in ids and r["relatedSpdxElement"] in ids for r in told["relationships"])
    assert all(re.fullmatch(r"SPDXRef-[A-Za-z0-9.-]+", i) for i in ids)
