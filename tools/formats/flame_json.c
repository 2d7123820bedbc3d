/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/formats/flame_json.h"

#include "schema/base/runtimes.h"
#include "tools/fold/flame/flame_tree.h"
#include "tools/fold/fold_kind.h"
#include "tools/fold/shortfall.h"
#include "tools/print/estimate.h"
#include "tools/print/json.h"

static const char *const ORIGIN[] = {
	[FOLD_NATIVE] = "native", [FOLD_KERNEL] = "kernel", [FOLD_GO] = "go",
	[FOLD_JIT] = "jit",       [FOLD_GROUP] = "group",   [FOLD_UNKNOWN] = "unknown",
	[FOLD_OFF] = "off",       [FOLD_SCRIPT] = "script",
};

const char *flame_json_origin(enum fold_origin origin)
{
	return ORIGIN[origin];
}

static void set_number(json_t *o, const char *key, uint64_t v)
{
	json_object_set_new(o, key, json_integer((json_int_t)v));
}

/* CPU time has other key names. */
static void set_amounts(json_t *o, const struct fold *f, const struct flame_node *n)
{
	bool cpu = f->kind->kind == STORE_KIND_CPU && f->unit == STORE_TIME;

	set_number(o, cpu ? "self_ns" : "self_value", n->self_ns);
	set_number(o, cpu ? "total_ns" : "total_value", n->total_ns);
	set_number(o, cpu ? "self_samples" : "self_n", n->self_samples);
	set_number(o, cpu ? "total_samples" : "total_n", n->total_samples);
	if (f->kind->kind != STORE_KIND_OFFCPU && f->kind->kind != STORE_KIND_RUNQUEUE)
		return;
	set_number(o, "self_error", estimate_error(n->self_variance));
	set_number(o, "total_error", estimate_error(n->total_variance));
}

struct nodes {
	const struct fold *f;
	struct flame_tree t;
};

static json_t *node_row(void *ctx, size_t i)
{
	const struct nodes *nodes = ctx;
	const struct fold *f = nodes->f;
	const struct flame_tree *t = &nodes->t;
	const struct flame_node *n = &t->nodes[i];
	const struct fold_frame *fr = &t->frames[n->frame];
	json_t *o = json_object();

	set_number(o, "id", i);
	json_object_set_new(o, "parent", i ? json_integer(n->parent) : json_null());
	json_object_set_new(o, "name", json_text(fr->name));
	json_object_set_new(o, "module", json_text_or_null(fr->module));
	json_object_set_new(o, "file", json_text_or_null(fr->file));
	json_object_set_new(o, "line", json_number_or_null(fr->line, fr->line));
	json_object_set_new(o, "origin", json_string(ORIGIN[fr->origin]));
	if (fr->runtime)
		json_object_set_new(o, "runtime", json_string(runtime_name(fr->runtime)));
	json_object_set_new(o, "named", json_boolean(fr->named));
	json_object_set_new(o, "inlined", json_boolean(fr->inlined));
	set_amounts(o, f, n);
	return o;
}

static json_t *losses_of(const struct fold *f)
{
	json_t *a = json_array();

	for (size_t i = 0; i < f->n_losses; i++) {
		json_t *o = json_object();

		json_object_set_new(o, "reason", json_text(f->losses[i].reason));
		set_number(o, "n", f->losses[i].n);
		json_set_time(o, "from", f->losses[i].from_ns);
		json_set_time(o, "to", f->losses[i].to_ns);
		json_array_append_new(a, o);
	}
	return a;
}

static void lack_add(void *ctx, const char *sentence)
{
	json_array_append_new(ctx, json_text(sentence));
}

/* Sentences. */
static json_t *shed_of(const struct fold *f)
{
	json_t *a = json_array();

	shortfall_shed(f, lack_add, a);
	return a;
}

int flame_json_write(const struct fold *f, size_t max_nodes, FILE *out)
{
	json_t *j = json_envelope("flame", f->from_ns, f->to_ns);
	bool cpu = f->kind->kind == STORE_KIND_CPU && f->unit == STORE_TIME;
	struct nodes nodes = {.f = f};
	int rc;

	flame_tree_init(&nodes.t, f, max_nodes, false);
	json_object_set_new(j, "host", json_text_or_null(f->host));
	json_object_set_new(j, "kernel", json_text_or_null(f->kernel));
	set_number(j, "cpus", f->cpus);
	set_number(j, "period_ns", f->period_ns);
	json_object_set_new(j, "type", json_string(f->kind->name));
	json_object_set_new(j, "unit", json_string(store_unit_name(f->unit)));
	json_object_set_new(j, "count_unit", json_string(store_unit_name(f->kind->unit_n)));
	json_object_set_new(j, "counted", json_string(store_kind_counted(f->kind)));
	json_object_set_new(j, "cumulative", json_boolean(f->kind->class != STORE_GAUGE));
	set_number(j, "recorded_ns", fold_recorded_ns(f));
	set_number(j, cpu ? "samples" : "n", f->nodes[0].total_samples);
	set_number(j, cpu ? "cpu_ns" : "value", f->nodes[0].total_ns);
	set_number(j, cpu ? "unnamed_ns" : "unnamed_value", f->frames_unnamed_ns);
	set_number(j, "elided", nodes.t.elided);
	json_object_set_new(j, "losses", losses_of(f));
	json_object_set_new(j, "shed", shed_of(f));
	rc = json_print_rows(j, out, nodes.t.n_nodes, node_row, &nodes);
	flame_tree_release(&nodes.t);
	return rc;
}
