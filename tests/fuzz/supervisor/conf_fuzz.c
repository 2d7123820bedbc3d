/* SPDX-License-Identifier: Apache-2.0 */
/*
 * covers: supervisor/config/confparse.c
 * covers: schema/base/cli/quantity.c
 *
 * Any bytes are a configuration or an error; values are within their ranges, and error messages
 * are text.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/cli/quantity.h"
#include "supervisor/config/conf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_quantities(const uint8_t *data, size_t size)
{
	char text[64], said[32];
	uint64_t bytes;
	int64_t ns;

	size = size < sizeof(text) ? size : sizeof(text) - 1;
	memcpy(text, data, size);
	text[size] = '\0';
	if (!quantity_bytes(text, &bytes) && (!bytes || bytes > INT64_MAX))
		abort();
	if (!quantity_ns(text, &ns) && (ns <= 0 || !*quantity_say_ns(ns, said, sizeof(said))))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct conf c;
	struct err e = {0};

	memset(&c, 0, sizeof(c));
	check_quantities(data, size);
	if (conf_parse(&c, "x", (const char *)data, size, &e)) {
		if (!e.what[0])
			abort();
		return 0;
	}
	if (c.freq > 4999 || c.cpu < 0 || c.age_ns < 0 ||
	    (c.segment_age_ns && c.segment_age_ns < 1000000000))
		abort();
	return 0;
}
