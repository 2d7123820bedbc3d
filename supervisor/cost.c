/* SPDX-License-Identifier: Apache-2.0 */
/* cost: what all of sonde takes, and what is done when that is more than its limits (governor.h). */
#include <string.h>
#include <unistd.h>

#include "schema/base/clock.h"
#include "supervisor/sup.h"
#include "supervisor/talk.h"

#define LOOK_NS (10 * NSEC_PER_SEC)
#define STEPS   (GOVERNOR_SLOWER + FAMILIES_MAX)
#define STOP_NS (5 * NSEC_PER_SEC)
#define MIB     1048576.0

static int64_t cpu_of(pid_t pid)
{
	return pid ? process_cpu_ns(pid) : 0;
}

static uint64_t private_of(pid_t pid)
{
	return pid ? process_private_bytes(pid) : 0;
}

/* CPU of one that ended between two looks is counted as ours: it was our child. */
static void measure(struct sup *s, int64_t now)
{
	int64_t cpu = cpu_of(getpid()) + cpu_of(s->maps.service.pid) + (int64_t)s->maps.bpf_ns;
	uint64_t private = private_of(getpid()) + private_of(s->maps.service.pid) + s->maps.map_bytes;

	for (unsigned int i = 0; i < s->n_loaders; i++) {
		cpu += cpu_of(s->loader[i].pid);
		private += private_of(s->loader[i].pid);
	}
	s->cores = s->cost_cpu_ns && cpu >= s->cost_cpu_ns ? (double)(cpu - s->cost_cpu_ns) / (double)(now - s->cost_ns) : s->cores;
	s->private_bytes = private;
	s->cost_ns = now;
	s->cost_cpu_ns = cpu;
}

static void hold_cpu(struct sup *s, int64_t now)
{
	int changed = governor_look(&s->governor, s->cores, s->conf.cpu / 100, STEPS, now);

	if (!changed)
		return;
	talk(LOG_LEVEL_WARN, "sonded", "sonde takes %.1f %% of one core, its limit is %.1f %%: step %u, %s", 100 * s->cores,
	     s->conf.cpu, s->governor.step, changed > 0 ? "sampling less" : "sampling more");
	sup_follow(s, &s->conf);
}

/* The last step is to begin anew with what is left: a loader or sonde-maps that has grown is small again then. */
static void hold_memory(struct sup *s, int64_t now)
{
	int changed = governor_look(&s->memory, (double)s->private_bytes, (double)s->conf.memory_bytes, s->n_loaders, now);
	bool anew = changed > 0 && s->memory.step == s->n_loaders;

	if (!changed)
		return;
	talk(LOG_LEVEL_WARN, "sonded", "sonde takes %.1f MiB of memory, its limit is %.1f MiB: %s", (double)s->private_bytes / MIB,
	     (double)s->conf.memory_bytes / MIB,
	     anew ? "what runs begins anew" : changed > 0 ? "one family less" : "one family more");
	if (!anew)
		return; /* the next turn starts and stops */
	s->memory.step--;
	for (unsigned int i = 0; i < s->n_loaders; i++)
		if (s->loader[i].pid)
			service_stop(&s->loader[i], STOP_NS);
	if (s->maps.service.pid)
		service_stop(&s->maps.service, STOP_NS);
}

void cost_look(struct sup *s)
{
	int64_t now = clock_mono_ns();

	if (now - s->cost_ns < LOOK_NS)
		return;
	measure(s, now);
	hold_cpu(s, now);
	hold_memory(s, now);
}
