# SPDX-License-Identifier: Apache-2.0
"""What the flight ring is kept for is noticed as it happens; what becomes of the window is in test_flight.py and test_flight_triggers.py, which wait for it."""
import json
import subprocess
import sys

from conftest import need_root
from sonded import Sonded, until
from test_events import HOLDS, contained, memory
from test_flight import ask, kept


def test_a_person_a_kill_for_memory_a_bad_end_and_a_check_that_fires_each_have_the_ring_kept(store):
    need_root()
    with contained(**memory(32)) as (container_id, prefix, _), Sonded(store, "--families", "cpu,host", "--flight", "on", "--cpu", "0") as d:
        assert until(lambda: d.running("cpu") and d.running("host"), 60), d.said()

        def keeps(what):
            return any("keeps the flight ring of the last" in line and what in line for line in d.said().splitlines())
        assert not keeps("by hand") and not keeps(container_id[:12])  # this host may keep one for its own pressure
        assert ask(store, "keep", "--why", "by hand").returncode == 0
        assert keeps("by hand") and kept(d)["pending"]
        done = subprocess.run([*prefix, "sh", "-c", f"{sys.executable} -c '{HOLDS.format(200)}'; exit 3"], capture_output=True, stdin=subprocess.DEVNULL, check=False)
        assert done.returncode == 3
        assert until(lambda: keeps("out of memory: "), 30), d.said()
        assert until(lambda: keeps(container_id[:12]), 30), d.said()
        # what was recorded just now makes a check fire

        def fires():
            said = ask(store, "check", "oom", "--keep", "--json")
            return said.returncode == 1 and json.loads(said.stdout)["rows"]
        assert until(fires, 30), ask(store, "check", "oom").stdout
        assert until(lambda: keeps("oom: "), 10), d.said()
        assert kept(d)["pending"]
