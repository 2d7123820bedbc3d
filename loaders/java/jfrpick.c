/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/java/jfrpick.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/java/jfrblock.h"
#include "schema/base/array.h"
#include "schema/base/hash.h"
#include "schema/base/idmap.h"
#include "schema/base/mem.h"
#include "schema/jfr/jfr.h"

#define TEXTS_MAX  (24u << 20) /* bytes */
#define FRAMES_MAX (1u << 20)
#define WORDS_MAX  (8u << 20)
#define TEXT_MAX   1000u /* bytes of one text */
#define STATE_AT   64u
#define POOLS_AT   16u

struct pick {
	const struct jfrpick_opts *o;
	uint64_t limit; /* live: events that begin here or later are left to the next reading */
	struct jfrblock_head head;
	char *texts;
	size_t cap_texts;
	struct idmap text_of; /* hash -> place */
	struct jfrblock_frame *frames;
	size_t cap_frames;
	struct idmap frame_of;
	uint32_t *words;
	size_t cap_words;
	struct jfrblock_stack *stacks;
	size_t cap_stacks;
	struct idmap stack_of;
	struct jfrblock_event *events;
	size_t cap_events;
};

static uint64_t big(const unsigned char *at, size_t size)
{
	uint64_t v = 0;

	for (size_t i = 0; i < size; i++)
		v = v << 8 | at[i];
	return v;
}

bool jfrpick_header(const unsigned char *h, bool *finished)
{
	/* 255: it is being written */
	if (memcmp(h, "FLR", 4) != 0 || big(h + 4, 2) != 2 || h[STATE_AT] == 255 || !big(h + 24, 8))
		return false;
	if (finished)
		*finished = !h[STATE_AT];
	return true;
}

/* ---- texts, frames and stacks, each once ---- */

/* Its place. Too many, or too long, are "". */
static uint32_t text(struct pick *p, const char *s)
{
	const size_t n = strnlen(s, TEXT_MAX);
	const uint64_t key = hash_bytes(HASH_SEED, s, n);
	uint64_t at;

	if (!n)
		return 0;
	if (idmap_get(&p->text_of, key, &at))
		return (uint32_t)at;
	if (p->head.text_bytes + n + 1 > TEXTS_MAX)
		return 0;
	if (p->head.text_bytes + n + 1 > p->cap_texts) {
		p->cap_texts = (p->head.text_bytes + n + 1) * 2;
		p->texts = mem_realloc(p->texts, p->cap_texts);
	}
	at = p->head.text_bytes;
	memcpy(p->texts + at, s, n);
	p->texts[at + n] = '\0';
	p->head.text_bytes += (uint32_t)n + 1;
	idmap_set(&p->text_of, key, at);
	return (uint32_t)at;
}

/* "[[I" is "int[][]", "[Ljava.lang.String;" is "java.lang.String[]". */
static uint32_t class_text(struct pick *p, const char *name)
{
	static const struct {
		char code;
		const char *name;
	} basic[] = {{'B', "byte"}, {'C', "char"}, {'D', "double"}, {'F', "float"},
		     {'I', "int"},  {'J', "long"}, {'S', "short"},  {'Z', "boolean"}};
	char out[TEXT_MAX + 1];
	const size_t depth = strspn(name, "[");
	size_t n = 0;

	if (!depth || depth > 32)
		return text(p, name);
	name += depth;
	if (*name == 'L')
		n = (size_t)snprintf(out, sizeof(out) - 80, "%.*s", (int)strcspn(name + 1, ";"),
				     name + 1);
	for (size_t i = 0; i < ARRAY_SIZE(basic); i++)
		if (*name == basic[i].code)
			n = (size_t)snprintf(out, sizeof(out), "%s", basic[i].name);
	if (n >= sizeof(out) - 80)
		n = sizeof(out) - 81;
	for (size_t i = 0; i < depth; i++)
		n += (size_t)snprintf(out + n, sizeof(out) - n, "[]");
	return text(p, out);
}

