/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/flame_json.h"

#include "tools/flame_tree.h"
#include "tools/json.h"

static const char *const ORIGIN[] = {
	[FOLD_NATIVE] = "native", [FOLD_KERNEL] = "kernel", [FOLD_GO] = "go", [FOLD_JIT] = "jit",
	[FOLD_GROUP] = "group", [FOLD_UNKNOWN] = "unknown",
};

const char *flame_json_origin(enum fold_origin origin)
{
	return ORIGIN[origin];
}

static void set_number(json_t *o, const char *key, uint64_t v)
{
	json_object_set_new(o, key, json_integer((json_int_t)v));
}

static json_t *text_or_null(const char *s)
{
	return s && *s ? json_text(s) : json_null();
}

static json_t *node_row(const struct flame_tree *t, size_t i)
{
	const struct flame_node *n = &t->nodes[i];
	const struct fold_frame *fr = &t->frames[n->frame];
	json_t *o = json_object();

	set_number(o, "id", i);
	json_object_set_new(o, "parent", i ? json_integer(n->parent) : json_null());
	json_object_set_new(o, "name", json_text(fr->name));
	json_object_set_new(o, "module", text_or_null(fr->module));
	json_object_set_new(o, "file", text_or_null(fr->file));
	json_object_set_new(o, "line", fr->line ? json_integer(fr->line) : json_null());
	json_object_set_new(o, "origin", json_string(ORIGIN[fr->origin]));
	json_object_set_new(o, "named", json_boolean(fr->named));
	json_object_set_new(o, "inlined", json_boolean(fr->inlined));
	set_number(o, "self_ns", n->self_ns);
	set_number(o, "total_ns", n->total_ns);
	set_number(o, "self_samples", n->self_samples);
	set_number(o, "total_samples", n->total_samples);
	return o;
}

static json_t *losses_of(const struct fold *f)
{
	json_t *a = json_array();

	for (size_t i = 0; i < f->n_losses; i++) {
		json_t *o = json_object();

		json_object_set_new(o, "reason", json_text(f->losses[i].reason));
		set_number(o, "n", f->losses[i].n);
		json_array_append_new(a, o);
	}
	return a;
}

int flame_json_write(const struct fold *f, FILE *out)
{
	json_t *j = json_envelope("flame", f->from_ns, f->to_ns);
	struct flame_tree t;

	flame_tree_init(&t, f, 0);
	json_object_set_new(j, "host", text_or_null(f->host));
	json_object_set_new(j, "kernel", text_or_null(f->kernel));
	set_number(j, "cpus", f->cpus);
	set_number(j, "period_ns", f->period_ns);
	set_number(j, "samples", f->nodes[0].total_samples);
	set_number(j, "cpu_ns", f->nodes[0].total_ns);
	set_number(j, "unnamed_ns", f->frames_unnamed_ns);
	json_object_set_new(j, "losses", losses_of(f));
	for (size_t i = 0; i < t.n_nodes; i++)
		json_array_append_new(json_rows(j), node_row(&t, i));
	flame_tree_release(&t);
	return json_print(j, out, 1);
}
