/* SPDX-License-Identifier: Apache-2.0 */
/* cost: what all sonde processes use together, and the steps taken when that exceeds the limits
 * (load_limit.h). */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "schema/base/clock.h"
#include "schema/store/files/shedlog.h"
#include "supervisor/sup.h"
#include "supervisor/control/log_lines.h"

#define LOOKS 6 /* in the time that sonde may be over a limit */
#define MIB   1048576.0

/* Cores since the last look, at which the sum was `*before`. The sum can fall for a moment while a
 * process ends. */
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

/* Returns its memory; stores its recent rate, without its helpers', in it. */
static uint64_t look_at(struct service *v, int64_t wall_ns, double *cores)
{
	uint64_t helpers = v->ended_helpers_ns + v->helpers_ns, all = service_cpu_ns(v);

	v->cores = rate(all > helpers ? all - helpers : 0, &v->looked_ns, wall_ns);
	*cores += v->cores;
	return private_of(v->pid) + v->map_bytes;
}

static void switches_look(struct sup *s, int64_t wall_ns)
{
	uint64_t now = host_switches();

	s->cost.switches = now > s->cost.switched && s->cost.switched ?
				   (double)(now - s->cost.switched) * 1e9 / (double)wall_ns :
				   0;
	s->cost.switched = now;
}

/* What runs in bursts is in the sums, and listed separately: sampling less would not reduce it. */
static void measure(struct sup *s, int64_t now)
{
	struct service *maps = &s->maps.service;
	struct pass *seal = &s->sealer.pass, *prune = &s->retain.prune, *keep = &s->keeper.pass;
	int64_t wall = now - s->cost.looked_ns;
	double cores = rate((uint64_t)clock_cpu_ns(), &s->cost.own_ns, wall);
	uint64_t bytes = process_private_bytes(getpid()) + look_at(maps, wall, &cores);

	for (unsigned int i = 0; i < s->n_loaders; i++)
		bytes += look_at(&s->loader[i], wall, &cores);
	switches_look(s, wall);
	s->cost.looked_ns = now;
	s->cost.store_cores = rate(pass_cpu_ns(seal) + pass_cpu_ns(prune) + pass_cpu_ns(keep),
				   &s->cost.store_ns, wall);
	s->cost.index_cores =
		rate(maps->ended_helpers_ns + maps->helpers_ns, &s->cost.index_ns, wall);
	s->cost.cores = cores + s->cost.store_cores + s->cost.index_cores;
	s->cost.burst_bytes = private_of(seal->pid) + private_of(prune->pid) +
			      private_of(keep->pid) +
			      (maps->pid ? process_children_bytes(maps->pid) : 0);
	s->cost.bytes = bytes + s->cost.burst_bytes;
}

static uint64_t cpu_ns(const struct sup *s)
{
	uint64_t sum =
		s->cost.own_ns + s->cost.store_ns + s->cost.index_ns + s->maps.service.looked_ns;

	for (unsigned int i = 0; i < s->n_loaders; i++)
		sum += s->loader[i].looked_ns;
	return sum;
}

json_t *cost_json(const struct sup *s)
{
	return json_pack("{s:I, s:f, s:f, s:f, s:I, s:I}", "cpu_ns", (json_int_t)cpu_ns(s), "cores",
			 s->cost.cores, "store_cores", s->cost.store_cores, "index_cores",
			 s->cost.index_cores, "private_bytes", (json_int_t)s->cost.bytes,
			 "burst_bytes", (json_int_t)s->cost.burst_bytes);
}

static bool begins(const struct sup *s, const struct service *v)
{
	return v->pid &&
	       load_limit_begins(v->ready_ns, v->failures, s->o->patience_ns, s->cost.looked_ns);
}

/* What the limits apply to: not what starting up takes. */
static double held_cores(const struct sup *s)
{
	double cores = s->cost.cores - s->cost.store_cores - s->cost.index_cores;

	if (begins(s, &s->maps.service))
		cores -= s->maps.service.cores;
	for (unsigned int i = 0; i < s->n_loaders; i++)
		if (begins(s, &s->loader[i]))
			cores -= s->loader[i].cores;
	return cores > 0 ? cores : 0;
}

