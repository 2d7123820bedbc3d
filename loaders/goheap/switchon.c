/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/goheap/switchon.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "loaders/goheap/force.h"
#include "loaders/goheap/goproc.h"
#include "schema/base/log.h"

#define CPUS_MAX 8192

static bool is_off(const struct goproc *p)
{
	return p->sum.state[0] == BUCKETS_OK && p->sum.state[BUCKETS_MEMORY] == BUCKETS_OFF &&
	       p->layout.mem_rate;
}

/* ---- how many Ps may have recorded without being asked ---- */

static uint32_t cpus_of(uint32_t pid)
{
	static unsigned long mask[CPUS_MAX / (8 * sizeof(unsigned long))];

	if (sched_getaffinity((pid_t)pid, sizeof(mask), (cpu_set_t *)mask))
		return 1;
	return (uint32_t)CPU_COUNT_S(sizeof(mask), (cpu_set_t *)mask);
}

static uint32_t threads_of(uint32_t pid)
{
	char path[32];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%u/task", pid);
	return stat(path, &st) || st.st_nlink < 3 ? 1 : (uint32_t)st.st_nlink - 2;
}

static uint32_t processors_of(uint32_t pid)
{
	uint32_t cpus = cpus_of(pid), threads = threads_of(pid);

	return cpus < threads ? cpus : threads;
}

/* ---- on ---- */

static void failed(struct goproc *p, const char *comm, int err)
{
	const char *why = err == -EBUSY ? "another sonde-goheap is doing that" : strerror(-err);

	if (err == -ESRCH)
		return;
	snprintf(p->switchon.why, sizeof(p->switchon.why),
		 "memory profiling is off in this program; not switched on: %s", why);
	log_warn("process %u (%s): %s", p->key.tgid, comm, p->switchon.why);
}

/* What is open is of the program that is read now, or of one before it: then it cannot be written
 * to any more. */
static int look_again(struct goproc *p, const struct family_host *h)
{
	goproc_collect(p, h);
	return is_off(p) ? 0 : -ESRCH;
}

void switchon_try(const struct switchon_opts *o, struct goproc *p, const struct family_host *h,
		  const char *comm)
{
	struct switchon *s = &p->switchon;
	int err;

	if (o->dirfd < 0 || s->tried || !is_off(p))
		return;
	s->tried = true;
	log_warn("process %u (%s): memory profiling is off: writing %" PRIu64
		 " into its MemProfileRate at 0x%" PRIx64 ", back to 0 at the end",
		 p->key.tgid, comm, o->rate, p->layout.mem_rate);
	err = force_open(p->key.tgid, p->key.start_ns, &s->force);
	if (!err)
		err = look_again(p, h);
	if (!err)
		err = force_write(s->force, o->dirfd, p->layout.mem_rate, o->rate);
	if (err) {
		force_close(s->force);
		s->force = NULL;
		failed(p, comm, err);
		return;
	}
	for (uint32_t i = 0; i < p->n_sites; i++)
		site_leave_out(&p->sites[i], UINT64_MAX);
	s->to_leave_out = o->rate == 1 ? 0 : processors_of(p->key.tgid);
	snprintf(s->why, sizeof(s->why),
		 "memory profiling was off; sonde-goheap switched it on (--mode force)");
}

/* Of what has come the one with the smallest objects; NULL: nothing has. */
static struct site *smallest(const struct goproc *p)
{
	struct site *least = NULL;

	for (uint32_t i = 0; i < p->n_sites; i++) {
		struct site *s = &p->sites[i];

		if (s->kind == BUCKETS_MEMORY && (!least || s->size < least->size) &&
		    site_since(s).n)
			least = s;
	}
	return least;
}

void switchon_leave_out(struct goproc *p)
{
	struct switchon *s = &p->switchon;
	struct site *at;

	if (!s->force || !s->to_leave_out)
		return;
	s->readings += s->readings < SWITCHON_READINGS;
	while (s->to_leave_out && (at = smallest(p))) {
		uint64_t since = site_since(at).n;
		uint32_t n = since < s->to_leave_out ? (uint32_t)since : s->to_leave_out;

		site_leave_out(at, n);
		s->to_leave_out -= n;
		s->left_out += n;
	}
	if (s->left_out)
		snprintf(
			s->why, sizeof(s->why),
			"memory profiling was off; sonde-goheap switched it on (--mode force), and "
			"left out its first %u records",
			s->left_out);
}

bool switchon_settles(const struct goproc *p)
{
	return p->switchon.force && p->switchon.to_leave_out &&
	       p->switchon.readings < SWITCHON_READINGS;
}

void switchon_release(struct goproc *p)
{
	force_close(p->switchon.force);
	p->switchon = (struct switchon){0};
}
