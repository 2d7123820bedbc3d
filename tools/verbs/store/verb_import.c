/* SPDX-License-Identifier: Apache-2.0 */
/* sonde import: reads a profile of another program; sonde-import writes it into a store, where
 * every verb works with it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "schema/base/clock.h"
#include "schema/base/sibling.h"
#include "schema/base/strbuf.h"
#include "schema/base/typed.h"
#include "schema/base/units.h"
#include "schema/store/model/kinds.h"
#include "tools/cli/helper.h"
#include "tools/cli/verb.h"
#include "tools/formats/import.h"
#include "tools/formats/import_tell.h"
#include "tools/print/term.h"
#include "tools/print/when.h"
#include "tools/select/filter.h"

#define DEFAULT_HZ 99
#define MOST_HZ    1000000

struct import_args {
	const char *type, *at, *event;
	uint64_t hz;
};

static const struct option IMPORT_OPTIONS[] = {
	{"type", 0, OPTION_STRING, "KIND",
	 "kind of value to read from a pprof or JFR file (default: the file's choice)",
	 offsetof(struct import_args, type)},
	{"at", 0, OPTION_STRING, "T",
	 "when it ended, if the file does not say (default: modification time)",
	 offsetof(struct import_args, at)},
	{"event", 0, OPTION_STRING, "NAME",
	 "event to read from perf script output (default: the first) or from JFR",
	 offsetof(struct import_args, event)},
	{"freq", 0, OPTION_UINT, "HZ",
	 "sampling rate, if the file does not give a sample's length (default 99)",
	 offsetof(struct import_args, hz)},
	{0},
};

static const char *const IMPORT_EXAMPLES[] = {
	"sonde import cpu.pb.gz --store /tmp/other",
	"perf script -i perf.data > x.perf && sonde import x.perf --store /tmp/other",
	NULL,
};

struct importing {
	const struct verb_call *call;
	const char *path;
	char name[64]; /* name for processes without one */
	uint64_t hz;
	int64_t to_ns;
	struct fold *folds[STORE_KINDS]; /* the first is the file's own kind */
	int n_folds;
	struct import_when when;
	int call_status; /* exit code of sonde-import */
};

static int read_args(struct importing *m, struct err *e)
{
	const struct import_args *a = m->call->args;
	const char *slash;
	struct stat st;

	if (m->call->n_words != 1) {
		err_set(e, -EINVAL, EXIT_USAGE,
			"name one file: pprof, folded stacks, the output of perf script, JFR, or JSON of speedscope or the Firefox Profiler");
		err_fix(e, "%s", IMPORT_EXAMPLES[0]);
		return -EINVAL;
	}
	m->path = m->call->words[0];
	m->hz = a->hz ? a->hz : DEFAULT_HZ;
	if (m->hz > MOST_HZ)
		return err_set(e, -EINVAL, EXIT_USAGE, "--freq %llu is more than %d",
			       (unsigned long long)m->hz, MOST_HZ);
	if (a->at && when_parse(a->at, clock_utc_ns(), &m->to_ns))
		return err_set(e, -EINVAL, EXIT_USAGE, "--at: '%.100s' is not a valid time", a->at);
	if (!a->at)
		m->to_ns = stat(m->path, &st) ?
				   clock_utc_ns() :
				   st.st_mtim.tv_sec * NSEC_PER_SEC + st.st_mtim.tv_nsec;
	slash = strrchr(m->path, '/');
	snprintf(m->name, sizeof(m->name), "%s", slash ? slash + 1 : m->path);
	m->name[strcspn(m->name, ".")] = '\0';
	return 0;
}

/* Reads the requested kind or the file's default kind, and the kind that belongs with it
 * (allocated, in use). */
static int read_file(struct importing *m, struct err *e)
{
	const struct import_args *a = m->call->args;
	const struct store_kind_info *kind = a->type ? store_kind_named(a->type) : NULL;
	struct fold_opts opts = {.leaves = true, .kind = kind ? kind->kind : 0, .event = a->event};
	struct err none = {0};
	int rc;

	if (a->type && !kind)
		return err_set(e, -EINVAL, EXIT_USAGE, "--type: unknown kind '%.40s'", a->type);
	rc = import_file(m->path, &opts, &m->folds[0], e);
	if (rc)
		return rc;
	m->n_folds = 1;
	for (int k = 1; !a->type && k < STORE_KINDS; k++) {
		opts.kind = (enum store_kind)k;
		if (m->folds[0]->too & 1u << k &&
		    !import_file(m->path, &opts, &m->folds[m->n_folds], &none))
			m->n_folds++;
	}
	return 0;
}

