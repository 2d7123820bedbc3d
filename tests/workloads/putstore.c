/* SPDX-License-Identifier: Apache-2.0 */
/*
 * putstore: writes what a test wants into a store, through store/write/writer.h. `putstore DIR`
 * reads JSON from stdin, one object a line, in order. At a line that it does not understand it
 * prints an error and exits with 1.
 *
 *   {"run": "goheap", "from": S, "to": S, "bucket_s": 10, "period_ns": 0, "recording": 0,
 *    "options": "..."}
 *       what follows belongs to this run; S in seconds since 1970, fractions allowed
 *   {"kind": "alloc", "at": S, "n": 3, "value": 3072, "pid": 100, "comm": "app",
 *    "thread": "app", "tid": 100, "container": "", "container_id": "", "started": "",
 *    "project": "", "service": "" (of compose),
 *    "restarts": 0, "start": S (of the process), "label": 0, "max": 0,
 *    "hist": [1, 2], or "lengths": [ns, ns, ...], "n_variance": 0, "value_variance": 0,
 *    "stack": ["main", ["alloc", "app.c", 12], ...]}
 *       an amount, or samples if the kind is "cpu"; frames root first, each a name or
 *       [name, file, line]; all frames are in module = comm; "self": true makes the
 *       process one of sonde's own; "ppid", "uid", "exe" ("": a kernel thread), "lang"
 *   {"rate": 524288, "at": S, "pid": 100, "comm": "app"}
 *       the rate at which the process's amounts are sampled
 *   {"note": "version", "text": "go1.26.8", "pid": 100, "comm": "app"}
 *       store_process_note
 *   {"end": 2, "status": 9, "at": S, "pid": 100, "comm": "app"}
 *       enum store_end_how; the process's row has it, too
 *   {"loss": "ring", "at": S, "n": 5}
 *   {"wait": 2, "flags": 0, "at": S, "n": 3, "total_ns": 9000, "max_ns": 5000,
 *    "hist": [...] or "lengths": [...], "pid": ...}
 *       store/write/waits.h
 *   {"wake": 2, "context": 0, "at": S, "n": 1, "total_ns": 5, "pid": ...,
 *    "by": {"pid": 7, "comm": "b", "thread": "b", "stack": [...]}}
 *   {"on": "/a/file", "class": 2, "at": S, "n": 1, "total_ns": 5, "pid": ...,
 *    "stack": [...], "by": {...}}
 *   {"culprit": 0, "at": S, "n": 1, "total_ns": 5, "pid": ..., "by": {...}}
 *       "by" may be left out
 *   {"throttle": "/docker/abc", "at": S, "periods": 10, "throttled": 4, "throttled_ns": 5}
 *   {"steal": 5, "idle_ns": 6, "cpu_ns": 7, "at": S}
 *   {"slowed": STEP, "stack_rate": 62, "at": S}
 *   {"request": "GET /", "protocol": "http", "service": "127.0.0.1:80", "status": "200",
 *    "result": 0, "at": S, "n": 3, "total_ns": 9000, "max_ns": 5000,
 *    "request_bytes": 10, "response_bytes": 20, "side": 0, "part": 0}
 *       store/write/requests.h; "pid" and so on if a process is known; all latencies
 *       are max_ns
 *   {"fact": "cgroup_row", "at": S, "COLUMN": number or text, ..., "container": "web",
 *    "pid": ...}
 *       a row of schema/facts, with its process and container as above; "columns": {...}
 *       for columns whose names are also keys here; "mate": {"pid": ...}, a second process
 *   {"clock": -3600, "at": S}
 *       the wall clock was set by so many seconds, and then said S
 *   {"runs_at": S}, {"until": S}
 *       store_runs_at, store_run_until
 *   {"flush": true}
 *       ends the batch
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/clock.h"
#include "schema/base/err.h"
#include "schema/store/model/hist.h"
#include "schema/store/write/facts.h"
#include "schema/store/write/requests.h"
#include "schema/store/write/waits.h"
#include "schema/store/write/writer.h"

#define FRAMES 512

struct put {
	struct store_writer *w;
	uint32_t run;
};

static const char *text(const json_t *o, const char *key, const char *fallback)
{
	const json_t *v = json_object_get(o, key);

	return json_is_string(v) ? json_string_value(v) : fallback;
}

static uint64_t number(const json_t *o, const char *key, uint64_t fallback)
{
	const json_t *v = json_object_get(o, key);

	return json_is_integer(v) ? (uint64_t)json_integer_value(v) : fallback;
}

static int64_t at_ns(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	return json_is_integer(v) ? json_integer_value(v) * NSEC_PER_SEC :
				    (int64_t)(json_number_value(v) * 1e9);
}

static bool put_run(struct put *p, const json_t *o)
{
	struct store_run r = {.family = text(o, "run", "cpu"),
			      .options = text(o, "options", "putstore"),
			      .bucket_s = (uint32_t)number(o, "bucket_s", 1),
			      .period_ns = number(o, "period_ns", 0),
			      .cpus = 2,
			      .from_ns = at_ns(o, "from"),
			      .recording = number(o, "recording", 0),
			      .boot_offset_ns = clock_boot_offset_ns()};

	p->run = store_run_begin(p->w, &r);
	store_run_until(p->w, p->run, at_ns(o, "to"));
	return p->run != 0;
}

static bool put_clock(struct put *p, const json_t *o)
{
	store_clock_changed(p->w, at_ns(o, "at"), clock_boot_offset_ns() + at_ns(o, "clock"));
	return true;
}

static bool put_runs_at(struct put *p, const json_t *o)
{
	store_runs_at(p->w, at_ns(o, "runs_at"));
	return true;
}

static bool put_until(struct put *p, const json_t *o)
{
	store_run_until(p->w, p->run, at_ns(o, "until"));
	return true;
}

static struct store_process process_told(struct put *p, const json_t *o)
{
	const char *comm = text(o, "comm", "app"), *name = text(o, "container", ""),
		   *id = text(o, "container_id", name);
	struct store_container c = {.runtime = "docker",
				    .runtime_id = id,
				    .name = name,
				    .image = "debian:12",
				    .cgroup = text(o, "cgroup", id),
				    .started = text(o, "started", NULL),
				    .project = text(o, "project", NULL),
				    .service = text(o, "service", NULL),
				    .restarts = (uint32_t)number(o, "restarts", 0)};
	struct store_process x = {.pid = (uint32_t)number(o, "pid", 100),
				  .ppid = (uint32_t)number(o, "ppid", 1),
				  .uid = (uint32_t)number(o, "uid", 0),
				  .exec_id = 1,
				  .start_ticks = 1,
				  .comm = comm,
				  .exe = text(o, "exe", comm),
				  .args = text(o, "exe", comm),
				  .cgroup = "/",
				  .unit = "",
				  .lang = text(o, "lang", NULL),
				  .self = json_is_true(json_object_get(o, "self"))};

	if (json_object_get(o, "start"))
		x.start_ns = at_ns(o, "start");
	if (json_object_get(o, "start"))
		x.start_ticks = (uint64_t)x.start_ns;
	x.container = *id ? store_container(p->w, &c) : 0;
	return x;
}

static uint32_t process_of(struct put *p, const json_t *o)
{
	struct store_process x = process_told(p, o);

	return store_process(p->w, &x);
}

static uint32_t frame_of(struct put *p, const json_t *f, const char *module, bool leaf)
{
	struct store_image image = {
		.name = module, .path = module, .build_id = "0badc0de", .key = ""};
	const json_t *name = json_is_array(f) ? json_array_get(f, 0) : f;
	struct store_function fn = {.name = json_string_value(name), .file = "", .line = 1};
	struct store_frame x = {.image = store_image(p->w, &image), .leaf = leaf};

	fn.image = x.image;
	if (json_is_array(f)) {
		fn.file = json_string_value(json_array_get(f, 1));
		x.line = (uint32_t)json_integer_value(json_array_get(f, 2));
	}
	if (!fn.name || !fn.file)
		return 0;
	x.function = store_function(p->w, &fn);
	x.offset = 16ull * x.function + x.line * 4096ull;
	return store_frame(p->w, &x);
}

static bool stack_of(struct put *p, const json_t *o, uint32_t *out)
{
	const json_t *stack = json_object_get(o, "stack");
	size_t n = json_array_size(stack);
	uint32_t ids[FRAMES];

	if (n > FRAMES)
		return false;
	for (size_t i = 0; i < n; i++) {
		ids[i] = frame_of(p, json_array_get(stack, i), text(o, "comm", "app"), i + 1 == n);
		if (!ids[i])
			return false;
	}
	*out = store_stack(p->w, ids, n);
	return true;
}

static uint32_t series_of(struct put *p, const json_t *o, const struct store_kind_info *k)
{
	uint32_t pid = (uint32_t)number(o, "pid", 100), stack;

	if (!stack_of(p, o, &stack))
		return 0;
	return store_series_told(p->w, p->run, process_of(p, o),
				 text(o, "thread", text(o, "comm", "app")),
				 (uint32_t)number(o, "tid", pid), stack, k->kind,
				 (uint32_t)number(o, "label", 0), text(o, "labels", ""));
}

static void hist_fill(const json_t *o, uint32_t slots[HIST_SLOTS])
{
	const json_t *hist = json_object_get(o, "hist"), *lengths = json_object_get(o, "lengths");

	for (size_t i = 0; i < json_array_size(hist) && i < HIST_SLOTS; i++)
		slots[i] = (uint32_t)json_integer_value(json_array_get(hist, i));
	for (size_t i = 0; i < json_array_size(lengths); i++)
		slots[hist_slot((uint64_t)json_integer_value(json_array_get(lengths, i)))]++;
}

static bool put_value(struct put *p, const json_t *o, const char *kind)
{
	const struct store_kind_info *k = store_kind_named(kind);
	bool hist = json_object_get(o, "hist") || json_object_get(o, "lengths");
	uint32_t slots[HIST_SLOTS] = {0};
	struct store_amount a = {.n = number(o, "n", 0),
				 .value = number(o, "value", 0),
				 .max = number(o, "max", 0),
				 .hist = hist ? slots : NULL,
				 .n_hist = HIST_SLOTS,
				 .n_variance = number(o, "n_variance", 0),
				 .value_variance = number(o, "value_variance", 0)};
	uint32_t series = k && p->run ? series_of(p, o, k) : 0;

	hist_fill(o, slots);
	if (!series)
		return false;
	if (k->kind == STORE_KIND_CPU)
		return !store_add(p->w, series, at_ns(o, "at"), a.n);
	return !store_amount(p->w, series, at_ns(o, "at"), &a);
}

/* --- store/write/waits.h --- */