static uint64_t held_bytes(const struct sup *s)
{
	return s->cost.bytes - s->cost.burst_bytes;
}

/* --- steps --- */

/* `before_ns`: of the look before this one. */
static void families_now(const struct sup *s, int64_t before_ns,
			 struct shed_family out[FAMILIES_MAX])
{
	for (unsigned int i = 0; i < s->n_loaders; i++) {
		const struct service *l = &s->loader[i];

		out[i] = (struct shed_family){
			.family = l->family,
			.wanted = l->wanted && l->state != SERVICE_FAILED,
			.settled = l->state == SERVICE_RUNNING && l->ready_ns < before_ns &&
				   l->told_step_ns < before_ns,
			.cores = begins(s, l) ? 0 : l->cores,
		};
	}
}

static void remember(struct sup *s, const struct cost_step *step)
{
	if (s->n_steps == COST_STEPS) {
		s->n_steps--;
		memmove(s->steps, s->steps + 1, s->n_steps * sizeof(*s->steps));
	}
	s->steps[s->n_steps++] = *step;
}

/* ", since offcpu takes most (2.31 %)": why this family, under the limit of CPU. */
static void reason_add(const struct sup *s, const struct shed_step *why, char *out, size_t size)
{
	const char *dearest;

	if (!why || why->limit != SHED_CPU || why->dearest_cores <= 0)
		return;
	dearest = s->loader[why->dearest].name;
	if (why->dearest == why->family)
		snprintf(out, size, ", since it takes most (%.2f %%)", 100 * why->dearest_cores);
	else
		snprintf(out, size, ", since %s takes most (%.2f %%) and can do no less", dearest,
			 100 * why->dearest_cores);
}

static void tell(struct sup *s, const struct cost_step *step, const struct shed_step *why)
{
	char detail[64] = "", takes[48], most[48], reason[96] = "";
	bool cpu = step->limit == SHED_CPU;
	const struct probe_family *f = family_named(step->family);

	remember(s, step);
	if (step->freq)
		snprintf(detail, sizeof(detail), " %s %u Hz",
			 strstr(step->what, "slowed") ? "to" : "at", step->freq);
	else if (f && f->steps && step->step)
		snprintf(detail, sizeof(detail), ", step %u of %u", step->step, f->steps);
	if (cpu) {
		snprintf(takes, sizeof(takes), "%.2f %% of one core", 100 * held_cores(s));
		snprintf(most, sizeof(most), "%.2f %%", s->conf.cpu);
	} else {
		snprintf(takes, sizeof(takes), "%.1f MiB of memory", (double)held_bytes(s) / MIB);
		snprintf(most, sizeof(most), "%.1f MiB", (double)s->conf.memory_bytes / MIB);
	}
	reason_add(s, why, reason, sizeof(reason));
	log_line(LOG_LEVEL_WARN, "sonded", "sonde takes %s, its limit is %s: %s %s%s%s", takes,
		 (cpu ? s->conf.cpu > 0 : s->conf.memory_bytes > 0) ? most : "none", step->family,
		 step->what, detail, reason);
}

void cost_note(const struct sup *s, const struct service *l)
{
	unsigned int i = (unsigned int)(l - s->loader), step = shed_step(&s->shed, i, l->family);
	uint32_t freq = shed_freq(&s->shed, i, l->family, s->conf.freq);
	enum shedlog_state state = SHEDLOG_FULL;

	if (l->wanted && s->shed.of[i].stopped_for_memory)
		state = SHEDLOG_MEMORY;
	else if (l->wanted && shed_stopped(&s->shed, i, l->family))
		state = SHEDLOG_CPU;
	else if (l->wanted && step)
		state = l->family->has_freq ? SHEDLOG_RATE : SHEDLOG_STEP;
	if (state == SHEDLOG_RATE)
		shedlog_add(s->store, clock_utc_ns(), l->name, state, freq, s->conf.freq);
	else
		shedlog_add(s->store, clock_utc_ns(), l->name, state, step, l->family->steps);
}

