/* SPDX-License-Identifier: Apache-2.0 */
/* reading: the reader itself (reader.h): files, sources, and what it answers. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <uthash.h>

#include "loaders/lib/host/journal/journalfile.h"
#include "loaders/lib/sandbox/sandbox.h"
#include "loaders/logs/counts.h"
#include "loaders/logs/follow.h"
#include "loaders/logs/reader.h"
#include "loaders/logs/unitname.h"
#include "schema/base/clock.h"
#include "schema/base/file/fdpass.h"
#include "schema/base/mem.h"

#define READ_MOST    (64u << 20)        /* bytes in answer to one READ */
#define FILE_MOST    (8u << 20)         /* of one file, before the others come */
#define JOURNAL_MOST 20000              /* entries of one journal, the same */
#define JOURNALS_NS  (5 * NSEC_PER_SEC) /* for all journals: the loader waits for an answer */
#define OWN_MOST     4096               /* sources that are found in journals */
#define QUIET_NS     (3600 * NSEC_PER_SEC)

struct source {
	uint32_t id;
	struct counts counts;
	struct messages stream[2];
	bool written;   /* since the READ before */
	uint32_t files; /* that are open */
	int64_t sum_ns; /* when it last had sums, UTC */
	UT_hash_handle hh, by_name;
	char name[]; /* of a journal's: unit, or "\n" and a container's id */
};

struct file {
	uint32_t id, source_id;
	int fd;
	struct source *source; /* NULL: a journal, whose entries have theirs */
	struct follow follow;
	struct journalfile journal;
	struct journalfile_place place;
	uint64_t cuts; /* that were said */
	bool moved;    /* since its place was said */
	UT_hash_handle hh;
};

struct reading {
	int sock;
	struct file *files;
	struct source *sources, *names;
	bool own[OWN_MOST]; /* numbers of sources of journals that are in use */
	uint32_t *reads;
	struct counts_rules rules;
	struct forms forms;
	struct wire_packet out;
	int64_t now_ns;
	int64_t until_ns;    /* monotonic: no journal is read on after that */
	struct source *into; /* of the file that is read */
	char buffer[FOLLOW_BUFFER + FOLLOW_KEPT];
};

/* ---- what it says ---- */

static void packet_send(struct reading *r)
{
	if (r->out.len && write(r->sock, r->out.bytes, r->out.len) != (ssize_t)r->out.len)
		_exit(1);
	r->out.len = 0;
}

static void say(struct reading *r, struct wire_said *x, const char *first, const char *second)
{
	if (wire_add(&r->out, x, first, second))
		return;
	packet_send(r);
	wire_add(&r->out, x, first, second);
}

static void patterns_say(struct reading *r, struct source *s)
{
	for (uint32_t i = 0; i < s->counts.n_patterns; i++) {
		struct counts_pattern *p = &s->counts.patterns[i];
		struct wire_said x = {.kind = WIRE_PATTERN, .source = s->id, .pattern = i};

		if (!p->fresh)
			continue;
		say(r, &x, p->text, p->sample);
		p->fresh = false;
		free(p->sample);
		p->sample = NULL;
	}
}

static void sums_say(struct reading *r, struct source *s)
{
	patterns_say(r, s);
	for (uint32_t i = 0; i < s->counts.n_sums; i++) {
		const struct counts_sum *c = &s->counts.sums[i];

		say(r,
		    &(struct wire_said){.kind = WIRE_SUM,
					.source = s->id,
					.bucket = c->bucket,
					.level = (uint16_t)c->level,
					.lines = c->lines,
					.messages = c->messages,
					.bytes = c->bytes,
					.burst = c->burst},
		    NULL, NULL);
	}
	for (uint32_t i = 0; i < s->counts.n_hits; i++) {
		const struct counts_hit *h = &s->counts.hits[i];

		say(r,
		    &(struct wire_said){.kind = WIRE_HIT,
					.source = s->id,
					.bucket = h->bucket,
					.level = (uint16_t)h->level,
					.pattern = h->pattern,
					.messages = h->messages,
					.first_ns = h->first_ns,
					.last_ns = h->last_ns,
					.pid = h->pid},
		    NULL, NULL);
	}
	counts_clear(&s->counts);
}

