/* SPDX-License-Identifier: Apache-2.0 */
/* missing: skips the current test and says what this machine lacks, such as "root" or "protoc
 * (protobuf-compiler)". cmocka's XML has no place for a reason: tests/run.py takes it from this
 * line of stderr, by the test's name. */
#ifndef TESTS_UNIT_MISSING_H
#define TESTS_UNIT_MISSING_H

#include <stdio.h>

#define skip_missing(what)                                                    \
	do {                                                                  \
		fprintf(stderr, "skipped %s: missing: %s\n", __func__, what); \
		skip();                                                       \
	} while (0)

#endif
