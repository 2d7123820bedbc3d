# SPDX-License-Identifier: Apache-2.0
"""From timeline one pasted command leads to the process and the function of a planted spike"""
from common import e2e, holds, need_root, tests

need_root()
holds(tests(e2e("test_timeline.py"), "-k", "planted_spike or without_root or real_capture", least=6))
