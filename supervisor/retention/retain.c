/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/retention/retain.h"

#include <string.h>

#include "schema/base/clock.h"
#include "schema/store/files/ballast.h"
#include "schema/store/retention/budget.h"
#include "supervisor/control/log_lines.h"

#define LOOK_NS    (NSEC_PER_SEC * 9 / 10) /* with each second turn of sonded */
#define IN_VAIN_NS (30 * NSEC_PER_SEC)     /* after a pass that found nothing to remove */
/* images/ keeps to its share by itself: it is looked through more seldom */
#define IMAGES_NS      (30 * NSEC_PER_SEC)
#define SEGMENT_MOST   (64ull << 20)
#define SEGMENT_LEAST  (1ull << 20)
#define SEGMENT_SHARE  8 /* of the budget; with its log it stays below a quarter */
#define IMAGES_SHARE   8
#define IMAGES_MOST_MB 256
#define DOUBTFUL_NS    (60 * NSEC_PER_SEC)
#define DOUBT_NS       (3600 * NSEC_PER_SEC)
#define BALLAST_SHARE  16
#define BALLAST_MOST   (16ull << 20)

void retain_limits(struct retain *r, const struct conf *c)
{
	retention_defaults(r->store, &r->limits);
	if (c->budget_bytes)
		r->limits.bytes = c->budget_bytes;
	if (c->reserve_bytes)
		r->limits.reserve_bytes = c->reserve_bytes;
	r->limits.age_ns = c->age_ns;
	r->look_ns = 0;
}

void retain_init(struct retain *r, const char *store, const struct conf *c)
{
	*r = (struct retain){.store = store};
	pass_init(&r->prune);
	retain_limits(r, c);
}

void retain_release(struct retain *r)
{
	pass_release(&r->prune);
}

uint64_t retain_segment_bytes(const struct retain *r)
{
	uint64_t n = r->limits.bytes / SEGMENT_SHARE;

	return n > SEGMENT_MOST ? SEGMENT_MOST : n < SEGMENT_LEAST ? SEGMENT_LEAST : n;
}

unsigned int retain_images_mb(const struct retain *r)
{
	uint64_t mb = r->limits.bytes / IMAGES_SHARE >> 20;

	return mb < 1 ? 1 : mb > IMAGES_MOST_MB ? IMAGES_MOST_MB : (unsigned int)mb;
}

/* Enough to begin a file and to fold the logs in. */
static uint64_t ballast_bytes(const struct retain *r)
{
	uint64_t n = r->limits.bytes / BALLAST_SHARE & ~4095ull;

	return n < BALLAST_MOST ? n : BALLAST_MOST;
}

/* Below the limits by what may come until the next look: a file's worth of rows and its log. */
static struct retention_limits headroom(const struct retain *r)
{
	struct retention_limits l = r->limits;

	l.bytes -= l.bytes / SEGMENT_SHARE + r->kept_free;
	if (clock_mono_ns() < r->doubt_until_ns)
		l.age_ns = INT64_MAX / 4;
	return l;
}

/* After the clock was set, or the host booted with a wrong one, it may soon be corrected: a
 * minute's mistake must not delete all history. */
static void mind_clock(struct retain *r)
{
	int64_t offset = clock_boot_offset_ns(), moved = offset - r->offset_ns;

	if (!r->offset_ns)
		r->doubt_until_ns = clock_mono_ns() + DOUBT_NS;
	if (r->offset_ns && (moved > DOUBTFUL_NS || moved < -DOUBTFUL_NS)) {
		r->doubt_until_ns = clock_mono_ns() + DOUBT_NS;
		log_line(
			LOG_LEVEL_WARN, "sonded",
			"the wall clock jumped by %.0f s: no segment is removed by age for an hour",
			(double)moved / 1e9);
	}
	r->offset_ns = offset;
}

uint64_t retain_room(const struct retain *r)
{
	uint64_t most = r->limits.bytes - r->limits.bytes / SEGMENT_SHARE,
		 bytes = most > r->use.bytes ? most - r->use.bytes : 0;
	uint64_t left = r->use.free_bytes > r->limits.reserve_bytes ?
				r->use.free_bytes - r->limits.reserve_bytes :
				0;

	return bytes < left ? bytes : left;
}

