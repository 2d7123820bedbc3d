/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sonde-disk: what disks do, who asks them to, and how long they take. This file connects the
 * common loop of loaders/lib/bpf with the family's parts: the programs (hooks) sum in epochs; when
 * one is over, and sonde-maps has reported the processes of it, its sums are stored (drain).
 */
#include <stdlib.h>

#include "loaders/disk/devices.h"
#include "loaders/disk/drain.h"
#include "loaders/disk/filecalls.h"
#include "loaders/disk/files.h"
#include "loaders/disk/held.h"
#include "loaders/disk/hooks.h"
#include "loaders/disk/slow.h"
#include "loaders/lib/bpf/family.h"
#include "loaders/lib/bpf/run/epochs.h"
#include "loaders/lib/bpf/start/check.h"
#include "loaders/lib/host/maps/hostmaps.h"
#include "schema/base/clock.h"
#include "schema/base/log.h"
#include "schema/base/mem.h"

#define MINUTE_NS (60 * NSEC_PER_SEC)

static struct disk_opts {
	uint32_t file_calls; /* 0: on */
	uint32_t file_reads; /* 0: on */
} opts;

struct disk {
	struct hooks hooks;
	struct devices devices;
	struct slow slow;
	struct files files;
	struct epochs epochs;
	int64_t minute_ns; /* when the minute began */
	bool crowded;      /* that was said */
};

static const struct option disk_options[] = {
	{"file-calls", 0, OPTION_ENUM, "on|off",
	 "also record fsync by file, opens that fail and waits for locks (default on)",
	 OPTION_AT(struct disk_opts, file_calls)},
	{"file-reads", 0, OPTION_ENUM, "on|off",
	 "also record reads and writes of files, as programs feel them (default on)",
	 OPTION_AT(struct disk_opts, file_reads)},
	{0}};

static void slow_seen(void *ctx, const struct disk_slow *r)
{
	slow_add(ctx, r);
}

/* ---- epochs ---- */

static void slow_store(struct disk *d, struct family_host *h)
{
	struct disk_slow list[SLOW_MOST];
	size_t n;

	hooks_read(&d->hooks);
	n = slow_take(&d->slow, list);
	for (size_t i = 0; i < n; i++)
		drain_slow(&d->devices, h, &list[i]);
}

static void minute_end(struct disk *d, struct family_host *h, int64_t now_ns)
{
	struct disk_slow list[SLOW_DEVICES];
	size_t n = slow_minute(&d->slow, list);

	for (size_t i = 0; i < n; i++)
		drain_slow(&d->devices, h, &list[i]);
	hooks_slowest_reset(&d->hooks);
	files_minute(&d->files);
	held_look(&d->hooks, &d->files.mounts, h, family_utc(h, now_ns - 1));
	d->minute_ns = now_ns;
}

/* Said once: what no room was left for. */
static void crowd_tell(struct disk *d)
{
	struct disk_lost lost;

	hooks_lost(&d->hooks, &lost);
	if (d->crowded || !lost.crowded)
		return;
	d->crowded = true;
	log_warn(
		"disk: too many processes use disks at once; requests of some are recorded without their process");
}

static void epoch_store(struct disk *d, struct family_host *h)
{
	int64_t utc = epochs_utc(&d->epochs, h);
	struct hooks_files files = hooks_files(&d->hooks);

	devices_read(&d->devices, h, d->epochs.ended_ns, utc);
	files_epoch(&d->files);
	drain_epoch(&d->hooks, &d->devices, &d->files, h, d->epochs.number, utc);
	/* Calls first: a file that was preallocated before its first page was written grew there.
	 */
	filecalls_drain(&d->hooks, &d->files, h, d->epochs.number, utc);
	files_drain(&d->files, &files, &d->devices, h, d->epochs.number, utc);
	slow_store(d, h);
	epochs_stored(&d->epochs);
	crowd_tell(d);
}

/* Nothing was done in this epoch: it goes on as the next one, and sonde-maps is left alone. A
 * request that hangs makes its device busy all the same. */
static void quiet_store(struct disk *d, struct family_host *h, int64_t now_ns)
{
	devices_read(&d->devices, h, now_ns, family_utc(h, d->epochs.begun_ns / 2 + now_ns / 2));
	d->epochs.begun_ns = now_ns;
}

