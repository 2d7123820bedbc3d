# SPDX-License-Identifier: Apache-2.0
"""Family gpu beside nvidia-smi, where there is a GPU of NVIDIA's (make long-gpu): a process that keeps it busy and one that only holds memory."""
import ctypes
import os
import subprocess
import sys
import time

import pytest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # this file is a program, too
from conftest import need, need_root, sql_all
from sonded import until

pytestmark = [pytest.mark.long, pytest.mark.live]

# One thread that looks at the GPU's clock until so many ns are over.
KERNEL = b"""
.version 6.0
.target sm_50
.address_size 64
.visible .entry spin(.param .u64 ns)
{
	.reg .u64 %since, %now, %ns;
	.reg .pred %again;
	ld.param.u64 %ns, [ns];
	mov.u64 %since, %globaltimer;
L:
	mov.u64 %now, %globaltimer;
	sub.u64 %now, %now, %since;
	setp.lt.u64 %again, %now, %ns;
	@%again bra L;
	ret;
}
\0"""


def work(mib, seconds):
    """Hold so much memory; then, for so long, have a kernel on the GPU all the time."""
    cuda = ctypes.CDLL("libcuda.so.1")

    def ok(rc):
        assert rc == 0, rc

    device, context, memory = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
    module, function, ns = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64(20_000_000)
    ok(cuda.cuInit(0))
    ok(cuda.cuDeviceGet(ctypes.byref(device), 0))
    ok(cuda.cuCtxCreate_v2(ctypes.byref(context), 0, device))
    ok(cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(mib << 20)))
    ok(cuda.cuModuleLoadData(ctypes.byref(module), KERNEL))
    ok(cuda.cuModuleGetFunction(ctypes.byref(function), module, b"spin"))
    arguments = (ctypes.c_void_p * 1)(ctypes.addressof(ns))
    print("ready", flush=True)
    sys.stdin.readline()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for _ in range(10):
            ok(cuda.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, None, arguments, None))
        ok(cuda.cuCtxSynchronize())
    print("done", flush=True)
    sys.stdin.readline()


def smi(what, kind="gpu"):
    said = subprocess.run(["nvidia-smi", f"--query-{kind}={what}", "--format=csv,noheader,nounits"], capture_output=True, text=True, check=True).stdout
    return [[cell.strip() for cell in line.split(",")] for line in said.splitlines()]


class Worker:
    def __init__(self, mib, seconds):
        self.p = subprocess.Popen([sys.executable, os.path.abspath(__file__), str(mib), str(seconds)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = self.p.pid

    def waits(self, word):
        assert self.p.stdout.readline().strip() == word
        return self

    def goes_on(self):
        self.p.stdin.write("\n")
        self.p.stdin.flush()


@pytest.fixture
def workers():
    need("nvidia-smi")
    need_root()
    made = [Worker(512, 20), Worker(2048, 0)]
    yield [w.waits("ready") for w in made]
    for w in made:
        w.p.kill()
        w.p.wait()


def test_a_real_gpu_is_told_of_as_nvidia_smi_does(capture, store, workers):
    busy, holder = workers
    c = capture(program="sonde-gpu")
    assert until(lambda: len(sql_all(store, "SELECT DISTINCT ts FROM gpu_stats")) >= 3, 60)
    began = time.time()
    busy.goes_on()
    seen = []
    while time.time() < began + 18:
        time.sleep(0.5)
        seen.append([float(x) for x in smi("utilization.gpu,power.draw,memory.used,temperature.gpu")[0]])
    apps = {int(pid): int(mib) for pid, mib in smi("pid,used_memory", "compute-apps")}
    fixed = smi("uuid,name,index,memory.total,power.limit,clocks.max.sm")[0]
    ended = time.time()
    busy.waits("done")
    c.stop()

    within = f"ts >= {int(began) + 3} AND ts + seconds <= {int(ended) - 2} AND gpu = '0'"
    rows = sql_all(store, f"SELECT * FROM gpu_stats WHERE {within} ORDER BY ts")
    assert len(rows) >= 8
    assert {(r["uuid"], r["name"], r["gpu"], r["mem_total"] >> 20, r["power_limit_mw"] / 1000, r["clock_max_mhz"]) for r in rows} == \
        {(fixed[0], fixed[1], fixed[2], int(fixed[3]), float(fixed[4]), int(fixed[5]))}
    steady = seen[6:-2]
    mean = [sum(s[i] for s in steady) / len(steady) for i in range(4)]
    share = sum(r["busy_us"] for r in rows) / sum(r["seconds"] for r in rows) / 1e4
    watts = sum(r["energy_mj"] for r in rows) / sum(r["seconds"] for r in rows) / 1000
    print(f"\nbusy {share:.1f} % (nvidia-smi {mean[0]:.1f}), {watts:.1f} W ({mean[1]:.1f}), {rows[0]['mem_used'] >> 20} MiB ({mean[2]:.0f})")
    assert abs(share - mean[0]) <= 5
    assert abs(watts - mean[1]) <= 0.1 * mean[1]
    assert all(abs(r["mem_used"] / 2**20 - mean[2]) <= 1 for r in rows)  # nvidia-smi rounds
    assert abs(sum(r["temperature_m"] for r in rows) / len(rows) / 1000 - mean[3]) <= 2

    use = sql_all(store, f"SELECT pid, max(mem) >> 20 AS mib, sum(iif({within}, busy_us, 0)) AS us FROM gpu_process_stats GROUP BY 1")
    of = {r["pid"]: r for r in use}
    assert set(of) == set(apps) == {busy.pid, holder.pid} and all(abs(of[pid]["mib"] - mib) <= 1 for pid, mib in apps.items())
    assert abs((of[busy.pid]["us"] or 0) / sum(r["seconds"] for r in rows) / 1e4 - share) <= 10 and not of[holder.pid]["us"]


if __name__ == "__main__":
    work(int(sys.argv[1]), float(sys.argv[2]))
