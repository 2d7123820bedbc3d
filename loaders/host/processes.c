// SPDX-License-Identifier: Apache-2.0
#include "loaders/host/processes.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loaders/host/parse.h"
#include "loaders/host/textfile.h"
#include "loaders/lib/bpf/family.h"
#include "loaders/lib/host/hostmaps.h"
#include "loaders/lib/host/naming.h"
#include "loaders/lib/host/proc.h"
#include "schema/facts/host.h"

static const struct parse_key IO[] = {{"read_bytes", PROCESS_READ_BYTES, 0, 0}, {"write_bytes", PROCESS_WRITE_BYTES, 0, 0}};
static const struct parse_key STATUS[] = {{"VmSwap", PROCESS_SWAP, 1024, 0}};

void processes_init(struct processes *ps, int64_t idle_ns)
{
	*ps = (struct processes){.meter = {.fact = &PROCESS_FACT, .idle_ns = idle_ns}};
}

void processes_release(struct processes *ps)
{
	meter_release(&ps->meter);
	strbuf_release(&ps->text);
}

static bool file_read(struct processes *ps, uint32_t pid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/%s", pid, name);
	return !textfile_read(AT_FDCWD, path, &ps->text);
}

/* "RUN WAITED SLICES", in ns, of the main thread. */
static void delay_read(struct processes *ps, uint32_t pid, struct fact_row *row)
{
	const char *second;
	uint64_t ns;

	if (row->v[PROCESS_THREADS].number != 1 || !file_read(ps, pid, "schedstat"))
		return;
	second = strchr(strbuf_str(&ps->text), ' ');
	if (second && parse_number(second, strlen(second), &ns))
		fact_put(row, PROCESS_DELAY, ns / 1000);
}

/* Since 6.2 the size of the directory is how many it has. */
static void files_count(uint32_t pid, struct fact_row *row)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%u/fd", pid);
	if (!stat(path, &st) && st.st_size > 0)
		fact_put(row, PROCESS_FDS, (uint64_t)st.st_size);
}

struct process_names {
	struct meter_round r;
	struct hostmaps_process *p;
};

static bool process_names(void *ctx, struct fact_row *row)
{
	const struct process_names *n = ctx;

	if (naming_excludes(n->r.h->naming, n->p))
		return false;
	fact_put(row, PROCESS_ID, naming_row(n->r.h->naming, n->p));
	return true;
}

void processes_read(struct processes *ps, const struct meter_round *r, struct hostmaps_process *p, int64_t since_ns)
{
	struct process_names names = {*r, p};
	struct meter_reading x = {.identity = p->start_ns, .young = (int64_t)p->start_ns >= since_ns};
	uint64_t tick = proc_ticks_ns(1);
	struct parse_task t;
	char key[16];

	if (!file_read(ps, p->tgid, "stat") ||
	    !parse_task_stat(strbuf_str(&ps->text), ps->text.len, sysconf(_SC_CLK_TCK), sysconf(_SC_PAGESIZE), &t) ||
	    t.start_ticks != p->start_ns / tick) /* it is gone, and its pid another one's */
		return;
	snprintf(key, sizeof(key), "%u", p->tgid);
	x.key = key;
	x.row = t.row;
	delay_read(ps, p->tgid, &x.row);
	if (!t.kernel) {
		if (file_read(ps, p->tgid, "io"))
			parse_keys(strbuf_str(&ps->text), ps->text.len, IO, 2, &x.row);
		if (ps->swapping && file_read(ps, p->tgid, "status"))
			parse_keys(strbuf_str(&ps->text), ps->text.len, STATUS, 1, &x.row);
		files_count(p->tgid, &x.row);
	}
	meter_take(&ps->meter, r, &x, process_names, &names);
}

void processes_end(struct processes *ps)
{
	meter_end(&ps->meter);
}