static void place_say(struct reading *r, struct file *f)
{
	bool journal = f->follow.form == LOG_JOURNAL;

	if (f->follow.cuts > f->cuts)
		say(r,
		    &(struct wire_said){.kind = WIRE_CUT,
					.file = f->id,
					.source = f->source_id,
					.lines = f->follow.cuts - f->cuts},
		    NULL, NULL);
	f->cuts = f->follow.cuts;
	if (!f->moved)
		return;
	say(r,
	    &(struct wire_said){.kind = WIRE_PLACE,
				.file = f->id,
				.source = f->source_id,
				.offset = journal ? f->place.array : f->follow.offset,
				.index = f->place.index},
	    NULL, NULL);
	f->moved = false;
}

/* ---- messages ---- */

static void on_message(void *ctx, const struct message *m)
{
	struct reading *r = ctx;

	counts_message(&r->into->counts, &r->rules, m, r->now_ns);
}

static void on_record(void *ctx, const struct log_record *record)
{
	struct reading *r = ctx;

	r->into->written = true;
	messages_record(&r->into->stream[record->err], record, 0, -1, on_message, r);
}

static void messages_over(struct reading *r, struct source *s, bool all)
{
	r->into = s;
	for (int i = 0; i < 2; i++)
		messages_end(&s->stream[i], all, on_message, r);
}

static struct source *source_of(struct reading *r, uint32_t id, const char *name)
{
	struct source *s;

	HASH_FIND_INT(r->sources, &id, s);
	if (s)
		return s;
	s = mem_alloc(sizeof(*s) + strlen(name) + 1);
	s->id = id;
	memcpy(s->name, name, strlen(name) + 1);
	HASH_ADD_INT(r->sources, id, s);
	return s;
}

/* ---- journals ---- */

static bool from_file(void *ctx, void *out, size_t len, uint64_t at)
{
	const struct file *f = ctx;

	return at < (uint64_t)INT64_MAX - len && pread(f->fd, out, len, (off_t)at) == (ssize_t)len;
}

static struct source *own_known(const struct reading *r, const char *name)
{
	struct source *s;

	HASH_FIND(by_name, r->names, name, strlen(name), s);
	return s;
}

/* Any sender can say that it is a container: root's engines are believed. */
static bool is_of_container(const struct journalfile_entry *e)
{
	return *e->container && !e->uid;
}

/* A number that no source of a journal has; OWN_MOST: all are in use. */
static uint32_t own_free(const struct reading *r)
{
	uint32_t i = 0;

	while (i < OWN_MOST && r->own[i])
		i++;
	return i;
}

/* Whose entry it is: a container's, a unit's, the kernel's, else by the name that it says. */
static struct source *own_source(struct reading *r, const struct journalfile_entry *e)
{
	char name[160];
	const char *container = is_of_container(e) ? e->container : "";
	struct source *s;
	uint32_t free_one;

	if (*container)
		snprintf(name, sizeof(name), "\n%s", container);
	else if (e->kernel)
		snprintf(name, sizeof(name), "kernel");
	else
		snprintf(name, sizeof(name), "%s", *e->unit ? e->unit : e->identifier);
	unitname_fold(name);
	s = *name ? own_known(r, name) : NULL;
	free_one = s ? 0 : own_free(r);
	/* the last number is that of all who find none */
	if (!s && (free_one >= OWN_MOST - 1 || !*name)) {
		snprintf(name, sizeof(name), "journal");
		container = "";
		s = own_known(r, name);
	}
	if (s)
		return s;
	r->own[free_one] = true;
	s = source_of(r, WIRE_OWN + free_one, name);
	s->sum_ns = r->now_ns;
	HASH_ADD_KEYPTR(by_name, r->names, s->name, strlen(s->name), s);
	say(r, &(struct wire_said){.kind = WIRE_SOURCE, .source = s->id, .journal = 1},
	    *container ? "" : s->name, container);
	return s;
}

