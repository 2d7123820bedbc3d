/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/waits/waitheld.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/mem.h"
#include "schema/store/read/waits.h"
#include "tools/select/select.h"

static int add(void *ctx, const struct store_held *x)
{
	struct waitheld *h = ctx;
	size_t i = 0;

	h->steal_ns += x->steal_ns;
	h->cpu_ns += x->cpu_ns;
	if (!*x->cgroup)
		return 0;
	while (i < h->n && strcmp(h->rows[i].cgroup, x->cgroup))
		i++;
	if (i == h->n) {
		mem_grow(h->rows, h->n, h->cap);
		h->rows[h->n++] = (struct waitheld_row){.cgroup = mem_strdup(x->cgroup),
							.container = mem_strdup("")};
	}
	h->rows[i].periods += x->periods;
	h->rows[i].throttled += x->throttled;
	h->rows[i].throttled_ns += x->throttled_ns;
	return 0;
}

/* In it or in one below it. With several hierarchies a process's path may be another one than the
 * CPU controller's: a container's id is in both. */
static bool holds(const struct waitheld_row *r, const struct store_process_row *p)
{
	size_t n = strlen(r->cgroup);

	if (*p->container_id && strstr(r->cgroup, p->container_id))
		return true;
	return n > 1 && !strncmp(p->cgroup, r->cgroup, n) && (!p->cgroup[n] || p->cgroup[n] == '/');
}

static void know(struct waitheld_row *r, const struct selection *sel, const struct store_dict *d)
{
	r->wanted = r->wanted || !select_is_narrow(sel);
	for (size_t i = 0; i < d->n_processes && (!r->wanted || !*r->container); i++) {
		const struct store_process_row *p = &d->processes[i];

		if (!p->present || !holds(r, p))
			continue;
		r->wanted = r->wanted || select_wants_process(sel, p);
		/* a slice that contains several containers is not one of them */
		if (!*r->container && *p->container_id && strstr(r->cgroup, p->container_id)) {
			free(r->container);
			r->container = mem_strdup(*p->container ? p->container : p->container_id);
		}
	}
}

int waitheld_read(struct waitheld *h, const struct selection *sel, struct store_segment *seg,
		  const struct store_dict *d, const struct store_query *q, struct err *e)
{
	int rc = store_held_back(seg, q, add, h, e);

	for (size_t i = 0; !rc && i < h->n; i++)
		know(&h->rows[i], sel, d);
	return rc;
}

static int by_time(const void *a, const void *b)
{
	const struct waitheld_row *x = a, *y = b;

	if (x->throttled_ns != y->throttled_ns)
		return x->throttled_ns > y->throttled_ns ? -1 : 1;
	return strcmp(x->cgroup, y->cgroup);
}

void waitheld_sort(struct waitheld *h)
{
	if (h->n)
		qsort(h->rows, h->n, sizeof(*h->rows), by_time);
}

void waitheld_release(struct waitheld *h)
{
	for (size_t i = 0; i < h->n; i++) {
		free(h->rows[i].cgroup);
		free(h->rows[i].container);
	}
	free(h->rows);
	*h = (struct waitheld){0};
}
