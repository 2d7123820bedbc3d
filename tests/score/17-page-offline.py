# SPDX-License-Identifier: Apache-2.0
"""The page opens from disk in a browser: no request, no error in the console, the policy in force"""
from common import e2e, holds, tests

holds(tests(e2e("test_page.py"), "-k", "opens_from_disk or policy", least=2))
