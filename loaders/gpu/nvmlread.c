/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/gpu/nvmlread.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/clock.h"
#include "schema/base/mem.h"

#define DEVICES_MAX   64
#define MIG_MAX       16
#define PROCESSES_MAX 1024
#define SAMPLES_MAX   1024
#define TEXT_MAX      96
/* what is not sampled for longer (the host slept) is in no sum */
#define GAP_NS (5 * NSEC_PER_SEC)

/* A sum of percent times time. */
struct sum {
	int64_t at_ns;      /* up to when; 0: it has not begun */
	uint64_t cursor_us; /* of the driver's samples */
	double us;
	bool told; /* since it was written last */
};

/* A counter of the driver's, from where it was first. */
struct counter {
	bool begun, told;
	uint64_t last, sum;
};

struct process {
	unsigned int pid;
	uint32_t nth; /* this time that the driver lists it */
	bool listed, has_mem;
	uint64_t mem;
	double us[4]; /* sm, memory, encoder, decoder */
	bool told[4];
};

struct device {
	nvml_device handle;
	char uuid[TEXT_MAX], name[TEXT_MAX], number[24];
	bool is_there;
	struct sum busy, mem_busy, enc, dec, use;
	struct counter energy, hot, capped, ecc;
	unsigned long long reasons;
	bool reasons_told;
	struct process *processes;
	size_t n, cap;
	uint32_t nth;
};

struct nvmlread {
	const struct nvmlapi *api;
	struct device *all;
	size_t n, cap;
	/* room for answers */
	struct nvml_sample samples[SAMPLES_MAX];
	struct nvml_use use[PROCESSES_MAX];
	union {
		struct nvml_process v2[PROCESSES_MAX];
		struct nvml_process_v1 v1[PROCESSES_MAX];
	} list;
};

struct nvmlread *nvmlread_new(const struct nvmlapi *api)
{
	struct nvmlread *r = mem_alloc(sizeof(*r));

	r->api = api;
	return r;
}

void nvmlread_free(struct nvmlread *r)
{
	for (size_t i = 0; i < r->n; i++)
		free(r->all[i].processes);
	free(r->all);
	free(r);
}

/* ---- which devices ---- */

/* The line's end is the text's: what else is not printable becomes '?'. */
static void text_clean(char text[TEXT_MAX])
{
	text[TEXT_MAX - 1] = 0;
	for (char *p = text; *p; p++)
		if (*p < ' ' || *p > '~')
			*p = '?';
}

static void device_note(struct nvmlread *r, nvml_device handle, const char *number)
{
	char uuid[TEXT_MAX] = "", name[TEXT_MAX] = "";
	struct device *d = NULL;

	if (r->api->uuid(handle, uuid, TEXT_MAX) || !uuid[0])
		return;
	text_clean(uuid);
	for (size_t i = 0; i < r->n; i++)
		if (!strcmp(r->all[i].uuid, uuid))
			d = &r->all[i];
	if (!d && r->n >= DEVICES_MAX)
		return;
	if (!d) {
		mem_grow(r->all, r->n, r->cap);
		d = &r->all[r->n++];
		*d = (struct device){0};
		memcpy(d->uuid, uuid, TEXT_MAX);
	}
	if (r->api->name && !r->api->name(handle, name, TEXT_MAX)) {
		text_clean(name);
		memcpy(d->name, name, TEXT_MAX);
	}
	snprintf(d->number, sizeof(d->number), "%s", number);
	d->handle = handle;
	d->is_there = true;
}

static void instances_note(struct nvmlread *r, nvml_device handle, unsigned int index)
{
	unsigned int n = 0;
	char number[24];

	if (!r->api->mig_max || !r->api->mig_handle || r->api->mig_max(handle, &n))
		return;
	for (unsigned int i = 0; i < n && i < MIG_MAX; i++) {
		nvml_device part = NULL;

		if (r->api->mig_handle(handle, i, &part))
			continue;
		snprintf(number, sizeof(number), "%u:%u", index, i);
		device_note(r, part, number);
	}
}

unsigned int nvmlread_look(struct nvmlread *r)
{
	unsigned int n = 0, there = 0;
	char number[24];

	for (size_t i = 0; i < r->n; i++)
		r->all[i].is_there = false;
	if (r->api->count(&n))
		n = 0;
	for (unsigned int i = 0; i < n && i < DEVICES_MAX; i++) {
		nvml_device handle = NULL;

		if (r->api->handle(i, &handle))
			continue;
		snprintf(number, sizeof(number), "%u", i);
		device_note(r, handle, number);
		instances_note(r, handle, i);
	}
	for (size_t i = 0; i < r->n; i++)
		there += r->all[i].is_there;
	return there;
}

