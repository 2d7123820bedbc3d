/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/fold/endings.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/mem.h"
#include "tools/print/json.h"

#define CUTS_TOLD 3 /* causes of one program */

static struct endings_program *program(struct endings *x, const char *executable)
{
	for (size_t i = 0; i < x->n_programs; i++)
		if (!strcmp(x->programs[i].executable, executable))
			return &x->programs[i];
	mem_grow(x->programs, x->n_programs, x->cap_programs);
	x->programs[x->n_programs] = (struct endings_program){.executable = mem_strdup(executable)};
	return &x->programs[x->n_programs++];
}

static struct endings_cut *cut(struct endings_program *p, const char *module, const char *reason)
{
	for (size_t i = 0; i < p->n_cuts; i++)
		if (!strcmp(p->cuts[i].module, module) && !strcmp(p->cuts[i].reason, reason))
			return &p->cuts[i];
	mem_grow(p->cuts, p->n_cuts, p->cap_cuts);
	p->cuts[p->n_cuts] =
		(struct endings_cut){.module = mem_strdup(module), .reason = mem_strdup(reason)};
	return &p->cuts[p->n_cuts++];
}

int endings_add(void *ctx, const struct store_ending_row *r)
{
	struct endings *x = ctx;
	struct endings_program *p;

	if (r->gone)
		return 0;
	p = program(x, r->executable);
	x->n += r->n;
	p->n += r->n;
	if (r->complete) {
		x->complete += r->n;
		return 0;
	}
	p->cut += r->n;
	cut(p, r->module, r->reason)->n += r->n;
	return 0;
}

static int more_cuts(const void *a, const void *b)
{
	const struct endings_cut *x = a, *y = b;

	if (x->n != y->n)
		return x->n > y->n ? -1 : 1;
	return strcmp(x->reason, y->reason);
}

static int more_cut(const void *a, const void *b)
{
	const struct endings_program *x = a, *y = b;

	if (x->cut != y->cut)
		return x->cut > y->cut ? -1 : 1;
	return strcmp(x->executable, y->executable);
}

void endings_sort(struct endings *x)
{
	for (size_t i = 0; i < x->n_programs; i++)
		if (x->programs[i].n_cuts)
			qsort(x->programs[i].cuts, x->programs[i].n_cuts,
			      sizeof(struct endings_cut), more_cuts);
	if (x->n_programs)
		qsort(x->programs, x->n_programs, sizeof(*x->programs), more_cut);
}

void endings_release(struct endings *x)
{
	for (size_t i = 0; i < x->n_programs; i++) {
		struct endings_program *p = &x->programs[i];

		for (size_t k = 0; k < p->n_cuts; k++) {
			free(p->cuts[k].module);
			free(p->cuts[k].reason);
		}
		free(p->cuts);
		free(p->executable);
	}
	free(x->programs);
	*x = (struct endings){0};
}

double endings_share(const struct endings *x)
{
	return x->n ? (double)x->complete / (double)x->n : 0;
}

static const char *last_component(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (!*path)
		return "an unknown program";
	return slash && slash[1] ? slash + 1 : path;
}

void endings_say(const struct endings *x, size_t i, struct strbuf *out)
{
	const struct endings_program *p = &x->programs[i];

	strbuf_addf(out, "%s, where %.1f %% end early", last_component(p->executable),
		    100 * (double)p->cut / (double)p->n);
	if (!p->n_cuts)
		return;
	if (p->cuts[0].module[strspn(p->cuts[0].module, "/")]) /* a file without a name is "/" */
		strbuf_addf(out, ", in %s", p->cuts[0].module);
	strbuf_addf(out, ": %s", p->cuts[0].reason);
}

json_t *endings_json(const struct endings *x, size_t max)
{
	json_t *list = json_array();

	for (size_t i = 0; i < x->n_programs && i < max && x->programs[i].cut; i++) {
		const struct endings_program *p = &x->programs[i];
		json_t *one = json_object(), *cuts = json_array();

		json_object_set_new(one, "executable", json_text(p->executable));
		json_object_set_new(one, "samples", json_integer((json_int_t)p->n));
		json_object_set_new(one, "complete_share",
				    json_real(1 - (double)p->cut / (double)p->n));
		for (size_t k = 0; k < p->n_cuts && k < CUTS_TOLD; k++) {
			json_t *c = json_object();

			json_object_set_new(c, "module", json_text(p->cuts[k].module));
			json_object_set_new(c, "reason", json_text(p->cuts[k].reason));
			json_object_set_new(c, "samples", json_integer((json_int_t)p->cuts[k].n));
			json_array_append_new(cuts, c);
		}
		json_object_set_new(one, "cuts", cuts);
		json_array_append_new(list, one);
	}
	return list;
}
