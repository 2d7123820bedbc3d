/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sonde-logs: how many lines containers, units and programs wrote into their logs, by level, and in
 * which words warnings and errors came. It loads no program, and asks no engine: it opens the files
 * (places.h), and a process without rights reads them (reader.h). This file is the family's
 * translation between the common loop of loaders/lib/bpf and these.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loaders/lib/bpf/family.h"
#include "loaders/lib/bpf/start/check.h"
#include "loaders/lib/bpf/start/preflight.h"
#include "loaders/lib/host/maps/hostmaps.h"
#include "loaders/logs/places.h"
#include "loaders/logs/rows.h"
#include "schema/base/clock.h"
#include "schema/base/log.h"
#include "schema/base/mem.h"

#define ROUND_NS (NSEC_PER_SEC)
#define FAST_NS  (NSEC_PER_SEC / 5)
#define HOT_NS   (5 * NSEC_PER_SEC) /* after a container came: its log comes a moment later */
#define TURNS    16                 /* of the reader in one round, while it has more to read */
#define AGAIN_NS (5 * NSEC_PER_SEC) /* before a reader that ended is started again */
#define LAST_NS  (5 * NSEC_PER_SEC) /* for the last reading, at least */

struct logs {
	struct places places;
	struct tracked tracked;
	struct reader reader;
	struct rows rows;
	int64_t due_ns, flush_ns, hot_ns, again_ns;
};

static struct logs_opts {
	int text; /* 1: off */
	const char *files;
} opts;

static const struct option logs_options[] = {
	{"text", 0, OPTION_ENUM, "on|off",
	 "store the patterns of messages and a sample of each, secrets masked (default on); off: counts alone",
	 OPTION_AT(struct logs_opts, text)},
	{"files", 0, OPTION_STRING, "PATHS",
	 "also read these files: paths or patterns such as '/var/log/nginx/*.log', with blanks or commas between",
	 OPTION_AT(struct logs_opts, files)},
	{0}};

static int logs_rights(const char *prog, struct err *e)
{
	return preflight_clock(prog, e);
}

static int logs_open(const struct family_config *c, void **state, struct bpf_object **obj,
		     struct err *e)
{
	struct logs *s = mem_alloc(sizeof(*s));
	int rc;

	*obj = NULL;
	s->reader = (struct reader){
		.fd = -1, .bucket_s = c->fine_s ? c->fine_s : c->bucket_s, .text = !opts.text};
	rc = reader_start(&s->reader);
	if (rc) {
		free(s);
		return err_set(e, rc, EXIT_RUNTIME, "cannot start the reader of logs: %s",
			       strerror(-rc));
	}
	places_init(&s->places, opts.files);
	s->tracked.reader = &s->reader;
	s->rows.tracked = &s->tracked;
	s->rows.narrow = c->target && (c->target->n_pids || c->target->n_cgroups ||
				       c->target->n_comms || c->target->feed);
	*state = s;
	return 0;
}

/* ---- a round ---- */

static bool on_wanted(void *ctx, struct tracked_source *s)
{
	return rows_wants(&((struct logs *)ctx)->rows, s);
}

static void on_place(void *ctx, const struct place *x)
{
	struct logs *s = ctx;

	tracked_found(&s->tracked, x, clock_boot_ns(), on_wanted, s);
}

static void on_process(void *ctx, struct hostmaps_process *p)
{
	rows_meet(&((struct logs *)ctx)->rows, p);
}

static void on_said(void *ctx, const struct wire_said *x, const char *const text[2])
{
	rows_take(&((struct logs *)ctx)->rows, x, text);
}

/* It ended: the file that it read is noted. */
static void reader_ended(struct logs *s, int64_t now_ns)
{
	uint32_t file = __atomic_load_n(s->reader.reads, __ATOMIC_RELAXED);

	if (!file)
		log_warn("the reader of logs ended");
	tracked_ended(&s->tracked, file);
	s->again_ns = now_ns + AGAIN_NS;
}

static bool reader_runs(struct logs *s, int64_t now_ns)
{
	if (s->reader.fd >= 0)
		return true;
	if (now_ns < s->again_ns || reader_start(&s->reader))
		return false;
	tracked_open_all(&s->tracked);
	return true;
}

/* `last_ns`: there will be no more readings, and this one ends about then; 0: there will be. */
static void read_all(struct logs *s, bool flush, int64_t last_ns)
{
	struct wire_ask q = {.what = WIRE_READ, .now_ns = clock_utc_ns(), .flush = flush};
	bool more = true;

	for (int i = 0; more && (i < TURNS || last_ns); i++) {
		q.last = !last_ns ? 0 : clock_boot_ns() < last_ns ? 1 : WIRE_ENOUGH;
		if (!reader_read(&s->reader, &q, on_said, s, &more)) {
			reader_ended(s, clock_boot_ns());
			return;
		}
	}
	if (q.last == WIRE_ENOUGH)
		log_warn("logs grow as fast as they are read: their last lines may be missing");
}

