# SPDX-License-Identifier: Apache-2.0
"""A hundred thousand nodes: at most 3 MB, painted in 1 s, searched in 200 ms"""
from common import e2e, holds, tests

holds(tests(e2e("test_page_looks.py"), "-k", "hundred_thousand", least=2))
