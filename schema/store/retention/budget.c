/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/store/retention/budget.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "schema/base/clock.h"
#include "schema/base/cleanup.h"
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

	if (r->bytes && budget_look(r, dir) && r->use.bytes > before && r->use.bytes - before > r->grown)
		r->grown = r->use.bytes - before;
}

static void budget_say(void *ctx, const struct removed_one *o)
{
	(void)ctx;
	log_info("store: at its budget: removed %s, %llu events", o->segment, (unsigned long long)o->events);
}

bool budget_make_room(struct budget *r, const char *dir)
{
	uint64_t come = budget_to_come(r);
	const struct retention_limits l = {.bytes = r->bytes > come ? r->bytes - come : 0, .age_ns = INT64_MAX / 4};
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
	err_set(e, -EDQUOT, EXIT_STORE, "the store %s is at its budget of %llu KiB, and what is in it is in use", dir,
		(unsigned long long)r->bytes >> 10);
	err_fix(e, "give it more: budget in sonde.conf (sonde config show)");
	return -EDQUOT;
}

/* --- the ballast --- */

static int ballast_path(const char *dir, char path[PATH_MAX])
{
	return (size_t)snprintf(path, PATH_MAX, "%s/ballast", dir) < PATH_MAX ? 0 : -ENAMETOOLONG;
}

void ballast_keep(const char *dir, uint64_t bytes, uint64_t free_bytes, uint64_t reserve)
{
	cleanup_fd int fd = -1;
	char path[PATH_MAX];
	struct stat st;

	if (ballast_path(dir, path))
		return;
	if (stat(path, &st) == 0 && (uint64_t)st.st_size == bytes)
		return;
	(void)unlink(path);
	if (!bytes || free_bytes < reserve + 2 * bytes)
		return;
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
	if (fd < 0)
		return; /* it is tried again at the next look */
	folder_own(fd, 0640);
	if (posix_fallocate(fd, 0, (off_t)bytes))
		(void)unlink(path);
}

bool ballast_drop(const char *dir)
{
	char path[PATH_MAX];

	return !ballast_path(dir, path) && unlink(path) == 0;
}
