/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sonde-gpu: what GPUs and the processes on them used, as NVIDIA's management library tells
 * sonde-nvml (talk.h), at the end of each bucket. It loads no program. This file is the family's
 * translation between the common loop of loaders/lib/bpf and that talk.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/gpu/wire.h"
#include "loaders/lib/bpf/start/check.h"
#include "loaders/lib/bpf/family.h"
#include "loaders/lib/bpf/run/meter.h"
#include "loaders/lib/bpf/start/preflight.h"
#include "loaders/lib/bpf/start/target.h"
#include "loaders/lib/host/maps/hostmaps.h"
#include "loaders/lib/host/names/naming.h"
#include "loaders/lib/sandbox/confine.h"
#include "schema/base/clock.h"
#include "schema/base/hash.h"
#include "schema/base/log.h"
#include "schema/base/mem.h"
#include "schema/facts/gpu.h"

#define IDLE_NS  (60 * NSEC_PER_SEC)
#define SOON_NS  (NSEC_PER_SEC / 20)
#define BEGIN_NS (10 * NSEC_PER_SEC) /* so long the capture's begin waits for the driver */
#define CHECK_NS (15 * NSEC_PER_SEC)

struct gpu {
	struct wire wire;
	struct meter devices, processes;
	struct meter_round round;    /* of the answer that is awaited */
	struct gpuparse_device said; /* room for one */
	int64_t due_ns, asked_ns;    /* boot clock; 0: never */
	uint64_t n_processes;
};

/* ---- a device's block ---- */

struct device_names {
	const struct gpuparse_device *d;
	struct family_host *h;
	struct hostmaps_process *p; /* NULL: not known */
};

static bool device_names(void *ctx, struct fact_row *row)
{
	const struct device_names *n = ctx;

	fact_put_text(row, GPU_UUID, n->d->uuid);
	fact_put_text(row, GPU_NUMBER, n->d->number);
	fact_put_text(row, GPU_NAME, n->d->name);
	return true;
}

static bool process_names(void *ctx, struct fact_row *row)
{
	const struct device_names *n = ctx;

	if (n->p && naming_excludes(n->h->naming, n->p))
		return false;
	fact_put_text(row, GPU_PROCESS_UUID, n->d->uuid);
	fact_put_text(row, GPU_PROCESS_NUMBER, n->d->number);
	fact_put(row, GPU_PROCESS_ID, n->p ? naming_row(n->h->naming, n->p) : 0);
	return true;
}

struct search {
	uint32_t tgid;
	struct hostmaps_process *found;
};

static void search_ended(void *ctx, struct hostmaps_process *p)
{
	struct search *s = ctx;

	if (p->tgid == s->tgid && (!s->found || p->from_ns > s->found->from_ns))
		s->found = p;
}

/* The process that has this pid, else the last one that had it. NULL: unknown (it is in another pid
 * namespace). */
static struct hostmaps_process *process_of(struct hostmaps *maps, uint32_t pid)
{
	struct search s = {.tgid = pid, .found = hostmaps_running(maps, pid)};

	if (!s.found)
		hostmaps_each_known(maps, search_ended, &s);
	return s.found;
}

/* Unknown processes that the driver lists are one row: their keys differ, so that each has its own
 * difference. */
static void process_take(struct gpu *g, struct family_host *h, const struct gpuparse_process *x)
{
	struct device_names names = {&g->said, h, process_of(h->maps, x->pid)};
	struct meter_reading m = {.young = true, .row = x->row};
	char key[GPUPARSE_TEXT + 16];

	if (target_is_narrow(h->target) &&
	    (!names.p || !target_covers(h->target, h->maps, names.p))) {
		h->unknown += !names.p && target_may_cover(h->target, x->pid);
		return;
	}
	snprintf(key, sizeof(key), "%s %u", g->said.uuid, x->pid);
	m.key = key;
	m.identity = hash_u64(hash_u64(HASH_SEED, (uint64_t)x->nth << 32 | g->wire.starts),
			      names.p ? names.p->start_ns : 0);
	meter_take(&g->processes, &g->round, &m, process_names, &names);
	g->n_processes++;
}

