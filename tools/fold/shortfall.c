/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/fold/shortfall.h"

#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/mem.h"
#include "schema/base/units.h"
#include "schema/families/families.h"
#include "tools/fold/fold.h"
#include "tools/fold/fold_kind.h"
#include "tools/fold/unread.h"
#include "tools/print/estimate.h"
#include "tools/print/when.h"
#include "tools/print/wrap.h"
#include "tools/select/select.h"

/* --- words --- */

const char *shortfall_reason(const char *reason)
{
	static const struct {
		const char *reason, *words;
	} all[] = {
		{"ring", "more came at once than the loader could read"},
		{"room", "a table of the programs in the kernel was full"},
		{"pairs",
		 "more pairs of threads met than there is room for: who woke some, or ran while they waited, is not recorded; how long each waited is"},
		{"hold", "more samples waited for their mappings than there is room for"},
		{"unknown",
		 "their process was not known in time: whether it is one of those that are recorded is not known"},
		{"malformed", "records that the loader does not know"},
		{"store", "the disk was full or too slow"},
		{"throttled", "the kernel held samples back"},
		{"missed", "the kernel left out runs of a program, since one had not ended"},
		{"maps", "mapping events were lost: mappings were read again"},
		{"range", "a number was too large to be true"},
		{"killed", "a program was killed before it had stored them"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (!strcmp(all[i].reason, reason))
			return all[i].words;
	return "";
}

const char *shortfall_unit(const char *reason, const char *unit)
{
	return strcmp(reason, "pairs") ? unit : "pairs of threads";
}

/* ", 14:10:03 to 14:10:04"; nothing where the times are not known. */
static void add_times(struct strbuf *s, int64_t from_ns, int64_t to_ns)
{
	int64_t now = clock_utc_ns();
	char from[32], to[32];

	if (from_ns)
		strbuf_addf(s, ", %s to %s", when_local(from_ns, now, from, sizeof(from)),
			    when_local(to_ns, now, to, sizeof(to)));
}

void shortfall_losses(const struct fold *f, shortfall_take *take, void *ctx)
{
	for (size_t i = 0; i < f->n_losses; i++) {
		const struct fold_loss *l = &f->losses[i];
		const char *words = shortfall_reason(l->reason);
		struct strbuf s cleanup_strbuf = STRBUF_INIT;

		if (!l->n)
			continue;
		strbuf_addf(&s, "%" PRIu64 " %s were lost: %s", l->n,
			    shortfall_unit(l->reason, store_unit_name(f->kind->unit_n)), l->reason);
		if (*words)
			strbuf_addf(&s, " (%s)", words);
		add_times(&s, l->from_ns, l->to_ns);
		take(ctx, strbuf_str(&s));
	}
}

/* --- what was shed --- */

/* One family in one state, however often. */
struct group {
	const struct shedlog_span *of; /* the one with the worst number */
	size_t n;
	int64_t from_ns, to_ns, sum_ns; /* as far as it lies in the range */
	bool open;                      /* it still holds */
};

static bool worse(const struct shedlog_span *a, const struct shedlog_span *b)
{
	return a->state == SHEDLOG_RATE ? a->n < b->n : a->n > b->n;
}

static void group_add(struct group *g, const struct shedlog_span *s, int64_t from_ns, int64_t to_ns)
{
	int64_t from = s->from_ns > from_ns ? s->from_ns : from_ns,
		to = s->to_ns < to_ns ? s->to_ns : to_ns;

	g->of = !g->of || worse(s, g->of) ? s : g->of;
	g->from_ns = g->n ? g->from_ns : s->from_ns;
	g->to_ns = s->to_ns;
	g->open = s->to_ns == INT64_MAX;
	g->sum_ns += to - from;
	g->n++;
}

/* " since 14:10:03", " from 14:10:03 to 14:12:00", " for 12 min between 14:10:03 and 15:00:00". */
static void group_times(const struct group *g, struct strbuf *s)
{
	char from[32], to[32], sum[UNITS_MAX];
	int64_t now = clock_utc_ns();

	when_local(g->from_ns, now, from, sizeof(from));
	when_local(g->open ? now : g->to_ns, now, to, sizeof(to));
	if (g->n > 1)
		strbuf_addf(s, " for %s between %s and %s", units_ns(g->sum_ns, sum, sizeof(sum)),
			    from, g->open ? "now" : to);
	else if (g->open)
		strbuf_addf(s, " since %s", from);
	else
		strbuf_addf(s, " from %s to %s", from, to);
}

#define CPU_LIMIT    "sonde used more CPU time than its limit (sonde.conf: cpu)"
#define MEMORY_LIMIT "sonde used more memory than its limit (sonde.conf: memory)"

static void group_say(const struct group *g, struct strbuf *s)
{
	const struct shedlog_span *of = g->of;
	const struct family_less *less = family_less(family_named(of->family), of->n);

	strbuf_addf(s, "family %s ", of->family);
	switch (of->state) {
	case SHEDLOG_RATE:
		strbuf_addf(s, "took %" PRIu32 " samples a second instead of %" PRIu32, of->n,
			    of->of);
		group_times(g, s);
		strbuf_addstr(s, ", because " CPU_LIMIT
				 ": times are right, but what ran rarely may be missing");
		return;
	case SHEDLOG_STEP:
		strbuf_addstr(s, less ? less->did : "did less");
		group_times(g, s);
		strbuf_addf(s, ", because " CPU_LIMIT "%s%s", less ? ": " : "",
			    less ? less->answer : "");
		return;
	case SHEDLOG_CPU:
	case SHEDLOG_MEMORY:
		strbuf_addstr(s, "recorded nothing");
		group_times(g, s);
		strbuf_addf(s, ": sonded stopped it, because %s",
			    of->state == SHEDLOG_CPU ? CPU_LIMIT : MEMORY_LIMIT);
		return;
	case SHEDLOG_HUNG:
	case SHEDLOG_FAILED:
		strbuf_addstr(s, "recorded nothing");
		group_times(g, s);
		strbuf_addf(s, ": sonde-%s %s", of->family,
			    of->state == SHEDLOG_HUNG ? "did not respond and was killed" :
							"ended and was started again");
		return;
	case SHEDLOG_FULL:
	case SHEDLOG_STATES:
		return;
	}
}

static bool told_before(const struct shedlog_span *v, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (v[k].state == v[i].state && !strcmp(v[k].family, v[i].family))
			return true;
	return false;
}

void shortfall_sheds(const struct shedlog_span *v, size_t n, int64_t from_ns, int64_t to_ns,
		     shortfall_take *take, void *ctx)
{
	for (size_t i = 0; i < n; i++) {
		struct strbuf s cleanup_strbuf = STRBUF_INIT;
		struct group g = {0};

		if (told_before(v, i))
			continue;
		for (size_t k = i; k < n; k++)
			if (v[k].state == v[i].state && !strcmp(v[k].family, v[i].family) &&
			    v[k].from_ns < to_ns && v[k].to_ns > from_ns)
				group_add(&g, &v[k], from_ns, to_ns);
		if (!g.n)
			continue;
		group_say(&g, &s);
		take(ctx, strbuf_str(&s));
	}
}

void shortfall_shed(const struct fold *f, shortfall_take *take, void *ctx)
{
	shortfall_sheds(f->shed, f->n_shed, f->asked_from_ns, f->asked_to_ns, take, ctx);
}

/* Waits that were drawn represent others. */
static void estimate_say(const struct fold *f, shortfall_take *take, void *ctx)
{
	const struct fold_node *root = f->n_nodes ? &f->nodes[0] : NULL;
	struct strbuf text cleanup_strbuf = STRBUF_INIT;
	char sum[32], error[32];

	if (!root || root->total_variance <= 0)
		return;
	strbuf_addf(
		&text,
		"these are estimates, as stacks were taken of some waits only: %s in total, with a standard error of %s",
		fold_amount(f, root->total_ns, sum, sizeof(sum)),
		fold_amount(f, estimate_error(root->total_variance), error, sizeof(error)));
	take(ctx, strbuf_str(&text));
}

void shortfall_each(const struct fold *f, shortfall_take *take, void *ctx)
{
	estimate_say(f, take, ctx);
	shortfall_losses(f, take, ctx);
	shortfall_shed(f, take, ctx);
	unread_each(f, take, ctx);
}

static void line_add(void *ctx, const char *sentence)
{
	strbuf_addf(ctx, "note: %s\n", sentence);
}

void shortfall_add(const struct fold *f, struct strbuf *out)
{
	shortfall_each(f, line_add, out);
}

static void line_print(void *ctx, const char *sentence)
{
	struct strbuf line cleanup_strbuf = STRBUF_INIT;

	strbuf_addstr(&line, "note: ");
	strbuf_addshown(&line, sentence, strlen(sentence));
	wrap_print(ctx, strbuf_str(&line), 6);
}

void shortfall_print(const struct fold *f, FILE *out)
{
	shortfall_each(f, line_print, out);
}

/* --- where it is on record --- */

struct found {
	struct shedlog_span *v;
	size_t n, cap;
};

static void read_folder(struct found *f, const char *dir, const struct selection *sel,
			const char *family)
{
	cleanup_free struct shedlog_span *v = NULL;
	size_t n;

	shedlog_read(dir, sel->from_ns, sel->to_ns, &v, &n);
	for (size_t i = 0; i < n; i++) {
		if (strcmp(v[i].family, family))
			continue;
		mem_grow(f->v, f->n, f->cap);
		f->v[f->n++] = v[i];
	}
}

/* The length of the path of the folder that a segment is in. */
static size_t folder_length(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? (size_t)(slash - path) : 0;
}

static bool seen_before(const struct selection *sel, size_t i)
{
	const char *path = sel->segments[i].path;
	size_t len = folder_length(path);

	for (size_t k = 0; k < i; k++)
		if (folder_length(sel->segments[k].path) == len &&
		    !strncmp(sel->segments[k].path, path, len))
			return true;
	return false;
}

void shortfall_read(const struct selection *sel, const char *family, struct shedlog_span **out,
		    size_t *n)
{
	struct found f = {0};
	char dir[PATH_MAX];

	for (size_t i = 0; i < sel->n_segments; i++) {
		if (seen_before(sel, i))
			continue;
		snprintf(dir, sizeof(dir), "%.*s", (int)folder_length(sel->segments[i].path),
			 sel->segments[i].path);
		read_folder(&f, *dir ? dir : ".", sel, family);
	}
	if (!sel->n_segments && sel->store)
		read_folder(&f, sel->store, sel, family);
	*out = f.v;
	*n = f.n;
}
