/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/store/retention/budget.h"

#include <errno.h>
#include <string.h>

#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/log.h"
#include "schema/store/files/folder.h"
#include "schema/store/retention/retention.h"

#define IMAGES_NS   (30 * NSEC_PER_SEC)
#define GROWN_FIRST (1u << 20) /* a new segment's tables and views, and a batch */

static bool budget_look(struct budget *r, const char *dir)
{
	int64_t now = clock_boot_ns();
	int rc;

	if (r->images_ns && now < r->images_ns) {
		rc = usage_measure_again(dir, &r->use);
	} else {
		rc = usage_measure(dir, &r->use);
		r->images_ns = now + IMAGES_NS;
	}
	return rc == 0;
}

/* What may come on top of what is there. */
static uint64_t budget_to_come(const struct budget *r)
{
	return r->use.wal_bytes + (r->grown > GROWN_FIRST ? r->grown : GROWN_FIRST);
}

bool budget_has_room(struct budget *r, const char *dir)
{
	return !r->bytes || !budget_look(r, dir) || r->use.bytes + budget_to_come(r) <= r->bytes;
}

void budget_taken(struct budget *r, const char *dir)
{
	uint64_t before = r->use.bytes;

	if (r->bytes && budget_look(r, dir) && r->use.bytes > before &&
	    r->use.bytes - before > r->grown)
		r->grown = r->use.bytes - before;
}

static void budget_say(void *ctx, const struct removed_one *o)
{
	(void)ctx;
	log_info("store: at its budget: removed %s, %llu events", o->segment,
		 (unsigned long long)o->events);
}

bool budget_make_room(struct budget *r, const char *dir)
{
	uint64_t come = budget_to_come(r);
	const struct retention_limits l = {.bytes = r->bytes > come ? r->bytes - come : 0,
					   .age_ns = INT64_MAX / 4};
	struct retention_report report;
	struct err e = {0};

	if (retention_run(dir, &l, false, budget_say, NULL, &report, &e)) {
		log_warn("store: %s", e.what);
		return false;
	}
	r->images_ns = 0;
	return report.bytes > 0 || report.after.bytes < report.before.bytes;
}

int budget_refuse(const struct budget *r, const char *dir, struct err *e)
{
	err_set(e, -EDQUOT, EXIT_STORE,
		"the store %s is at its budget of %llu KiB, and what is in it is in use", dir,
		(unsigned long long)r->bytes >> 10);
	err_fix(e, "give it more: budget in sonde.conf (sonde config show)");
	return -EDQUOT;
}
