# SPDX-License-Identifier: Apache-2.0
"""The guests' program in Python: two chains of calls, one through native code, which share its turns 2 to 1; then waits in a recursion. It needs nothing that is
not built into the interpreter.

    scripts.py SECONDS      {"pid": PID, "turns": {CHAIN: turns}, "waits": waits}
"""
import posix
import sys
import time

DEPTH = 30


def spin(n):
    i = 0
    while i < n:
        i += 1


def deep(n, left):
    return deep(n, left - 1) if left else spin(n)


def alpha(n):
    return deep(n, DEPTH)


def beta(n):
    return sorted([1], key=lambda x: spin(n))


def rest(left):
    return rest(left - 1) if left else time.sleep(0.002)


turns = {"alpha": 0, "beta": 0}
until = time.time() + float(sys.argv[1])
while time.time() < until:
    for chain in (alpha, alpha, beta):
        chain(5000)
        turns[chain.__name__] += 1
for _ in range(100):
    rest(DEPTH)
print('{"pid": %d, "turns": {"alpha": %d, "beta": %d}, "waits": 100}' % (posix.getpid(), turns["alpha"], turns["beta"]))
