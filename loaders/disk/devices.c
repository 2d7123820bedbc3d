/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/disk/devices.h"

#include <inttypes.h>
#include <stdio.h>

#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/facts/disk.h"

#define IDLE_NS  (60 * NSEC_PER_SEC)
#define KNOWN_NS (60 * NSEC_PER_SEC)

void devices_init(struct devices *d)
{
	*d = (struct devices){.meter = {.fact = &DEVICE_FACT, .idle_ns = IDLE_NS}};
}

void devices_release(struct devices *d)
{
	blockdevs_release(&d->known);
	meter_release(&d->meter);
}

const char *devices_name(struct devices *d, uint32_t major, uint32_t minor, char buf[DEVICES_NAME])
{
	const struct blockdev *b = blockdev_of(&d->known, major, minor);

	if (b)
		snprintf(buf, DEVICES_NAME, "%s", b->name);
	else
		snprintf(buf, DEVICES_NAME, "%u:%u", major, minor);
	return buf;
}

bool devices_parse(const char *line, struct devices_line *out)
{
	uint64_t reads, writes;

	if (sscanf(line,
		   "%" SCNu32 " %" SCNu32 " %63s %" SCNu64 " %*u %*u %*u %" SCNu64
		   " %*u %*u %*u %" SCNu64 " %" SCNu64,
		   &out->major, &out->minor, out->name, &reads, &writes, &out->in_flight,
		   &out->busy_ms) != 7)
		return false;
	out->requests = reads + writes;
	return true;
}

struct names {
	const char *disk, *under;
};

static bool names_fill(void *ctx, struct fact_row *row)
{
	const struct names *n = ctx;

	fact_put_text(row, DEVICE_DISK, n->disk);
	fact_put_text(row, DEVICE_UNDER, n->under);
	return true;
}

static void line_take(struct devices *d, const struct meter_round *round,
		      const struct devices_line *x)
{
	const struct blockdev *b = blockdev_of(&d->known, x->major, x->minor);
	struct names names = {x->name, b ? b->under : ""};
	struct meter_reading m = {.key = x->name, .identity = (uint64_t)x->major << 32 | x->minor};

	if (!b || b->partition || !x->requests)
		return;
	fact_put(&m.row, DEVICE_BUSY, x->busy_ms * 1000);
	fact_put(&m.row, DEVICE_IN_FLIGHT, x->in_flight);
	meter_take(&d->meter, round, &m, names_fill, &names);
}

void devices_read(struct devices *d, struct family_host *h, int64_t now_ns, int64_t utc_ns)
{
	const struct meter_round round = {.h = h, .now_ns = now_ns, .utc_ns = utc_ns};
	cleanup_file FILE *f = fopen("/proc/diskstats", "re");
	struct devices_line x;
	char line[512];

	if (now_ns - d->known_ns > KNOWN_NS) {
		blockdevs_release(&d->known);
		d->known_ns = now_ns;
	}
	if (!f)
		return;
	while (fgets(line, sizeof(line), f))
		if (devices_parse(line, &x))
			line_take(d, &round, &x);
	meter_end(&d->meter);
}

int64_t devices_in_flight(uint32_t major, uint32_t minor)
{
	cleanup_file FILE *f = fopen("/proc/diskstats", "re");
	struct devices_line x;
	char line[512];

	while (f && fgets(line, sizeof(line), f))
		if (devices_parse(line, &x) && x.major == major && x.minor == minor)
			return (int64_t)x.in_flight;
	return -1;
}
