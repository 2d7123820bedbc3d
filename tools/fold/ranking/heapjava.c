/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/fold/ranking/heapjava.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/hash.h"
#include "schema/base/mem.h"

uint64_t heapjava_key(const struct fold_process *p)
{
	return hash_u64(hash_u64(HASH_SEED, p->pid), (uint64_t)p->start_ns);
}

void heapjava_release(struct heapjava *j)
{
	for (size_t i = 0; i < j->n; i++)
		free(j->list[i].who);
	free(j->list);
	*j = (struct heapjava){0};
}

void heapjava_forget(struct heapjava *j, const struct fold_process *p)
{
	const uint64_t key = heapjava_key(p);
	size_t n = 0;

	for (size_t i = 0; i < j->n; i++) {
		if (j->list[i].key == key)
			free(j->list[i].who);
		else
			j->list[n++] = j->list[i];
	}
	j->n = n;
}

static int by_bytes(const void *a, const void *b)
{
	const struct heapjava_program *x = a, *y = b;

	return x->bytes != y->bytes ? x->bytes < y->bytes ? 1 : -1 :
				      (x->pid > y->pid) - (x->pid < y->pid);
}

void heapjava_find(const struct fold *f, const struct idmap *known, struct heapjava *out)
{
	uint64_t *bytes = mem_array(f->n_processes + 1, sizeof(*bytes));
	uint64_t at;

	for (size_t i = 0; i < f->n_leaves; i++)
		bytes[f->leaves[i].process] += f->leaves[i].ns;
	for (size_t i = 0; i < f->n_processes; i++) {
		const struct fold_process *p = &f->processes[i];

		if (strcmp(p->lang, "java") != 0 || bytes[i] < HEAPJAVA_LEAST ||
		    idmap_get(known, heapjava_key(p), &at))
			continue;
		mem_grow(out->list, out->n, out->cap);
		out->list[out->n++] = (struct heapjava_program){
			.who = mem_strdup(p->container[0] ? p->container : p->comm),
			.pid = p->pid,
			.key = heapjava_key(p),
			.bytes = bytes[i]};
	}
	free(bytes);
	if (out->n)
		qsort(out->list, out->n, sizeof(*out->list), by_bytes);
}
