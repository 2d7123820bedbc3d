/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/java/javastore.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/lib/bpf/run/events.h"
#include "loaders/lib/host/maps/hostmaps.h"
#include "loaders/lib/host/names/naming.h"
#include "probes/lib/stack.h"
#include "schema/base/array.h"
#include "schema/base/clock.h"
#include "schema/base/hash.h"
#include "schema/base/runtimes.h"
#include "schema/facts/java.h"
#include "schema/store/model/hist.h"
#include "schema/store/write/writer.h"

#define TRIES        3
#define LOG_MOST     200      /* single waits a second of a program */
#define PAUSE_MIN_NS 10000000 /* of a collection that is an event */
#define VIRTUAL_NS   NSEC_PER_SEC

static const struct kind {
	enum store_kind kind; /* 0: it is not counted by stack */
	const char *leaf;     /* before the class's name in the innermost frame */
	const char *wait;     /* in table java_wait_row */
	bool lasts;           /* its value is a time, which ends at start + value */
} KINDS[JFRBLOCK_KINDS] = {
	[JFRBLOCK_ALLOC] = {STORE_KIND_JAVAALLOC, "new ", NULL, false},
	[JFRBLOCK_TLAB] = {STORE_KIND_JAVAALLOC, "new ", NULL, false},
	[JFRBLOCK_LOCK] = {STORE_KIND_JAVALOCK, "monitor ", "monitor", true},
	[JFRBLOCK_PARK] = {STORE_KIND_JAVAPARK, "park ", "park", true},
	[JFRBLOCK_WAIT] = {STORE_KIND_JAVAPARK, "wait ", "wait", true},
	[JFRBLOCK_EXCEPTION] = {STORE_KIND_JAVAEXCEPTION, "", NULL, false},
};

struct storing {
	struct java_target *t;
	const struct jfrblock *b;
	const struct jfrblock_event *e;
	uint64_t value;
	int64_t end_ns;
	uint32_t runtime;
	uint64_t frames[JFRBLOCK_DEPTH + 1];
};

/* ---- stacks ---- */

static uint32_t tid_of(const struct java_target *t, uint32_t theirs)
{
	uint64_t here;

	if (!theirs || t->process->nspid == t->process->tgid)
		return theirs;
	return idmap_get(t->tids, theirs, &here) ? (uint32_t)here : 0;
}

/* A monitor, or one of java.util.concurrent's locks, whose classes end in Sync. */
static bool waits_for_lock(const char *kind, const char *class_name)
{
	return kind &&
	       (!strcmp(kind, "monitor") || (!strcmp(kind, "park") && strstr(class_name, "Sync") &&
					     !strstr(class_name, "SynchronousQueue")));
}

static uint32_t runtime_java(void)
{
	uint32_t i = 0;

	while (i < RUNTIMES_MAX && strcmp(runtime_name(i), "java") != 0)
		i++;
	return i;
}

static uint64_t word(const struct storing *s, const char *function, uint32_t line)
{
	return naming_script_word(s->t->h->naming, s->runtime, 0, function, "", line);
}

/* The class is the innermost frame: what was allocated, thrown or waited for. */
static uint16_t frames_make(struct storing *s)
{
	const struct jfrblock_stack *st = &s->b->stacks[s->e->stack];
	const char *name = s->b->texts + s->e->name;
	char leaf[1100];
	uint16_t n = 0;

	if (*name) {
		snprintf(leaf, sizeof(leaf), "%s%s", KINDS[s->e->what].leaf, name);
		s->frames[n++] = word(s, leaf, 0);
	}
	for (uint32_t i = 0; i < st->n; i++) {
		const struct jfrblock_frame *f = &s->b->frames[s->b->words[st->first + i]];

		s->frames[n++] = word(s, s->b->texts + f->function, f->line);
	}
	return n;
}

static uint32_t series_make(struct storing *s, const char *labels)
{
	const struct hostmaps_process *p = s->t->process;
	struct stack_event ev = {.time_ns = hostmaps_watermark(s->t->h->maps),
				 .start_ns = p->start_ns,
				 .tgid = p->tgid,
				 .tid = tid_of(s->t, s->e->tid),
				 .exec_id = p->exec_id,
				 .end = STACK_END_ROOT};
	struct naming_result named;
	char thread[STACK_COMM_LEN + 1];
	uint32_t tid = ev.tid;

	strncpy(ev.thread, s->b->texts + s->e->thread, sizeof(ev.thread) - 1);
	ev.n_user = frames_make(s);
	naming_stack(s->t->h->naming, &ev, s->frames, &named);
	naming_thread(&named, ev.thread, thread, &tid);
	s->t->row = named.process;
	return store_series_told(s->t->h->store, s->t->h->run, named.process, thread, tid,
				 named.stack, KINDS[s->e->what].kind, 0, labels);
}

