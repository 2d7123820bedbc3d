# SPDX-License-Identifier: Apache-2.0
"""`sonde explain` on incidents as the loaders record them (tests/e2e/lib/incidents.py): seventeen kinds, and four times two at once. What must hold on any host: no
cause that is false is called certain. How many causes are found depends on what else runs here; the figures are printed (make long-incidents)."""
import json
import os
import subprocess

import incidents
import pytest
from conftest import BIN, need_root

PAIRS = ["statement+function", "lock+errors", "names+loss", "quota+statement"]
LEAST = 0.6  # of the causes, on a host whose CPUs others use too


def chain_of(store, container, begin, end, before="10s"):
    done = subprocess.run([os.path.join(BIN, "sonde"), "explain", "--container", container, "--from", f"{begin:.3f}", "--to", f"{end:.3f}", "--before", before,
                           "--json", "--store", store], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["chain"]["links"]


def judged(links, name, ids):
    """(causes that must be there, those found, texts of certain ones that are false)"""
    who = {v[:12]: k for k, v in ids.items()}
    kinds = name.split("+")
    wanted = [c for k in kinds for c in incidents.KINDS[k]]
    found = [c for c in wanted if any(link["what"] in c[0].split("|") and c[1] in (None, who.get(link["who"][:12])) for link in links)]
    right = {w for c in wanted for w in c[0].split("|")} | {w for k in kinds for w in incidents.ALSO[k].split("|")} | {"slower", "failing"}
    return wanted, found, [link["text"] for link in links if link["sure"] == "certain" and link["what"] not in right]


@pytest.mark.long
def test_causes_are_found_and_no_false_one_is_certain(tmp_path):
    need_root()
    folder = str(tmp_path / "flags")
    os.mkdir(folder)
    store = str(tmp_path / "store")
    windows, ids = incidents.play(folder, store, [*incidents.KINDS, *PAIRS])
    n = hits = causes = 0
    for name, (begin, end) in windows.items():
        links = chain_of(store, ids["web"][:12], begin, end, f"{incidents.LENGTHS.get(name, (10,))[0]}s")
        wanted, found, false = judged(links, name, ids)
        print(f"{name}: {len(found)} of {len(wanted)}", [(link["what"], link["sure"]) for link in links])
        assert not false, (name, false)
        n += len(wanted)
        hits += len(found)
        causes += sum(link["what"] not in ("slower", "failing", "unknown") for link in links)
    print(f"recall {hits} of {n}; {causes} links name a cause, none that is false is certain")
    assert hits >= LEAST * n
