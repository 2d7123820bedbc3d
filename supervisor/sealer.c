/* SPDX-License-Identifier: Apache-2.0 */
/* sealer: see the header; the numbers are its rules. */
#include "supervisor/sealer.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/store/folder.h"
#include "schema/store/seal.h"
#include "supervisor/talk.h"

#define EVERY_LEAST_NS (5 * NSEC_PER_SEC)
#define EVERY_MOST_NS  (600 * NSEC_PER_SEC)
#define FIRST_NS       (60 * NSEC_PER_SEC)
#define FAILED_NS      (60 * NSEC_PER_SEC)
#define FAILED_MOST_NS (3600 * NSEC_PER_SEC)
#define LOOKS          4 /* in the life of a file */
#define FILES_LEAST    2 /* of a day that is not over */
#define WAIT_SHARE     8 /* of the budget, at most, waits as rows for a packed day to be worth another make */
#define PLAIN_SHARE    4 /* of the budget, at most, are the newest of those that are packed by themselves as rows: questions about the last hours are quicker */
#define ROOM_SHARE     4 /* of the budget, at most, for a make of a day */
#define ROOM_LEAST     (1ull << 20)
#define MIB            1048576.0

static uint64_t size_of(const char *store, const char *name)
{
	char path[PATH_MAX];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", store, name);
	return stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
}

static bool is_archived(const char *store, const char *name)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", store, name);
	return folder_is_archived(path);
}

static bool same_day(const char *a, const char *b)
{
	return !strncmp(a, b, 8);
}

/* The finished files of the day that names[i] is the first of, and its latest make. The newest file of all is in use. */
static struct sealer_day day_at(const char *store, char (*names)[SEGMENT_NAME_MAX], size_t n, size_t i)
{
	struct sealer_day d = {0};

	for (size_t k = i; k < n && same_day(names[k], names[i]); k++) {
		if (folder_is_day_name(names[k])) {
			d.make_bytes = seal_make_bytes(store, names[k]); /* the last one is the latest */
			d.make_rows = d.make_bytes - size_of(store, names[k]);
		} else if (k + 1 < n && !is_archived(store, names[k])) {
			d.bytes += size_of(store, names[k]);
			d.files++;
		}
	}
	return d;
}

static bool is_due(const struct sealer_day *d, bool over, uint32_t min, uint64_t most)
{
	if (over || d->files < min)
		return over && d->files;
	return d->bytes >= d->make_rows || d->bytes >= most;
}

static uint64_t room_of(const struct sealer_day *d)
{
	return d->make_bytes + seal_guess(d->bytes) + ROOM_LEAST;
}

void sealer_count(const char *store, int64_t now_s, uint32_t min, uint64_t most, struct sealer_work *out)
{
	cleanup_free char (*names)[SEGMENT_NAME_MAX] = NULL;
	time_t at = (time_t)now_s;
	char today[9];
	struct tm tm;
	size_t n = 0;

	*out = (struct sealer_work){0};
	gmtime_r(&at, &tm);
	strftime(today, sizeof(today), "%Y%m%d", &tm);
	if (folder_segments(store, &names, &n))
		return;
	for (size_t i = 0; i < n; i++) {
		struct sealer_day d;

		if (i && same_day(names[i - 1], names[i]))
			continue;
		d = day_at(store, names, n, i);
		if (!is_due(&d, strncmp(names[i], today, 8) < 0, min, most))
			continue;
		out->files += d.files;
		out->room = room_of(&d) > out->room ? room_of(&d) : out->room;
	}
}

void sealer_init(struct sealer *s, const char *store)
{
	*s = (struct sealer){.store = store, .state = "off"};
	pass_init(&s->pass);
}

void sealer_release(struct sealer *s)
{
	pass_release(&s->pass);
}

void sealer_follow(struct sealer *s, bool wanted, int64_t segment_age_ns)
{
	int64_t every = segment_age_ns / LOOKS;

	s->every_ns = every < EVERY_LEAST_NS ? EVERY_LEAST_NS : every > EVERY_MOST_NS ? EVERY_MOST_NS : every;
	s->look_ns = clock_mono_ns() + (s->every_ns < FIRST_NS ? s->every_ns : FIRST_NS);
	if (s->wanted != wanted && !s->pass.pid)
		s->state = wanted ? "nothing to do" : "off";
	s->wanted = wanted;
}

/* Rule 4. In how many minutes it is tried again. */
static int failed(struct sealer *s)
{
	int64_t wait = FAILED_NS << (s->failures < 6 ? s->failures : 6);

	wait = wait < FAILED_MOST_NS ? wait : FAILED_MOST_NS;
	s->failures++;
	s->state = "failed";
	s->look_ns = clock_mono_ns() + wait;
	return (int)(wait / FAILED_NS);
}

