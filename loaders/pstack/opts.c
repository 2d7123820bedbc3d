// SPDX-License-Identifier: Apache-2.0
#include "loaders/pstack/opts.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>

#include "loaders/lib/host/container.h"
#include "loaders/lib/host/proc.h"
#include "schema/base/mem.h"
#include "schema/store/write/writer.h"

const char OPTS_HELP[] =
	"usage: sonde-pstack [options]\n"
	"Where threads wait at this moment, and how long already. Stops nobody.\n"
	"  --pid PID          this process (or the one this thread belongs to); may be repeated\n"
	"  --container NAME   the processes of this container: a name, or the beginning of an id; may be repeated\n"
	"  --kernel-threads   kernel threads too\n"
	"  --no-lines         functions only, no lines and inlined functions\n"
	"  --store DIR        where indexes of files are kept (images/ in it; else $SONDE_STORE)\n"
	"  --keep             write them into the store (kind standing) instead of telling\n"
	"  --recording N      with --keep: a number: what has the same one is one recording\n"
	"  --at NS            with --keep: as of then (UTC, past): waits that began later are left out\n"
	"  --json             the answer as JSON\n"
	"  --quiet            no talk\n"
	"  --help             this text\n";

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

static int pid_read(struct opts *o, const char *word, struct err *e)
{
	struct proc_status st;
	char *end;
	unsigned long pid = strtoul(word, &end, 10);

	if (!*word || *end || !pid || pid > INT32_MAX) {
		err_set(e, -EINVAL, EXIT_USAGE, "--pid: '%.40s' is no process id", word);
		err_fix(e, "pgrep -a NAME");
		return -EINVAL;
	}
	if (proc_read_status((uint32_t)pid, &st)) {
		if (o->keep) {
			o->gone = true;
			return 0;
		}
		err_set(e, -ESRCH, EXIT_USAGE, "no process has the id %lu", pid);
		err_fix(e, "pgrep -a NAME");
		return -ESRCH;
	}
	pid_add(o, st.tgid);
	return 0;
}

static int container_read(struct opts *o, const char *word, struct err *e)
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
		rc = err_set(e, -ESRCH, EXIT_NOTHING, "nothing runs in the container '%.100s'", word);
		err_fix(e, "sonde pstack shows the whole host");
	}
	container_found_release(&found);
	return rc;
}

static int number_read(const char *name, const char *word, uint64_t *out, struct err *e)
{
	char *end;

	errno = 0;
	*out = strtoull(word, &end, 10);
	if (errno || *end || *word < '0' || *word > '9' || *out > INT64_MAX)
		return err_set(e, -EINVAL, EXIT_USAGE, "--%s '%.40s' is not a number below 2^63", name, word);
	return 0;
}

int opts_read(int argc, char **argv, struct opts *o, struct err *e)
{
	static const struct option known[] = {
		{"pid", required_argument, NULL, 'p'},     {"container", required_argument, NULL, 'c'},
		{"store", required_argument, NULL, 's'},   {"kernel-threads", no_argument, NULL, 'k'},
		{"no-lines", no_argument, NULL, 'l'},      {"json", no_argument, NULL, 'j'},
		{"quiet", no_argument, NULL, 'q'},         {"help", no_argument, NULL, 'h'},
		{"keep", no_argument, NULL, 'K'},          {"recording", required_argument, NULL, 'r'},
		{"at", required_argument, NULL, 'a'},
		{0},
	};
	uint64_t at = 0;
	int opt, rc = 0;

	while (!rc && (opt = getopt_long(argc, argv, "p:qh", known, NULL)) != -1) {
		if (opt == 'p')
			rc = pid_read(o, optarg, e);
		else if (opt == 'c')
			rc = container_read(o, optarg, e);
		else if (opt == 's')
			o->store = optarg;
		else if (opt == 'k')
			o->kernel_threads = true;
		else if (opt == 'l')
			o->no_lines = true;
		else if (opt == 'j')
			o->json = true;
		else if (opt == 'q')
			o->quiet = true;
		else if (opt == 'K')
			o->keep = true;
		else if (opt == 'r')
			rc = number_read("recording", optarg, &o->recording, e);
		else if (opt == 'a')
			rc = number_read("at", optarg, &at, e);
		else if (opt == 'h')
			o->help = true;
		else
			rc = err_set(e, -EINVAL, EXIT_USAGE, "the command line is wrong; see sonde-pstack --help");
	}
	if (!rc && optind < argc)
		rc = err_set(e, -EINVAL, EXIT_USAGE, "'%.100s': sonde-pstack takes options only", argv[optind]);
	o->at_ns = (int64_t)at;
	if (!o->store)
		o->store = store_default_dir();
	return rc;
}

void opts_release(struct opts *o)
{
	free(o->pids);
}
