/* SPDX-License-Identifier: Apache-2.0 */
/* record_tell: the end of a recording in words or JSON: how much, who was hottest, what failed,
 * what to type next. */
#include <errno.h>
#include <jansson.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "schema/base/array.h"
#include "schema/base/limits/memlimit.h"
#include "schema/base/typed.h"
#include "schema/base/units.h"
#include "schema/store/read/reader.h"
#include "tools/fold/fold.h"
#include "tools/fold/fold_kind.h"
#include "tools/fold/shortfall.h"
#include "tools/print/json.h"
#include "tools/record/hottest.h"
#include "tools/record/record.h"
#include "tools/record/unnamed.h"
#include "tools/select/filter.h"
#include "tools/select/select.h"

double record_num(const json_t *o, const char *key)
{
	return json_number_value(json_object_get(o, key));
}

double record_most(const struct record *r, const char *key)
{
	double most = 0;

	for (size_t i = 0; i < r->loaders.n; i++) {
		const double v = record_num(r->loaders.v[i].done, key);

		most = v > most ? v : most;
	}
	return most;
}

double record_sum(const struct record *r, char which, const char *key)
{
	double sum = 0;

	for (size_t i = 0; i < r->loaders.n; i++)
		sum += record_num(which == 'p' ? r->loaders.v[i].progress : r->loaders.v[i].done,
				  key);
	return sum;
}

void record_counts(const struct record *r, char which, struct strbuf *out)
{
	for (size_t i = 0; i < r->loaders.n; i++) {
		const struct loader *l = &r->loaders.v[i];
		const json_t *ev = which == 'p' ? l->progress : l->done;
		char n[32];

		strbuf_addf(out, "%s%s%s%s %s%s", out->len ? ", " : "",
			    r->loaders.n > 1 ? l->family->name : "", r->loaders.n > 1 ? " " : "",
			    units_count((uint64_t)record_num(ev, "samples"), n, sizeof(n)),
			    l->family->event, record_num(ev, "samples") == 1 ? "" : "s");
	}
}

static bool is_plain_word(const char *s)
{
	return s[0] && s[0] != '-' &&
	       !s[strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")];
}

/* No family of it has stacks. */
static bool only_reads(const struct record *r)
{
	for (size_t i = 0; i < r->loaders.n; i++)
		if (r->loaders.v[i].family->rights != FAMILY_READS)
			return false;
	return true;
}

/* Each of its families has its own verb. */
static bool has_no_stacks(const struct record *r)
{
	for (size_t i = 0; i < r->loaders.n; i++)
		if (!r->loaders.v[i].family->shown_by)
			return false;
	return true;
}

static void say_verbs(const struct record *r, const char *where)
{
	fputs("next:  ", stderr);
	for (size_t i = 0; i < r->loaders.n; i++)
		fprintf(stderr, "%s%s %s%s", i ? "      " : "", typed_sonde(false),
			r->loaders.v[i].family->shown_by, where);
	fputc('\n', stderr);
}

/* `only_self`: nothing but sonde itself was seen, which needs --self to be shown. */
static void say_next(const struct record *r, const char *hottest, bool only_self)
{
	struct strbuf where cleanup_strbuf = STRBUF_INIT;
	const char *w;

	if (only_self)
		strbuf_addstr(&where, " --self");
	if (r->rec && !r->newest)
		strbuf_addf(&where, " --rec %lld", (long long)r->rec);
	if (r->call->hint_store) {
		strbuf_addstr(&where, " --store ");
		filter_word(r->call->hint_store, &where);
	}
	w = strbuf_str(&where);
	if (only_reads(r)) {
		fprintf(stderr, "next:  %s containers%s      %s ps%s      %s timeline --of mem%s\n",
			typed_sonde(false), w, typed_sonde(false), w, typed_sonde(false), w);
		return;
	}
	if (has_no_stacks(r)) {
		say_verbs(r, w);
		return;
	}
	if (only_self)
		fputs("nothing ran but sonde itself\n", stderr);
	fprintf(stderr, "next:  %s flame%s      %s stacks%s -n 10", typed_sonde(false), w,
		typed_sonde(false), w);
	if (hottest && is_plain_word(hottest))
		fprintf(stderr, "      %s flame %s%s", typed_sonde(false), hottest, w);
	fputc('\n', stderr);
}

/* The first loader that came to its end; NULL: none. */
static const struct loader *first_done(const struct record *r)
{
	for (size_t i = 0; i < r->loaders.n; i++)
		if (r->loaders.v[i].done)
			return &r->loaders.v[i];
	return NULL;
}

/* Which recording of the store this was: a loader knows its row in its last segment. */
static void find_recording(struct record *r)
{
	const json_t *done = first_done(r)->done;
	const char *segment = json_string_value(json_object_get(done, "segment")) ?: "";
	const char *name = strrchr(segment, '/') ? strrchr(segment, '/') + 1 : segment;
	int64_t run = json_integer_value(json_object_get(done, "run"));
	struct select_recording *list = NULL;
	size_t n = 0;

	if (select_recordings(r->call->store, &list, &n, NULL))
		return;
	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < list[i].n_runs; k++) {
			const char *path = list[i].runs[k].segment;
			const char *slash = strrchr(path, '/');

			if (list[i].runs[k].run != run || strcmp(slash ? slash + 1 : path, name))
				continue;
			r->rec = list[i].number;
			r->newest = i + 1 == n;
			r->from_ns = list[i].from_ns;
			r->to_ns = list[i].to_ns;
		}
	}
	select_recordings_free(list, n);
}

