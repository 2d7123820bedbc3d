# SPDX-License-Identifier: Apache-2.0
"""make long-probe: probes that come and go in a program that runs hot, by Ctrl-C and by kill -9, leave it as it is."""
import json
import os
import random
import signal
import subprocess

import pytest

from conftest import BIN, WORKLOADS, need_root

CYCLES = int(os.environ.get("SONDE_PROBE_CYCLES", "1000"))


@pytest.mark.soak
def test_a_program_under_load_has_all_results_right_while_probes_come_and_go(store):
    need_root()
    path, draw = os.path.join(WORKLOADS, "probed"), random.Random(52)
    with subprocess.Popen([path, "forever"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as p:
        assert p.stdout.readline() == "ready\n"
        for i in range(CYCLES):
            with subprocess.Popen([os.path.join(BIN, "sonde-probe"), "--store", f"{store}.{i % 4}", "--duration", "300s", "--pid", str(p.pid), "--probe",
                                   f"half=func:{path}:half%return(n=int32 $1, ret=int32) rate 10", "--probe", f"begin=func:{path}:half stack rate 10"],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as r:
                try:
                    r.wait(timeout=draw.uniform(0.2, 1.2))  # before, while and after it is attached
                except subprocess.TimeoutExpired:
                    r.send_signal(draw.choice([signal.SIGINT, signal.SIGKILL]))
                r.wait(timeout=120)
            assert p.poll() is None, f"after {i} cycles it ended with {p.returncode}"
        said, _ = p.communicate("\n", timeout=120)
    assert p.returncode == 0 and json.loads(said)["wrong"] == 0 and json.loads(said)["calls"] > CYCLES
