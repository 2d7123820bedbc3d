# SPDX-License-Identifier: Apache-2.0
"""Hostile names are text in the page, JSON, SVG, CSV and pprof, and on the terminal"""
from common import e2e, holds, tests

holds(tests(e2e("test_output.py"), e2e("test_page.py"), e2e("test_tool_sql.py"), e2e("test_every_verb.py"),
            "-k", "hostile or escaped or csv or control_bytes or protoc", least=10))
