/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Go's function table: parse, then all functions; and the search for its magic.
 *
 * covers: loaders/index/go/pclntab.c
 */
#include <stdlib.h>
#include <string.h>

#include "loaders/index/go/pclntab.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void record(const struct pclntab *t, uint32_t i)
{
	struct pclntab_record r;
	uint64_t value = 0;
	size_t key = 0;

	if (!pclntab_record(t, i, &r))
		return;
	for (uint32_t k = 0; k < 4; k++) {
		const char *name = pclntab_file(t, &r, (int32_t)k - 1, &key);

		if (name && !strlen(name))
			abort();
		pclntab_pcdata(t, &r, k);
		pclntab_funcdata(t, &r, k, &value);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct pclntab t;
	struct pclntab_func f;

	if (!pclntab_parse(data, len, &t))
		for (uint32_t i = 0; i <= t.func_count && i < 100000; i++) {
			if (pclntab_func(&t, 0x401000, i, &f) &&
			    (f.start >= f.end || !strlen(f.name)))
				abort();
			record(&t, i);
		}
	for (size_t at = 0; (at = pclntab_scan(data, len, at)) < len; at += 4)
		if (pclntab_parse(data + at, len - at, &t) == 0)
			pclntab_func(&t, 0, t.func_count - 1, &f);
	return 0;
}
