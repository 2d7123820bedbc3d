/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sonde-goheap: what Go programs allocate and hold, by stack, from the profile that their runtime
 * keeps anyway. This file is the family's translation between the common loop of loaders/lib/bpf
 * and the processes that it reads.
 */
#include <errno.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loaders/goheap/force.h"
#include "loaders/goheap/lastprof.h"
#include "loaders/goheap/procs.h"
#include "loaders/lib/bpf/start/check.h"
#include "loaders/lib/bpf/family.h"
#include "loaders/lib/bpf/load/leftout.h"
#include "loaders/lib/bpf/start/preflight.h"
#include "loaders/lib/sandbox/confine.h"
#include "schema/base/clock.h"
#include "schema/base/log.h"
#include "schema/base/mem.h"

#define INTERVAL_RECORD_NS (10 * NSEC_PER_SEC)
#define INTERVAL_ALWAYS_NS (60 * NSEC_PER_SEC)
#define INTERVAL_MIN_NS    (NSEC_PER_SEC / 10)

#define RATE_DEFAULT 524288u      /* bytes a sample: the runtime's own */
#define RATE_MAX     0x7000000ull /* a larger one the runtime takes for this (fastexprand) */

enum mode { MODE_DISABLED, MODE_ENABLED, MODE_FORCE };

static struct goheap_opts {
	enum mode mode;
	int64_t interval_ns; /* 0: by the store's time step */
	uint64_t rate;
	const char *record_dir;
} opts = {.mode = MODE_ENABLED, .rate = RATE_DEFAULT, .record_dir = FORCE_DIR};

struct goheap {
	struct procs *procs;       /* NULL: disabled, or not begun */
	struct lastprof *lastprof; /* NULL: not possible here */
	int record_dir;            /* of what is changed in processes; -1: nothing is */
	int64_t attached_ns;
};

static const struct option goheap_options[] = {
	{"mode", 0, OPTION_ENUM, "disabled|enabled|force",
	 "enabled only reads (the default); force switches profiling on where it is off",
	 OPTION_AT(struct goheap_opts, mode)},
	{"rate", 0, OPTION_UINT, "BYTES", "rate that force sets: bytes per sample (default 524288)",
	 OPTION_AT(struct goheap_opts, rate), .min = 1, .max = RATE_MAX},
	{"record-dir", 0, OPTION_STRING, "DIR",
	 "where changes by force are recorded (default " FORCE_DIR ")",
	 OPTION_AT(struct goheap_opts, record_dir)},
	{"interval", 0, OPTION_DURATION, "TIME",
	 "time between readings of a process (default 10s, with --bucket 10s 1m)",
	 OPTION_AT(struct goheap_opts, interval_ns), .min = INTERVAL_MIN_NS},
	{0}};

/* No right is needed of everyone: whom it may not read has a row that says so. */
static int goheap_rights(const char *prog, struct err *e)
{
	return preflight_clock(prog, e);
}

#define NO_PTRACE \
	"no CAP_SYS_PTRACE: heaps of other users' programs, and of those with more rights than this one, are not read"

static void goheap_check(struct check *c, uint32_t freq)
{
	(void)freq;
	if (preflight_has(CAP_SYS_PTRACE))
		check_add(c, "memory", CHECK_OK, NULL, "heaps of all users' programs are read");
	else
		check_add(c, "memory", CHECK_WARN,
			  geteuid() ? "run it as root" : "in a container: cap_add: [SYS_PTRACE]",
			  NO_PTRACE);
}

static int goheap_open(const struct family_config *c, void **state, struct bpf_object **obj,
		       struct err *e)
{
	struct goheap *g = mem_alloc(sizeof(*g));

	g->record_dir = -1;
	(void)c;
	*obj = NULL;
	if (opts.mode != MODE_DISABLED && lastprof_open(&g->lastprof, obj, e)) {
		if (!leftout_is("goheap_last"))
			log_warn(
				"goheap: last profiles of programs that a signal ends are not read: %s",
				e->what);
		*e = (struct err){0};
	}
	*state = g;
	return 0;
}

static int goheap_attach(void *state, struct err *e)
{
	struct goheap *g = state;

	force_put_back_left(opts.record_dir);
	g->attached_ns = clock_boot_ns();
	return opts.mode == MODE_FORCE ? force_dir_open(opts.record_dir, &g->record_dir, e) : 0;
}

static int64_t interval(const struct family_host *h)
{
	if (opts.interval_ns)
		return opts.interval_ns;
	return h->bucket_s > 1 ? INTERVAL_ALWAYS_NS : INTERVAL_RECORD_NS;
}

static void goheap_begin(struct goheap *g, const struct family_host *h)
{
	struct procs_opts po = {.interval_ns = interval(h),
				.begun_ns = g->attached_ns,
				.lastprof = g->lastprof,
				.switchon = {.dirfd = g->record_dir, .rate = opts.rate}};

	if (!g->procs && opts.mode != MODE_DISABLED)
		g->procs = procs_new(&po);
}

static void goheap_poll(void *state, struct family_host *h, int64_t now_ns)
{
	struct goheap *g = state;

	goheap_begin(g, h);
	if (g->procs)
		procs_poll(g->procs, h, now_ns);
}

static void goheap_last_read(void *state, struct family_host *h, int64_t patience_ns)
{
	struct goheap *g = state;

	if (g->procs)
		procs_finish(g->procs, h, clock_boot_ns() + patience_ns);
}

static uint64_t goheap_period_ns(void *state)
{
	(void)state;
	return 0; /* values are themselves */
}

static const char *goheap_clock(void *state)
{
	(void)state;
	return "the programs' own sampling";
}

static void goheap_tally(void *state, struct family_tally *out)
{
	const struct goheap *g = state;
	uint64_t lost = lastprof_lost(g->lastprof);

	*out = (struct family_tally){.seen = lost, .lost = lost};
}

static void goheap_detach(void *state)
{
	struct goheap *g = state;

	procs_free(g->procs);
	g->procs = NULL;
}

static void goheap_close(void *state)
{
	struct goheap *g = state;

	goheap_detach(state);
	lastprof_close(g->lastprof);
	if (g->record_dir >= 0)
		close(g->record_dir);
	free(g);
}

static const struct family goheap_family = {
	.name = "goheap",
	.keeps = CONFINE_LOADS,
	.summary = "record what Go programs allocate and hold, from their runtime's heap profile",
	.wants = "go",
	.options = {goheap_options, &opts},
	.rights = goheap_rights,
	.open = goheap_open,
	.attach = goheap_attach,
	.poll = goheap_poll,
	.last_read = goheap_last_read,
	.period_ns = goheap_period_ns,
	.clock = goheap_clock,
	.tally = goheap_tally,
	.detach = goheap_detach,
	.close = goheap_close,
	.check = goheap_check,
};

int main(int argc, char **argv)
{
	return family_main(&goheap_family, argc, argv);
}