static void look(struct logs *s, struct family_host *h, int64_t now_ns)
{
	s->rows.h = h;
	tracked_begin(&s->tracked);
	hostmaps_each(h->maps, on_process, s);
	places_look(&s->places, now_ns, on_place, s);
	tracked_end(&s->tracked, now_ns);
	h->processes = HASH_COUNT(s->tracked.sources);
}

static void logs_poll(void *state, struct family_host *h, int64_t now_ns)
{
	struct logs *s = state;
	bool flush = s->flush_ns && now_ns >= s->flush_ns;

	if (places_changed(&s->places)) {
		s->hot_ns = now_ns + HOT_NS;
		s->due_ns = 0;
	}
	if (!hostmaps_seeded(h->maps))
		s->due_ns = now_ns + FAST_NS;
	if (now_ns < s->due_ns) {
		h->next_ns = s->due_ns;
		return;
	}
	s->rows.begun_ns = s->rows.begun_ns ? s->rows.begun_ns : now_ns + h->offset_ns;
	if (reader_runs(s, now_ns)) {
		look(s, h, now_ns);
		read_all(s, flush, 0);
		if (flush)
			rows_flushed(&s->rows, now_ns);
	}
	if (!s->flush_ns || flush)
		s->flush_ns = family_bucket_end(h, clock_boot_ns());
	s->due_ns = clock_boot_ns() + (now_ns < s->hot_ns || s->tracked.grows ? FAST_NS : ROUND_NS);
	s->due_ns = s->due_ns < s->flush_ns ? s->due_ns : s->flush_ns;
	h->next_ns = s->due_ns;
}

static void logs_last_read(void *state, struct family_host *h, int64_t patience_ns)
{
	struct logs *s = state;

	if (s->reader.fd < 0 || !s->rows.begun_ns)
		return;
	look(s, h, clock_boot_ns());
	read_all(s, true, clock_boot_ns() + (patience_ns > LAST_NS ? patience_ns : LAST_NS));
	rows_flushed(&s->rows, clock_boot_ns());
}

static int logs_wake_fd(void *state)
{
	return ((struct logs *)state)->places.inotify;
}

static const char *logs_clock(void *state)
{
	(void)state;
	return "log files";
}

static void logs_tally(void *state, struct family_tally *out)
{
	const struct logs *s = state;

	*out = (struct family_tally){.helper = (uint32_t)s->reader.pid,
				     .helper_cpu_ns = reader_cpu_ns(&s->reader)};
}

static void logs_close(void *state)
{
	struct logs *s = state;

	reader_end(&s->reader);
	tracked_release(&s->tracked);
	places_release(&s->places);
	free(s);
}

/* ---- checks ---- */

struct seen {
	uint32_t containers, journals, pods, files;
};

static void count(void *ctx, const struct place *x)
{
	struct seen *n = ctx;

	n->containers += !strcmp(x->kind, "docker") || !strcmp(x->kind, "podman");
	n->journals += !strcmp(x->kind, "journal");
	n->pods += !strcmp(x->kind, "cri");
	n->files += !strcmp(x->kind, "file");
}

static void logs_check(struct check *c, uint32_t freq)
{
	struct places p;
	struct seen n = {0};

	(void)freq;
	places_init(&p, opts.files);
	places_look(&p, clock_boot_ns(), count, &n);
	places_release(&p);
	if (n.containers || n.journals || n.pods || n.files)
		check_add(
			c, "logs", CHECK_OK, NULL,
			"logs of %u containers and %u containers of pods, %u files of the journal, %u others",
			n.containers, n.pods, n.journals, n.files);
	else
		check_add(
			c, "logs", CHECK_OFF, NULL,
			"no logs of containers and no journal on this host; log-files in sonde.conf names others");
}

static const struct family logs_family = {
	.name = "logs",
	.no_mappings = true,
	.fine_s = 1,
	.summary = "count lines of logs by container or unit and level, and errors by their words",
	.options = {logs_options, &opts},
	.rights = logs_rights,
	.open = logs_open,
	.poll = logs_poll,
	.wake_fd = logs_wake_fd,
	.last_read = logs_last_read,
	.clock = logs_clock,
	.tally = logs_tally,
	.close = logs_close,
	.check = logs_check,
};

int main(int argc, char **argv)
{
	return family_main(&logs_family, argc, argv);
}