static void device_take(struct gpu *g, struct family_host *h)
{
	struct device_names names = {.d = &g->said, .h = h};
	struct meter_reading m = {
		.key = g->said.uuid, .identity = g->wire.starts, .row = g->said.row};

	meter_take(&g->devices, &g->round, &m, device_names, &names);
	for (size_t i = 0; i < g->said.n; i++)
		process_take(g, h, &g->said.processes[i]);
}

/* ---- the round ---- */

static void tell(const struct err *e)
{
	log_warn("%s%s%s", e->what, *e->fix ? "; " : "", e->fix);
}

/* What has come of the answer. True: all of it. */
static bool answer_take(struct gpu *g, struct family_host *h)
{
	enum gpuparse_what what;

	g->round.h = h;
	while ((what = wire_next(&g->wire, &g->said)) != GPUPARSE_MORE) {
		if (what == GPUPARSE_DEVICE)
			device_take(g, h);
		if (what != GPUPARSE_END)
			continue;
		meter_end(&g->devices);
		meter_end(&g->processes);
		h->processes = g->n_processes > h->processes ? g->n_processes : h->processes;
		return true;
	}
	return false;
}

/* A difference belongs between two readings; after a sleep, into the bucket that has ended. */
static int64_t middle(const struct gpu *g, const struct family_host *h, int64_t now_ns)
{
	int64_t width = (int64_t)h->bucket_s * NSEC_PER_SEC, from = now_ns - width;

	return (g->asked_ns > from ? g->asked_ns / 2 + now_ns / 2 : now_ns - width / 2) +
	       h->offset_ns;
}

static bool ask(struct gpu *g, struct family_host *h, int64_t now_ns)
{
	if (!wire_ask(&g->wire, now_ns))
		return false;
	g->round = (struct meter_round){.now_ns = now_ns, .utc_ns = middle(g, h, now_ns)};
	g->asked_ns = now_ns;
	g->n_processes = 0;
	return true;
}

static int64_t bucket_end(const struct family_host *h, int64_t now_ns)
{
	int64_t width = (int64_t)h->bucket_s * NSEC_PER_SEC, utc = now_ns + h->offset_ns;

	return (utc / width + 1) * width - h->offset_ns;
}

static void gpu_poll(void *state, struct family_host *h, int64_t now_ns)
{
	struct gpu *g = state;
	struct err e = {0};
	int rc = wire_start(&g->wire, now_ns, &e);

	if (!rc)
		rc = wire_read(&g->wire, now_ns, &e);
	answer_take(g, h);
	if (!rc)
		rc = wire_overdue(&g->wire, now_ns, &e);
	if (rc)
		tell(&e);
	if (now_ns >= g->due_ns && hostmaps_seeded(h->maps)) {
		ask(g, h, now_ns);
		g->due_ns = bucket_end(h, now_ns);
	}
	h->next_ns = g->wire.state == WIRE_ASKED || g->wire.state == WIRE_STARTING ||
				     now_ns >= g->due_ns ?
			     now_ns + SOON_NS :
			     g->due_ns;
}

static void gpu_last_read(void *state, struct family_host *h, int64_t patience_ns)
{
	struct gpu *g = state;
	int64_t until = clock_mono_ns() + patience_ns, left;
	struct err e = {0};
	bool again = g->wire.state == WIRE_ASKED,
	     done = false; /* what was asked is answered first */

	if (!again && !ask(g, h, clock_boot_ns()))
		return;
	while (!done && g->wire.from >= 0 && (left = until - clock_mono_ns()) > 0) {
		struct pollfd f = {.fd = g->wire.from, .events = POLLIN};

		poll(&f, 1, (int)(left / 1000000) + 1);
		if (wire_read(&g->wire, clock_boot_ns(), &e))
			return;
		done = answer_take(g, h);
		if (done && again)
			done = again = false, ask(g, h, clock_boot_ns());
	}
}

/* ---- the family ---- */

static int gpu_rights(const char *prog, struct err *e)
{
	return preflight_clock(prog, e);
}

static int gpu_open(const struct family_config *c, void **state, struct bpf_object **obj,
		    struct err *e)
{
	struct gpu *g = mem_alloc(sizeof(*g));

