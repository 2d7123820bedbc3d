/* SPDX-License-Identifier: Apache-2.0 */
/*
 * covers: loaders/lib/protocols/mysql.c loaders/lib/protocols/sql.c
 *   loaders/lib/protocols/unpack.c loaders/lib/protocols/inside.c
 */
#include "tests/fuzz/protocols/protocol_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return fuzz_protocol(&protocol_mysql, data, size);
}
