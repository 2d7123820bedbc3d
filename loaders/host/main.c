/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sonde-host: what the host, its containers, units and processes used, read from the kernel's own
 * accounts at the end of each bucket. It loads no program. This file is the family's translation
 * between the common loop of loaders/lib/bpf and the readers.
 */
#include <stdlib.h>
#include <unistd.h>

#include "loaders/host/cgroups.h"
#include "loaders/host/ended.h"
#include "loaders/host/filesystems.h"
#include "loaders/host/events/container_events.h"
#include "loaders/host/hostwide.h"
#include "loaders/host/logs/journallines.h"
#include "loaders/host/jvms.h"
#include "loaders/host/processes.h"
#include "loaders/lib/bpf/start/check.h"
#include "loaders/lib/bpf/family.h"
#include "loaders/lib/bpf/start/preflight.h"
#include "loaders/lib/host/maps/hostmaps.h"
#include "schema/base/array.h"
#include "schema/base/clock.h"
#include "schema/base/mem.h"
#include "schema/facts/host.h"

#define IDLE_NS (60 * NSEC_PER_SEC) /* what does not move has a row so often */
/* and what moves a little, in buckets of more than a second */
#define LITTLE_NS       (60 * NSEC_PER_SEC)
#define IDLE_PROCESS_NS (600 * NSEC_PER_SEC)
#define FS_NS           (10 * NSEC_PER_SEC) /* file systems are asked so often at most */
#define SOON_NS         (NSEC_PER_SEC / 10)

struct host {
	struct hostwide wide;
	struct cgroups cgroups;
	struct filesystems filesystems;
	struct processes processes;
	struct jvms jvms;
	struct container_events events;
	struct ended ended;
	int64_t read_ns, fs_ns; /* boot clock; 0: never */
	int64_t begun_ns;       /* the first round */
	int64_t due_ns;
	/* of a round */
	struct meter_round round;
	uint64_t n_processes;
};

static struct host_opts {
	int log_lines, fills; /* 1: off */
} opts;

static const struct option host_options[] = {
	{"log-lines", 0, OPTION_ENUM, "on|off",
	 "keep the last 20 log lines of a container that failed, secrets masked (default on)",
	 OPTION_AT(struct host_opts, log_lines)},
	{"fills", 0, OPTION_ENUM, "on|off",
	 "look for what fills a file system that is nearly full (default on)",
	 OPTION_AT(struct host_opts, fills)},
	{0}};

static int host_rights(const char *prog, struct err *e)
{
	return preflight_clock(prog, e);
}

static int host_open(const struct family_config *c, void **state, struct bpf_object **obj,
		     struct err *e)
{
	struct host *s = mem_alloc(sizeof(*s));

	(void)c;
	(void)e;
	*obj = NULL;
	hostwide_init(&s->wide, IDLE_NS);
	cgroups_init(&s->cgroups, IDLE_NS);
	filesystems_init(&s->filesystems, IDLE_NS);
	s->filesystems.fillers.off = opts.fills;
	processes_init(&s->processes, IDLE_PROCESS_NS);
	jvms_init(&s->jvms, IDLE_NS);
	container_events_init(&s->events);
	s->events.lines.on = !opts.log_lines;
	s->cgroups.docker = &s->events.docker;
	s->ended.cgroups = &s->cgroups;
	*state = s;
	return 0;
}

/* A process that began before the first round is read from there on; one that is missed for a while
 * goes on from its last reading. */
static int64_t young_ns(const struct host *s)
{
	int64_t kept = s->read_ns - PROCESSES_KEEP_NS;

	return kept > s->begun_ns ? kept : s->begun_ns;
}

static void process_meet(void *ctx, struct hostmaps_process *p)
{
	struct host *s = ctx;

	cgroups_meet(&s->cgroups, p);
	container_events_meet(&s->events, p);
	s->n_processes++;
}

static void process_read(void *ctx, struct hostmaps_process *p)
{
	struct host *s = ctx;

	if (processes_wants(s->cgroups.h, p)) {
		processes_read(&s->processes, &s->round, p, young_ns(s));
		jvms_read(&s->jvms, &s->round, p, s->read_ns);
	}
}

/* A difference belongs between two readings; after a sleep, into the bucket that has ended. */
static int64_t middle(const struct host *s, const struct family_host *h, int64_t now_ns)
{
	int64_t width = (int64_t)h->bucket_s * NSEC_PER_SEC, from = now_ns - width;

	return (s->read_ns > from ? s->read_ns / 2 + now_ns / 2 : now_ns - width / 2) +
	       h->offset_ns;
}

static void set_little(struct host *s, int64_t ns)
{
	struct meter *const all[] = {&s->wide.host,   &s->wide.disk,         &s->wide.nic,
				     &s->wide.sensor, &s->cgroups.meter,     &s->cgroups.disk,
				     &s->cgroups.nic, &s->filesystems.meter, &s->processes.meter,
				     &s->jvms.meter};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		all[i]->little_ns = ns;
}