static uint32_t task_of(struct put *p, const json_t *o)
{
	return o ? store_task(p->w, p->run, process_of(p, o),
			      text(o, "thread", text(o, "comm", "app")),
			      (uint32_t)number(o, "tid", number(o, "pid", 100))) :
		   0;
}

static bool put_wait(struct put *p, const json_t *o)
{
	bool hist = json_object_get(o, "hist") || json_object_get(o, "lengths");
	uint32_t slots[HIST_SLOTS] = {0};
	struct store_wait x = {.class = (enum store_wait_class)number(o, "wait", 0),
			       .flags = (uint32_t)number(o, "flags", 0),
			       .n = number(o, "n", 1),
			       .total_ns = number(o, "total_ns", 0),
			       .max_ns = number(o, "max_ns", 0),
			       .hist = hist ? slots : NULL,
			       .n_hist = HIST_SLOTS};

	hist_fill(o, slots);
	return !store_wait(p->w, task_of(p, o), at_ns(o, "at"), &x);
}

static bool put_wake(struct put *p, const json_t *o)
{
	struct store_wake x = {.class = (enum store_wait_class)number(o, "wake", 0),
			       .context = (enum store_wake_context)number(o, "context", 0),
			       .waker = task_of(p, json_object_get(o, "by")),
			       .n = number(o, "n", 1),
			       .total_ns = number(o, "total_ns", 0)};
	const json_t *by = json_object_get(o, "by");

	if (by && !stack_of(p, by, &x.stack))
		return false;
	if (by && !json_object_get(by, "stack"))
		x.stack = 0;
	return !store_wake(p->w, task_of(p, o), at_ns(o, "at"), &x);
}

