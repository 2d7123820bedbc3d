/* SPDX-License-Identifier: Apache-2.0 */
/* jfr_read: Two passes: which events there are, and the periods; then those that are counted. */
#include "tools/formats/jfr/jfr_read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/clock.h"
#include "schema/base/hash.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"
#include "schema/jfr/jfr.h"
#include "tools/fold/fold_build.h"

#define NODES_MAX (8u << 20)
#define SUM_MAX   (UINT64_MAX / 4)
#define AP_PERIOD 10000000 /* async-profiler's own, where it says 0 */
#define TYPES_MAX 64

enum worth { BY_PERIOD, BY_SPAN, BY_NUMBER, BY_ONE };

/* In the order in which a kind prefers them. `instead`: only where none of an earlier one is there.
 */
static const struct counted {
	const char *type;
	enum store_kind kind;
	enum worth worth;
	const char *field, *or_field;
	bool instead;
} COUNTED[] = {
	{"jdk.CPUTimeSample", STORE_KIND_CPU, BY_SPAN, "samplingPeriod", NULL, false},
	{"jdk.ExecutionSample", STORE_KIND_CPU, BY_PERIOD, NULL, NULL, true},
	{"profiler.WallClockSample", STORE_KIND_WALLCLOCK, BY_PERIOD, "samples", NULL, false},
	{"jdk.NativeMethodSample", STORE_KIND_WALLCLOCK, BY_PERIOD, NULL, NULL, false},
	{"jdk.ObjectAllocationSample", STORE_KIND_ALLOC, BY_NUMBER, "weight", NULL, false},
	{"jdk.ObjectAllocationInNewTLAB", STORE_KIND_ALLOC, BY_NUMBER, "tlabSize", "allocationSize",
	 true},
	{"jdk.ObjectAllocationOutsideTLAB", STORE_KIND_ALLOC, BY_NUMBER, "allocationSize", NULL,
	 true},
	{"profiler.LiveObject", STORE_KIND_INUSE, BY_NUMBER, "allocationSize", NULL, false},
	{"jdk.JavaMonitorEnter", STORE_KIND_MUTEX, BY_SPAN, "duration", NULL, false},
	{"jdk.ThreadPark", STORE_KIND_BLOCK, BY_SPAN, "duration", NULL, false},
	{"jdk.JavaMonitorWait", STORE_KIND_BLOCK, BY_SPAN, "duration", NULL, false},
	{"jdk.ThreadSleep", STORE_KIND_BLOCK, BY_SPAN, "duration", NULL, false},
	{"jdk.JavaExceptionThrow", STORE_KIND_EXCEPTION, BY_ONE, NULL, NULL, false},
};
#define N_COUNTED ARRAY_SIZE(COUNTED)

struct reading {
	struct fold_build *b;
	const struct fold_opts *o;
	const char *why;
	/* the first pass */
	uint64_t n[N_COUNTED];
	uint64_t period[N_COUNTED]; /* ns, in force; 0: not known */
	uint64_t first_period[N_COUNTED];
	bool by_clock; /* ExecutionSample is of the wall clock */
	struct {
		char name[80];
		uint64_t n;
	} others[TYPES_MAX]; /* with stacks */
	size_t n_others;
	struct fold_process process;
	/* the second */
	bool take[N_COUNTED];
	int64_t from_ns;
	uint64_t sum, samples;
};

static int counted_named(const char *type)
{
	for (size_t i = 0; i < N_COUNTED; i++)
		if (!strcmp(COUNTED[i].type, type))
			return (int)i;
	return -1;
}

static enum store_kind kind_of(const struct reading *r, size_t i)
{
	return r->by_clock && !strcmp(COUNTED[i].type, "jdk.ExecutionSample") ?
		       STORE_KIND_WALLCLOCK :
		       COUNTED[i].kind;
}

/* --- settings, and who it was --- */

/* "20 ms"; of async-profiler a bare number of ns. 0: it is no span. */
static uint64_t span_of(const char *text)
{
	static const struct {
		const char *unit;
		uint64_t ns;
	} units[] = {{"", 1},
		     {"ns", 1},
		     {"us", 1000},
		     {"ms", 1000000},
		     {"s", NSEC_PER_SEC},
		     {"m", 60 * NSEC_PER_SEC},
		     {"min", 60 * NSEC_PER_SEC}};
	char *end;
	const uint64_t n = strtoull(text, &end, 10);

	if (end == text || n > 1000000000000ull)
		return 0;
	while (*end == ' ')
		end++;
	for (size_t i = 0; i < ARRAY_SIZE(units); i++)
		if (!strcmp(units[i].unit, end))
			return n > UINT64_MAX / 4 / units[i].ns ? 0 : n * units[i].ns;
	return 0;
}

