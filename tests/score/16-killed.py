# SPDX-License-Identifier: Apache-2.0
"""Killed with -9 in the middle of its work: the store opens, is whole, what was lost is counted, and it goes on"""
from common import e2e, holds, need_root, tests

need_root()
holds(tests(e2e("test_kills.py"), "-k", "sonde_cpu_the_store or sonde_record_the") + " and " +
      tests(e2e("test_sonded.py"), "-k", "killed_with_9 or come_back"))
