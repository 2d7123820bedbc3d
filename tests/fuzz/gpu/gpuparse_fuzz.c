/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpuparse_fuzz: whatever sonde-nvml says is read within its bounds, block by block; no number is
 * negative and texts are printable.
 *
 * covers: loaders/gpu/gpuparse.c
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/gpu/gpuparse.h"
#include "schema/facts/gpu.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void is_shown(const char *text, size_t size)
{
	size_t n = strnlen(text, size);

	if (n == size)
		abort();
	for (size_t i = 0; i < n; i++)
		if (text[i] < ' ' || text[i] > '~')
			abort();
}

static void device(const char *text, size_t len)
{
	static struct gpuparse_device d;

	gpuparse_device(text, len, &d);
	is_shown(d.uuid, sizeof(d.uuid));
	is_shown(d.name, sizeof(d.name));
	if (d.n > GPUPARSE_PROCESSES)
		abort();
	for (int i = 0; i < GPU_N; i++)
		if (fact_has(&d.row, i) &&
		    (d.row.v[i].number < 0 || GPU_FACT.columns[i].type != FACT_NUMBER))
			abort();
	for (size_t i = 0; i < d.n; i++)
		if (!d.processes[i].pid)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	const char *text = (const char *)data;
	struct gpuparse_hello h;
	struct err e = {0};
	size_t block;

	while (len && gpuparse_next(text, len, &block) != GPUPARSE_MORE) {
		if (!block || block > len)
			abort();
		device(text, block);
		gpuparse_hello(text, block, &h);
		is_shown(h.missing, sizeof(h.missing));
		gpuparse_error(text, block, &e);
		text += block;
		len -= block;
	}
	return 0;
}