/* ---- sums ---- */

/* How much time a reading made now covers. */
static double since(struct sum *s, int64_t now_ns)
{
	int64_t ns = s->at_ns ? now_ns - s->at_ns : 0;

	s->at_ns = now_ns;
	return ns > 0 && ns <= GAP_NS ? 1e-3 * (double)ns : 0;
}

static void sum_add(struct sum *s, double percent, int64_t now_ns)
{
	s->us += percent / 100 * since(s, now_ns);
	s->told = true;
}

static double sample_value(const struct nvml_sample *x, int type)
{
	switch (type) {
	case NVML_VALUE_DOUBLE:
		return x->value.real;
	case NVML_VALUE_UINT:
		return x->value.uint;
	case NVML_VALUE_ULONG:
		return (double)x->value.ulong;
	case NVML_VALUE_ULL:
		return (double)x->value.ull;
	case NVML_VALUE_LL:
		return (double)x->value.ll;
	case NVML_VALUE_INT:
		return x->value.sint;
	default:
		return -1;
	}
}

/* The mean of the driver's samples since the previous ones; -1: no new samples. */
static double samples_mean(struct nvmlread *r, const struct device *d, int kind, struct sum *s)
{
	unsigned int n = SAMPLES_MAX, taken = 0;
	uint64_t newest = s->cursor_us;
	int type = -1;
	double all = 0;

	if (!r->api->samples ||
	    r->api->samples(d->handle, kind, s->cursor_us, &type, &n, r->samples))
		return -1;
	for (unsigned int i = 0; i < n && i < SAMPLES_MAX; i++) {
		double v = sample_value(&r->samples[i], type);

		if (r->samples[i].us <= s->cursor_us || !(v >= 0 && v <= 100))
			continue;
		newest = r->samples[i].us > newest ? r->samples[i].us : newest;
		all += v;
		taken++;
	}
	s->cursor_us = newest;
	return taken ? all / taken : -1;
}

/* By samples; where the driver keeps none, by what it says of the moment. */
static void busy_sample(struct nvmlread *r, struct device *d, int64_t now_ns)
{
	double gpu = samples_mean(r, d, NVML_SAMPLES_GPU, &d->busy),
	       memory = samples_mean(r, d, NVML_SAMPLES_MEMORY, &d->mem_busy);
	struct nvml_rates rates = {0};
	bool has = (gpu < 0 || memory < 0) && r->api->rates && !r->api->rates(d->handle, &rates) &&
		   rates.gpu <= 100 && rates.memory <= 100;

	gpu = gpu < 0 && has ? rates.gpu : gpu;
	memory = memory < 0 && has ? rates.memory : memory;
	if (gpu >= 0)
		sum_add(&d->busy, gpu, now_ns);
	if (memory >= 0)
		sum_add(&d->mem_busy, memory, now_ns);
}

static void video_sample(struct device *d, int (*ask)(nvml_device, unsigned int *, unsigned int *),
			 struct sum *s, int64_t now_ns)
{
	unsigned int percent = 0, period_us;

	if (ask && !ask(d->handle, &percent, &period_us) && percent <= 100)
		sum_add(s, percent, now_ns);
}

/* ---- processes ---- */

static struct process *process_of(struct device *d, unsigned int pid)
{
	for (size_t i = 0; i < d->n; i++)
		if (d->processes[i].pid == pid)
			return &d->processes[i];
	if (!pid || d->n >= PROCESSES_MAX)
		return NULL;
	mem_grow(d->processes, d->n, d->cap);
	d->processes[d->n] = (struct process){.pid = pid, .nth = ++d->nth};
	return &d->processes[d->n++];
}

/* One that computes and draws is in both lists, with the same memory. */
static void listed(struct device *d, unsigned int pid, unsigned long long memory)
{
	struct process *p = process_of(d, pid);

	if (!p)
		return;
	if (memory != NVML_NO_VALUE) {
		p->mem = p->listed && p->has_mem && p->mem > memory ? p->mem : memory;
		p->has_mem = true;
	}
	p->listed = true;
}

