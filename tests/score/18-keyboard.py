# SPDX-License-Identifier: Apache-2.0
"""Zoom, search, invert, sandwich, difference and back, by the keyboard alone"""
from common import e2e, holds, tests

holds(tests(e2e("test_page.py"), e2e("test_page_diff.py"), "-k", "keyboard or search_counts", least=3))