static void note_setting(struct reading *r, const struct jfr_event *ev)
{
	const char *name = jfr_text(ev, "name"), *value = jfr_text(ev, "value");
	const bool async = !strcmp(name, "interval"), wall = !strcmp(name, "wall");
	int64_t id = 0;
	uint64_t ns;
	int i;

	if (!strcmp(name, "event") && !strcmp(value, "wall"))
		r->by_clock = true;
	if (!jfr_number(ev, "id", &id))
		return;
	i = counted_named(wall ? "profiler.WallClockSample" : jfr_type_named(ev, (uint64_t)id));
	if (i < 0 || COUNTED[i].worth != BY_PERIOD || !(async || wall || !strcmp(name, "period")))
		return;
	ns = span_of(value);
	if (!ns && async && *value)
		ns = AP_PERIOD;
	if (!ns || (wall && *value == '-'))
		return;
	r->period[i] = ns;
	if (!r->first_period[i])
		r->first_period[i] = ns;
}

static void note_process(struct reading *r, const struct jfr_event *ev)
{
	struct strbuf args cleanup_strbuf = STRBUF_INIT;
	const char *java = jfr_text(ev, "javaArguments");
	int64_t pid, start;

	if (jfr_number(ev, "pid", &pid) && pid > 0 && pid <= UINT32_MAX)
		r->process.pid = (uint32_t)pid;
	if (jfr_number(ev, "jvmStartTime", &start) && start > 0 && start < 4102444800000)
		r->process.start_ns = start * 1000000;
	strbuf_addf(&args, "java%s%s", *java ? " " : "", java);
	r->process.args = fold_text(r->b, strbuf_str(&args));
}

static void note_other(struct reading *r, const char *type)
{
	size_t i = 0;

	while (i < r->n_others && strcmp(r->others[i].name, type) != 0)
		i++;
	if (i == TYPES_MAX)
		return;
	if (i == r->n_others)
		snprintf(r->others[r->n_others++].name, sizeof(r->others[i].name), "%s", type);
	r->others[i].n++;
}

static bool sleeps(const struct jfr_event *ev)
{
	return !strcmp(jfr_text(ev, "state"), "STATE_SLEEPING");
}

static int look(void *ctx, const struct jfr_event *ev)
{
	struct reading *r = ctx;
	const char *type = jfr_type(ev);
	const int i = counted_named(type);
	const struct jfr_frame *frames;
	bool truncated;

	if (i >= 0) {
		r->n[i]++;
		r->by_clock = r->by_clock || (COUNTED[i].worth == BY_PERIOD && sleeps(ev) &&
					      COUNTED[i].kind == STORE_KIND_CPU);
	} else if (!strcmp(type, "jdk.ActiveSetting")) {
		note_setting(r, ev);
	} else if (!strcmp(type, "jdk.JVMInformation")) {
		note_process(r, ev);
	} else if (jfr_stack(ev, &frames, &truncated)) {
		note_other(r, type);
	}
	return 0;
}

/* --- samples --- */

static uint32_t frame_of(struct reading *r, const struct jfr_frame *fr)
{
	struct strbuf name cleanup_strbuf = STRBUF_INIT;
	const bool native = fr->code == JFR_KERNEL ||
			    (fr->code == JFR_NATIVE && !strchr(fr->class_name, '/') &&
			     (strstr(fr->class_name, ".so") || !*fr->class_name ||
			      *fr->class_name == '[' || !strchr(fr->class_name, '.')));
	struct fold_frame out = {.module_path = fold_text(r->b, ""),
				 .build_id = fold_text(r->b, ""),
				 .file = fold_text(r->b, ""),
				 .line = fr->line,
				 .named = *fr->method != '\0',
				 .inlined = fr->code == JFR_INLINED};

	if (!native && *fr->class_name)
		strbuf_addf(&name, "%s.", fr->class_name);
	strbuf_addstr(&name, out.named ? fr->method : "[unknown]");
	out.name = fold_text(r->b, strbuf_str(&name));
	out.origin = fr->code == JFR_KERNEL ? FOLD_KERNEL : native ? FOLD_NATIVE : FOLD_JIT;
	out.module = fold_text(r->b, fr->code == JFR_KERNEL ? "[kernel]" :
				     native                 ? fr->class_name :
							      "[java]");
	return fold_add_frame(r->b, &out);
}