static void entry_take(struct reading *r, const struct journalfile_entry *e)
{
	static const char packed[] = "(a message whose compression sonde does not know)";
	/* what a container prints has a level that says only which stream it was */
	int level = is_of_container(e) || e->priority < 0 ? -1 : (int)level_priority(e->priority);
	const char *text = e->unread ? packed : e->message, *end = text, *newline;
	size_t len = e->unread ? sizeof(packed) - 1 : e->len;

	r->into = own_source(r, e);
	r->into->written = true;
	for (; len && (newline = memchr(end, '\n', len)); end = newline + 1) {
		messages_record(&r->into->stream[0],
				&(struct log_record){.text = end,
						     .len = (size_t)(newline - end),
						     .utc_ns = e->utc_ns},
				e->pid, level, on_message, r);
		len -= (size_t)(newline - end) + 1;
	}
	messages_record(&r->into->stream[0],
			&(struct log_record){
				.text = end, .len = len, .utc_ns = e->utc_ns, .piece = e->partial},
			e->pid, level, on_message, r);
}

static bool journal_read(struct reading *r, struct file *f)
{
	static struct journalfile_entry e;
	struct journalfile_place before = f->place;
	bool more = true;
	uint64_t at;

	f->journal.read = from_file;
	f->journal.ctx = f;
	if (!journalfile_begin(&f->journal))
		return false;
	/* entries of a thousand large fields take long */
	for (int n = 1; more && n <= JOURNAL_MOST; n++) {
		if (n % 64 == 0 && clock_mono_ns() > r->until_ns)
			break;
		more = journalfile_next(&f->journal, &f->place, &at);
		if (more && journalfile_entry_from(&f->journal, at, &e))
			entry_take(r, &e);
	}
	f->moved = f->moved || memcmp(&before, &f->place, sizeof(before)) != 0;
	return more;
}

/* ---- files ---- */

static bool file_read(struct reading *r, struct file *f, uint64_t *left)
{
	uint64_t before = f->follow.offset, most = f->follow.offset + FILE_MOST, from;
	bool more = true;

	__atomic_store_n(r->reads, f->id, __ATOMIC_RELAXED);
	if (f->follow.form == LOG_JOURNAL) {
		more = journal_read(r, f);
	} else {
		r->into = f->source;
		while (more && *left && f->follow.offset < most) {
			from = f->follow.offset;
			more = follow_read(&f->follow, &r->forms, r->buffer, on_record, r);
			from = f->follow.offset > from ? f->follow.offset - from : 0;
			*left = *left > from ? *left - from : 0;
		}
		f->moved = f->moved || f->follow.offset != before;
	}
	__atomic_store_n(r->reads, 0, __ATOMIC_RELAXED);
	return more;
}

static void file_open(struct reading *r, const struct wire_ask *q, int fd)
{
	struct file *f = mem_alloc(sizeof(*f));

	f->id = q->file;
	f->source_id = q->source;
	f->fd = fd;
	f->follow = (struct follow){.fd = fd, .form = (enum log_form)q->form, .offset = q->offset};
	f->moved = true;
	if (q->form == LOG_JOURNAL) {
		f->place = (struct journalfile_place){.array = q->offset, .index = q->index};
		f->journal = (struct journalfile){.read = from_file, .ctx = f};
		if (q->to_end && journalfile_begin(&f->journal))
			journalfile_end(&f->journal, &f->place);
	} else {
		f->source = source_of(r, q->source, "");
		f->source->files++;
		if (q->packed)
			follow_pack(&f->follow);
		else if (q->to_end)
			follow_to_end(&f->follow);
	}
	HASH_ADD_INT(r->files, id, f);
}

