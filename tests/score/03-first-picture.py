# SPDX-License-Identifier: Apache-2.0
"""The first flame graph within 15 s, ten of them recording; the first paint of `top` within 1.5 s"""
import os
import pty
import select
import subprocess
import time

from common import SONDE, Scratch, check, holds, later, need_root, sonde

need_root()


def first_paint(store):
    """Seconds until top has drawn its table on a terminal."""
    main, other = pty.openpty()
    env = dict(os.environ, TERM="xterm", COLUMNS="100", LINES="30", SONDE_STORE=store)
    began, seen = time.monotonic(), b""
    with subprocess.Popen([SONDE, "top"], stdin=other, stdout=other, stderr=other, env=env) as child:
        while time.monotonic() - began < 10 and b"PID" not in seen and b"CORES" not in seen:
            if select.select([main], [], [], 0.1)[0]:
                seen += os.read(main, 65536)
        took = time.monotonic() - began
        os.write(main, b"q")
        end = time.monotonic() + 5
        while child.poll() is None and time.monotonic() < end:
            if select.select([main], [], [], 0.1)[0]:
                os.read(main, 65536)
        child.kill()
    return took


with Scratch() as folder:
    store, page = os.path.join(folder, "store"), os.path.join(folder, "x.html")
    began = time.monotonic()
    a = sonde("record", "-d", "10s", "-q", store=store)
    b = sonde("flame", "-o", page, store=store)
    took = time.monotonic() - began
    check(a.returncode == b.returncode == 0 and os.path.getsize(page) > 10000, a.stderr + b.stderr)
    check(took <= 15, f"the flame graph took {took:.1f} s")
    if sonde("top", "--help").returncode:
        later(f"flame graph after {took:.1f} s; there is no `sonde top` yet")
    paint = first_paint(store)
    check(paint <= 1.5, f"top painted after {paint:.1f} s")
    holds(f"flame graph after {took:.1f} s, top after {paint:.2f} s")