static uint32_t node_of(struct reading *r, const struct jfr_event *ev)
{
	const struct jfr_frame *frames;
	bool truncated;
	size_t n = jfr_stack(ev, &frames, &truncated);
	uint32_t node = 0;

	while (n-- > 0) {
		struct jfr_frame fr = frames[n];

		if (fr.code == JFR_INLINED && !node)
			fr.code = JFR_COMPILED; /* cut off from what it was inlined into */
		node = fold_child(r->b, node, frame_of(r, &fr));
	}
	return node;
}

/* ns, bytes or one; `n`: how many it counts as. */
static uint64_t worth_of(const struct reading *r, const struct jfr_event *ev, size_t i, uint64_t *n)
{
	const struct counted *c = &COUNTED[i];
	int64_t v = 0;

	*n = 1;
	if (c->worth == BY_ONE)
		return 1;
	if (c->worth == BY_PERIOD) {
		if (c->field && jfr_number(ev, c->field, &v) && v > 0 && v < 1000000000)
			*n = (uint64_t)v;
		return r->period[i] > SUM_MAX / *n ? SUM_MAX : r->period[i] * *n;
	}
	if (c->worth == BY_SPAN)
		jfr_span_ns(ev, c->field, &v);
	else if (!jfr_number(ev, c->field, &v) || !v)
		jfr_number(ev, c->or_field ? c->or_field : c->field, &v);
	return v > 0 ? (uint64_t)v : 0;
}

static void thread_of(struct reading *r, const struct jfr_event *ev, struct fold_leaf *leaf)
{
	struct jfr_thread t;

	if (!jfr_thread_of(ev, "sampledThread", &t) && !jfr_thread_of(ev, "eventThread", &t))
		return;
	leaf->thread = fold_text(r->b, t.name);
	leaf->tid = t.tid;
}

static int add(void *ctx, const struct jfr_event *ev)
{
	struct reading *r = ctx;
	const char *type = jfr_type(ev);
	const int i = counted_named(type);
	struct fold_leaf leaf = {.thread = fold_text(r->b, "")};
	struct fold_node *node;

	if (!strcmp(type, "jdk.ActiveSetting"))
		note_setting(r, ev);
	if (i < 0 || !r->take[i])
		return 0;
	leaf.ns = worth_of(r, ev, (size_t)i, &leaf.samples);
	if (leaf.ns > SUM_MAX - r->sum || r->b->pub.n_nodes > NODES_MAX) {
		r->why = "its values are too large, or its stacks too many";
		return -E2BIG;
	}
	r->sum += leaf.ns;
	r->samples += leaf.samples;
	leaf.node = node_of(r, ev);
	thread_of(r, ev, &leaf);
	if (jfr_start_ns(ev) > r->from_ns)
		leaf.slice = (uint32_t)((jfr_start_ns(ev) - r->from_ns) / NSEC_PER_SEC);
	node = &r->b->pub.nodes[leaf.node];
	node->self_ns += leaf.ns;
	node->self_samples += leaf.samples;
	r->b->pub.processes[0].ns += leaf.ns;
	r->b->pub.processes[0].samples += leaf.samples;
	if (r->o->leaves)
		fold_add_leaf(r->b, &leaf);
	return 0;
}

/* --- which of them --- */

/* The kinds that it has, as bits. */
static uint32_t kinds_in(const struct reading *r)
{
	uint32_t kinds = 0;

	for (size_t i = 0; i < N_COUNTED; i++)
		if (r->n[i])
			kinds |= 1u << kind_of(r, i);
	return kinds;
}

static bool has_better(const struct reading *r, size_t i)
{
	for (size_t k = 0; k < i && COUNTED[i].instead; k++)
		if (r->n[k] && !COUNTED[k].instead && kind_of(r, k) == kind_of(r, i))
			return true;
	return false;
}

static void list_events(const struct reading *r, struct strbuf *out)
{
	for (size_t i = 0; i < N_COUNTED; i++)
		if (r->n[i])
			strbuf_addf(out, "%s%s (%llu)", out->len ? ", " : "", COUNTED[i].type,
				    (unsigned long long)r->n[i]);
	for (size_t i = 0; i < r->n_others && out->len < 300; i++)
		strbuf_addf(out, "%s%s (%llu)", out->len ? ", " : "", r->others[i].name,
			    (unsigned long long)r->others[i].n);
}

static int refuse(const struct reading *r, const char *what, const char *value, const char *name,
		  struct err *e)
{
	struct strbuf holds cleanup_strbuf = STRBUF_INIT;

	list_events(r, &holds);
	if (!holds.len)
		return err_set(e, -ENODATA, EXIT_NOTHING, "%.300s holds no samples", name);
	err_set(e, -EINVAL, EXIT_USAGE, "%.300s has no events of --%s %.60s: it holds %.400s", name,
		what, value, strbuf_str(&holds));
	err_fix(e, "sonde import %.200s (all kinds that are known)", name);
	return -EINVAL;
}

