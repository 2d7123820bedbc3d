/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journalfile_fuzz: whatever a journal's file is, some entries come out of it, in bounds, within so
 * many reads. The hash of the field that is looked for is written where the first bucket leads, so
 * that more than the hash is tried.
 *
 * covers: loaders/lib/host/journal/journalfile.c
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/lib/host/journal/journalfile.h"
#include "loaders/lib/host/journal/journalhash.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define FIELD "CONTAINER_ID_FULL=x"

struct file {
	uint8_t *p;
	size_t len;
};

static bool from_memory(void *ctx, void *out, size_t len, uint64_t at)
{
	const struct file *f = ctx;

	if (at > f->len || len > f->len - at)
		return false;
	memcpy(out, f->p + at, len);
	return true;
}

static void mend(struct file *f, const struct journalfile *j)
{
	uint64_t hash = j->flags & 4 ? journalhash_sip(FIELD, strlen(FIELD), j->id) :
				       journalhash_jenkins(FIELD, strlen(FIELD)),
		 at;

	if (from_memory(f, &at, sizeof(at), j->table + hash % j->buckets * 16) && at < f->len &&
	    f->len - at > 24)
		memcpy(f->p + at + 16, &hash, sizeof(hash));
}

/* All entries, one by one; a chain that leads back to itself ends with the bound here. */
static void everything(struct journalfile *j)
{
	static struct journalfile_entry e;
	struct journalfile_place p = {0};
	uint64_t at;

	for (int i = 0; i < 200 && journalfile_next(j, &p, &at); i++)
		if (journalfile_entry_from(j, at, &e) &&
		    (e.len > sizeof(e.message) || memchr(e.unit, 0, sizeof(e.unit)) == NULL))
			abort();
	journalfile_end(j, &p);
	journalfile_release(j);
	j->reads = 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct file f = {malloc(len ? len : 1), len};
	struct journalfile j = {.read = from_memory, .ctx = &f};
	struct journalfile_entry e;
	uint64_t at[64];
	size_t n;

	memcpy(f.p, data, len);
	if (journalfile_begin(&j)) {
		mend(&f, &j);
		n = journalfile_find(&j, FIELD, INT64_MAX, at, 64);
		for (size_t i = 0; i < n; i++)
			if (journalfile_entry(&j, at[i], &e) &&
			    (e.len > sizeof(e.message) || e.utc_ns < 0))
				abort();
		everything(&j);
		if (n > 64 || j.reads > JOURNALFILE_READS + 64)
			abort();
	}
	free(f.p);
	return 0;
}
