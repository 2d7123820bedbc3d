/* SPDX-License-Identifier: Apache-2.0 */
/* covers: loaders/lib/protocols/conn.c loaders/lib/protocols/names.c */
#include "tests/fuzz/protocols/protocol_fuzz.h"

/* A connection whose protocol is still unknown. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return fuzz_protocol(NULL, data, size);
}
