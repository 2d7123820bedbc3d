# SPDX-License-Identifier: Apache-2.0
"""A table and a tree hold what the graph does; axe finds nothing serious; contrast 4.5 in both themes; no hue alone"""
from common import e2e, holds, tests

holds(tests(e2e("test_page.py"), e2e("test_page_looks.py"), e2e("test_page_diff.py"),
            "-k", "twin or axe or contrast or colour_sight", least=7))
