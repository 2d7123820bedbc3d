/* SPDX-License-Identifier: Apache-2.0 */
/* covers: loaders/lib/protocols/clickhouse.c loaders/lib/protocols/clickhouse_block.c */
#include "tests/fuzz/protocols/protocol_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return fuzz_protocol(&protocol_clickhouse, data, size);
}
