# SPDX-License-Identifier: Apache-2.0
"""leak: keeps KIB more each 20 ms in a list of strings, SECONDS long; says how many bytes. leak.py KIB SECONDS [none]: drops it each 16 MiB"""
import sys
import time

kept = []


def leaky(count):
    for i in range(count):
        kept.append("%1000d" % i)


def main():
    kib, turns = int(sys.argv[1]), int(sys.argv[2]) * 50
    for _ in range(turns):
        leaky(kib)
        if len(sys.argv) > 3 and len(kept) > 16384:
            kept.clear()
        time.sleep(0.02)
    print(kib * 1049 * turns, flush=True)
    sys.stdin.read(1)


main()