static uint32_t frame(struct pick *p, const struct jfr_frame *fr)
{
	char name[TEXT_MAX + 1];
	struct jfrblock_frame f = {.line = fr->line};
	uint64_t key, at;

	snprintf(name, sizeof(name), "%s%s%s", fr->class_name, *fr->class_name ? "." : "",
		 *fr->method ? fr->method : "[unknown]");
	f.function = text(p, name);
	key = (uint64_t)f.function << 32 | f.line;
	if (idmap_get(&p->frame_of, key, &at))
		return (uint32_t)at;
	at = p->head.n_frames;
	mem_grow(p->frames, p->head.n_frames, p->cap_frames);
	p->frames[p->head.n_frames++] = f;
	idmap_set(&p->frame_of, key, at);
	return (uint32_t)at;
}

/* 0: none, or no room. */
static uint32_t stack(struct pick *p, const struct jfr_event *ev)
{
	const struct jfr_frame *frames;
	uint32_t words[JFRBLOCK_DEPTH];
	bool truncated;
	size_t n = jfr_stack(ev, &frames, &truncated);
	uint64_t key, at;

	n = n < JFRBLOCK_DEPTH ? n : JFRBLOCK_DEPTH;
	if (!n || p->head.n_words + n > WORDS_MAX || p->head.n_frames + n > FRAMES_MAX)
		return 0;
	for (size_t i = 0; i < n; i++)
		words[i] = frame(p, &frames[i]);
	key = hash_bytes(HASH_SEED, words, n * sizeof(*words));
	if (idmap_get(&p->stack_of, key, &at))
		return (uint32_t)at;
	at = p->head.n_stacks;
	mem_grow(p->stacks, p->head.n_stacks, p->cap_stacks);
	p->stacks[p->head.n_stacks++] =
		(struct jfrblock_stack){.first = p->head.n_words, .n = (uint32_t)n};
	for (size_t i = 0; i < n; i++) {
		mem_grow(p->words, p->head.n_words, p->cap_words);
		p->words[p->head.n_words++] = words[i];
	}
	idmap_set(&p->stack_of, key, at);
	return (uint32_t)at;
}

/* ---- events ---- */

enum worth { BY_ONE, BY_NUMBER, BY_SPAN };

static const struct kind {
	const char *type;
	enum jfrblock_what what;
	enum worth worth;
	const char *value, *name, *other;
} KINDS[] = {
	{"jdk.ObjectAllocationSample", JFRBLOCK_ALLOC, BY_NUMBER, "weight", "objectClass", NULL},
	{"jdk.ObjectAllocationInNewTLAB", JFRBLOCK_TLAB, BY_NUMBER, "tlabSize", "objectClass",
	 NULL},
	{"jdk.ObjectAllocationOutsideTLAB", JFRBLOCK_TLAB, BY_NUMBER, "allocationSize",
	 "objectClass", NULL},
	{"jdk.JavaMonitorEnter", JFRBLOCK_LOCK, BY_SPAN, "duration", "monitorClass",
	 "previousOwner"},
	{"jdk.ThreadPark", JFRBLOCK_PARK, BY_SPAN, "duration", "parkedClass", NULL},
	{"jdk.JavaMonitorWait", JFRBLOCK_WAIT, BY_SPAN, "duration", "monitorClass", NULL},
	{"jdk.JavaExceptionThrow", JFRBLOCK_EXCEPTION, BY_ONE, NULL, "thrownClass", NULL},
	{"jdk.GarbageCollection", JFRBLOCK_GC, BY_SPAN, "sumOfPauses", "name", "cause"},
	{"jdk.ThreadStart", JFRBLOCK_THREAD, BY_ONE, NULL, NULL, NULL},
};

static uint64_t amount(const struct jfr_event *ev, enum worth worth, const char *field)
{
	int64_t v = 0;

	if (worth == BY_ONE)
		return 1;
	if (worth == BY_SPAN)
		jfr_span_ns(ev, field, &v);
	else
		jfr_number(ev, field, &v);
	return v > 0 && v < INT64_MAX / 4 ? (uint64_t)v : 0;
}

static void fill(struct pick *p, const struct jfr_event *ev, const struct kind *k,
		 struct jfrblock_event *e)
{
	struct jfr_thread t = {.name = ""};

