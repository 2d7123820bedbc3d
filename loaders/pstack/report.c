/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/pstack/report.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/strbuf.h"
#include "schema/base/units.h"

#define NAMES_SHOWN 4

static int by_process(const void *a, const void *b)
{
	const struct thread *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	if (x->blocked_ns != y->blocked_ns)
		return x->blocked_ns > y->blocked_ns ? -1 : 1;
	return x->tid < y->tid ? -1 : x->tid > y->tid;
}

static bool same(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static bool same_watches(const struct thread *a, const struct thread *b)
{
	if (a->n_watches != b->n_watches || a->more_watches != b->more_watches)
		return false;
	for (size_t i = 0; i < a->n_watches; i++)
		if (!same(a->watches[i].on, b->watches[i].on) ||
		    !same(a->watches[i].peer, b->watches[i].peer))
			return false;
	return true;
}

static bool same_place(const struct thread *a, const struct thread *b)
{
	if (!same(a->state, b->state) || !same(a->reason, b->reason) ||
	    !same(a->syscall, b->syscall) || !same(a->on, b->on) || !same(a->peer, b->peer) ||
	    !same_watches(a, b) || a->stack.n != b->stack.n || !same(a->gil, b->gil) ||
	    !same(a->end, b->end) || a->moved != b->moved)
		return false;
	for (size_t i = 0; i < a->stack.n; i++) {
		const struct named_frame *x = &a->stack.frames[i], *y = &b->stack.frames[i];

		if (!same(x->function, y->function) || !same(x->module, y->module) ||
		    !same(x->file, y->file) || x->line != y->line || x->offset != y->offset)
			return false;
	}
	return true;
}

static void add_shown(struct strbuf *to, const char *s)
{
	strbuf_addshown(to, s, strlen(s));
}

static void duration(struct strbuf *to, int64_t ns)
{
	char text[UNITS_MAX];

	strbuf_addstr(to, ns < 0 ? "unknown" : units_ns(ns, text, sizeof(text)));
}

static void frame_text(struct strbuf *to, const struct named_frame *f)
{
	const char *base = f->file ? strrchr(f->file, '/') : NULL;

	strbuf_addstr(to, "      ");
	if (f->function)
		add_shown(to, f->function);
	else if (f->offset)
		strbuf_addf(to, "+0x%" PRIx64, f->offset);
	else
		strbuf_addstr(to, "?");
	strbuf_addstr(to, "  ");
	if (f->line) {
		add_shown(to, base ? base + 1 : f->file ? f->file : "?");
		strbuf_addf(to, ":%u", f->line);
	} else {
		add_shown(to, f->module);
	}
	if (f->runtime)
		strbuf_addf(to, "  (%s)", f->runtime);
	strbuf_addstr(to, f->inlined ? "  (inlined)\n" : "\n");
}

static void end_text(struct strbuf *to, const char *on, const char *peer)
{
	add_shown(to, on);
	if (peer) {
		strbuf_addstr(to, " (");
		add_shown(to, peer);
		strbuf_addch(to, ')');
	}
}

/* " on 10.0.0.5:5432", " on 10.0.0.5:5432, port 80 and 3 more sockets" */
static void socket_text(struct strbuf *to, const struct thread *t)
{
	if (t->on || t->n_watches)
		strbuf_addstr(to, " on ");
	if (t->on)
		end_text(to, t->on, t->peer);
	for (size_t i = 0; i < t->n_watches; i++) {
		strbuf_addstr(to, i ? ", " : "");
		end_text(to, t->watches[i].on, t->watches[i].peer);
	}
	if (t->more_watches)
		strbuf_addf(to, " and %zu more socket%s", t->more_watches,
			    t->more_watches == 1 ? "" : "s");
}

/* "2 threads: a, b  sleeping, poll (epoll_wait)  for 1.2 s to 3.4 s" */
static void group_text(struct strbuf *to, const struct thread *const *group, size_t n)
{
	const struct thread *t = group[0], *last = group[n - 1];

	strbuf_addf(to, "  %zu thread%s: ", n, n == 1 ? "" : "s");
	for (size_t i = 0; i < n && i < NAMES_SHOWN; i++) {
		strbuf_addstr(to, i ? ", " : "");
		add_shown(to, group[i]->name);
		strbuf_addf(to, " %u", group[i]->tid);
	}
	strbuf_addf(to, "%s  %s, %s", n > NAMES_SHOWN ? ", ..." : "", t->state,
		    t->reason ? t->reason : "other");
	if (t->syscall)
		strbuf_addf(to, " (%s)", t->syscall);
	socket_text(to, t);
	strbuf_addstr(to, "  for ");
	duration(to, last->blocked_ns);
	if (last->blocked_ns != t->blocked_ns) {
		strbuf_addstr(to, " to ");
		duration(to, t->blocked_ns);
	}
	if (t->gil)
		strbuf_addf(to, "  %s the GIL", *t->gil == 'h' ? "holds" : "waits for");
	strbuf_addch(to, '\n');
	for (size_t i = 0; i < t->stack.n; i++)
		frame_text(to, &t->stack.frames[i]);
	if (t->moved)
		strbuf_addstr(to, "      [it ran while it was read]\n");
	else if (t->end)
		strbuf_addf(to, "      [the stack ends here: %s]\n", t->end);
}

static size_t shown_of(const struct report *r, uint64_t most)
{
	return most && most < r->n ? (size_t)most : r->n;
}

static size_t process_end(const struct report *r, size_t from)
{
	size_t to = from;

	while (to < r->n && r->threads[to].pid == r->threads[from].pid)
		to++;
	return to;
}

/* Its threads up to `most`. */
static void process_text(struct strbuf *to, const struct report *r, size_t from, size_t end,
			 size_t most)
{
	const struct thread **group = calloc(end - from, sizeof(*group)), *t = &r->threads[from];
	bool *shown = calloc(end - from, sizeof(*shown));

	add_shown(to, t->process);
	strbuf_addf(to, " %u", t->pid);
	if (t->container) {
		strbuf_addstr(to, "  container ");
		add_shown(to, t->container);
	}
	strbuf_addf(to, "  %zu thread%s blocked\n", end - from, end - from == 1 ? "" : "s");
	end = end < most ? end : most;
	for (size_t i = from; group && shown && i < end; i++) {
		size_t n = 0;

		if (shown[i - from])
			continue;
		for (size_t k = i; k < end; k++)
			if (!shown[k - from] && same_place(&r->threads[i], &r->threads[k])) {
				shown[k - from] = true;
				group[n++] = &r->threads[k];
			}
		group_text(to, group, n);
	}
	strbuf_addch(to, '\n');
	free(group);
	free(shown);
}

void report_text(struct report *r, uint64_t most, FILE *out)
{
	struct strbuf text cleanup_strbuf = STRBUF_INIT;
	const size_t shown = shown_of(r, most);
	size_t processes = 0;

	if (r->n)
		qsort(r->threads, r->n, sizeof(*r->threads), by_process);
	for (size_t from = 0, to; from < r->n; from = to, processes++) {
		to = process_end(r, from);
		if (from < shown)
			process_text(&text, r, from, to, shown);
	}
	if (shown < r->n)
		strbuf_addf(&text, "%zu more threads: -n 0 shows all\n", r->n - shown);
	strbuf_addf(&text, "%zu thread%s of %zu process%s blocked, %zu running or ready\n", r->n,
		    r->n == 1 ? "" : "s", processes, processes == 1 ? "" : "es", r->running);
	fputs(strbuf_str(&text), out);
}

/* --- JSON --- */

static json_t *text(const char *s)
{
	struct strbuf b cleanup_strbuf = STRBUF_INIT;

	if (!s)
		return json_null();
	strbuf_addutf8(&b, s, strlen(s));
	return json_string(strbuf_str(&b));
}

static json_t *number(int64_t v, bool known)
{
	return known ? json_integer(v) : json_null();
}

static json_t *frame_json(const struct named_frame *f)
{
	json_t *o = json_object();

	json_object_set_new(o, "function", text(f->function));
	json_object_set_new(o, "module", text(f->module));
	json_object_set_new(o, "file", text(f->file));
	json_object_set_new(o, "line", number(f->line, f->line != 0));
	json_object_set_new(o, "offset", number((int64_t)f->offset, !f->function));
	json_object_set_new(o, "inlined", json_boolean(f->inlined));
	json_object_set_new(o, "kernel", json_boolean(f->kernel));
	json_object_set_new(o, "runtime", text(f->runtime));
	return o;
}

static json_t *watches_json(const struct thread *t)
{
	json_t *all = json_array();

	for (size_t i = 0; i < t->n_watches; i++) {
		json_t *o = json_object();

		json_object_set_new(o, "on", text(t->watches[i].on));
		json_object_set_new(o, "peer", text(t->watches[i].peer));
		json_array_append_new(all, o);
	}
	return all;
}

static json_t *thread_json(const struct thread *t)
{
	json_t *o = json_object(), *frames = json_array();

	json_object_set_new(o, "container", text(t->container));
	json_object_set_new(o, "comm", text(t->process));
	json_object_set_new(o, "pid", json_integer(t->pid));
	json_object_set_new(o, "thread", text(t->name));
	json_object_set_new(o, "tid", json_integer(t->tid));
	json_object_set_new(o, "state", text(t->state));
	json_object_set_new(o, "reason", text(t->reason));
	json_object_set_new(o, "syscall", text(t->syscall));
	json_object_set_new(o, "wchan", text(t->wchan));
	json_object_set_new(o, "on", text(t->on));
	json_object_set_new(o, "peer", text(t->peer));
	json_object_set_new(o, "watches", watches_json(t));
	json_object_set_new(o, "more_watches", json_integer((json_int_t)t->more_watches));
	json_object_set_new(o, "since_boot_ns", number(t->since_ns, t->since_ns > 0));
	json_object_set_new(o, "blocked_ns", number(t->blocked_ns, t->blocked_ns >= 0));
	json_object_set_new(o, "gil", text(t->gil));
	json_object_set_new(o, "moved", json_boolean(t->moved));
	json_object_set_new(o, "end", text(t->end));
	for (size_t i = 0; i < t->stack.n; i++)
		json_array_append_new(frames, frame_json(&t->stack.frames[i]));
	json_object_set_new(o, "frames", frames);
	return o;
}

static void time_set(json_t *o, const char *key, int64_t ns)
{
	char text[UNITS_MAX], name[32];

	snprintf(name, sizeof(name), "%s_ns", key);
	json_object_set_new(o, key, json_string(units_utc(ns, 9, text, sizeof(text))));
	json_object_set_new(o, name, json_integer(ns));
}

int report_json(struct report *r, uint64_t most, FILE *out)
{
	const size_t shown = shown_of(r, most);
	json_t *o = json_object(), *rows = json_array(), *warnings = json_array();
	int rc;

	if (r->n)
		qsort(r->threads, r->n, sizeof(*r->threads), by_process);
	json_object_set_new(o, "schema", json_string("sonde.pstack/1"));
	time_set(o, "from", r->utc_ns);
	time_set(o, "to", r->utc_ns);
	for (size_t i = 0; i < shown; i++)
		json_array_append_new(rows, thread_json(&r->threads[i]));
	json_object_set_new(o, "rows", rows);
	json_object_set_new(o, "total", json_integer((json_int_t)r->n));
	json_object_set_new(o, "rest", json_integer((json_int_t)(r->n - shown)));
	if (shown < r->n)
		json_array_append_new(warnings, json_sprintf("%zu more rows: -n %zu shows them",
							     r->n - shown, r->n));
	json_object_set_new(o, "running", json_integer((json_int_t)r->running));
	if (r->warning[0])
		json_array_append_new(warnings, text(r->warning));
	json_object_set_new(o, "warnings", warnings);
	rc = json_dumpf(o, out, JSON_INDENT(2)) || fputc('\n', out) == EOF ? -EIO : 0;
	json_decref(o);
	return rc;
}

void report_release(struct report *r)
{
	for (size_t i = 0; i < r->n; i++)
		thread_release(&r->threads[i]);
	free(r->threads);
}
