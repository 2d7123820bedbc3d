/* SPDX-License-Identifier: Apache-2.0 */
/* devices: names of disks, which others they lie on, and how busy they were, by /proc/diskstats. */
#ifndef SONDE_DISK_DEVICES_H
#define SONDE_DISK_DEVICES_H

#include <stdbool.h>
#include <stdint.h>

#include "loaders/lib/bpf/family.h"
#include "loaders/lib/bpf/run/meter.h"
#include "loaders/lib/host/proc/blockdev.h"

#define DEVICES_NAME 64

struct devices { /* {0} */
	struct blockdev *known;
	int64_t known_ns; /* since when; they are read again once a minute */
	struct meter meter;
};

void devices_init(struct devices *d);
void devices_release(struct devices *d);
/* "sda"; "8:0": it is gone, or not known. Into `buf`. */
const char *devices_name(struct devices *d, uint32_t major, uint32_t minor, char buf[DEVICES_NAME]);
/* One reading: rows of device_row. `utc_ns`: into which bucket they go. */
void devices_read(struct devices *d, struct family_host *h, int64_t now_ns, int64_t utc_ns);

/* How many requests the device has at hand now; -1: it is not known. */
int64_t devices_in_flight(uint32_t major, uint32_t minor);

struct devices_line {
	uint32_t major, minor;
	char name[DEVICES_NAME];
	uint64_t requests, in_flight, busy_ms;
};
/* Pure: a line of /proc/diskstats, of any kernel. */
bool devices_parse(const char *line, struct devices_line *out);

#endif
