/* SPDX-License-Identifier: Apache-2.0 */
/* cost: what all of sonde takes, and what is done when that is more than its limits (governor.h). */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "schema/base/clock.h"
#include "supervisor/sup.h"
#include "supervisor/talk.h"

#define LOOKS   6 /* in the time that sonde may be over a limit */
#define STOP_NS (5 * NSEC_PER_SEC)
#define MIB     1048576.0

/* Cores since the last look, where `*before` stood; one that is just ending can be in no account for a moment. */
static double rate(uint64_t cpu_ns, uint64_t *before, int64_t wall_ns)
{
	uint64_t grown = cpu_ns > *before ? cpu_ns - *before : 0;

	*before += grown;
	return wall_ns > 0 ? (double)grown / (double)wall_ns : 0;
}

static uint64_t private_of(pid_t pid)
{
	return pid ? process_private_bytes(pid) : 0;
}

/* Its memory; its recent rate is noted in it. */
static uint64_t look_at(struct service *v, int64_t wall_ns, double *cores)
{
	v->cores = rate(service_cpu_ns(v), &v->looked_ns, wall_ns);
	*cores += v->cores;
	return private_of(v->pid) + v->map_bytes;
}

/* What runs in bursts is in the sums, and apart: sampling less would not lessen it. */
static void measure(struct sup *s, int64_t now)
{
	struct service *maps = &s->maps.service;
	struct pass *seal = &s->sealer.pass, *prune = &s->retain.prune;
	int64_t wall = now - s->cost.looked_ns;
	double cores = rate((uint64_t)clock_cpu_ns(), &s->cost.own_ns, wall);
	uint64_t bytes = process_private_bytes(getpid()) + look_at(maps, wall, &cores);

	for (unsigned int i = 0; i < s->n_loaders; i++)
		bytes += look_at(&s->loader[i], wall, &cores);
	s->cost.looked_ns = now;
	s->cost.store_cores = rate(pass_cpu_ns(seal) + pass_cpu_ns(prune), &s->cost.store_ns, wall);
	s->cost.cores = cores + s->cost.store_cores;
	s->cost.burst_bytes = private_of(seal->pid) + private_of(prune->pid) + (maps->pid ? process_children_bytes(maps->pid) : 0);
	s->cost.bytes = bytes + s->cost.burst_bytes;
}

static uint64_t cpu_ns(const struct sup *s)
{
	uint64_t sum = s->cost.own_ns + s->cost.store_ns + s->maps.service.looked_ns;

	for (unsigned int i = 0; i < s->n_loaders; i++)
		sum += s->loader[i].looked_ns;
	return sum;
}

json_t *cost_json(const struct sup *s)
{
	return json_pack("{s:I, s:f, s:f, s:I, s:I}", "cpu_ns", (json_int_t)cpu_ns(s), "cores", s->cost.cores, "store_cores",
			 s->cost.store_cores, "private_bytes", (json_int_t)s->cost.bytes, "burst_bytes",
			 (json_int_t)s->cost.burst_bytes);
}

/* What the limits are about. */
static double held_cores(const struct sup *s)
{
	return s->cost.cores - s->cost.store_cores;
}

static uint64_t held_bytes(const struct sup *s)
{
	return s->cost.bytes - s->cost.burst_bytes;
}

/* --- steps --- */

static unsigned int families_now(const struct sup *s, struct relief_family out[FAMILIES_MAX])
{
	for (unsigned int i = 0; i < s->n_loaders; i++)
		out[i] = (struct relief_family){.wanted = s->loader[i].wanted && s->loader[i].state != SERVICE_FAILED,
						.slows = s->loader[i].family->has_freq, .cores = s->loader[i].cores};
	return s->n_loaders;
}

static void remember(struct sup *s, const struct cost_step *step)
{
	if (s->n_steps == COST_STEPS) {
		s->n_steps--;
		memmove(s->steps, s->steps + 1, s->n_steps * sizeof(*s->steps));
	}
	s->steps[s->n_steps++] = *step;
}