static bool put_wait_on(struct put *p, const json_t *o)
{
	struct store_wait_on x = {.class = (enum store_wait_class)number(o, "class", 0),
				  .object = text(o, "on", ""),
				  .waker = task_of(p, json_object_get(o, "by")),
				  .n = number(o, "n", 1),
				  .total_ns = number(o, "total_ns", 0)};

	return stack_of(p, o, &x.stack) && !store_wait_on(p->w, task_of(p, o), at_ns(o, "at"), &x);
}

static bool put_culprit(struct put *p, const json_t *o)
{
	struct store_culprit x = {.kind = (enum store_culprit_kind)number(o, "culprit", 0),
				  .culprit = task_of(p, json_object_get(o, "by")),
				  .n = number(o, "n", 1),
				  .total_ns = number(o, "total_ns", 0)};

	return !store_culprit(p->w, task_of(p, o), at_ns(o, "at"), &x);
}

/* 1: done, 0: failed, -1: none of these */
static int put_waits(struct put *p, const json_t *o)
{
	const char *cgroup = text(o, "throttle", NULL);
	struct store_throttle t = {number(o, "periods", 0), number(o, "throttled", 0),
				   number(o, "throttled_ns", 0)};
	struct store_steal s = {number(o, "steal", 0), number(o, "idle_ns", 0),
				number(o, "cpu_ns", 0)};

	if (json_object_get(o, "wait"))
		return put_wait(p, o);
	if (json_object_get(o, "wake"))
		return put_wake(p, o);
	if (json_object_get(o, "on"))
		return put_wait_on(p, o);
	if (json_object_get(o, "culprit"))
		return put_culprit(p, o);
	if (cgroup)
		store_throttle(p->w, p->run, at_ns(o, "at"), cgroup, &t);
	else if (json_object_get(o, "slowed"))
		store_slowed(p->w, p->run, at_ns(o, "at"), (uint32_t)number(o, "slowed", 0),
			     (uint32_t)number(o, "stack_rate", 0));
	else if (json_object_get(o, "steal"))
		store_steal(p->w, p->run, at_ns(o, "at"), &s);
	else
		return -1;
	return 1;
}

