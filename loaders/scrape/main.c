/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sonde-scrape: the profiles that Go programs offer over HTTP, as the programs themselves tell
 * them. It loads no program and has no network: sonde-pprof asks. This file is the family's
 * translation between the common loop of loaders/lib/bpf and the programs that are asked.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/lib/bpf/start/check.h"
#include "loaders/lib/bpf/family.h"
#include "loaders/lib/bpf/start/preflight.h"
#include "loaders/scrape/goprogs.h"
#include "loaders/scrape/tell.h"
#include "schema/base/clock.h"
#include "schema/base/mem.h"

#define INTERVAL_RECORD_NS (10 * NSEC_PER_SEC)
#define INTERVAL_ALWAYS_NS (60 * NSEC_PER_SEC)
#define INTERVAL_MIN_NS    NSEC_PER_SEC
#define CPU_S              10u
/* of the interval, always: leaves time for others to take a CPU profile */
#define CPU_PART 5

static struct scrape_opts {
	const char *profiles; /* NULL: by the store's time step */
	int64_t interval_ns;  /* 0: the same */
} opts;

struct scrape {
	struct asker asker;
	struct goprogs *programs; /* NULL: not begun */
	int64_t attached_ns;
};

static const struct option scrape_options[] = {
	{"profiles", 0, OPTION_STRING, "LIST",
	 "comma-separated list of cpu, heap, goroutine, block, mutex (default all; with --bucket 10s all but cpu)",
	 OPTION_AT(struct scrape_opts, profiles)},
	{"interval", 0, OPTION_DURATION, "TIME",
	 "time between requests to a program (default 10s, with --bucket 10s 1m)",
	 OPTION_AT(struct scrape_opts, interval_ns), .min = INTERVAL_MIN_NS},
	{0}};

/* No right is needed of everyone: whom it may not look at is not asked. */
static int scrape_rights(const char *prog, struct err *e)
{
	return preflight_clock(prog, e);
}

static bool ask_named(const char *name, size_t len, bool asks[WIRE_ASKS])
{
	for (int i = WIRE_ASK_CPU; i < WIRE_ASKS; i++) {
		const char *known = tell_name((enum wire_ask)i);

		if (strlen(known) == len && !memcmp(known, name, len)) {
			asks[i] = true;
			return true;
		}
	}
	return false;
}

static int asks_of(const char *list, bool asks[WIRE_ASKS], struct err *e)
{
	while (list) {
		size_t len = strcspn(list, ",");

		if (!ask_named(list, len, asks))
			return err_set(
				e, -EINVAL, EXIT_USAGE,
				"unknown profile '%.*s' (expected cpu, heap, goroutine, block or mutex)",
				(int)(len < 40 ? len : 40), list);
		list = list[len] ? list + len + 1 : NULL;
	}
	return 0;
}

static int scrape_open(const struct family_config *c, void **state, struct bpf_object **obj,
		       struct err *e)
{
	struct scrape *s;
	bool asks[WIRE_ASKS] = {false};
	int rc = asks_of(opts.profiles, asks, e);

	(void)c;
	*obj = NULL;
	if (rc)
		return rc;
	s = mem_alloc(sizeof(*s));
	s->asker.fd = -1;
	*state = s;
	return 0;
}

static int scrape_attach(void *state, struct err *e)
{
	struct scrape *s = state;

	s->attached_ns = clock_boot_ns();
	return asker_start(&s->asker, e);
}

static void begin(struct scrape *s, const struct family_host *h)
{
	bool always = h->bucket_s > 1;
	struct goprogs_opts o = {.interval_ns = opts.interval_ns ? opts.interval_ns :
						always           ? INTERVAL_ALWAYS_NS :
								   INTERVAL_RECORD_NS,
				 .begun_ns = s->attached_ns,
				 .asker = &s->asker};
	int64_t cpu_ns = always ? o.interval_ns / CPU_PART : o.interval_ns;

	if (s->programs)
		return;
	o.cpu_s = cpu_ns / NSEC_PER_SEC < CPU_S ? (uint32_t)(cpu_ns / NSEC_PER_SEC) : CPU_S;
	o.cpu_s += !o.cpu_s;
	asks_of(opts.profiles ? opts.profiles :
		always        ? "heap,goroutine,block,mutex" :
				"cpu,heap,goroutine,block,mutex",
		o.asks, NULL);
	s->programs = goprogs_new(&o);
}

static void scrape_poll(void *state, struct family_host *h, int64_t now_ns)
{
	struct scrape *s = state;

	begin(s, h);
	goprogs_poll(s->programs, h, now_ns);
}

static void scrape_last_read(void *state, struct family_host *h, int64_t patience_ns)
{
	struct scrape *s = state;

	if (s->programs)
		goprogs_finish(s->programs, h, clock_boot_ns() + patience_ns);
}

static uint64_t scrape_period_ns(void *state)
{
	(void)state;
	return 0; /* values are themselves */
}

static const char *scrape_clock(void *state)
{
	(void)state;
	return "the programs' own profiles";
}

static void scrape_tally(void *state, struct family_tally *out)
{
	const struct scrape *s = state;

	*out = (struct family_tally){.helper = (uint32_t)s->asker.child,
				     .helper_cpu_ns = asker_cpu_ns(&s->asker)};
}

static void scrape_detach(void *state)
{
	struct scrape *s = state;

	goprogs_free(s->programs);
	s->programs = NULL;
}

static void scrape_close(void *state)
{
	struct scrape *s = state;

	scrape_detach(s);
	asker_end(&s->asker);
	free(s);
}

static void scrape_check(struct check *c, uint32_t freq)
{
	struct asker a;
	struct err e = {0};

	(void)freq;
	if (asker_start(&a, &e))
		check_add_err(c, "sonde-pprof", &e);
	else if (a.child)
		check_add(
			c, "sonde-pprof", CHECK_OK, NULL,
			"requests /debug/pprof from Go programs, also in other network namespaces that it may enter");
	else
		check_add(
			c, "sonde-pprof", CHECK_OK, NULL,
			"requests /debug/pprof from Go programs in the host's network, through its own unit");
	asker_end(&a);
}

static const struct family scrape_family = {
	.name = "scrape",
	.summary =
		"record the profiles that Go programs offer over HTTP: CPU, heap, goroutines, blocking, locks",
	.wants = "go",
	.options = {scrape_options, &opts},
	.rights = scrape_rights,
	.open = scrape_open,
	.attach = scrape_attach,
	.poll = scrape_poll,
	.last_read = scrape_last_read,
	.period_ns = scrape_period_ns,
	.clock = scrape_clock,
	.tally = scrape_tally,
	.detach = scrape_detach,
	.close = scrape_close,
	.check = scrape_check,
};

int main(int argc, char **argv)
{
	return family_main(&scrape_family, argc, argv);
}
