# SPDX-License-Identifier: Apache-2.0
"""A Python program that knows its own stack: three chains of calls share its CPU time 60, 30 and 10, through functions, a recursion, a
native function that calls back, a method, a generator, and a thread. For CPython 2.7 and 3.6 on.

    pyshares.py SECONDS

Before it begins it says its chains as JSON, one line: {"chains": {NAME: [[function, file, line], ...]}, "spins": [first, last line]},
innermost first; at the end how long it was in each: {"cpu": {NAME: seconds}}. Waits for a line of input in between.
"""
import json
import sys
import threading
import time

DEPTH = 12
clock = getattr(time, "thread_time", None) or getattr(time, "process_time", None) or time.clock
say = None


def spin(n):
    i = 0
    while i < n: i += 1  # noqa: E701 one line


def note(n):
    found, frame = [], sys._getframe(1)
    while frame:
        code = frame.f_code
        found.append([getattr(code, "co_qualname", code.co_name), code.co_filename, frame.f_lineno])
        frame = frame.f_back
    say.append([[spin.__code__.co_name, spin.__code__.co_filename, spin.__code__.co_firstlineno + 2]] + found)


work = spin


def deep(n, left):
    return deep(n, left - 1) if left else work(n)


def alpha(n):
    return deep(n, DEPTH)


def beta(n):
    return sorted([1], key=lambda x: Steps().run(n))


class Steps(object):
    def run(self, n):
        for _ in self.each(n):
            pass

    def each(self, n):
        work(n)
        yield 1


def gamma(n):
    return list(map(work, [n]))


CHAINS = (("alpha", alpha, 6), ("beta", beta, 3), ("gamma", gamma, 1))


def turn(cpu, n):
    for name, chain, times in CHAINS:
        before = clock()
        for _ in range(times):
            chain(n)
        cpu[name] = cpu.get(name, 0) + clock() - before


def learn():
    global say, work
    chains = {}
    for name, chain, _ in CHAINS:
        say, work = [], note
        turn_of(chain)
        chains[name] = say[0]
    work = spin
    return chains


def turn_of(chain):
    chain(0)


def run(seconds, cpu):
    until = time.time() + seconds
    while time.time() < until:
        turn(cpu, 20000)


def main():
    first = spin.__code__.co_firstlineno
    sys.stdout.write(json.dumps({"chains": learn(), "spins": [first, first + 2]}) + "\n")
    sys.stdout.flush()
    sys.stdin.readline()
    cpu = {}
    thread = threading.Thread(target=run, args=(float(sys.argv[1]), cpu))
    thread.start()
    thread.join()
    sys.stdout.write(json.dumps({"cpu": cpu}) + "\n")


if __name__ == "__main__":
    main()