static double lost_total(const struct record *r)
{
	const char *reason;
	double lost = 0;
	json_t *n;

	for (size_t i = 0; i < r->loaders.n; i++)
		json_object_foreach (json_object_get(r->loaders.v[i].done, "lost"), reason, n)
			lost += json_number_value(n);
	return lost;
}

/* `f`: its CPU samples, or NULL. */
static void say_sums(const struct record *r, const char *rec, const struct fold *f)
{
	double frames = record_sum(r, 'd', "frames"), user = record_sum(r, 'd', "user_samples");
	const struct loader *l = first_done(r);
	struct strbuf counts cleanup_strbuf = STRBUF_INIT;
	char own[UNITS_MAX], took[UNITS_MAX], edges[UNITS_MAX], lost[UNITS_MAX];

	record_counts(r, 'd', &counts);
	if (f && f->self_program_samples)
		strbuf_addf(&counts, " (%s %s sonde's own)",
			    units_count(f->self_program_samples, own, sizeof(own)),
			    r->loaders.n > 1 ? "samples" : "of them");
	fprintf(stderr, "%s%s done: %s of %.0f process%s in %s; %s lost; ",
		r->rec ? "rec " : "recording", r->rec ? rec : "", strbuf_str(&counts),
		record_most(r, "processes"), record_most(r, "processes") == 1 ? "" : "es",
		units_seconds(record_num(l->done, "took_s"), took, sizeof(took)),
		units_count((uint64_t)lost_total(r), lost, sizeof(lost)));
	if (!only_reads(r) && !has_no_stacks(r))
		fprintf(stderr, "%.1f %% of frames named, %.1f %% of user stacks complete; ",
			frames > 0 ? 100 * record_sum(r, 'd', "frames_named") / frames : 100,
			user > 0 ? 100 * record_sum(r, 'd', "user_complete") / user : 100);
	fprintf(stderr, "own CPU %.1f %% of one core, and %s to start and end\n",
		100 * record_sum(r, 'd', "self_cores"),
		units_seconds(record_sum(r, 'd', "edges_cpu_s"), edges, sizeof(edges)));
}

/* Of each family that lost some: how much, and why. */
static void say_lost(const struct record *r)
{
	for (size_t i = 0; i < r->loaders.n; i++) {
		const struct loader *l = &r->loaders.v[i];
		const char *reason;
		char n[UNITS_MAX];
		json_t *lost;

		json_object_foreach (json_object_get(l->done, "lost"), reason, lost) {
			const char *words = shortfall_reason(reason);

			const bool one = json_number_value(lost) == 1,
				   pairs = !strcmp(reason, "pairs");

			if (json_number_value(lost) > 0)
				fprintf(stderr, "  %s: %s %s%s lost: %s%s%s%s\n", l->family->name,
					units_count((uint64_t)json_number_value(lost), n,
						    sizeof(n)),
					shortfall_unit(reason, l->family->event),
					pairs ? " were" :
					one   ? " was" :
						"s were",
					reason, *words ? " (" : "", words, *words ? ")" : "");
		}
	}
}

