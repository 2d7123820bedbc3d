# SPDX-License-Identifier: Apache-2.0
"""Each error of the catalogue, made to happen: what, why and a fix whose command parses; doctor covers it"""
from common import e2e, holds, tests

holds(tests(e2e("test_catalogue.py"), least=10))