static bool put_request(struct put *p, const json_t *o)
{
	struct store_request r = {.part = (enum store_part)number(o, "part", 0),
				  .process = json_object_get(o, "pid") ? process_of(p, o) : 0,
				  .protocol = text(o, "protocol", "http"),
				  .service = text(o, "service", "127.0.0.1:80"),
				  .operation = text(o, "request", ""),
				  .status = text(o, "status", ""),
				  .result = (enum store_result)number(o, "result", 0),
				  .side = (enum store_side)number(o, "side", 0),
				  .n = number(o, "n", 1),
				  .total_ns = number(o, "total_ns", 0),
				  .max_ns = number(o, "max_ns", 0),
				  .request_bytes = number(o, "request_bytes", 0),
				  .response_bytes = number(o, "response_bytes", 0),
				  .n_steps = HIST_STEPS};
	uint32_t steps[HIST_STEPS] = {0};

	steps[hist_step(r.max_ns)] = (uint32_t)r.n;
	r.steps = r.max_ns ? steps : NULL;
	return store_request(p->w, p->run, at_ns(o, "at"), &r) == 0;
}

static bool put_fact(struct put *p, const json_t *o)
{
	const json_t *columns = json_object_get(o, "columns"), *from = columns ? columns : o;
	const char *table = text(o, "fact", "");
	struct fact_row row = {0};
	uint32_t f = 0;

	while (FACTS[f] && strcmp(FACTS[f]->table, table))
		f++;
	for (int i = 0; FACTS[f] && i < (int)FACTS[f]->n; i++) {
		const struct fact_column *c = &FACTS[f]->columns[i];

		if (c->type == FACT_PROCESS && !strcmp(c->name, "mate"))
			fact_put(&row, i,
				 json_object_get(o, c->name) ?
					 process_of(p, json_object_get(o, c->name)) :
					 0);
		else if (c->type == FACT_PROCESS)
			fact_put(&row, i, json_object_get(o, "pid") ? process_of(p, o) : 0);
		else if (c->type == FACT_CONTAINER)
			fact_put(&row, i, process_told(p, o).container);
		else if (c->type == FACT_TEXT && json_object_get(from, c->name))
			fact_put_text(&row, i, text(from, c->name, ""));
		else if (json_object_get(from, c->name))
			fact_put(&row, i, number(from, c->name, 0));
	}
	return FACTS[f] && store_fact(p->w, p->run, at_ns(o, "at"), FACTS[f], &row) == 0;
}

