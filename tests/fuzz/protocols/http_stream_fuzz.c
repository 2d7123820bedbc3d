/* SPDX-License-Identifier: Apache-2.0 */
/* covers: loaders/lib/protocols/http.c loaders/lib/protocols/grpcweb.c */
#include "tests/fuzz/protocols/protocol_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return fuzz_protocol(&protocol_http, data, size);
}
