/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/store/write/commit/commit_args.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/mem.h"

/* This command line becomes the one that others of the program share. */
static struct commit_args *commit_args_base(struct commit *c, struct commit_args *slot,
					    uint32_t exe, const char *args)
{
	sqlite3_stmt *st = commit_stmt(c, ST_TEXT);
	uint32_t row;

	if (!st)
		return NULL;
	bind_str(st, 1, args);
	row = commit_insert(c, st);
	if (!row)
		return NULL;
	free(slot->args);
	*slot = (struct commit_args){.exe = exe, .row = row, .args = mem_strdup(args)};
	return slot;
}

/* The base of the program that leaves the least to write, and how many bases the program has. */
static struct commit_args *commit_args_best(struct commit *c, uint32_t exe, const char *args,
					    struct argshare *share, uint32_t *n)
{
	struct commit_args *best = NULL;

	*n = 0;
	for (uint32_t i = 0; i < COMMIT_ARGS; i++) {
		struct argshare s;

		if (!c->args[i].args || c->args[i].exe != exe)
			continue;
		++*n;
		s = argshare_of(c->args[i].args, args);
		if (best && s.middle_bytes >= share->middle_bytes)
			continue;
		best = &c->args[i];
		*share = s;
	}
	return best;
}

/* What to share with: a base that saves half; else these args become one more base of the program,
 * up to COMMIT_ARGS_EXE of them; then one that saves a quarter will do. NULL: see c->rc. */
static struct commit_args *commit_args_find(struct commit *c, uint32_t exe, const char *args,
					    struct argshare *share)
{
	size_t len = strlen(args);
	struct commit_args *base;
	uint32_t n;

	if (c->args_segment != c->seg->serial)
		commit_args_forget(c);
	base = commit_args_best(c, exe, args, share, &n);
	if (base && share->middle_bytes <= (n < COMMIT_ARGS_EXE ? len / 2 : len - len / 4))
		return base;
	base = commit_args_base(c, &c->args[c->next_args++ % COMMIT_ARGS], exe, args);
	if (base)
		*share = argshare_of(base->args, args);
	return base;
}

uint32_t commit_args(struct commit *c, uint32_t exe, const char *args, struct argshare *share)
{
	const char *stem = NULL;
	size_t len = argshare_stem(args, &stem);
	struct commit_args *base;

	strbuf_reset(&c->form);
	strbuf_reset(&c->own);
	if (len)
		argshare_form(args, stem, len, &c->form);
	base = *args ? commit_args_find(c, exe, len ? strbuf_str(&c->form) : args, share) : NULL;
	if (!base)
		return 0;
	if (len) {
		strbuf_addch(&c->own, ARGSHARE_MARK);
		strbuf_add(&c->own, stem, len);
		strbuf_addch(&c->own, ARGSHARE_MARK);
	}
	strbuf_add(&c->own, share->middle, share->middle_bytes);
	return base->row;
}