/* true: the driver reported something. */
static bool list_read(struct nvmlread *r, struct device *d,
		      int (*ask)(nvml_device, unsigned int *, struct nvml_process *),
		      int (*ask_v1)(nvml_device, unsigned int *, struct nvml_process_v1 *))
{
	unsigned int n = PROCESSES_MAX;

	if (ask) {
		if (ask(d->handle, &n, r->list.v2))
			return false;
		for (unsigned int i = 0; i < n && i < PROCESSES_MAX; i++)
			listed(d, r->list.v2[i].pid, r->list.v2[i].memory);
		return true;
	}
	if (!ask_v1 || ask_v1(d->handle, &n, r->list.v1))
		return false;
	for (unsigned int i = 0; i < n && i < PROCESSES_MAX; i++)
		listed(d, r->list.v1[i].pid, r->list.v1[i].memory);
	return true;
}

/* The driver has one entry for each process that did something, or some; entries of before are
 * passed by. */
static void use_sample(struct nvmlread *r, struct device *d, int64_t now_ns)
{
	unsigned int n = PROCESSES_MAX;
	uint64_t newest = d->use.cursor_us;
	double us;
	int rc;

	if (!r->api->use)
		return;
	rc = r->api->use(d->handle, r->use, &n, d->use.cursor_us);
	if (rc && rc != NVML_NOT_FOUND)
		return;
	us = since(&d->use, now_ns);
	d->use.told = true;
	for (size_t i = 0; i < d->n; i++)
		for (int k = 0; k < 4; k++)
			d->processes[i].told[k] = true; /* a process without a sample did nothing */
	for (unsigned int i = 0; !rc && i < n && i < PROCESSES_MAX; i++) {
		const struct nvml_use *x = &r->use[i];
		const unsigned int percent[4] = {x->sm, x->memory, x->encoder, x->decoder};
		struct process *p = x->us > d->use.cursor_us ? process_of(d, x->pid) : NULL;
		unsigned int entries = 0;

		for (unsigned int k = 0; k < n && k < PROCESSES_MAX; k++)
			entries += r->use[k].pid == x->pid && r->use[k].us > d->use.cursor_us;
		newest = x->us > newest ? x->us : newest;
		for (int k = 0; p && k < 4; k++)
			if (percent[k] <= 100) {
				p->us[k] += percent[k] / 100.0 * us / entries;
				p->told[k] = true;
			}
	}
	d->use.cursor_us = newest;
}

static void processes_sample(struct nvmlread *r, struct device *d, int64_t now_ns)
{
	bool told;

	for (size_t i = 0; i < d->n; i++)
		d->processes[i].listed = false;
	told = list_read(r, d, r->api->compute, r->api->compute_v1);
	told |= list_read(r, d, r->api->graphics, r->api->graphics_v1);
	for (size_t i = 0; !told && i < d->n; i++) /* not known to have ended */
		d->processes[i].listed = true;
	if (d->n)
		use_sample(r, d, now_ns);
	else
		d->use.at_ns = now_ns;
}

/* ---- a second ---- */

static void counter_take(struct counter *c, uint64_t value)
{
	if (c->begun && value >= c->last)
		c->sum += value - c->last;
	c->told = true;
	c->begun = true;
	c->last = value;
}

void nvmlread_sample(struct nvmlread *r, int64_t now_ns)
{
	for (size_t i = 0; i < r->n; i++) {
		struct device *d = &r->all[i];
		unsigned long long reasons = 0;

		if (!d->is_there)
			continue;
		busy_sample(r, d, now_ns);
		video_sample(d, r->api->encoder, &d->enc, now_ns);
		video_sample(d, r->api->decoder, &d->dec, now_ns);
		if (r->api->reasons && !r->api->reasons(d->handle, &reasons)) {
			d->reasons |= reasons;
			d->reasons_told = true;
		}
		processes_sample(r, d, now_ns);
	}
}

/* ---- saying it ---- */

static void say(const char *name, uint64_t n)
{
	printf("%s %llu\n", name, (unsigned long long)n);
}

static void say_sum(const char *name, struct sum *s, int64_t now_ns)
{
	if (s->told)
		say(name, (uint64_t)s->us);
	else if (s->at_ns)
		s->at_ns = now_ns; /* a process that the driver no longer lists has ended */
	s->told = false;
}

static void say_counter(const char *name, struct counter *c)
{
	if (c->told)
		say(name, c->sum);
	c->told = false;
}

static void say_uint(const char *name, nvml_device d, int (*ask)(nvml_device, unsigned int *),
		     uint64_t mul)
{
	unsigned int n = 0;

	if (ask && !ask(d, &n))
		say(name, n * mul);
}