/* A loader with another rate is restarted; the next turn of the loop reduces, stops or starts the
 * others. */
static void take_step(struct sup *s, const struct shed_step *step, bool more)
{
	struct service *l = &s->loader[step->family];
	struct cost_step told = {.utc_ns = clock_utc_ns(),
				 .limit = step->limit,
				 .what = step->stop ? (more ? "is stopped" : "records again") :
					 more       ? "is slowed" :
						      "is less slowed"};

	snprintf(told.family, sizeof(told.family), "%s", l->name);
	if (!step->stop || !more) {
		told.freq = l->family->has_freq ?
				    shed_freq(&s->shed, step->family, l->family, s->conf.freq) :
				    0;
		told.step = shed_step(&s->shed, step->family, l->family);
	}
	tell(s, &told, more ? step : NULL);
	cost_note(s, l);
	if (!step->stop && l->pid && l->family->has_freq)
		service_stop(l, SERVICE_STOP_NS);
}

/* The last step against too much memory is to restart everything: a loader or sonde-maps that has
 * grown is small again then. */
static void begin_anew(struct sup *s)
{
	tell(s,
	     &(struct cost_step){.utc_ns = clock_utc_ns(),
				 .limit = SHED_MEMORY,
				 .family = "all",
				 .what = "is restarted"},
	     NULL);
	for (unsigned int i = 0; i < s->n_loaders; i++)
		if (s->loader[i].pid)
			service_stop(&s->loader[i], SERVICE_STOP_NS);
	if (s->maps.service.pid)
		service_stop(&s->maps.service, SERVICE_STOP_NS);
}

static void hold_cpu(struct sup *s, const struct shed_look *l)
{
	struct shed_step step;
	int which;

	if (load_limit_starts(&s->cpu_held, s->began_ns, l->while_ns, l->now_ns))
		return;
	which = load_limit_look(&s->cpu_held, l->used, l->limit, l->while_ns, l->now_ns);
	shed_note(&s->shed, l);
	if (which > 0 ? shed_more(&s->shed, l, &step) : shed_less(&s->shed, l, &step))
		take_step(s, &step, which > 0);
}

static void hold_memory(struct sup *s, const struct shed_look *l)
{
	int which = load_limit_look(&s->memory_held, (double)held_bytes(s),
				    (double)s->conf.memory_bytes, l->while_ns, l->now_ns);
	struct shed_step step;

	if (which && (which > 0 ? shed_more_memory : shed_less_memory)(&s->shed, l->f, l->n, &step))
		take_step(s, &step, which > 0);
	else if (which > 0)
		begin_anew(s);
}

void cost_look(struct sup *s)
{
	int64_t now = clock_mono_ns(), before = s->cost.looked_ns;
	struct shed_family f[FAMILIES_MAX];

	if (now - before < s->o->patience_ns / LOOKS)
		return;
	measure(s, now);
	families_now(s, before, f);

	struct shed_look l = {.f = f,
			      .n = s->n_loaders,
			      .used = held_cores(s),
			      .limit = s->conf.cpu / 100,
			      .switches = s->cost.switches,
			      .now_ns = now,
			      .while_ns = s->o->patience_ns};

	hold_cpu(s, &l);
	hold_memory(s, &l);
}

int cost_steps_held(const struct sup *s, enum shed_limit limit)
{
	struct shed_family f[FAMILIES_MAX];

	families_now(s, 0, f);
	return (int)shed_count(&s->shed, f, s->n_loaders, limit);
}

json_t *cost_steps_json(const struct sup *s)
{
	json_t *list = json_array();

	for (unsigned int i = 0; i < s->n_steps; i++) {
		const struct cost_step *t = &s->steps[i];

		json_array_append_new(list, json_pack("{s:I, s:s, s:s, s:s, s:o, s:i}", "ts",
						      (json_int_t)t->utc_ns, "limit",
						      t->limit == SHED_CPU ? "cpu" : "memory",
						      "family", t->family, "what", t->what, "hz",
						      t->freq ? json_integer(t->freq) : json_null(),
						      "step", (int)t->step));
	}
	return list;
}
