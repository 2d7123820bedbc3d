# SPDX-License-Identifier: Apache-2.0
"""pairs: what somebody who watches takes from a load, on a host whose own speed sways by more than that.

Each round asks the load for its rate alone, then watched, then alone again: what drifts evenly meanwhile falls out of the ratio of
the watched rate to the mean of the two around it. All rounds together give the mean loss and its 95 % interval (Student's t).
"""
import statistics
import sys

STUDENT = {1: 12.7, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 6: 2.45, 7: 2.36, 8: 2.31, 9: 2.26, 11: 2.20, 15: 2.13, 19: 2.09, 29: 2.05}


def ask(rounds, alone, watched):
    """[{"no recorder": rate, "sonde": rate}]: both are functions that give one rate."""
    alone()  # a load's first go is no measure of it
    found, before = [], alone()
    for _ in range(rounds):
        rate, after = watched(), alone()
        found.append({"no recorder": (before + after) / 2, "sonde": rate})
        before = after
        print({k: round(v) for k, v in found[-1].items()}, file=sys.stderr, flush=True)
    return found


def interval(each, digits=1):
    """The mean of what the rounds gave, and its interval."""
    mean = statistics.mean(each)
    if len(each) < 2:
        return f"{mean:.{digits}f}"
    t = STUDENT[max(k for k in STUDENT if k <= len(each) - 1)]
    half = t * statistics.stdev(each) / len(each) ** 0.5
    return f"{mean:.{digits}f} ({mean - half:.{digits}f} to {mean + half:.{digits}f})"


def lost(found):
    """In percent: the mean, and its interval."""
    return interval([100 * (1 - r["sonde"] / r["no recorder"]) for r in found])
