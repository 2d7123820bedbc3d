/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kallsyms_fuzz: any text gives a table in which each found function begins at or below the address
 * asked for. What is kept of it gives the same answers, or none; any bytes taken for such a file
 * are refused or can be asked.
 *
 * covers: loaders/lib/host/names/kallsyms.c
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loaders/lib/host/names/kallsyms.h"
#include "schema/base/strbuf.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* To a file and back. */
static void keep(const struct kallsyms *k)
{
	char dir[] = "/tmp/kallsyms-fuzz-XXXXXX", path[64];
	struct kallsyms *kept = NULL;

	if (!mkdtemp(dir))
		return;
	snprintf(path, sizeof(path), "%s/images", dir);
	if (!mkdir(path, 0700)) {
		kallsyms_keep(k, dir);
		if (!kallsyms_kept(dir, &kept))
			kallsyms_free(kept);
		snprintf(path, sizeof(path), "%s/images/kallsyms", dir);
		unlink(path);
		snprintf(path, sizeof(path), "%s/images", dir);
		rmdir(path);
	}
	rmdir(dir);
}

/* The readers, once: they are no parsers. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct kallsyms *k = NULL;

	(void)argc;
	(void)argv;
	if (!kallsyms_load(NULL, &k)) {
		keep(k);
		kallsyms_free(k);
	}
	return 0;
}

static void ask(struct kallsyms *k, struct kallsyms *kept, uint64_t addr)
{
	struct kallsyms_symbol s, t;
	bool found = kallsyms_find(k, addr, &s);

	if (found && (s.start > addr || !s.name[0] || strlen(s.name) > 1100 || !s.module))
		abort();
	if (kallsyms_find(kept, addr, &t) &&
	    (!found || strcmp(s.name, t.name) || strcmp(s.module, t.module) || s.start != t.start ||
	     s.base != t.base))
		abort();
}

/* Taken for a kept file. */
static void ask_kept(const uint8_t *data, size_t len)
{
	struct kallsyms_symbol s;
	struct kallsyms_head h;
	struct kallsyms *k;
	uint64_t *copy;

	if (len < sizeof(h))
		return;
	memcpy(&h, data, sizeof(h));
	copy = malloc(len); /* aligned, as a mapping is */
	memcpy(copy, data, len);
	if (!kallsyms_unpack(copy, len, h.key, &k)) {
		for (uint64_t i = 0; i < 64; i++)
			if (kallsyms_find(k, h.first + i * 8, &s) &&
			    (strlen(s.name) > len + 16 || strlen(s.module) > len))
				abort();
		kallsyms_free(k);
	}
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct strbuf bytes cleanup_strbuf = STRBUF_INIT;
	struct kallsyms *k, *kept;
	uint64_t addr = 0;

	ask_kept(data, len);
	if (kallsyms_parse((const char *)data, len, &k))
		return 0;
	kallsyms_pack(k, 1, &bytes);
	if (kallsyms_unpack(bytes.buf, bytes.len, 1, &kept))
		abort();
	/* each hexadecimal word of the text, and its neighbours */
	for (size_t i = 0; i < len; i++) {
		unsigned int d = data[i] >= '0' && data[i] <= '9' ? data[i] - '0' + 0u :
				 data[i] >= 'a' && data[i] <= 'f' ? data[i] - 'a' + 10u :
								    16;

		addr = d < 16 ? addr << 4 | d : 0;
		if (d < 16) {
			ask(k, kept, addr);
			ask(k, kept, addr - 1);
			ask(k, kept, addr + 3);
			(void)kallsyms_is_text(k, addr);
		}
	}
	if (kallsyms_count(k) > len || kallsyms_skipped(k) > len ||
	    (kallsyms_hidden(k) && kallsyms_count(k)))
		abort();
	(void)kallsyms_text(k);
	(void)kallsyms_bytes(k);
	kallsyms_free(kept);
	kallsyms_free(k);
	return 0;
}
