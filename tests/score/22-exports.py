# SPDX-License-Identifier: Apache-2.0
"""What is exported opens elsewhere: go tool pprof, protoc, speedscope's own schema, folded stacks"""
from common import e2e, holds, tests

holds(tests(e2e("test_output.py"), "-k", "pprof or protoc or speedscope or folded_totals", least=4))
