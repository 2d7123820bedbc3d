/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/formats/perfscript.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"

struct point {     /* one sample of a leaf, within its slice */
	double at; /* 0 to 1 */
	uint32_t leaf;
};

static int by_time(const void *a, const void *b)
{
	const struct point *x = a, *y = b;

	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	return (x->leaf > y->leaf) - (x->leaf < y->leaf);
}

/* Line ends and invisible characters are written as \xNN or \uNNNN. */
static void put_clean(const char *s, FILE *out)
{
	struct strbuf clean cleanup_strbuf = STRBUF_INIT;

	strbuf_addshown(&clean, s, strlen(s));
	fputs(strbuf_str(&clean), out);
}

static void put_file(const struct fold_frame *fr, uint32_t pid, FILE *out)
{
	if (fr->inlined)
		fputs("inlined", out);
	else if (fr->origin == FOLD_JIT)
		fprintf(out, "/tmp/perf-%u.map", pid);
	else if (fr->origin == FOLD_KERNEL && !strcmp(fr->module, "[kernel]"))
		fputs("[kernel.kallsyms]", out);
	else
		put_clean(*fr->module_path ? fr->module_path :
			  *fr->module      ? fr->module :
					     "[unknown]",
			  out);
}

static void put_stack(const struct fold *f, uint32_t node, uint32_t pid, FILE *out)
{
	for (; node; node = f->nodes[node].parent) {
		const struct fold_frame *fr = &f->frames[f->nodes[node].frame];

		fprintf(out, "\t%16llx ", (unsigned long long)fr->offset);
		put_clean(fr->named ? fr->name : "[unknown]", out);
		fputs(" (", out);
		put_file(fr, pid, out);
		fputs(")\n", out);
	}
	fputc('\n', out);
}

static void put_sample(const struct fold *f, const struct fold_leaf *l, int64_t at_ns, FILE *out)
{
	const struct fold_process *p = &f->processes[l->process];

	put_clean(l->thread && *l->thread ? l->thread : *p->comm ? p->comm : "[unknown]", out);
	fprintf(out, " %u/%u [000] %lld.%06lld: %llu cpu-clock:\n", p->pid, l->tid,
		(long long)(at_ns / NSEC_PER_SEC), (long long)(at_ns % NSEC_PER_SEC / 1000),
		(unsigned long long)(l->samples ? l->ns / l->samples : 0));
	put_stack(f, l->node, p->pid, out);
}

/* Leaves first[..n] are those of one slice. */
static void put_slice(const struct fold *f, const struct fold_slice *s, const uint32_t *leaves,
		      size_t n, FILE *out)
{
	cleanup_free struct point *points = NULL;
	size_t samples = 0, k = 0;

	for (size_t i = 0; i < n; i++)
		samples += f->leaves[leaves[i]].samples;
	points = mem_array(samples + 1, sizeof(*points));
	for (size_t i = 0; i < n; i++)
		for (uint64_t j = 0; j < f->leaves[leaves[i]].samples; j++)
			points[k++] = (struct point){((double)j + 0.5) /
							     (double)f->leaves[leaves[i]].samples,
						     leaves[i]};
	if (samples)
		qsort(points, samples, sizeof(*points), by_time);
	for (size_t i = 0; i < samples; i++)
		put_sample(f, &f->leaves[points[i].leaf],
			   s->from_ns + (int64_t)((double)(s->to_ns - s->from_ns) *
						  ((double)i + 0.5) / (double)samples),
			   out);
}

void perfscript_write(const struct fold *f, FILE *out)
{
	cleanup_free size_t *first = mem_array(f->n_slices + 2, sizeof(*first));
	cleanup_free size_t *next = mem_array(f->n_slices + 1, sizeof(*next));
	cleanup_free uint32_t *order = mem_array(f->n_leaves + 1, sizeof(*order));

	for (size_t i = 0; i < f->n_leaves; i++)
		first[f->leaves[i].slice + 1]++;
	for (size_t i = 0; i < f->n_slices; i++) {
		first[i + 1] += first[i];
		next[i] = first[i];
	}
	for (uint32_t i = 0; i < f->n_leaves; i++)
		order[next[f->leaves[i].slice]++] = i;
	for (size_t i = 0; i < f->n_slices; i++)
		put_slice(f, &f->slices[i], order + first[i], first[i + 1] - first[i], out);
}
