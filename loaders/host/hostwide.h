/* SPDX-License-Identifier: Apache-2.0 */
/* hostwide: what the host as a whole used: CPUs, memory, pressure, disks, its own network
 * interfaces, temperatures. */
#ifndef SONDE_HOST_FAMILY_HOSTWIDE_H
#define SONDE_HOST_FAMILY_HOSTWIDE_H

#include <stddef.h>

#include "loaders/lib/bpf/run/meter.h"
#include "schema/base/strbuf.h"

struct hostwide_sensor {
	char path[96], name[64];
};

struct hostwide {
	struct meter host, disk, nic, sensor;
	struct hostwide_sensor *sensors;
	size_t n_sensors, cap_sensors;
	struct strbuf text, key;
};

/* Rows of what does not move come every `idle_ns`. */
void hostwide_init(struct hostwide *w, int64_t idle_ns);
void hostwide_release(struct hostwide *w);
void hostwide_read(struct hostwide *w, const struct meter_round *r);

#endif
