# SPDX-License-Identifier: Apache-2.0
"""leak: keeps KIB more each 20 ms in arrays of numpy, SECONDS long; says how many bytes. leak_numpy.py KIB SECONDS [none]: in place, a new result each time"""
import sys
import time

import numpy

kept = []


def leaky(kib):
    kept.append(numpy.ones(kib * 128))


def reused(a, b):
    return a * 2 + b


def main():
    kib, turns = int(sys.argv[1]), int(sys.argv[2]) * 50
    a = b = numpy.ones(kib * 128 * 8)
    for _ in range(turns):
        if len(sys.argv) > 3:
            b = reused(a, b)
        else:
            leaky(kib)
        time.sleep(0.02)
    print(kib * 1024 * turns, flush=True)
    sys.stdin.read(1)


main()