	(void)c;
	(void)e;
	*obj = NULL;
	*g = (struct gpu){.wire = WIRE_INIT,
			  .devices = {.fact = &GPU_FACT, .idle_ns = IDLE_NS},
			  .processes = {.fact = &GPU_PROCESS_FACT, .idle_ns = IDLE_NS}};
	*state = g;
	return 0;
}

static int no_devices(struct err *e)
{
	err_set(e, -ENODEV, EXIT_PREREQUISITE, "NVIDIA's driver finds no GPU here");
	err_fix(e, "nvidia-smi -L    lists the GPUs");
	return -ENODEV;
}

/* One that takes long to begin is awaited by the capture. */
static int gpu_attach(void *state, struct err *e)
{
	struct gpu *g = state;
	int rc = wire_start(&g->wire, clock_boot_ns(), e);

	if (!rc)
		rc = wire_await(&g->wire, BEGIN_NS, e);
	if (rc == -ETIMEDOUT)
		return 0;
	return rc ? rc : g->wire.hello.devices ? 0 : no_devices(e);
}

static uint64_t gpu_period_ns(void *state)
{
	(void)state;
	return 0; /* values are themselves */
}

static const char *gpu_clock(void *state)
{
	(void)state;
	return "NVIDIA's management library";
}

static void gpu_tally(void *state, struct family_tally *out)
{
	const struct gpu *g = state;

	*out = (struct family_tally){.helper = (uint32_t)g->wire.child,
				     .helper_cpu_ns = wire_cpu_ns(&g->wire)};
}

static void gpu_detach(void *state)
{
	(void)state;
}

static void gpu_close(void *state)
{
	struct gpu *g = state;

	wire_end(&g->wire);
	meter_release(&g->devices);
	meter_release(&g->processes);
	free(g);
}

static void check_library(struct check *c, const struct gpuparse_hello *x)
{
	if (*x->missing)
		check_add(
			c, "NVIDIA's library", CHECK_WARN, "a newer driver",
			"%s, of driver %s, is too old for some columns, which are NULL: it lacks %.300s",
			x->library, x->driver, x->missing);
	else
		check_add(c, "NVIDIA's library", CHECK_OK, NULL, "%s, of driver %s", x->library,
			  x->driver);
	if (x->devices)
		check_add(c, "GPUs", CHECK_OK, NULL, "%u", x->devices);
	else
		check_add(c, "GPUs", CHECK_OFF, NULL, "NVIDIA's driver finds no GPU here");
}

static bool has_driver(void)
{
	FILE *f = fopen("/proc/driver/nvidia/version", "re");

	if (f)
		fclose(f);
	return f != NULL;
}

/* A host without a GPU lacks nothing. */
static void gpu_check(struct check *c, uint32_t freq)
{
	struct wire t = WIRE_INIT;
	struct err e = {0};
	int rc = wire_start(&t, clock_boot_ns(), &e);

	(void)freq;
	if (!rc)
		rc = wire_await(&t, CHECK_NS, &e);
	if (!rc)
		check_library(c, &t.hello);
	else if (rc == -ETIMEDOUT)
		check_add(c, "NVIDIA's library", CHECK_WARN, "sudo dmesg | grep NVRM",
			  "it does not answer within 15 s: NVIDIA's driver hangs");
	else if (has_driver())
		check_add(c, "NVIDIA's library", CHECK_WARN, e.fix, "%s", e.what);
	else
		check_add(c, "NVIDIA's library", CHECK_OFF, NULL, "no NVIDIA GPU here: %s", e.what);
	c->absent = rc && rc != -ETIMEDOUT && !has_driver();
	wire_end(&t);
}

static const struct family gpu_family = {
	.name = "gpu",
	.keeps = CONFINE_EXECS, /* sonde-nvml again */
	.summary = "record use of GPUs, by process: time, memory, power, temperature",
	.rights = gpu_rights,
	.open = gpu_open,
	.attach = gpu_attach,
	.poll = gpu_poll,
	.last_read = gpu_last_read,
	.period_ns = gpu_period_ns,
	.clock = gpu_clock,
	.tally = gpu_tally,
	.detach = gpu_detach,
	.close = gpu_close,
	.check = gpu_check,
};

int main(int argc, char **argv)
{
	return family_main(&gpu_family, argc, argv);
}
