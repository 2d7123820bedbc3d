# SPDX-License-Identifier: Apache-2.0
"""Stored histograms (schema/store/model/hist.h), read independently, by their description."""
import json

FINE = 64


def bounds(k):
    """[low, high) of a place in a list: powers of two as an older sonde stored them, then steps of an eighth of one."""
    if k < FINE:
        return (1 << k if k else 0), 2 << k
    k -= FINE
    return (k, k + 1) if k < 8 else ((8 + k % 8) << (k // 8 - 1), (9 + k % 8) << (k // 8 - 1))


def parts(text):
    """[(low, high, how many)]"""
    first, *counts = json.loads(text)
    return [(*bounds(k), n) for k, n in enumerate(counts, first) if n]
