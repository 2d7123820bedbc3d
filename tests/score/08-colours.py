# SPDX-License-Identifier: Apache-2.0
"""No escape sequence in a pipe, with NO_COLOR or TERM=dumb; colours when asked for"""
from common import e2e, holds, tests

holds(tests(e2e("test_every_verb.py"), e2e("test_tool_frame.py"), "-k", "no_colour or colours", least=15))
