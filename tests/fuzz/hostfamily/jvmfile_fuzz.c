/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jvmfile_fuzz: hsperfdata files and lists of mappings of any bytes are read within their bounds;
 * no number is negative, texts are printable.
 *
 * covers: loaders/host/jvmfile.c
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/host/jvmfile.h"
#include "schema/facts/jvm.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void is_shown(const char *text, size_t size)
{
	if (strnlen(text, size) == size)
		abort();
	for (; *text; text++)
		if (*text < ' ' || *text > '~')
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct jvmfile f;
	char path[64];
	uint64_t ino;

	if (jvmfile_parse(data, len, &f))
		for (int i = 0; i < JVM_N; i++)
			if (fact_has(&f.row, i) && f.row.v[i].number < 0)
				abort();
	is_shown(f.collector, sizeof(f.collector));
	is_shown(f.version, sizeof(f.version));
	if (jvmfile_mapped((const char *)data, len, path, sizeof(path), &ino) &&
	    (strnlen(path, sizeof(path)) == sizeof(path) || !ino))
		abort();
	return 0;
}
