/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers are the rules of the header. */
#include "supervisor/retention/sealer.h"

#include <signal.h>
#include <stdio.h>

#include "schema/base/clock.h"
#include "schema/store/archive/seal.h"
#include "supervisor/control/log_lines.h"

#define EVERY_LEAST_NS (5 * NSEC_PER_SEC)
#define EVERY_MOST_NS  (600 * NSEC_PER_SEC)
#define FIRST_NS       (60 * NSEC_PER_SEC)
#define FAILED_NS      (60 * NSEC_PER_SEC)
#define FAILED_MOST_NS (3600 * NSEC_PER_SEC)
#define LOOKS          4 /* in the life of a file */
/* of the budget, at most, are the newest segments as rows: questions about the last hours are
 * quicker */
#define PLAIN_SHARE 4
#define ROOM_SHARE  2 /* of the budget, at most, for the archive that is being made */
#define KEEP_S      7200
#define MIB         1048576.0

void sealer_init(struct sealer *s, const char *store)
{
	*s = (struct sealer){.store = store, .state = "off"};
	pass_init(&s->pass);
}

void sealer_release(struct sealer *s)
{
	pass_release(&s->pass);
}

void sealer_follow(struct sealer *s, bool wanted, int64_t segment_age_ns, int64_t fine_age_ns)
{
	int64_t every = segment_age_ns / LOOKS;

	s->fine_age_ns = fine_age_ns;
	s->every_ns = every < EVERY_LEAST_NS ? EVERY_LEAST_NS :
		      every > EVERY_MOST_NS  ? EVERY_MOST_NS :
					       every;
	s->look_ns = clock_mono_ns() + (s->every_ns < FIRST_NS ? s->every_ns : FIRST_NS);
	if (s->wanted != wanted && !s->pass.pid)
		s->state = wanted ? "nothing to do" : "off";
	s->wanted = wanted;
}

/* Rule 3. Returns the minutes until the retry. */
static int failed(struct sealer *s)
{
	int64_t wait = FAILED_NS << (s->failures < 6 ? s->failures : 6);

	wait = wait < FAILED_MOST_NS ? wait : FAILED_MOST_NS;
	s->failures++;
	s->state = "failed";
	s->look_ns = clock_mono_ns() + wait;
	return (int)(wait / FAILED_NS);
}

/* The options of sonde-seal. */
static struct seal_opts asked_of(const struct sealer *s, const struct retain *r)
{
	const bool doubt = clock_mono_ns() < r->doubt_until_ns;

	return (struct seal_opts){.dir = s->store,
				  .plain = r->limits.bytes / PLAIN_SHARE,
				  .keep_s = KEEP_S,
				  .fine_s = doubt ? 0 : (uint32_t)(s->fine_age_ns / NSEC_PER_SEC)};
}

static void start(struct sealer *s, const struct seal_opts *o)
{
	char room[32], plain[32], keep[16], fine[16];
	char *argv[] = {NULL,     "--json", "--idle", "--room", room,      "--plain",        plain,
			"--keep", keep,     "--fine", fine,     "--store", (char *)s->store, NULL};
	struct err e = {0};

	snprintf(room, sizeof(room), "%llu", (unsigned long long)o->room);
	snprintf(plain, sizeof(plain), "%llu", (unsigned long long)o->plain);
	snprintf(keep, sizeof(keep), "%us", o->keep_s);
	snprintf(fine, sizeof(fine), "%us", o->fine_s);
	s->state = "at work";
	if (!pass_start(&s->pass, "sonde-seal", argv, &e))
		return;
	log_line(LOG_LEVEL_ERROR, "sonded", "%s: segments are not archived; retrying in %d min",
		 e.what, failed(s));
}

static void wait_for(struct sealer *s, const char *what)
{
	if (s->state != what)
		log_line(LOG_LEVEL_INFO, "sonded", "archiving %s", what);
	s->state = what;
}

static void look(struct sealer *s, struct retain *r)
{
	static const char disk[] = "waits: free space of the disk is short",
			  budget[] = "waits for room in the budget";
	struct seal_opts o = asked_of(s, r);
	uint64_t most = r->limits.bytes / ROOM_SHARE;
	struct seal_due due;

	seal_look(&o, &due);
	o.room = due.room < most ? due.room : most;
	if (!due.segments) {
		s->state = "nothing to do";
	} else if (r->use.free_bytes < r->limits.reserve_bytes + o.room) {
		wait_for(s, disk);
	} else if (retain_room(r) < o.room) {
		wait_for(s, budget);
		r->kept_free = o.room;
		r->look_ns = 0;
		s->look_ns = clock_mono_ns() + EVERY_LEAST_NS;
	} else {
		start(s, &o);
	}
}

void sealer_tick(struct sealer *s, struct retain *r)
{
	int64_t now = clock_mono_ns();

	if (s->pass.pid || now < s->look_ns || !r->use.bytes)
		return;
	s->look_ns = now + s->every_ns;
	r->kept_free = 0;
	if (s->wanted)
		look(s, r);
}

void sealer_stop(struct sealer *s)
{
	if (s->pass.pid)
		kill(s->pass.pid,
		     SIGTERM); /* its unfinished archive has no name and is written again later */
}

static uint64_t number(const json_t *o, const char *key)
{
	json_int_t v = json_integer_value(json_object_get(o, key));

	return v > 0 ? (uint64_t)v : 0;
}

static void take(struct sealer *s, const json_t *o)
{
	uint64_t segments = number(o, "segments"), thinned = number(o, "thinned");

	if (thinned)
		log_line(LOG_LEVEL_INFO, "sonded",
			 "reduced %llu archive%s to one-minute sums: %.1f MiB to %.1f MiB",
			 (unsigned long long)thinned, thinned == 1 ? "" : "s",
			 (double)number(o, "fine_before") / MIB,
			 (double)number(o, "fine_after") / MIB);
	s->thinned += thinned;
	if (!segments)
		return;
	log_line(LOG_LEVEL_INFO, "sonded", "archived %llu segment%s: %.1f MiB to %.1f MiB",
		 (unsigned long long)segments, segments == 1 ? "" : "s",
		 (double)number(o, "bytes_before") / MIB, (double)number(o, "bytes_after") / MIB);
	s->segments += segments;
	s->bytes_before += number(o, "bytes_before");
	s->bytes_after += number(o, "bytes_after");
	s->last_ns = clock_utc_ns();
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
		log_line(LOG_LEVEL_WARN, "sonded",
			 "sonde-seal failed (code %d), retrying in %d min", code, failed(s));
	}
	json_decref(o);
}

json_t *sealer_json(const struct sealer *s)
{
	return json_pack("{s:b, s:s, s:I, s:I, s:I, s:I, s:o}", "on", s->wanted, "state", s->state,
			 "segments", (json_int_t)s->segments, "bytes_before",
			 (json_int_t)s->bytes_before, "bytes_after", (json_int_t)s->bytes_after,
			 "thinned", (json_int_t)s->thinned, "last_ns",
			 s->last_ns ? json_integer(s->last_ns) : json_null());
}
