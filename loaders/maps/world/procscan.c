/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/maps/world/procscan.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/lib/host/proc/proc.h"
#include "loaders/maps/world/world.h"
#include "schema/base/cleanup.h"
#include "schema/base/clock.h"

#define LOOK_NS NSEC_PER_SEC
#define LOOKS   5 /* scans until each process has had its turn */

static bool is_another(const struct proc *p)
{
	cleanup_free char *exe = NULL;
	struct proc_stat st;

	if (proc_read_stat(p->tgid, &st))
		return false; /* gone: the next look says so */
	if (proc_ticks_ns(st.start_ticks) != p->start_ns)
		return true;
	if (p->kthread)
		return false;
	exe = world_exe_link(p->tgid);
	return exe && strcmp(exe, p->exe);
}

static void look_at(const struct procscan *s, struct world *w, uint32_t pid, uint64_t now_ns)
{
	struct proc *p = world_proc(w, pid);

	if (!p || (pid % LOOKS == s->round % LOOKS && is_another(p)))
		world_seed_proc(w, pid, NULL, now_ns);
	p = world_proc(w, pid);
	if (p)
		p->seen = (uint8_t)s->round;
}

void procscan_tick(struct procscan *s, struct world *w, uint64_t now_ns)
{
	cleanup_dir DIR *d = now_ns >= s->next_ns ? opendir("/proc") : NULL;
	struct dirent *e;

	if (!d)
		return;
	s->next_ns = now_ns + LOOK_NS;
	s->round++;
	while ((e = readdir(d))) {
		char *end;
		unsigned long pid = strtoul(e->d_name, &end, 10);

		if (!*end && pid)
			look_at(s, w, (uint32_t)pid, now_ns);
	}
	for (struct proc *p = w->procs, *next; p; p = next) {
		next = p->hh.next;
		if (p->seen != (uint8_t)s->round)
			world_forget(w, p, now_ns);
	}
}
