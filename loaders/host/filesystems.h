/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filesystems: how full file systems are. statfs may never return (a server that is gone, a FUSE
 * program that hangs), so a child calls it: it gets one mount point at a time and is killed if it
 * does not answer; the loader does not wait for it. A file system that hung is reported as such,
 * and tried again FILESYSTEMS_REST_NS later.
 *
 * Which ones: of each device the first mount; not those that hold no files (proc, cgroup, ...), are
 * always full (squashfs, of snaps), or are a container's own root over a file system that already
 * has a row (overlay below a runtime's folder). Automount points are not touched.
 */
#ifndef SONDE_HOST_FAMILY_FILESYSTEMS_H
#define SONDE_HOST_FAMILY_FILESYSTEMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "loaders/lib/bpf/run/meter.h"
#include "loaders/host/fillers.h"
#include "loaders/host/parse.h"
#include "loaders/host/events/change_detect.h"
#include "loaders/host/events/mountset.h"
#include "schema/base/strbuf.h"

#define FILESYSTEMS_WAIT_NS (2000000000ll)
#define FILESYSTEMS_REST_NS (300000000000ll)
/* once this many children cannot be killed, no more are started */
#define FILESYSTEMS_STUCK_MAX 8

struct filesystem {
	char *point, *source, *type;
	bool read_only, hangs, asked, answered;
	struct change_level full, no_inodes, locked; /* locked: read-only */
	int64_t rest_ns;                             /* not asked before */
	struct fillers_of fills;
	struct fact_row row;
};

struct filesystems {
	struct meter meter;
	struct filesystem *all;
	size_t n, cap, at;        /* at: the one that is asked now */
	struct meter_round round; /* of this look */
	bool looking;
	int64_t asked_ns;
	pid_t child, killed[FILESYSTEMS_STUCK_MAX]; /* 0: none; killed: it has not ended yet,
						       because the kernel waits, too */
	int fd;
	struct strbuf text;
	struct mountset mounted; /* without those in memory */
	struct fillers fillers;
};

void filesystems_init(struct filesystems *f, int64_t idle_ns);
void filesystems_release(struct filesystems *f);
/* Begins a round, unless one is still running. */
void filesystems_read(struct filesystems *f, const struct meter_round *r);
/* Whatever has been answered is taken. True: there is more to come, call again soon. */
bool filesystems_poll(struct filesystems *f, struct family_host *h, int64_t now_ns);

/* Pure: does it get a row? */
bool filesystems_wanted(const struct parse_mount *m);

#endif
