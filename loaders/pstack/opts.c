/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/pstack/opts.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "loaders/lib/host/proc/container.h"
#include "loaders/lib/host/proc/proc.h"
#include "schema/base/mem.h"
#include "schema/store/write/writer.h"

static const struct program PROGRAM = {
	.name = "sonde-pstack",
	.usage = "[options]",
	.about = "Shows where threads wait at this moment, and since when. Stops no thread.",
};

/* clang-format off */
static const struct option OPTIONS[] = {
	{"pid", 'p', OPTION_NUMBERS, "PID", "this process (or the one this thread belongs to); may be repeated", OPTION_AT(struct opts, pid), .min = 1,
	 .max = INT_MAX},
	{"container", 0, OPTION_LIST, "NAME", "the processes of this container: a name, or the beginning of an id; may be repeated",
	 OPTION_AT(struct opts, container)},
	{"kernel-threads", 0, OPTION_FLAG, NULL, "kernel threads too", OPTION_AT(struct opts, kernel_threads)},
	{"no-lines", 0, OPTION_FLAG, NULL, "functions only, no lines and inlined functions", OPTION_AT(struct opts, no_lines)},
	{"store", 0, OPTION_STRING, "DIR", "where indexes of files are kept (images/ in it; else $SONDE_STORE)", OPTION_AT(struct opts, store)},
	{"keep", 0, OPTION_FLAG, NULL, "store the waits (kind standing) instead of printing them", OPTION_AT(struct opts, keep)},
	{"recording", 0, OPTION_UINT, "N", "with --keep: a number that is the same for all parts of one recording", OPTION_AT(struct opts, recording),
	 .max = INT64_MAX},
	{"at", 0, OPTION_UINT, "NS", "with --keep: as of this time (UTC, past), without waits that began later", OPTION_AT(struct opts, at_ns),
	 .max = INT64_MAX},
	{"json", 0, OPTION_FLAG, NULL, "the answer as JSON", OPTION_AT(struct opts, json)},
	{"quiet", 'q', OPTION_FLAG, NULL, "no talk", OPTION_AT(struct opts, quiet)},
	{0},
};
/* clang-format on */

static void pid_add(struct opts *o, uint32_t pid)
{
	if (opts_wants(o, pid) && o->n_pids)
		return;
	mem_grow(o->pids, o->n_pids, o->cap_pids);
	o->pids[o->n_pids++] = pid;
}

bool opts_wants(const struct opts *o, uint32_t pid)
{
	for (size_t i = 0; i < o->n_pids; i++)
		if (o->pids[i] == pid)
			return true;
	return !o->n_pids;
}

static int pid_find(struct opts *o, uint32_t pid, struct err *e)
{
	struct proc_status st;

	if (proc_read_status(pid, &st)) {
		if (o->keep) {
			o->gone = true;
			return 0;
		}
		err_set(e, -ESRCH, EXIT_USAGE, "no process has the id %u", pid);
		err_fix(e, "pgrep -a NAME");
		return -ESRCH;
	}
	pid_add(o, st.tgid);
	return 0;
}

static int container_find(struct opts *o, const char *word, struct err *e)
{
	struct container_found found = {0};
	int rc = container_resolve(word, &found, o->keep ? NULL : e);

	if (o->keep && (rc || !found.n_pids)) {
		o->gone = true;
		container_found_release(&found);
		return 0;
	}
	if (rc)
		return rc;
	for (size_t i = 0; i < found.n_pids; i++)
		pid_add(o, found.pids[i]);
	if (!found.n_pids) {
		rc = err_set(e, -ESRCH, EXIT_NOTHING, "no process runs in the container '%.100s'",
			     word);
		err_fix(e, "sonde pstack shows the whole host");
	}
	container_found_release(&found);
	return rc;
}

int opts_read(int argc, char **argv, struct opts *o, struct err *e)
{
	int rc =
		program_options(&PROGRAM, argc, argv, &(struct option_set){OPTIONS, o}, 1, NULL, e);

	for (size_t i = 0; !rc && i < o->pid.n; i++)
		rc = pid_find(o, (uint32_t)o->pid.items[i], e);
	for (size_t i = 0; !rc && i < o->container.n; i++)
		rc = container_find(o, o->container.items[i], e);
	if (!o->store)
		o->store = store_default_dir();
	return rc;
}

void opts_release(struct opts *o)
{
	options_release(&(struct option_set){OPTIONS, o}, 1, NULL);
	free(o->pids);
}
