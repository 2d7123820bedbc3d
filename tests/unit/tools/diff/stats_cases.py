# SPDX-License-Identifier: Apache-2.0
"""Prints tests/unit/tools/diff/stats_cases.h: what scipy says of the cases. Run again only to add some (needs python3-scipy)."""
import random

from scipy import stats
from scipy.special import betainc

rnd = random.Random(7)


def apart(x, k):
    m = sum(x) / len(x)
    return sum((a - m) * (b - m) for a, b in zip(x, x[k:])) / sum((a - m) ** 2 for a in x)


def table(kind, name, rows):
    print(f"static const struct {kind} {name}[] = {{")
    for row in rows:
        print("\t{" + ", ".join(row) + "},")
    print("};\n")


def number(x):
    return repr(float(x))


print("/* SPDX-License-Identifier: Apache-2.0 */")
print("/* Made by tests/unit/tools/diff/stats_cases.py from scipy. */")
print("struct beta_case { double a, b, x, value; };")
print("struct t_case { double t, df, tails; };")
print("struct counts_case { double a, b, share, p; };")
print("struct welch_case { double a[8], b[8], p, df; };\n")
rows = [(a, b, x) for a in (0.5, 1, 3.5, 40, 1000, 60000) for b in (0.5, 2, 17, 900, 60000) for x in
        (1e-6, 0.03, a / (a + b), 0.9, 0.9999)]
table("beta_case", "beta_cases", [tuple(map(number, (*r, betainc(*r)))) for r in rows])
rows = [(t, df) for t in (0, 0.1, 1, 1.96, 4, 8, 40) for df in (1, 2.5, 9, 59.3, 118, 5000)]
table("t_case", "t_cases", [tuple(map(number, (*r, 2 * stats.t.sf(*r)))) for r in rows])
rows = [(a, b, s) for a in (0, 1, 5, 40, 2000, 20000) for b in (0, 2, 9, 61, 2400, 21000) for s in (0.5, 0.2, 0.9)]
table("counts_case", "counts_cases", [tuple(map(number, (a, b, s, min(1, 2 * min(
    stats.binom.cdf(b, a + b, s), stats.binom.sf(b - 1, a + b, s)))))) for a, b, s in rows if a + b])
out = []
while len(out) < 20:
    a = [rnd.gauss(10, 2) for _ in range(8)]
    b = [rnd.gauss(10 + len(out) / 2, 3) for _ in range(8)]
    if max(apart(x, k) for x in (a, b) for k in (1, 2)) > -0.13:  # nothing that is corrected for
        continue
    t = stats.ttest_ind(a, b, equal_var=False)
    va, vb = stats.tvar(a) / 8, stats.tvar(b) / 8
    df = (va + vb) ** 2 / (va ** 2 / 7 + vb ** 2 / 7)
    out.append(("{" + ", ".join(map(number, a)) + "}", "{" + ", ".join(map(number, b)) + "}", number(t.pvalue), number(df)))
table("welch_case", "welch_cases", out)