/* {"owner":"worker-3"}; "": not known, or too long. */
static void labels_make(const struct storing *s, char *out, size_t size)
{
	const char *at = s->b->texts + s->e->other;
	size_t n;

	*out = '\0';
	if (s->e->what != JFRBLOCK_LOCK || !*at)
		return;
	n = (size_t)snprintf(out, size, "{\"owner\":\"");
	for (; *at && n + 10 < size; at++)
		if (*at == '"' || *at == '\\' || (unsigned char)*at < ' ')
			n += (size_t)snprintf(out + n, size - n, "\\u%04x", (unsigned char)*at);
		else
			out[n++] = *at;
	snprintf(out + n, size - n, "\"}");
	if (*at)
		*out = '\0';
}

static void stack_store(struct storing *s)
{
	const uint32_t one = 1;
	const bool lasts = KINDS[s->e->what].lasts;
	const struct store_amount a = {.n = 1,
				       .value = s->value,
				       .max = lasts ? s->value : 0,
				       .hist = lasts ? &one : NULL,
				       .n_hist = lasts,
				       .first_slot = lasts ? hist_slot(s->value) : 0};
	char labels[400];
	int rc = -ESTALE;

	labels_make(s, labels, sizeof(labels));
	for (int i = 0; i < TRIES && rc == -ESTALE; i++)
		rc = store_amount(s->t->h->store, series_make(s, labels), s->end_ns, &a);
	if (rc)
		s->t->h->refused++;
	else
		s->t->h->added++;
}

/* ---- waits by what was waited for ---- */

static bool is_library(const char *function)
{
	static const char *const prefixes[] = {"java.", "javax.", "jdk.", "sun.", "com.sun."};

	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
		if (!strncmp(function, prefixes[i], strlen(prefixes[i])))
			return true;
	return false;
}

/* "Shop.pay:42": the innermost function that is not the Java library's; else the innermost. */
static void place_of(const struct storing *s, char *out, size_t size)
{
	const struct jfrblock_stack *st = &s->b->stacks[s->e->stack];
	const struct jfrblock_frame *found = NULL;

	for (uint32_t i = 0; i < st->n; i++) {
		const struct jfrblock_frame *f = &s->b->frames[s->b->words[st->first + i]];

		if (!found)
			found = f;
		if (!is_library(s->b->texts + f->function)) {
			found = f;
			break;
		}
	}
	if (found && found->line)
		snprintf(out, size, "%s:%u", s->b->texts + found->function, found->line);
	else
		snprintf(out, size, "%s", found ? s->b->texts + found->function : "");
}

static void wait_store(struct storing *s)
{
	struct fact_row row = {0};
	char place[1100];

	place_of(s, place, sizeof(place));
	fact_put_text(&row, JAVA_WAIT_KIND, KINDS[s->e->what].wait);
	fact_put_text(&row, JAVA_WAIT_CLASS, s->b->texts + s->e->name);
	fact_put_text(&row, JAVA_WAIT_OWNER, s->b->texts + s->e->other);
	fact_put_text(&row, JAVA_WAIT_PLACE, place);
	fact_put(&row, JAVA_WAIT_N, 1);
	fact_put(&row, JAVA_WAIT_NS, s->value);
	event_row_put(s->t->h, s->end_ns, &JAVA_WAIT_FACT, &row, JAVA_WAIT_PROCESS, s->t->process);
}

/* One by one; ids of 60 bits. */
static void wait_log(struct storing *s)
{
	struct java_samples *past = s->t->samples;
	const int64_t key[2] = {s->e->start_ns, s->e->tid};
	struct fact_row row = {0};
	char place[1100];

	if (s->end_ns / (int64_t)NSEC_PER_SEC != past->log_s) {
		past->log_s = s->end_ns / (int64_t)NSEC_PER_SEC;
		past->log_n = 0;
	}
	if (past->log_n >= LOG_MOST) {
		past->log_left_out++;
		return;
	}
	past->log_n++;
	place_of(s, place, sizeof(place));
	fact_put(&row, JAVA_WAIT_LOG_ID, hash_bytes(HASH_SEED, key, sizeof(key)) >> 4);
	fact_put(&row, JAVA_WAIT_LOG_TID, tid_of(s->t, s->e->tid));
	fact_put(&row, JAVA_WAIT_LOG_AT, (uint64_t)(s->end_ns - (int64_t)s->value) / 1000);
	fact_put(&row, JAVA_WAIT_LOG_NS, s->value);
	fact_put_text(&row, JAVA_WAIT_LOG_KIND, KINDS[s->e->what].wait);
	fact_put_text(&row, JAVA_WAIT_LOG_CLASS, s->b->texts + s->e->name);
	fact_put_text(&row, JAVA_WAIT_LOG_OWNER, s->b->texts + s->e->other);
	fact_put_text(&row, JAVA_WAIT_LOG_PLACE, place);
	event_row_put(s->t->h, s->end_ns, &JAVA_WAIT_LOG_FACT, &row, JAVA_WAIT_LOG_PROCESS,
		      s->t->process);
}