static void start(struct retain *r)
{
	char budget[32], reserve[32], age[32];
	char *argv[] = {NULL,     "--json",    "--store", (char *)r->store, "--budget",
			budget,   "--reserve", reserve,   "--age",          age,
			"--fine", "0",         NULL}; /* the sealer makes minutes */
	struct err e = {0};

	snprintf(budget, sizeof(budget), "%llu", (unsigned long long)headroom(r).bytes);
	snprintf(reserve, sizeof(reserve), "%llu", (unsigned long long)r->limits.reserve_bytes);
	snprintf(age, sizeof(age), "%llds", (long long)(headroom(r).age_ns / NSEC_PER_SEC ?: 1));
	if (!pass_start(&r->prune, "sonde-prune", argv, &e))
		return;
	log_line(LOG_LEVEL_ERROR, "sonded", "%s: the store may exceed its limits", e.what);
	r->look_ns = clock_mono_ns() + IN_VAIN_NS;
}

void retain_tick(struct retain *r, bool at_once)
{
	int64_t now = clock_mono_ns();
	struct retention_limits l;

	if (r->prune.pid || (!at_once && now < r->look_ns))
		return;
	r->look_ns = now + LOOK_NS;
	mind_clock(r);
	l = headroom(r);
	if (now >= r->images_ns || usage_measure_again(r->store, &r->use)) {
		(void)usage_measure(r->store, &r->use);
		r->images_ns = now + IMAGES_NS;
	}
	ballast_keep(r->store, ballast_bytes(r), r->use.free_bytes, r->limits.reserve_bytes);
	if (at_once || retention_is_due(r->store, &l, &r->use))
		start(r);
}

static const char *text(const json_t *o, const char *key)
{
	return json_string_value(json_object_get(o, key)) ?: "?";
}

/* A segment without a time was empty. */
static void tell_removed(const json_t *row)
{
	double mib = json_number_value(json_object_get(row, "bytes")) / 1048576;

	if (!json_is_string(json_object_get(row, "to")))
		log_line(LOG_LEVEL_INFO, "sonded", "removed %s (%s): %.1f MiB, %s",
			 text(row, "segment"), text(row, "why"), mib,
			 json_is_true(json_object_get(row, "counted")) ?
				 "empty" :
				 "its rows could not be counted");
	else
		log_line(LOG_LEVEL_INFO, "sonded",
			 "removed %s (%s): %.1f MiB, %lld rows, %lld events, %lld lost, up to %s",
			 text(row, "segment"), text(row, "why"), mib,
			 (long long)json_integer_value(json_object_get(row, "rows")),
			 (long long)json_integer_value(json_object_get(row, "events")),
			 (long long)json_integer_value(json_object_get(row, "lost")),
			 text(row, "to"));
}

void retain_ended(struct retain *r, int status)
{
	json_t *root, *rows, *row;
	size_t i;
	int code;

	root = pass_ended(&r->prune, status, &code);
	rows = json_object_get(root, "rows");
	if (!root)
		log_line(LOG_LEVEL_WARN, "sonded", "sonde-prune failed (code %d), retrying", code);
	json_array_foreach (rows, i, row)
		tell_removed(row);
	if (json_array_size(json_object_get(root, "unmet")) && !r->unmet)
		log_line(LOG_LEVEL_WARN, "sonded",
			 "the store exceeds its limits, and nothing more may be removed");
	r->unmet = json_array_size(json_object_get(root, "unmet")) > 0;
	r->look_ns = clock_mono_ns() + (json_array_size(rows) ? LOOK_NS : IN_VAIN_NS);
	(void)usage_measure(r->store, &r->use);
	json_decref(root);
}

json_t *retain_json(const struct retain *r)
{
	struct removed_page page;
	json_t *o = json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:b}", "path", r->store, "bytes",
			      (json_int_t)r->use.bytes, "budget_bytes", (json_int_t)r->limits.bytes,
			      "free_bytes", (json_int_t)r->use.free_bytes, "reserve_bytes",
			      (json_int_t)r->limits.reserve_bytes, "age_seconds",
			      (json_int_t)(r->limits.age_ns / NSEC_PER_SEC), "unmet", r->unmet);

	removed_read(r->store, &page);
	json_object_set_new(o, "removed_segments", json_integer((json_int_t)page.segments));
	json_object_set_new(o, "removed_bytes", json_integer((json_int_t)page.bytes));
	json_object_set_new(o, "history_begins_ns",
			    page.history_ns ? json_integer(page.history_ns) : json_null());
	return o;
}