static void say_kind(const char *name, nvml_device d, int (*ask)(nvml_device, int, unsigned int *),
		     int kind, uint64_t mul)
{
	unsigned int n = 0;

	if (ask && !ask(d, kind, &n))
		say(name, n * mul);
}

static void counters_read(const struct nvmlapi *api, struct device *d)
{
	struct nvml_violation v = {0};
	unsigned long long n = 0;

	if (api->energy && !api->energy(d->handle, &n))
		counter_take(&d->energy, n);
	if (api->violation && !api->violation(d->handle, NVML_POLICY_THERMAL, &v))
		counter_take(&d->hot, v.violation_ns / 1000);
	if (api->violation && !api->violation(d->handle, NVML_POLICY_POWER, &v))
		counter_take(&d->capped, v.violation_ns / 1000);
	if (api->ecc && !api->ecc(d->handle, NVML_UNCORRECTED, NVML_SINCE_LOAD, &n))
		counter_take(&d->ecc, n);
}

static void say_process(struct process *p)
{
	printf("process %u %u ", p->pid, p->nth);
	if (p->listed && p->has_mem)
		printf("%llu", (unsigned long long)p->mem);
	else
		printf("-");
	for (int k = 0; k < 4; k++) {
		if (p->told[k])
			printf(" %llu", (unsigned long long)p->us[k]);
		else
			printf(" -");
		p->told[k] = false;
	}
	printf("\n");
}

/* Processes that the driver no longer lists are written a last time. */
static void say_processes(struct device *d, int64_t now_ns)
{
	size_t kept = 0;

	if (!d->use.told && d->use.at_ns)
		d->use.at_ns = now_ns;
	d->use.told = false;
	for (size_t i = 0; i < d->n; i++) {
		say_process(&d->processes[i]);
		if (d->processes[i].listed)
			d->processes[kept++] = d->processes[i];
	}
	d->n = kept;
}

/* What is used as nvidia-smi says it, where the driver tells that apart from what it keeps for
 * itself. One call that fails is no reason to say the other: that would be a step where nothing
 * changed. */
static void say_memory(const struct nvmlapi *api, nvml_device handle)
{
	struct nvml_memory2 m = {.version = NVML_MEMORY2};
	struct nvml_memory all = {0};
	int rc = api->memory2 ? api->memory2(handle, &m) : NVML_NOT_SUPPORTED;

	if (!rc) {
		say("mem_total", m.total);
		say("mem_used", m.used);
	} else if (rc == NVML_NOT_SUPPORTED && api->memory && !api->memory(handle, &all)) {
		say("mem_total", all.total);
		say("mem_used", all.used);
	}
}

static void say_device(const struct nvmlapi *api, struct device *d, int64_t now_ns)
{
	printf("device %s\ngpu %s\nname %s\n", d->uuid, d->number, d->name);
	counters_read(api, d);
	say_sum("busy_us", &d->busy, now_ns);
	say_sum("mem_busy_us", &d->mem_busy, now_ns);
	say_sum("encoder_us", &d->enc, now_ns);
	say_sum("decoder_us", &d->dec, now_ns);
	say_memory(api, d->handle);
	say_uint("power_mw", d->handle, api->power, 1);
	say_uint("power_limit_mw", d->handle, api->power_limit, 1);
	say_counter("energy_mj", &d->energy);
	say_kind("temperature_m", d->handle, api->temperature, 0, 1000);
	say_kind("temperature_limit_m", d->handle, api->temperature_limit, NVML_LIMIT_SLOWDOWN,
		 1000);
	say_uint("fan_percent", d->handle, api->fan, 1);
	say_kind("clock_mhz", d->handle, api->clock, NVML_CLOCK_SM, 1);
	say_kind("clock_max_mhz", d->handle, api->clock_max, NVML_CLOCK_SM, 1);
	say_kind("mem_clock_mhz", d->handle, api->clock, NVML_CLOCK_MEM, 1);
	if (d->reasons_told)
		say("throttle_reasons", d->reasons);
	say_counter("hot_us", &d->hot);
	say_counter("capped_us", &d->capped);
	say_counter("ecc_errors", &d->ecc);
	d->reasons = 0;
	d->reasons_told = false;
	say_processes(d, now_ns);
	printf("done\n");
	fflush(stdout);
}

void nvmlread_say(struct nvmlread *r, int64_t now_ns)
{
	nvmlread_look(r);
	for (size_t i = 0; i < r->n; i++)
		if (r->all[i].is_there)
			say_device(r->api, &r->all[i], now_ns);
}