static int choose(struct reading *r, const char *name, struct err *e)
{
	static const enum store_kind order[] = {
		STORE_KIND_CPU,   STORE_KIND_WALLCLOCK, STORE_KIND_ALLOC,    STORE_KIND_INUSE,
		STORE_KIND_MUTEX, STORE_KIND_BLOCK,     STORE_KIND_EXCEPTION};
	const uint32_t has = kinds_in(r);
	const int asked = r->o->event ? counted_named(r->o->event) : -1;
	enum store_kind kind = r->o->kind;

	if (r->o->event && (asked < 0 || !r->n[asked]))
		return refuse(r, "event", r->o->event, name, e);
	if (asked >= 0 && !kind)
		kind = kind_of(r, (size_t)asked);
	for (size_t i = 0; i < ARRAY_SIZE(order) && !kind; i++)
		kind = has & 1u << order[i] ? order[i] : 0;
	if (!kind || !(has & 1u << kind))
		return refuse(r, "type", kind ? store_kind_info(kind)->name : "cpu", name, e);
	for (size_t i = 0; i < N_COUNTED; i++) {
		const bool of_kind = r->n[i] && kind_of(r, i) == kind;

		r->take[i] = asked >= 0 ? (int)i == asked : of_kind && !has_better(r, i);
		if (of_kind && !r->take[i])
			fold_add_loss(r->b,
				      &(struct fold_loss){.reason = COUNTED[i].type, .n = r->n[i]});
	}
	r->b->pub.kind = store_kind_info(kind);
	r->b->pub.too = asked >= 0 ? 0 : has & ~(1u << kind);
	return 0;
}

/* CPU samples of no known length are counted. */
static void set_unit(struct reading *r)
{
	struct fold *f = &r->b->pub;
	bool untimed = false;

	for (size_t i = 0; i < N_COUNTED; i++)
		untimed = untimed ||
			  (r->take[i] && COUNTED[i].worth == BY_PERIOD && !r->first_period[i]);
	f->unit = untimed ? STORE_SAMPLES : f->kind->unit_value;
	if (!untimed)
		return;
	for (size_t i = 0; i < f->n_nodes; i++)
		f->nodes[i].self_ns = f->nodes[i].self_samples;
	for (size_t i = 0; i < f->n_leaves; i++)
		f->leaves[i].ns = f->leaves[i].samples;
	f->processes[0].ns = f->processes[0].samples;
}

static int no_recording(const char *name, const char *why, struct err *e)
{
	err_set(e, -EBADMSG, EXIT_USAGE,
		"%.300s is not a readable recording of Java Flight Recorder: %s", name, why);
	err_fix(e, "jfr summary %.200s", name);
	return -EBADMSG;
}

static int read_all(struct reading *r, const void *data, size_t len, const char *name,
		    struct err *e)
{
	struct jfr_totals totals;
	const char *why;
	int rc = jfr_read(data, len, look, r, &totals, &why);

	if (rc)
		return no_recording(name, why, e);
	if (totals.unreadable == totals.chunks)
		return no_recording(name, "no chunk of it was finished", e);
	rc = choose(r, name, e);
	if (rc)
		return rc;
	fold_add_process(r->b, HASH_SEED, &r->process);
	memcpy(r->period, r->first_period, sizeof(r->period));
	r->from_ns = totals.from_ns;
	rc = jfr_read(data, len, add, r, &totals, &why);
	if (rc)
		return no_recording(name, why ? why : r->why, e);
	r->b->pub.from_ns = totals.from_ns;
	r->b->pub.to_ns = totals.to_ns;
	r->b->pub.slice_ns = NSEC_PER_SEC;
	r->b->pub.no_count = r->b->pub.kind->sized;
	if (totals.unreadable)
		fold_add_loss(r->b, &(struct fold_loss){.reason = "chunks that were not finished",
							.n = totals.unreadable});
	set_unit(r);
	return 0;
}

int jfr_import(const void *data, size_t len, const char *name, const struct fold_opts *o,
	       struct fold **out, struct err *e)
{
	struct reading r = {.b = fold_begin(), .o = o};
	const char *none = fold_text(r.b, "");
	struct fold *f;
	int rc;

	r.process = (struct fold_process){.comm = fold_text(r.b, "java"),
					  .exe = none,
					  .args = none,
					  .unit = none,
					  .container = none,
					  .container_id = none,
					  .container_image = none,
					  .lang = none,
					  .lang_runtime = none};
	rc = read_all(&r, data, len, name, e);
	f = fold_end(r.b);
	if (rc)
		fold_free(f);
	else
		*out = f;
	return rc;
}
