/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kallsyms_fuzz: any text gives a table in which each found function begins at or below the address asked for.
 * covers: loaders/lib/host/kallsyms.c
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/lib/host/kallsyms.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* The reader, once: it is no parser. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct kallsyms *k = NULL;

	(void)argc;
	(void)argv;
	if (!kallsyms_load(NULL, &k))
		kallsyms_free(k);
	return 0;
}

static void ask(struct kallsyms *k, uint64_t addr)
{
	struct kallsyms_symbol s;

	if (!kallsyms_find(k, addr, &s))
		return;
	if (s.start > addr || !s.name[0] || strlen(s.name) > 1100 || !s.module)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct kallsyms *k;
	uint64_t addr = 0;

	if (kallsyms_parse((const char *)data, len, &k))
		return 0;
	for (size_t i = 0; i < len; i++) { /* each hexadecimal word of the text, and its neighbours */
		unsigned int d = data[i] >= '0' && data[i] <= '9' ? data[i] - '0' + 0u :
				 data[i] >= 'a' && data[i] <= 'f' ? data[i] - 'a' + 10u : 16;

		addr = d < 16 ? addr << 4 | d : 0;
		if (d < 16) {
			ask(k, addr);
			ask(k, addr - 1);
			ask(k, addr + 3);
			(void)kallsyms_is_text(k, addr);
		}
	}
	if (kallsyms_count(k) > len || kallsyms_skipped(k) > len || (kallsyms_hidden(k) && kallsyms_count(k)))
		abort();
	(void)kallsyms_text(k);
	(void)kallsyms_bytes(k);
	kallsyms_free(k);
	return 0;
}