/* ---- collections ---- */

static void pause_store(const struct storing *s)
{
	char detail[200];
	const struct event v = {.kind = "gc pause",
				.subject = "process",
				.name = s->t->process->comm,
				.detail = detail,
				.process = s->t->process,
				.utc_ns = s->e->start_ns};

	if (s->e->longest < PAUSE_MIN_NS)
		return;
	snprintf(detail, sizeof(detail), "%.60s (%.60s): %.1f ms, the longest pause %.1f ms",
		 s->b->texts + s->e->name, s->b->texts + s->e->other, (double)s->e->value / 1e6,
		 (double)s->e->longest / 1e6);
	event_put(s->t->h, &v);
}

/* ---- all of it ---- */

static void threads_note(struct java_target *t, const struct jfrblock *b)
{
	for (uint32_t i = 0; i < b->head->n_events; i++)
		if (b->events[i].what == JFRBLOCK_THREAD && b->events[i].tid)
			idmap_set(&t->samples->threads, b->events[i].tid, 1);
}

static bool is_first(struct java_samples *s, const struct jfrblock_event *e)
{
	uint64_t had;

	if (e->what != JFRBLOCK_ALLOC)
		return false;
	if (!e->tid)
		return e->start_ns < s->begun_ns + VIRTUAL_NS;
	if (idmap_get(&s->threads, e->tid, &had))
		return false;
	idmap_set(&s->threads, e->tid, 1);
	return true;
}

/* Of what began before the recording only the part within it counts. */
static bool clip(struct storing *s)
{
	const int64_t begun = s->t->samples->begun_ns;

	s->value = s->e->value;
	s->end_ns = s->e->start_ns;
	/* Java 25 may give each the time at which its machine began */
	if (s->e->what == JFRBLOCK_EXCEPTION && s->end_ns < begun)
		s->end_ns = clock_utc_ns();
	if (!KINDS[s->e->what].lasts)
		return s->end_ns >= begun;
	s->end_ns += (int64_t)s->value;
	if (s->e->start_ns < begun)
		s->value = s->end_ns > begun ? (uint64_t)(s->end_ns - begun) : 0;
	return s->value > 0;
}

void javastore_block(struct java_target *t, const struct jfrblock *b)
{
	struct storing s = {.t = t, .b = b, .runtime = runtime_java()};

	threads_note(t, b);
	for (uint32_t i = 0; i < b->head->n_events; i++) {
		s.e = &b->events[i];
		if (s.e->what == JFRBLOCK_GC && s.e->start_ns >= t->samples->begun_ns)
			pause_store(&s);
		if (!KINDS[s.e->what].kind || !clip(&s))
			continue;
		t->exceptions += s.e->what == JFRBLOCK_EXCEPTION;
		if (is_first(t->samples, s.e)) {
			t->samples->dropped++;
			continue;
		}
		stack_store(&s);
		if (KINDS[s.e->what].wait)
			wait_store(&s);
		if (s.e->tid && waits_for_lock(KINDS[s.e->what].wait, b->texts + s.e->name))
			wait_log(&s);
	}
}

/* ---- notes ---- */

void javastore_state(struct family_host *h, struct hostmaps_process *p, const struct java_state *s)
{
	const uint32_t row = naming_row(h->naming, p);
	char left[32] = "", waits[32] = "";

	if (s->left_out)
		snprintf(left, sizeof(left), "%llu", (unsigned long long)s->left_out);
	if (s->waits_left_out)
		snprintf(waits, sizeof(waits), "%llu", (unsigned long long)s->waits_left_out);
	store_process_note(h->store, h->run, row, "waits_left_out", waits);
	store_process_note(h->store, h->run, row, "state", s->state);
	store_process_note(h->store, h->run, row, "reason", s->reason);
	store_process_note(h->store, h->run, row, "version", s->version);
	store_process_note(h->store, h->run, row, "mode", s->mode);
	store_process_note(h->store, h->run, row, "left_out", left);
}