static void say_done(struct record *r)
{
	const struct fold_opts opts = {.kind = STORE_KIND_CPU, .leaves = true};
	const char *hottest = NULL;
	struct selection *sel = NULL;
	struct select_args args = {0};
	struct fold *f = NULL;
	bool only_self = false;
	char rec[32];

	snprintf(rec, sizeof(rec), "%lld", (long long)r->rec);
	args.rec = rec;
	if (r->rec && !select_new(&args, r->call->store, NULL, 0, true, &sel, NULL))
		only_self = fold_make(sel, &opts, &f, NULL) && fold_only_self(sel);
	say_sums(r, rec, f);
	say_lost(r);
	if (f) {
		hottest = hottest_print(f, stderr);
		unnamed_print(f, stderr);
	}
	say_next(r, hottest, only_self);
	fold_free(f);
	select_free(sel);
}

static json_t *row_json(const struct record *r, const struct loader *l)
{
	static const char *const kept[] = {"run",           "segment",      "samples",
					   "seen",          "lost",         "processes",
					   "frames",        "frames_named", "user_samples",
					   "user_complete", "self_cores",   "edges_cpu_s"};
	json_t *row = json_object();

	json_object_set_new(row, "family", json_string(l->family->name));
	json_object_set_new(row, "rec", json_number_or_null(r->rec, r->rec));
	json_set_time(row, "from", r->from_ns);
	json_set_time(row, "to", r->to_ns);
	for (size_t i = 0; i < ARRAY_SIZE(kept); i++) {
		json_t *v = json_object_get(l->done, kept[i]);

		json_object_set_new(row, kept[i], v ? json_incref(v) : json_null());
	}
	json_object_set_new(row, "first_sample_seconds", json_real(record_num(l->done, "first_s")));
	json_object_set_new(row, "command_status",
			    json_number_or_null(r->command_status, r->command_status >= 0));
	return row;
}

static int print_json(struct record *r)
{
	json_t *envelope = json_envelope("record", r->from_ns, r->to_ns);

	for (size_t i = 0; i < r->loaders.n; i++) {
		const struct loader *l = &r->loaders.v[i];

		if (l->done)
			json_array_append_new(json_rows(envelope), row_json(r, l));
		else
			json_warn(envelope, "%s was not recorded: %s", l->family->name,
				  json_string_value(json_object_get(l->error, "what")) ?:
					  "its loader ended without a result");
	}
	if (lost_total(r) > 0)
		json_warn(envelope, "%.0f samples were lost", lost_total(r));
	return json_print(envelope, stdout, 0);
}

static int from_error_event(const struct loader *l, struct err *e)
{
	const char *what = json_string_value(json_object_get(l->error, "what"));
	const char *fix = json_string_value(json_object_get(l->error, "fix"));

	err_set(e, -EIO, (enum sonde_exit)record_num(l->error, "exit"), "%s",
		what ? what : "the recorder failed");
	if (fix && *fix)
		err_fix(e, "%s", fix);
	return -EIO;
}

/* What its programs had seen and the store does not have, by its tally; how the sentence goes on.
 */
static void say_missing(const struct record *r, const struct loader *l, char *out, size_t size)
{
	uint64_t seen, stored;

	if (store_missing(r->call->store, l->pid, &seen, &stored) || stored > seen)
		snprintf(out, size, "what it had stored is kept");
	else
		snprintf(out, size,
			 "%llu of the %llu events that it saw are lost, the rest is stored",
			 (unsigned long long)(seen - stored), (unsigned long long)seen);
}

/* Signal 9 may be the kernel's, and 6 is its own where it finds no memory. */
static int from_signal(const struct record *r, const struct loader *l, struct err *e)
{
	int sig = WTERMSIG(l->status);
	bool memory = sig == SIGABRT || (sig == SIGKILL && memlimit_kills() > r->kills);
	struct memlimit limit;
	char rest[160];

	memlimit_read(&limit);
	memory = memory && (sig == SIGKILL || limit.bytes != UINT64_MAX);
	say_missing(r, l, rest, sizeof(rest));
	if (memory)
		err_set(e, -ENOMEM, EXIT_RUNTIME,
			"the recorder of %s was ended for lack of memory (signal %d%s%s); %s",
			l->family->name, sig, limit.bytes == UINT64_MAX ? "" : "; ", limit.what,
			rest);
	else
		err_set(e, -EIO, EXIT_RUNTIME, "the recorder of %s was ended by signal %d (%s); %s",
			l->family->name, sig, strsignal(sig), rest);
	err_fix(e, "%s",
		!memory                   ? "sonde status    sonde flame --rec last" :
		limit.bytes != UINT64_MAX ? limit.fix :
					    "this host is out of memory: sudo dmesg | grep -i oom");
	return -EIO;
}

