/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/explain/chain_holder.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/mem.h"
#include "tools/diff/diff.h"
#include "tools/select/askrows.h"

static const char SERVED[] =
	"SELECT process_id, operation, sum(total_ns) FROM requests WHERE ts BETWEEN ?1 AND ?2 AND side = 'server' GROUP BY 1, 2";

struct reading {
	const struct store_dict *dict; /* of the segment */
	const char *who;
	bool container;
	uint32_t pid;
	int64_t most_ns;
	char *operation;
};

/* It begins or ends a transaction, or a connection. */
static bool is_frame(const char *operation)
{
	static const char *const all[] = {
		"BEGIN", "COMMIT", "END", "ROLLBACK", "ABORT", "START TRANSACTION", "CONNECT"};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (!strcmp(all[i], operation))
			return true;
	return false;
}

static void take(void *ctx, sqlite3_stmt *st)
{
	struct reading *r = ctx;
	const struct store_process_row *p =
		store_dict_process(r->dict, sqlite3_column_int64(st, 0));
	const char *operation = askrows_text(st, 1);
	const int64_t ns = sqlite3_column_int64(st, 2);

	if (!p || p->pid != r->pid || ns <= r->most_ns || is_frame(operation) ||
	    strcmp(r->container ? p->container : p->comm, r->who) != 0)
		return;
	r->most_ns = ns;
	free(r->operation);
	r->operation = mem_strdup(operation);
}

static const char *asker_of(const struct chain_requests *r, const char *operation)
{
	const struct chain_op *one = NULL;

	for (size_t i = 0; i < r->n; i++) {
		const struct chain_op *op = &r->ops[i];

		if (op->server || !op->w[DIFF_AFTER].n || strcmp(op->operation, operation) != 0)
			continue;
		if (one && one->place != op->place)
			return NULL;
		one = op;
	}
	return one ? one->who : NULL;
}

void chain_holder_find(struct chain_measures *m, const struct chain_requests *r, const char *who,
		       bool container, struct chain_holder *out)
{
	struct reading x = {.who = who,
			    .container = container,
			    .pid = chain_waker_pid(m, who, container, "lock")};
	const struct askrows_part part = {.sql = SERVED, .row = take, .ctx = &x};
	struct err ignored = {0};

	*out = (struct chain_holder){0};
	if (!x.pid || askrows_each(m->wide[DIFF_AFTER], &x.dict, &part, 1, &ignored)) {
		free(x.operation);
		return;
	}
	out->operation = x.operation;
	if (x.operation)
		out->asker = asker_of(r, x.operation);
}

void chain_holder_release(struct chain_holder *h)
{
	free(h->operation);
	*h = (struct chain_holder){0};
}