static void file_close(struct reading *r, uint32_t id)
{
	struct file *f;

	HASH_FIND_INT(r->files, &id, f);
	if (!f)
		return;
	if (f->source) {
		r->into = f->source;
		follow_rest(&f->follow, &r->forms, r->buffer, on_record, r);
		f->source->files--;
	}
	HASH_DEL(r->files, f);
	journalfile_release(&f->journal);
	follow_release(&f->follow);
	close(f->fd);
	free(f);
}

/* ---- the answer ---- */

/* A message that nothing was added to for a READ is over; the place of its file is behind it. */
static void quiet_over(struct reading *r, bool all)
{
	struct source *s, *next;

	HASH_ITER (hh, r->sources, s, next) {
		if (all || !s->written)
			messages_over(r, s, all);
		s->written = false;
	}
}

/* One of a journal that has been quiet for long makes room for others. */
static bool own_is_over(const struct reading *r, const struct source *s)
{
	return s->id >= WIRE_OWN && !s->written && !s->counts.n_sums &&
	       r->now_ns - s->sum_ns > QUIET_NS;
}

/* The last of a source without files, which then goes. Of one that is quiet the patterns go. */
static void source_flush(struct reading *r, struct source *s)
{
	bool over = s->id < WIRE_OWN ? !s->files : own_is_over(r, s);

	if (over)
		messages_over(r, s, true);
	if (s->counts.n_sums)
		s->sum_ns = r->now_ns;
	else if (s->counts.n_patterns && r->now_ns - s->sum_ns > QUIET_NS)
		counts_forget(&s->counts, &r->rules);
	sums_say(r, s);
	if (!over)
		return;
	if (s->id >= WIRE_OWN) {
		HASH_DELETE(by_name, r->names, s);
		r->own[s->id - WIRE_OWN] = false;
	}
	HASH_DEL(r->sources, s);
	counts_release(&s->counts, &r->rules);
	for (int i = 0; i < 2; i++)
		messages_release(&s->stream[i]);
	free(s);
}

static void flush(struct reading *r)
{
	struct source *s, *next;
	struct file *f, *next_file;

	HASH_ITER (hh, r->sources, s, next)
		source_flush(r, s);
	HASH_ITER (hh, r->files, f, next_file)
		place_say(r, f);
}

static void answer(struct reading *r, const struct wire_ask *q)
{
	uint64_t left = READ_MOST;
	struct file *f, *next;
	bool more = false;

	r->now_ns = q->now_ns;
	r->until_ns = clock_mono_ns() + JOURNALS_NS;
	HASH_ITER (hh, r->files, f, next)
		more = file_read(r, f, &left) || more;
	more = more && q->last != WIRE_ENOUGH;
	if (!more)
		quiet_over(r, q->last);
	if (q->flush && !more)
		flush(r);
	say(r,
	    &(struct wire_said){
		    .kind = WIRE_DONE, .more = more, .cpu_ns = (uint64_t)clock_cpu_ns()},
	    NULL, NULL);
	packet_send(r);
}

static bool ask_receive(int sock, struct wire_ask *q, int *fd)
{
	return fdpass_take(sock, q, sizeof(*q), fd, 1, 0) == (ssize_t)sizeof(*q);
}

_Noreturn void reading_main(int sock, uint32_t bucket_s, bool text, uint32_t *reads)
{
	struct reading *r = mem_alloc(sizeof(*r));
	struct wire_ask q;
	int fd;

	r->sock = sock;
	r->reads = reads;
	r->rules = (struct counts_rules){.bucket_s = bucket_s, .text = text};
	if (sandbox_enter(SANDBOX_FILES, NULL))
		_exit(1);
	while (ask_receive(sock, &q, &fd)) {
		if (q.what == WIRE_OPEN && fd >= 0)
			file_open(r, &q, fd);
		else if (q.what == WIRE_CLOSE)
			file_close(r, q.file);
		else if (q.what == WIRE_READ)
			answer(r, &q);
	}
	_exit(0);
}
