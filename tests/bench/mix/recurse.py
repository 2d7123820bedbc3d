# SPDX-License-Identifier: Apache-2.0
"""recurse: the Python part of the mix: recursion, all the time on the CPU. Ends after argv[1] seconds."""
import sys
import time


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    fib(22)