/* The first round is where counters begin. */
static void round_read(struct host *s, struct family_host *h, int64_t now_ns, int64_t little_ns)
{
	set_little(s, little_ns);
	s->round = (struct meter_round){
		.h = s->read_ns ? h : NULL, .now_ns = now_ns, .utc_ns = middle(s, h, now_ns)};
	s->begun_ns = s->begun_ns ? s->begun_ns : now_ns;
	hostwide_read(&s->wide, &s->round);
	cgroups_look(&s->cgroups, h, &s->round);
	s->n_processes = 0;
	hostmaps_each(h->maps, process_meet, s);
	container_events_round(&s->events, h, now_ns);
	h->processes = s->n_processes > h->processes ? s->n_processes : h->processes;
	cgroups_read(&s->cgroups, &s->round); /* before its processes: their ends are counted from
						 their readings on */
	hostmaps_each(h->maps, process_read, s);
	processes_end(&s->processes);
	jvms_end(&s->jvms);
	if (!s->fs_ns || now_ns - s->fs_ns >= FS_NS - SOON_NS) {
		s->fs_ns = now_ns;
		filesystems_read(&s->filesystems, &s->round);
	}
	s->read_ns = now_ns;
}

static void host_poll(void *state, struct family_host *h, int64_t now_ns)
{
	struct host *s = state;
	bool asks;

	if (s->read_ns)
		ended_poll(&s->ended, &s->processes, h, s->begun_ns);
	if (now_ns >= s->due_ns && hostmaps_seeded(h->maps))
		round_read(s, h, now_ns, h->bucket_s > 1 ? LITTLE_NS : 0);
	if (s->read_ns)
		container_events_poll(&s->events, h, clock_boot_ns(), false);
	asks = filesystems_poll(&s->filesystems, h, clock_boot_ns());
	s->due_ns = s->read_ns ? family_bucket_end(h, now_ns) : now_ns + SOON_NS;
	h->next_ns = asks && now_ns + SOON_NS < s->due_ns ? now_ns + SOON_NS : s->due_ns;
}

static void host_process_ended(void *state, struct family_host *h, const struct hostmaps_process *p)
{
	struct host *s = state;

	(void)h;
	container_events_ended(&s->events, p);
	ended_note(&s->ended, p);
}

static void host_process_usage(void *state, struct family_host *h, const struct mp_used *u,
			       struct hostmaps_process *p)
{
	struct host *s = state;

	(void)h;
	ended_used(&s->ended, u, p);
}

static void host_last_read(void *state, struct family_host *h, int64_t patience_ns)
{
	struct host *s = state;

	ended_await(&s->ended, h, clock_boot_ns() + patience_ns / 2);
	if (s->read_ns)
		ended_poll(&s->ended, &s->processes, h, s->begun_ns);
	s->cgroups.last = true;
	round_read(s, h, clock_boot_ns(), 0); /* nothing is left */
	container_events_poll(&s->events, h, clock_boot_ns(), true);
}

static const char *host_clock(void *state)
{
	(void)state;
	return "the kernel's own counters";
}

static void host_close(void *state)
{
	struct host *s = state;

	hostwide_release(&s->wide);
	cgroups_release(&s->cgroups);
	filesystems_release(&s->filesystems);
	processes_release(&s->processes);
	jvms_release(&s->jvms);
	container_events_release(&s->events);
	ended_release(&s->ended);
	free(s);
}

/* Whether the last lines of containers can be read from the journal. */
static void journal_check(struct check *c)
{
	const char *folder = journallines_folder();

	if (folder)
		check_add(c, "journal", CHECK_OK, NULL,
			  "%s: last lines of containers that log to journald are read there",
			  folder);
	else
		check_add(
			c, "journal", CHECK_OFF, NULL,
			"none on this host: last lines of containers are read from Docker's and Podman's own files");
}

/* What a kernel was built or booted without costs its columns. */
static void host_check(struct check *c, uint32_t freq)
{
	struct cgroups g;

	(void)freq;
	if (access("/proc/pressure/memory", R_OK))
		check_add(c, "pressure", CHECK_WARN, "boot with psi=1",
			  "this kernel does not report it: columns psi_* are NULL");
	else
		check_add(c, "pressure", CHECK_OK, NULL,
			  "/proc/pressure reports how long threads waited");
	cgroups_init(&g, 0);
	if (cgroups_has_memory(&g))
		check_add(c, "memory of cgroups", CHECK_OK, NULL, "the memory controller is on");
	else
		check_add(c, "memory of cgroups", CHECK_WARN,
			  "boot with cgroup_enable=memory cgroup_memory=1",
			  "the memory controller is off: memory of containers is NULL");
	cgroups_release(&g);
	journal_check(c);
}

static const struct family host_family = {
	.name = "host",
	.summary =
		"record CPU, memory, disks, network and pressure of the host, containers, units and processes",
	.options = {host_options, &opts},
	.rights = host_rights,
	.open = host_open,
	.poll = host_poll,
	.process_ended = host_process_ended,
	.process_usage = host_process_usage,
	.last_read = host_last_read,
	.clock = host_clock,
	.close = host_close,
	.check = host_check,
};

int main(int argc, char **argv)
{
	return family_main(&host_family, argc, argv);
}