static bool put_end(struct put *p, const json_t *o)
{
	struct store_end e = {.comm = text(o, "comm", "app"),
			      .how = (enum store_end_how)number(o, "end", 1),
			      .status = (uint32_t)number(o, "status", 0)};
	struct store_process x = process_told(p, o);

	x.end_ns = at_ns(o, "at");
	x.how = e.how;
	x.status = e.status;
	e.process = store_process(p->w, &x);
	e.container = x.container;
	return store_end(p->w, p->run, x.end_ns, &e) == 0;
}

static bool put_one(struct put *p, const json_t *o)
{
	const char *kind = text(o, "kind", NULL), *loss = text(o, "loss", NULL);

	int waits;

	if (json_object_get(o, "run"))
		return put_run(p, o);
	waits = p->run ? put_waits(p, o) : -1;
	if (waits >= 0)
		return waits;
	if (kind)
		return put_value(p, o, kind);
	if (json_object_get(o, "flush")) {
		store_flush(p->w);
		return true;
	}
	if (json_object_get(o, "clock"))
		return put_clock(p, o);
	if (json_object_get(o, "runs_at"))
		return put_runs_at(p, o);
	if (json_object_get(o, "until"))
		return put_until(p, o);
	if (json_object_get(o, "fact") && p->run)
		return put_fact(p, o);
	if (json_object_get(o, "end") && p->run)
		return put_end(p, o);
	if (json_object_get(o, "request") && p->run)
		return put_request(p, o);
	if (loss && p->run) {
		store_loss(p->w, p->run, at_ns(o, "at"), loss, number(o, "n", 1));
		return true;
	}
	if (json_object_get(o, "rate") && p->run) {
		store_rate(p->w, p->run, process_of(p, o), at_ns(o, "at"), number(o, "rate", 0));
		return true;
	}
	if (json_object_get(o, "note") && p->run) {
		store_process_note(p->w, p->run, process_of(p, o), text(o, "note", ""),
				   text(o, "text", ""));
		return true;
	}
	return false;
}

int main(int argc, char **argv)
{
	struct store_writer_opts opts = {.dir = argc > 1 ? argv[1] : NULL, .max_bytes = 256u << 20};
	struct put p = {0};
	struct err e = {0};
	json_error_t why;
	json_t *o;
	int line = 0, rc = 0;

	if (argc != 2 || store_writer_open(&opts, &p.w, &e)) {
		fprintf(stderr, "putstore DIR < LINES\n%s\n", e.what);
		return EXIT_USAGE;
	}
	while (!rc && (o = json_loadf(stdin, JSON_DISABLE_EOF_CHECK, &why))) {
		line++;
		if (!put_one(&p, o)) {
			fprintf(stderr, "putstore: object %d is not understood\n", line);
			rc = 1;
		}
		json_decref(o);
	}
	if (!feof(stdin) && !rc) {
		fprintf(stderr, "putstore: after object %d: %s\n", line, why.text);
		rc = 1;
	}
	return store_writer_close(p.w, 60000, &e) ? err_report(&e, "putstore") : rc;
}