static void tell(struct sup *s, enum relief_limit limit, const char *family, const char *what, uint32_t freq)
{
	struct cost_step step = {.utc_ns = clock_utc_ns(), .limit = limit, .freq = freq, .what = what};
	char hz[32] = "", takes[48], most[48];
	bool cpu = limit == RELIEF_CPU;

	snprintf(step.family, sizeof(step.family), "%s", family);
	remember(s, &step);
	if (freq)
		snprintf(hz, sizeof(hz), " at %u Hz", freq);
	if (cpu) {
		snprintf(takes, sizeof(takes), "%.2f %% of one core", 100 * held_cores(s));
		snprintf(most, sizeof(most), "%.2f %%", s->conf.cpu);
	} else {
		snprintf(takes, sizeof(takes), "%.1f MiB of memory", (double)held_bytes(s) / MIB);
		snprintf(most, sizeof(most), "%.1f MiB", (double)s->conf.memory_bytes / MIB);
	}
	talk(LOG_LEVEL_WARN, "sonded", "sonde takes %s, its limit is %s: %s %s%s", takes,
	     (cpu ? s->conf.cpu > 0 : s->conf.memory_bytes > 0) ? most : "none", family, what, hz);
}

static uint32_t freq_of(const struct sup *s, unsigned int i)
{
	return s->loader[i].family->has_freq ? relief_freq(&s->relief, i, s->conf.freq) : 0;
}

/* False: there was no step to take. One at another rate is started anew; who is to be stopped or started, the next turn sees. */
static bool take_step(struct sup *s, enum relief_limit limit, int which)
{
	struct relief_family f[FAMILIES_MAX];
	struct relief_step step;
	unsigned int n = families_now(s, f);
	bool more = which > 0;

	if (!(more ? relief_more : relief_less)(&s->relief, limit, f, n, &step))
		return false;
	tell(s, limit, s->loader[step.family].name,
	     step.stop ? (more ? "is stopped" : "records again") : more ? "is slowed" : "is less slowed",
	     step.stop && more ? 0 : freq_of(s, step.family));
	if (!step.stop && s->loader[step.family].pid)
		service_stop(&s->loader[step.family], STOP_NS);
	return true;
}

/* The last step against too much memory is to begin anew: a loader or sonde-maps that has grown is small again then. */
static void begin_anew(struct sup *s)
{
	tell(s, RELIEF_MEMORY, "all", "begins anew", 0);
	for (unsigned int i = 0; i < s->n_loaders; i++)
		if (s->loader[i].pid)
			service_stop(&s->loader[i], STOP_NS);
	if (s->maps.service.pid)
		service_stop(&s->maps.service, STOP_NS);
}

void cost_look(struct sup *s)
{
	int64_t now = clock_mono_ns();
	int cpu, memory;

	if (now - s->cost.looked_ns < s->o->patience_ns / LOOKS)
		return;
	measure(s, now);
	cpu = governor_look(&s->cpu_held, held_cores(s), s->conf.cpu / 100, s->o->patience_ns, now);
	memory = governor_look(&s->memory_held, (double)held_bytes(s), (double)s->conf.memory_bytes, s->o->patience_ns, now);
	if (cpu)
		take_step(s, RELIEF_CPU, cpu);
	if (memory && !take_step(s, RELIEF_MEMORY, memory) && memory > 0)
		begin_anew(s);
}

json_t *cost_steps_json(const struct sup *s)
{
	json_t *list = json_array();

	for (unsigned int i = 0; i < s->n_steps; i++) {
		const struct cost_step *t = &s->steps[i];

		json_array_append_new(list, json_pack("{s:I, s:s, s:s, s:s, s:o}", "ts", (json_int_t)t->utc_ns, "limit",
						      t->limit == RELIEF_CPU ? "cpu" : "memory", "family", t->family, "what",
						      t->what, "hz", t->freq ? json_integer(t->freq) : json_null()));
	}
	return list;
}