	*e = (struct jfrblock_event){.start_ns = jfr_start_ns(ev),
				     .what = k->what,
				     .value = amount(ev, k->worth, k->value)};
	if (k->what == JFRBLOCK_GC) {
		e->longest = amount(ev, BY_SPAN, "longestPause");
		e->name = text(p, jfr_text(ev, k->name));
		e->other = text(p, jfr_text(ev, k->other));
		return;
	}
	if (k->name)
		e->name = class_text(p, jfr_text(ev, k->name));
	if (k->other && jfr_thread_of(ev, k->other, &t))
		e->other = text(p, t.name);
	if (jfr_thread_of(ev, k->what == JFRBLOCK_THREAD ? "thread" : "eventThread", &t)) {
		e->thread = text(p, t.name);
		e->tid = t.tid;
		e->java_id = t.java_id;
	}
	if (k->what != JFRBLOCK_THREAD)
		e->stack = stack(p, ev);
}

static bool is_read(const struct pick *p, const struct jfr_event *ev)
{
	return p->o->live ? jfr_place(ev) >= p->o->since && jfr_place(ev) < p->limit :
			    jfr_chunk_ns(ev) > p->o->after_chunk_ns;
}

static int each(void *ctx, const struct jfr_event *ev)
{
	struct pick *p = ctx;
	const char *type = jfr_type(ev);
	const struct kind *k = NULL;

	if (jfr_chunk_ns(ev) > p->head.chunk_ns)
		p->head.chunk_ns = jfr_chunk_ns(ev);
	if (!is_read(p, ev))
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(KINDS) && !k; i++)
		k = strcmp(KINDS[i].type, type) ? NULL : &KINDS[i];
	if (!k)
		return 0;
	if (p->head.n_events >= JFRBLOCK_EVENTS_MAX) {
		p->head.left_out++;
		return 0;
	}
	mem_grow(p->events, p->head.n_events, p->cap_events);
	fill(p, ev, k, &p->events[p->head.n_events]);
	p->head.n_events += p->events[p->head.n_events].start_ns > 0;
	return 0;
}

/* ---- the block ---- */

static void *compose(const struct pick *p, size_t *size)
{
	struct jfrblock_places at;
	char *out;

	jfrblock_places(&p->head, &at);
	out = mem_alloc(at.end);
	memset(out, 0, at.end);
	memcpy(out, &p->head, sizeof(p->head));
	memcpy(out + at.texts, p->texts, p->head.text_bytes);
	if (p->head.n_frames)
		memcpy(out + at.frames, p->frames, p->head.n_frames * sizeof(*p->frames));
	if (p->head.n_words)
		memcpy(out + at.words, p->words, p->head.n_words * sizeof(*p->words));
	memcpy(out + at.stacks, p->stacks, p->head.n_stacks * sizeof(*p->stacks));
	if (p->head.n_events)
		memcpy(out + at.events, p->events, p->head.n_events * sizeof(*p->events));
	*size = at.end;
	return out;
}

static void begin(struct pick *p)
{
	p->head.magic = JFRBLOCK_MAGIC;
	p->cap_texts = 65536;
	p->texts = mem_alloc(p->cap_texts);
	p->texts[0] = '\0'; /* text 0 is "" */
	p->head.text_bytes = 1;
	mem_grow(p->stacks, p->head.n_stacks, p->cap_stacks);
	p->stacks[p->head.n_stacks++] = (struct jfrblock_stack){0}; /* stack 0 is empty */
}

static void release(struct pick *p)
{
	free(p->texts);
	free(p->frames);
	free(p->words);
	free(p->stacks);
	free(p->events);
	idmap_release(&p->text_of);
	idmap_release(&p->frame_of);
	idmap_release(&p->stack_of);
}

/* Where a reading of a growing chunk ends. */
static bool limit_find(struct pick *p, const unsigned char *data, size_t len)
{
	bool finished;

	if (len < JFRPICK_HEADER || !jfrpick_header(data, &finished))
		return false;
	p->limit = finished ? UINT64_MAX : big(data + POOLS_AT, 8);
	return true;
}

int jfrpick(const void *data, size_t len, const struct jfrpick_opts *o, void **block, size_t *size)
{
	struct pick p = {.o = o, .limit = UINT64_MAX};
	struct jfr_totals totals;
	const char *why;
	int rc;

	if (o->live && !limit_find(&p, data, len))
		return -EBADMSG;
	begin(&p);
	rc = jfr_read(data, len, each, &p, &totals, &why);
	if (!rc) {
		p.head.end = p.limit < totals.end ? p.limit : totals.end;
		*block = compose(&p, size);
	}
	release(&p);
	return rc ? -EBADMSG : 0;
}
