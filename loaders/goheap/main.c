// SPDX-License-Identifier: Apache-2.0
/*
 * sonde-goheap: what Go programs allocate and hold, by stack, from the profile that their runtime keeps anyway. This file
 * is the family's translation between the common loop of loaders/lib/bpf and the processes that it reads.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loaders/goheap/force.h"
#include "loaders/goheap/lastprof.h"
#include "loaders/goheap/procs.h"
#include "loaders/lib/bpf/check.h"
#include "loaders/lib/bpf/family.h"
#include "loaders/lib/bpf/options.h"
#include "loaders/lib/bpf/preflight.h"
#include "loaders/lib/sandbox/confine.h"
#include "schema/base/clock.h"
#include "schema/base/log.h"
#include "schema/base/mem.h"

#define INTERVAL_RECORD_NS (10 * NSEC_PER_SEC)
#define INTERVAL_ALWAYS_NS (60 * NSEC_PER_SEC)
#define INTERVAL_MIN_NS    (NSEC_PER_SEC / 10)

#define RATE_DEFAULT       524288u /* bytes a sample: the runtime's own */
#define RATE_MAX           0x7000000ull /* a larger one the runtime takes for this (fastexprand) */

enum mode { MODE_DISABLED, MODE_ENABLED, MODE_FORCE };

static struct {
	enum mode mode;
	uint64_t interval_ns; /* 0: by the store's time step */
	uint64_t rate;
	const char *record_dir;
} opts = {.mode = MODE_ENABLED, .rate = RATE_DEFAULT, .record_dir = FORCE_DIR};

struct goheap {
	struct procs *procs; /* NULL: disabled, or not begun */
	struct lastprof *lastprof; /* NULL: not possible here */
	int record_dir; /* of what is changed in processes; -1: nothing is */
	int64_t attached_ns;
};

static int mode_set(const char *value, struct err *e)
{
	if (!strcmp(value, "disabled"))
		opts.mode = MODE_DISABLED;
	else if (!strcmp(value, "enabled"))
		opts.mode = MODE_ENABLED;
	else if (!strcmp(value, "force"))
		opts.mode = MODE_FORCE;
	else
		return err_set(e, -EINVAL, EXIT_USAGE, "--mode '%s' is none of disabled, enabled, force", value);
	return 0;
}

static int rate_set(const char *value, struct err *e)
{
	char *end;

	errno = 0;
	opts.rate = strtoull(value, &end, 10);
	if (errno || *end || *value < '1' || *value > '9' || opts.rate > RATE_MAX)
		return err_set(e, -EINVAL, EXIT_USAGE, "--rate '%s' is not a number of bytes from 1 to %llu", value, RATE_MAX);
	return 0;
}

static int record_dir_set(const char *value, struct err *e)
{
	(void)e;
	opts.record_dir = value;
	return 0;
}

static int interval_set(const char *value, struct err *e)
{
	if (duration_parse(value, &opts.interval_ns) || opts.interval_ns < INTERVAL_MIN_NS)
		return err_set(e, -EINVAL, EXIT_USAGE, "--interval '%s' is not a time of at least 100ms", value);
	return 0;
}

static const struct family_option goheap_options[] = {
	{"mode", "MODE", "disabled, enabled (default: only reads), or force: profiling that is off is switched on", mode_set},
	{"rate", "BYTES", "what force writes into a process: bytes a sample (default 524288)", rate_set},
	{"record-dir", "DIR", "where it is on record what force has changed (default " FORCE_DIR ")", record_dir_set},
	{"interval", "TIME", "read each process so often (default 10s, with --bucket 10s 1m)", interval_set},
	{0}};

/* No right is needed of everyone: whom it may not read has a row that says so. */
static int goheap_rights(const char *prog, struct err *e)
{
	return preflight_clock(prog, e);
}

static int goheap_open(const struct family_config *c, void **state, struct bpf_object **obj, struct err *e)
{
	struct goheap *g = mem_alloc(sizeof(*g));

	g->record_dir = -1;
	(void)c;
	*obj = NULL;
	if (opts.mode != MODE_DISABLED && lastprof_open(&g->lastprof, obj, e)) {
		log_info("no last profiles of programs that end: %s", e->what);
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
		return (int64_t)opts.interval_ns;
	return h->bucket_s > 1 ? INTERVAL_ALWAYS_NS : INTERVAL_RECORD_NS;
}

static void goheap_begin(struct goheap *g, const struct family_host *h)
{
	struct procs_opts po = {.interval_ns = interval(h), .begun_ns = g->attached_ns,
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

static void goheap_finish(void *state, struct family_host *h, int64_t patience_ns)
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
	(void)state;
	*out = (struct family_tally){0};
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
	.summary = "what Go programs allocate and hold: stacks, from their runtime's own profile",
	.wants = "go",
	.options = goheap_options,
	.rights = goheap_rights,
	.open = goheap_open,
	.attach = goheap_attach,
	.poll = goheap_poll,
	.finish = goheap_finish,
	.period_ns = goheap_period_ns,
	.clock = goheap_clock,
	.tally = goheap_tally,
	.detach = goheap_detach,
	.close = goheap_close,
};

int main(int argc, char **argv)
{
	return family_main(&goheap_family, argc, argv);
}
