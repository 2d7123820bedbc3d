/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/maps/world/lateargs.h"

#include <stdlib.h>

#include "schema/base/mem.h"

struct lateargs_line {
	struct lateargs_key key;
	uint64_t since_ns;
	char *data;
	size_t len;
	struct lateargs_line *next; /* the next newer one */
	UT_hash_handle hh;
};

static size_t bytes_of(const struct lateargs_line *line)
{
	return sizeof(*line) + line->len;
}

static void drop_oldest(struct lateargs *l)
{
	struct lateargs_line *line = l->oldest;

	l->oldest = line->next;
	if (!l->oldest)
		l->newest = NULL;
	l->bytes -= bytes_of(line);
	HASH_DEL(l->by_key, line);
	free(line->data);
	free(line);
}

static struct lateargs_line *find(const struct lateargs *l, const struct lateargs_key *key)
{
	struct lateargs_line *line;

	HASH_FIND(hh, l->by_key, key, sizeof(*key), line);
	return line;
}

void lateargs_keep(struct lateargs *l, const struct lateargs_key *key, char *data, size_t len,
		   uint64_t now_ns)
{
	struct lateargs_line *line;

	if (!len || find(l, key)) {
		free(data);
		return;
	}
	line = mem_alloc(sizeof(*line));
	line->key = *key;
	line->since_ns = now_ns;
	line->data = data;
	line->len = len;
	HASH_ADD(hh, l->by_key, key, sizeof(line->key), line);
	if (l->newest)
		l->newest->next = line;
	else
		l->oldest = line;
	l->newest = line;
	l->bytes += bytes_of(line);
	while (l->bytes > LATEARGS_MAX_BYTES)
		drop_oldest(l);
}

const char *lateargs_find(const struct lateargs *l, const struct lateargs_key *key, size_t *len)
{
	const struct lateargs_line *line = find(l, key);

	if (line)
		*len = line->len;
	return line ? line->data : NULL;
}

void lateargs_tick(struct lateargs *l, uint64_t now_ns)
{
	while (l->oldest && now_ns > l->oldest->since_ns + LATEARGS_KEEP_NS)
		drop_oldest(l);
}

void lateargs_release(struct lateargs *l)
{
	while (l->oldest)
		drop_oldest(l);
}
