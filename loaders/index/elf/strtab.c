/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/index/elf/strtab.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/hash.h"

#define FIRST_BYTES 4096
#define FIRST_SLOTS 256

void strtab_release(struct strtab *t)
{
	free(t->buf);
	free(t->slots);
	*t = (struct strtab){0};
}

const char *strtab_get(const struct strtab *t, uint32_t offset)
{
	return t->buf ? t->buf + offset : "";
}

static void slot_step(size_t *i, size_t count)
{
	*i = (*i + 1) & (count - 1);
}

static int slots_grow(struct strtab *t)
{
	size_t count = t->slot_count ? t->slot_count * 2 : FIRST_SLOTS;
	uint32_t *slots = calloc(count, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	for (size_t at = 1; at < t->len; at += strlen(t->buf + at) + 1) {
		size_t i = hash_str(HASH_SEED, t->buf + at) & (count - 1);

		while (slots[i])
			slot_step(&i, count);
		slots[i] = (uint32_t)at;
	}
	free(t->slots);
	t->slots = slots;
	t->slot_count = count;
	return 0;
}

/* Room for `more` bytes. */
static int bytes_grow(struct strtab *t, size_t more)
{
	size_t cap = t->cap ? t->cap : FIRST_BYTES;
	char *p;

	if (t->len + more > INDEX_SIZE_MAX)
		return -EFBIG;
	while (t->len + more > cap)
		cap *= 2;
	if (cap == t->cap)
		return 0;
	p = realloc(t->buf, cap);
	if (!p)
		return -ENOMEM;
	t->buf = p;
	t->cap = cap;
	if (!t->len)
		t->buf[t->len++] = 0;
	return 0;
}

int strtab_add(struct strtab *t, const char *str, size_t len, uint32_t *offset)
{
	size_t i;
	int rc;

	rc = bytes_grow(t, len + 2);
	if (!rc && t->used * 2 >= t->slot_count)
		rc = slots_grow(t);
	if (rc)
		return rc;
	if (!len) {
		*offset = 0;
		return 0;
	}
	i = hash_bytes(HASH_SEED, str, len) & (t->slot_count - 1);
	for (; t->slots[i]; slot_step(&i, t->slot_count)) {
		const char *have = t->buf + t->slots[i];

		if (!strncmp(have, str, len) && !have[len]) {
			*offset = t->slots[i];
			return 0;
		}
	}
	t->slots[i] = *offset = (uint32_t)t->len;
	memcpy(t->buf + t->len, str, len);
	t->buf[t->len + len] = 0;
	t->len += len + 1;
	t->used++;
	return 0;
}