static void disk_poll(void *state, struct family_host *h, int64_t now_ns)
{
	struct disk *d = state;

	if (!d->minute_ns) {
		d->minute_ns = now_ns;
		devices_read(&d->devices, h, now_ns, family_utc(h, now_ns));
	}
	switch (epochs_step(&d->epochs, h, now_ns)) {
	case EPOCHS_END:
		if (hooks_quiet(&d->hooks) && now_ns - d->minute_ns < MINUTE_NS) {
			quiet_store(d, h, now_ns);
			break;
		}
		epochs_over(&d->epochs, h, now_ns, hooks_epoch_end(&d->hooks));
		break;
	case EPOCHS_STORE:
		epoch_store(d, h);
		if (now_ns - d->minute_ns >= MINUTE_NS)
			minute_end(d, h, now_ns);
		break;
	case EPOCHS_WAIT:
		break;
	}
	h->next_ns = epochs_next(&d->epochs, h, now_ns);
}

static void disk_detach(void *state)
{
	hooks_detach(&((struct disk *)state)->hooks);
}

static void disk_last_read(void *state, struct family_host *h, int64_t patience_ns)
{
	struct disk *d = state;
	int64_t now;

	disk_detach(state);
	now = clock_boot_ns();
	if (!d->epochs.begun_ns)
		d->epochs.begun_ns = now;
	hostmaps_await(h->maps, now + patience_ns / 2);
	if (d->epochs.ended_ns)
		epoch_store(d, h);
	epochs_over(&d->epochs, h, now, hooks_epoch_end(&d->hooks));
	epoch_store(d, h);
	drain_unseen(&d->hooks, &d->devices, &d->files, h, family_utc(h, now - 1));
	minute_end(d, h, now);
}

/* ---- the family ---- */

static int disk_open(const struct family_config *c, void **state, struct bpf_object **obj,
		     struct err *e)
{
	struct disk *d = mem_alloc(sizeof(*d));
	int err;

	*d = (struct disk){0};
	devices_init(&d->devices);
	d->files.devices = &d->devices;
	err = hooks_open(
		&d->hooks, c,
		(struct hooks_wanted){.files = !opts.file_calls, .calls = !opts.file_reads},
		slow_seen, &d->slow, e);
	if (err) {
		free(d);
		return err;
	}
	*state = d;
	*obj = hooks_object(&d->hooks);
	return 0;
}

static int disk_attach(void *state, struct err *e)
{
	return hooks_attach(&((struct disk *)state)->hooks, e);
}

static const char *disk_clock(void *state)
{
	(void)state;
	return "requests of disks";
}

static void disk_tally(void *state, struct family_tally *out)
{
	struct disk_lost lost;
	uint64_t n;

	hooks_lost(&((struct disk *)state)->hooks, &lost);
	n = lost.requests + lost.syncs + lost.opens + lost.files + lost.calls + lost.locks;
	*out = (struct family_tally){.seen = n + lost.slow, .lost = lost.slow, .no_room = n};
}

static void disk_reduce(void *state, uint32_t step)
{
	hooks_reduce(&((struct disk *)state)->hooks, step);
}

static void disk_close(void *state)
{
	struct disk *d = state;

	hooks_close(&d->hooks);
	devices_release(&d->devices);
	files_release(&d->files);
	free(d);
}

static void disk_check(struct check *c, uint32_t freq)
{
	(void)freq;
	if (hooks_tells_start())
		check_add(c, "who asks", CHECK_OK, NULL,
			  "each request has the process that made it (block_io_start)");
	else
		check_add(c, "who asks", CHECK_WARN, "kernel 6.5 or later (block_io_start)",
			  "requests that no scheduler queues have no process");
	if (!hooks_tells_calls())
		check_add(c, "calls on files", CHECK_WARN, "kernel 5.12 or later (task storage)",
			  "sonde disk --calls does not have reads and writes of files");
	else if (!hooks_tells_ring())
		check_add(c, "calls on files", CHECK_WARN, "kernel 6.0 or later (io_uring)",
			  "sonde disk --calls does not have reads and writes by io_uring");
	else
		check_add(c, "calls on files", CHECK_OK, NULL,
			  "reads and writes of files are recorded, by io_uring too");
	if (hooks_tells_stack())
		check_add(c, "who waits", CHECK_OK, NULL,
			  "slow requests have the kernel stack of the thread that waits");
	else
		check_add(c, "who waits", CHECK_WARN, "kernel 6.2 or later (bpf_task_from_pid)",
			  "sonde disk --slow does not say where threads wait");
}

static const struct family disk_family = {
	.name = "disk",
	.summary =
		"record what disks do: requests by process, latency, errors, fsync, failed opens",
	.options = {disk_options, &opts},
	.no_mappings = true,
	.open = disk_open,
	.attach = disk_attach,
	.poll = disk_poll,
	.last_read = disk_last_read,
	.clock = disk_clock,
	.tally = disk_tally,
	.reduce = disk_reduce,
	.detach = disk_detach,
	.close = disk_close,
	.check = disk_check,
};

int main(int argc, char **argv)
{
	return family_main(&disk_family, argc, argv);
}