static int hand_over(struct importing *m, struct err *e)
{
	char path[PATH_MAX];
	char *argv[] = {path, (char *)"--store", (char *)m->call->store, NULL};
	uint32_t frames = 0;
	FILE *in = NULL;
	bool failed;
	pid_t pid;
	int rc = sibling_find("sonde-import", path, e);

	if (!rc)
		rc = helper_feed(argv, &in, &pid, e);
	if (rc)
		return rc;
	import_tell_run(&m->when, m->path, in);
	for (int i = 0; i < m->n_folds; i++)
		import_tell(m->folds[i], &m->when, m->name, &frames, in);
	failed = ferror(in);
	failed |= fclose(in) != 0;
	rc = helper_wait(pid, "sonde-import", &m->call_status, e);
	if (!rc && failed && !m->call_status)
		rc = err_set(e, -EIO, EXIT_RUNTIME,
			     "sonde-import ended before it had read everything");
	return rc;
}

/* What the store has in another form than the file, or not at all. */
static void say_more(const struct importing *m, const struct fold *f)
{
	char n[32];

	if (m->when.divided && f == m->folds[0])
		fprintf(stderr,
			"  the file's samples represent different times: each is counted in units of %llu ns\n",
			(unsigned long long)m->when.period_ns);
	if (f->parts > 1)
		fprintf(stderr,
			"  the file's counts have fractions: each is counted in units of 1/%u\n",
			f->parts);
	if (f->no_count)
		fprintf(stderr, "  the file has no number of %s: each of its rows counts as one\n",
			store_kind_counted(f->kind));
	if (import_cut(f))
		fprintf(stderr, "  cut off: the outermost frames of %s stacks, beyond 2048\n",
			units_count(import_cut(f), n, sizeof(n)));
	for (size_t i = 0; i < f->n_losses; i++)
		fprintf(stderr,
			strpbrk(f->losses[i].reason, " ") ?
				"  left out: %s of %s\n" :
				"  left out: %s samples of %s (--event %s)\n",
			units_count(f->losses[i].n, n, sizeof(n)), f->losses[i].reason,
			f->losses[i].reason);
}

static void say(const struct importing *m)
{
	struct strbuf next cleanup_strbuf = STRBUF_INIT;
	char from[40], to[40], n[32], length[32];

	if (m->call->quiet)
		return;
	if (m->folds[0]->kind->kind != STORE_KIND_CPU)
		strbuf_addf(&next, "--type %s ", m->folds[0]->kind->name);
	strbuf_addf(&next, "--from %s --to %s", when_zoned(m->when.from_ns, from, sizeof(from)),
		    when_zoned(m->when.to_ns + NSEC_PER_SEC - 1, to, sizeof(to)));
	if (m->call->hint_store) {
		strbuf_addstr(&next, " --store ");
		filter_word(m->call->hint_store, &next);
	}
	fprintf(stderr, "imported %s %s (%s) of %s, %s\n",
		units_count(import_samples(m->folds[0], &m->when), n, sizeof(n)),
		store_kind_counted(m->folds[0]->kind), m->folds[0]->kind->what, m->path,
		units_ns(m->when.to_ns - m->when.from_ns, length, sizeof(length)));
	say_more(m, m->folds[0]);
	for (int i = 1; i < m->n_folds; i++) {
		const struct fold *f = m->folds[i];

		fprintf(stderr, "  and %s %s (%s): --type %s\n",
			units_count(import_samples(f, &m->when), n, sizeof(n)),
			store_kind_counted(f->kind), f->kind->what, f->kind->name);
		say_more(m, f);
	}
	fprintf(stderr, "next:  %s stacks %s\n", typed_sonde(false), strbuf_str(&next));
}

static int import_run(struct verb_call *call, struct err *e)
{
	struct importing m = {.call = call};
	int rc = read_args(&m, e);

	if (!rc)
		rc = read_file(&m, e);
	if (!rc) {
		import_plan(m.folds[0], m.to_ns, m.hz, &m.when);
		rc = hand_over(&m, e);
	}
	call->status = m.call_status;
	if (!rc && !m.call_status)
		say(&m);
	for (int i = 0; i < m.n_folds; i++)
		fold_free(m.folds[i]);
	return rc;
}

const struct verb verb_import = {
	.name = "import",
	.summary =
		"import another program's profile (pprof, folded, perf script, JFR and more) into a store",
	.usage = "FILE [--at T] [--event NAME] [--freq HZ]",
	.examples = IMPORT_EXAMPLES,
	.options = IMPORT_OPTIONS,
	.args_size = sizeof(struct import_args),
	.uses = VERB_STORE | VERB_WORDS | VERB_WRITES,
	.run = import_run,
};