static void start(struct sealer *s, uint64_t room, uint64_t plain)
{
	char bytes[32], rows[32], min[16];
	char *argv[] = {NULL, "--json", "--today", "--min", min, "--idle", "--room", bytes, "--plain", rows, "--store", (char *)s->store,
			NULL};
	struct err e = {0};

	snprintf(bytes, sizeof(bytes), "%llu", (unsigned long long)room);
	snprintf(rows, sizeof(rows), "%llu", (unsigned long long)plain);
	snprintf(min, sizeof(min), "%d", FILES_LEAST);
	s->state = "at work";
	if (!pass_start(&s->pass, "sonde-seal", argv, &e))
		return;
	talk(LOG_LEVEL_ERROR, "sonded", "%s: days are not sealed; it is tried again in %d min", e.what, failed(s));
}

/* Rule 2. */
static uint64_t room_for(const struct sealer_work *w, const struct retain *r)
{
	uint64_t most = r->limits.bytes / ROOM_SHARE;

	return w->room < most ? w->room : most;
}

static void wait_for(struct sealer *s, const char *what)
{
	if (s->state != what)
		talk(LOG_LEVEL_INFO, "sonded", "sealing %s", what);
	s->state = what;
}

static void look(struct sealer *s, struct retain *r)
{
	static const char disk[] = "waits: free space of the disk is short", budget[] = "waits for room in the budget";
	struct sealer_work w;
	uint64_t room;

	sealer_count(s->store, clock_utc_ns() / NSEC_PER_SEC, FILES_LEAST, r->limits.bytes / WAIT_SHARE, &w);
	room = room_for(&w, r);
	if (!w.files) {
		s->state = "nothing to do";
	} else if (r->use.free_bytes < r->limits.reserve_bytes + room) {
		wait_for(s, disk);
	} else if (retain_room(r) < room) {
		wait_for(s, budget);
		r->kept_free = room;
		r->look_ns = 0;
		s->look_ns = clock_mono_ns() + EVERY_LEAST_NS;
	} else {
		start(s, room, r->limits.bytes / PLAIN_SHARE);
	}
}

void sealer_tick(struct sealer *s, struct retain *r)
{
	int64_t now = clock_mono_ns();

	if (s->pass.pid || now < s->look_ns || !r->use.bytes || (s->clean_ns && now < s->clean_ns))
		return;
	s->look_ns = now + s->every_ns;
	r->kept_free = 0;
	if (s->clean_ns && s->wanted)
		start(s, retain_room(r), r->limits.bytes / PLAIN_SHARE);
	else if (s->wanted)
		look(s, r);
	s->clean_ns = 0;
}

void sealer_stop(struct sealer *s)
{
	if (s->pass.pid)
		kill(s->pass.pid, SIGTERM); /* what it had begun has no name, and is done anew */
}

static uint64_t number(const json_t *o, const char *key)
{
	json_int_t v = json_integer_value(json_object_get(o, key));

	return v > 0 ? (uint64_t)v : 0;
}

static void take(struct sealer *s, const json_t *o)
{
	uint64_t segments = number(o, "segments"), removed = number(o, "removed");

	if (number(o, "days")) {
		talk(LOG_LEVEL_INFO, "sonded", "sealed %llu segments: %.1f MiB are %.1f MiB", (unsigned long long)segments,
		     (double)number(o, "bytes_before") / MIB, (double)number(o, "bytes_after") / MIB);
		s->segments += segments;
		s->bytes_before += number(o, "bytes_before");
		s->bytes_after += number(o, "bytes_after");
		s->last_ns = clock_utc_ns();
		s->clean_ns = clock_mono_ns() + (SEAL_GRACE_S + 1) * NSEC_PER_SEC;
	}
	if (removed)
		talk(LOG_LEVEL_INFO, "sonded", "removed %llu files that a sealed day holds", (unsigned long long)removed);
}

void sealer_ended(struct sealer *s, int status)
{
	int code;
	json_t *o = pass_ended(&s->pass, status, &code);

	s->state = s->wanted ? "nothing to do" : "off";
	if (o) {
		s->failures = 0;
		take(s, o);
	} else if (s->wanted) {
		talk(LOG_LEVEL_WARN, "sonded", "sonde-seal failed (code %d): it is tried again in %d min", code, failed(s));
	}
	json_decref(o);
}

json_t *sealer_json(const struct sealer *s)
{
	return json_pack("{s:b, s:s, s:I, s:I, s:I, s:o}", "on", s->wanted, "state", s->state, "segments", (json_int_t)s->segments,
			 "bytes_before", (json_int_t)s->bytes_before, "bytes_after", (json_int_t)s->bytes_after, "last_ns",
			 s->last_ns ? json_integer(s->last_ns) : json_null());
}