/* What became of a loader, and of the command that it ran. */
static int conclude(const struct record *r, const struct loader *l, struct err *e)
{
	if (WIFSIGNALED(l->status))
		return from_signal(r, l, e);
	if (l->error)
		return from_error_event(l, e);
	if (l->done)
		return 0;
	if (WEXITSTATUS(l->status) == EXIT_INTERRUPTED)
		return err_set(e, -EINTR, EXIT_INTERRUPTED,
			       "interrupted before any sample was stored");
	return err_set(e, -EIO,
		       WEXITSTATUS(l->status) ? (enum sonde_exit)WEXITSTATUS(l->status) :
						EXIT_RUNTIME,
		       "the recorder of %s ended without a result (exit status %d)",
		       l->family->name, WEXITSTATUS(l->status));
}

/* The first that failed decides; what the others have is kept and told. 0: none failed. */
static int conclude_all(const struct record *r, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < r->loaders.n && !rc; i++)
		rc = conclude(r, &r->loaders.v[i], e);
	return rc;
}

static bool interrupted(const struct record *r)
{
	bool all = !r->loaders.timed_out;

	for (size_t i = 0; i < r->loaders.n; i++)
		all = all && WEXITSTATUS(r->loaders.v[i].status) == EXIT_INTERRUPTED;
	return all;
}

/* Nothing ran on a CPU: said as such, with what to do. The command's own failure goes before. */
static int say_nothing(const struct record *r, struct err *e)
{
	const json_t *done = first_done(r)->done;
	double seconds = record_num(done, "took_s");
	const char *nothing = r->loaders.n == 1 ? r->loaders.v[0].family->nothing : NULL;
	const char *lacks = json_string_value(json_object_get(done, "lacks"));
	char took[UNITS_MAX];

	if (interrupted(r))
		return err_set(e, -EINTR, EXIT_INTERRUPTED,
			       "interrupted before any sample was stored");
	err_set(e, -ENODATA, EXIT_NOTHING, "%s in %s%s%s",
		nothing ? nothing : "nothing that was asked for happened",
		units_seconds(seconds, took, sizeof(took)), lacks ? "; " : "", lacks ? lacks : "");
	if (lacks) {
		err_fix(e, "%s", json_string_value(json_object_get(done, "lacks_fix")) ?: "");
		return -ENODATA;
	}
	err_fix(e,
		"sudo sonde record --families cpu,offcpu -d 10s (what does not run waits), or for longer: -d 30s, or without a filter");
	return -ENODATA;
}

/* The store failed: how much of the recording is there. */
static void say_kept(const struct record *r)
{
	double unsure = record_sum(r, 'd', "unsure"), lost = lost_total(r);

	if (r->call->json || lost + unsure == 0)
		return;
	fprintf(stderr, "stored: %.0f; lost: %.0f", record_sum(r, 'd', "samples"), lost);
	if (unsure > 0)
		fprintf(stderr,
			"; of the stored ones %.0f may be missing, since the disk failed before they were on it",
			unsure);
	fputc('\n', stderr);
}

int record_tell(struct record *r, struct err *e)
{
	struct verb_call *call = (struct verb_call *)r->call;
	int failed = conclude_all(r, e), rc = 0;

	if (failed && first_done(r))
		say_kept(r);
	if (!first_done(r) || (failed && r->loaders.n == 1))
		return failed;
	find_recording(r);
	call->status = r->loaders.n == 1 ? WEXITSTATUS(r->loaders.v[0].status) : EXIT_OK;
	if (r->command_status > 0) {
		fprintf(stderr, "sonde: the command failed: exit status %d\n", r->command_status);
		call->status = EXIT_RUNTIME;
	} else if (record_sum(r, 'd', "samples") == 0) {
		return failed ? failed : say_nothing(r, e);
	}
	if (call->json)
		rc = print_json(r);
	else if (!call->quiet && record_sum(r, 'd', "samples") > 0)
		say_done(r);
	return failed ? failed : rc;
}
