/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/fold/fold_kind.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/log.h"
#include "schema/base/mem.h"
#include "schema/base/units.h"
#include "schema/store/read/days.h"
#include "tools/fold/fold_wall.h"
#include "tools/fold/shortfall.h"
#include "tools/print/when.h"
#include "tools/select/askrows.h"
#include "tools/select/word.h"
#include "tools/select/unstored.h"

/* --- the options --- */

static const char *const UNITS[] = {[STORE_SAMPLES] = "samples",
				    [STORE_EVENTS] = "events",
				    [STORE_OBJECTS] = "objects",
				    [STORE_TIME] = "time",
				    [STORE_BYTES] = "bytes"};

static void names_of(uint32_t kinds, struct strbuf *out)
{
	for (int i = 1; i < STORE_KINDS; i++)
		if (kinds & 1u << i)
			strbuf_addf(out, "%s%s", out->len ? ", " : "",
				    store_kind_info((enum store_kind)i)->name);
}

static int unknown_type(const char *type, struct err *e)
{
	struct strbuf names cleanup_strbuf = STRBUF_INIT;

	names_of(~0u, &names);
	err_set(e, -EINVAL, EXIT_USAGE, "unknown type '%.40s': known are %s", type,
		strbuf_str(&names));
	err_fix(e, "sonde stacks --type cpu");
	return -EINVAL;
}

static int unit_of(const char *unit, const struct store_kind_info *k, bool *count, struct err *e)
{
	*count = !strcmp(unit, UNITS[k->unit_n]);
	if (*count || !strcmp(unit, UNITS[k->unit_value]))
		return 0;
	err_set(e, -EINVAL, EXIT_USAGE, "--unit %.40s does not fit --type %s: it has %s and %s",
		unit, k->name, UNITS[k->unit_n], UNITS[k->unit_value]);
	err_fix(e, "sonde stacks --type %s --unit %s", k->name, UNITS[k->unit_value]);
	return -EINVAL;
}

int fold_kind_of(const char *type, const struct selection *sel, struct fold_opts *o, struct err *e)
{
	const struct store_kind_info *k = type ? store_kind_named(type) : NULL;

	if (type && !k)
		return unknown_type(type, e);
	o->kind = k ? k->kind : 0;
	if (!sel->measure)
		return 0;
	if (!k)
		o->kind = STORE_KIND_CPU; /* what a unit fits must be known */
	return unit_of(sel->measure, store_kind_info(o->kind), &o->count, e);
}

int fold_kind_or_wall_of(const char *type, const struct selection *sel, struct fold_opts *o,
			 struct err *e)
{
	if (!type || strcmp(type, FOLD_WALL_NAME))
		return fold_kind_of(type, sel, o, e);
	o->wall = true;
	if (!sel->measure || !strcmp(sel->measure, UNITS[STORE_TIME]))
		return 0;
	err_set(e, -EINVAL, EXIT_USAGE, "--unit %.40s does not fit --type wall: it has time",
		sel->measure);
	err_fix(e, "sonde flame --type wall --unit time");
	return -EINVAL;
}

/* --- what there is --- */

static int kinds_in(const struct selection *sel, const char *path, uint32_t *kinds, struct err *e)
{
	struct store_segment *s = NULL;
	int64_t run = select_run_in(sel, path, 0);
	int rc = run < 0 ? 0 : select_segment(sel, path, &s, e);

	for (size_t i = 1; !rc && run >= 0; i++) {
		uint32_t some = 0;

		rc = store_kinds_in(s, sel->from_ns, sel->to_ns, run, &some, e);
		*kinds |= some;
		run = select_run_in(sel, path, i);
	}
	return rc;
}

int fold_kinds_there(const struct selection *sel, uint32_t *kinds, struct err *e)
{
	const struct store_part *parts;
	const size_t n = select_parts(sel, &parts);
	int rc = 0;

	*kinds = 0;
	for (size_t i = 0; !rc && i < n; i++)
		rc = kinds_in(sel, parts[i].path, kinds, e);
	return rc;
}

/* What is shown without --type: the first of these that the selection has. */
static const enum store_kind TELLING[] = {STORE_KIND_CPU,      STORE_KIND_OFFCPU,  STORE_KIND_INUSE,
					  STORE_KIND_ALLOC,    STORE_KIND_MUTEX,   STORE_KIND_BLOCK,
					  STORE_KIND_RUNQUEUE, STORE_KIND_STANDING};

int fold_kind_there(const struct selection *sel, enum store_kind *kind, struct err *e)
{
	struct strbuf names cleanup_strbuf = STRBUF_INIT;
	uint32_t kinds;
	int rc = fold_kinds_there(sel, &kinds, e);

	if (rc)
		return rc;
	if (kinds & 1u << STORE_KIND_CPU || !kinds) {
		*kind = STORE_KIND_CPU;
		return 0;
	}
	for (size_t i = 0; i < ARRAY_SIZE(TELLING); i++)
		if (kinds & 1u << TELLING[i]) {
			*kind = TELLING[i];
			break;
		}
	if (kinds & (kinds - 1)) {
		names_of(kinds & ~(1u << *kind), &names);
		log_warn("no CPU samples in %s: this is --type %s; there is also %s", sel->range,
			 store_kind_info(*kind)->name, strbuf_str(&names));
	}
	return 0;
}

/* The same, of the files that can be read. */
static uint32_t kinds_readable(const struct selection *sel)
{
	uint32_t kinds = 0;

	for (size_t i = 0; i < sel->n_segments; i++)
		(void)kinds_in(sel, sel->segments[i].path, &kinds, NULL);
	return kinds;
}

/* "; the store holds samples from A to B", "" */
static void tell_span(const struct selection *sel, char *out, size_t size)
{
	cleanup_free struct store_segment_info *all = NULL;
	int64_t from = 0, to = 0, now = clock_utc_ns();
	char a[32], b[32];
	size_t n = 0;

	out[0] = '\0';
	if (store_segments(sel->store, 0, INT64_MAX, &all, &n, NULL))
		return;
	for (size_t i = 0; i < n; i++) {
		if (all[i].from_ns && (!from || all[i].from_ns < from))
			from = all[i].from_ns;
		if (all[i].to_ns > to)
			to = all[i].to_ns;
	}
	if (from)
		snprintf(out, size, "; the store holds samples from %s to %s",
			 when_local(from, now, a, sizeof(a)), when_local(to, now, b, sizeof(b)));
}

static void take_any(void *ctx, sqlite3_stmt *st)
{
	(void)st;
	*(bool *)ctx = true;
}

/* "cpu,mem" has "mem". */
static bool word_in_list(const char *list, const char *word)
{
	const size_t len = strlen(word);

	for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
		if (strcspn(at, ",") == len && !strncmp(at, word, len))
			return true;
	return false;
}

/* Did this family record in the range, whether or not it saw anything? */
static bool family_recorded(const struct selection *sel, const char *family)
{
	bool any = false;
	char sql[200];
	const struct askrows_part part = {sql, take_any, &any};

	if (sel->rec)
		return word_in_list(sel->families, family);
	snprintf(sql, sizeof(sql),
		 "SELECT 1 FROM run WHERE family = '%.20s' AND to_ns / 1000000000 >= ?1"
		 " AND from_ns / 1000000000 <= ?2 LIMIT 1",
		 family);
	return !askrows_each(sel, NULL, &part, 1, NULL) && any;
}

/* Why there is nothing of that kind; `has`: sonde's own, or what the filters leave out, has some.
 */
static const char *why_nothing(const struct selection *sel, bool has, bool recorded)
{
	const bool narrow = select_is_narrow(sel);

	if (has)
		return narrow ? "what the filters name has none" : "only sonde itself has some";
	if (recorded)
		return "it was recorded, and none was seen";
	return narrow ? "nothing that the filters name, or it was not recorded" :
			"it was not recorded then";
}

static int nothing_else(const struct selection *sel, const struct store_kind_info *k,
			const char *there, struct err *e)
{
	const uint32_t kinds = kinds_readable(sel);
	const bool narrow = select_is_narrow(sel), has = kinds & 1u << k->kind,
		   recorded = !has && k->family && !k->option && family_recorded(sel, k->family);
	struct strbuf names cleanup_strbuf = STRBUF_INIT;

	names_of(kinds & ~(has ? 1u << k->kind : 0), &names);
	err_set(e, -ENODATA, EXIT_NOTHING, "no %s (%s)%s%s in %s: %s%s%s%s", k->what, k->name,
		*sel->what ? " of " : "", sel->what, sel->range, why_nothing(sel, has, recorded),
		names.len ? "; there is " : "", strbuf_str(&names), there);
	if (has)
		err_fix(e, "sonde stacks --type %s%s    sonde status (what is there)", k->name,
			narrow ? " (without the filter)" : " --self (sonde's own)");
	else if (recorded)
		err_fix(e, "sonde status (what is there)");
	else if (k->family)
		err_fix(e,
			"sudo sonde record --families cpu,%s%s%s -d 1m    sonde status (what is there)",
			k->family, k->option ? " " : "", k->option ? k->option : "");
	else
		err_fix(e,
			"sonde import %s.pb.gz (a profile that the program wrote)    sonde status (what is there)",
			k->name);
	return -ENODATA;
}

/* "; did you mean ...", where a filter's value is no name of the range but near one. */
static void add_near(const struct selection *sel, struct strbuf *out)
{
	struct names l = {0};

	for (size_t i = 0; sel->filters && i < sel->n_segments; i++)
		(void)names_read(&l, sel->segments[i].path, NULL);
	if (sel->filters)
		word_near_filters(&l, sel->filters, out);
	names_release(&l);
}

/* What did not run may have waited: where that was recorded the command that shows it, else the one
 * that records it. */
static void fix_idle(const struct selection *sel, struct err *e)
{
	char from[40], to[40];
	const uint32_t kinds = kinds_readable(sel);

	if (kinds & 1u << STORE_KIND_OFFCPU)
		err_fix(e, "sonde waits --idle %s --from %s --to %s (it may have waited)",
			sel->filter_text, when_zoned(sel->from_ns, from, sizeof(from)),
			when_zoned(sel->to_ns, to, sizeof(to)));
	else
		err_fix(e,
			"sudo sonde record --families cpu,offcpu -d 10s (it may have waited)    sonde stacks (without the filter)");
}

bool fold_only_self(const struct selection *sel)
{
	return !sel->self && kinds_readable(sel) & 1u << STORE_KIND_CPU;
}

static void fix_only_self(const struct selection *sel, struct err *e)
{
	char from[40], to[40];

	err_fix(e,
		"sonde stacks --self --from %s --to %s (sonde's own samples)    sonde status (what is there)",
		when_zoned(sel->from_ns, from, sizeof(from)),
		when_zoned(sel->to_ns, to, sizeof(to)));
}

/* Other kinds of value were recorded then: no "nothing". */
static bool others_there(const struct selection *sel, struct err *e)
{
	struct strbuf names cleanup_strbuf = STRBUF_INIT;
	char from[40], to[40];
	const uint32_t kinds = kinds_readable(sel);

	if (!kinds)
		return false;
	names_of(kinds, &names);
	when_zoned(sel->from_ns, from, sizeof(from));
	when_zoned(sel->to_ns, to, sizeof(to));
	err_set(e, -ENODATA, EXIT_NOTHING,
		"no CPU samples in %s: cpu was not recorded then; there is %s", sel->range,
		strbuf_str(&names));
	if (kinds & 1u << STORE_KIND_OFFCPU)
		err_fix(e, "sonde waits --from %s --to %s    sonde status (what was recorded when)",
			from, to);
	else
		err_fix(e,
			"sonde stacks --from %s --to %s    sonde status (what was recorded when)",
			from, to);
	return true;
}

struct first {
	char *sentence; /* the caller's */
};

static void first_take(void *ctx, const char *sentence)
{
	struct first *first = ctx;

	if (!first->sentence)
		first->sentence = mem_strdup(sentence);
}

/* sonded had stopped that family, or its loader had failed: said as the reason. */
static bool nothing_shed(const struct selection *sel, const struct store_kind_info *kind,
			 struct err *e)
{
	const char *family = kind->kind == STORE_KIND_CPU ? "cpu" : kind->family;
	cleanup_free struct shedlog_span *v = NULL;
	struct first first = {0};
	size_t n = 0;

	if (!family || sel->rec)
		return false;
	shortfall_read(sel, family, &v, &n);
	while (n && (v[n - 1].state == SHEDLOG_RATE || v[n - 1].state == SHEDLOG_STEP))
		n--; /* it recorded then */
	shortfall_sheds(v, n, sel->from_ns, sel->to_ns, first_take, &first);
	if (!first.sentence)
		return false;
	err_set(e, UNSTORED_TOLD, EXIT_NOTHING, "nothing of kind %s in %s: %s", kind->name,
		sel->range, first.sentence);
	err_fix(e, "sonde status (what is there)    sudo sonde record --families %s -d 10s",
		family);
	free(first.sentence);
	return true;
}

int fold_nothing(const struct selection *sel, enum store_kind kind, struct err *e)
{
	struct strbuf near cleanup_strbuf = STRBUF_INIT;
	bool narrow = select_is_narrow(sel), self;
	char there[96];

	tell_span(sel, there, sizeof(there));
	add_near(sel, &near);
	if (near.len) {
		err_set(e, -ENODATA, EXIT_NOTHING, "nothing in %s matches the filters%s",
			sel->range, strbuf_str(&near));
		err_fix(e, "sonde ps (who ran then)");
		return -ENODATA;
	}
	if (nothing_shed(sel, store_kind_info(kind), e))
		return -ENODATA;
	if (kind != STORE_KIND_CPU)
		return nothing_else(sel, store_kind_info(kind), there, e);
	self = !narrow && fold_only_self(sel);
	if (!narrow && !self && others_there(sel, e))
		return -ENODATA;
	err_set(e, -ENODATA, EXIT_NOTHING, "no CPU samples%s%s in %s: %s%s",
		*sel->what ? " of " : "", sel->what, sel->range,
		narrow ? "what the filters name did not run on a CPU then, or does not exist" :
		self   ? "the host was idle, but for sonde itself" :
			 "nothing was recorded then, or the host was idle",
		there);
	if (narrow)
		fix_idle(sel, e);
	else if (self)
		fix_only_self(sel, e);
	else
		err_fix(e, "sonde status (what is there)    sudo sonde record -d 10s");
	return -ENODATA;
}

/* --- in words --- */

uint64_t fold_recorded_ns(const struct fold *f)
{
	return f->covered_ns         ? f->covered_ns :
	       f->to_ns > f->from_ns ? (uint64_t)(f->to_ns - f->from_ns) :
				       0;
}

double fold_cores(const struct fold *f, uint64_t ns)
{
	uint64_t recorded = fold_recorded_ns(f);

	return recorded ? (double)ns / (double)recorded : 0;
}

bool fold_is_cores(const struct fold *f)
{
	return f->kind->kind == STORE_KIND_CPU && f->unit == STORE_TIME;
}

bool fold_is_count(const struct fold *f)
{
	return f->unit == f->kind->unit_n;
}

const char *fold_count_title(const struct fold *f, char *buf, size_t size)
{
	snprintf(buf, size, "%s", store_kind_counted(f->kind));
	for (char *c = buf; *c; c++)
		*c = (char)toupper((unsigned char)*c);
	return buf;
}

const char *fold_amount_title(const struct fold *f, char *buf, size_t size)
{
	if (fold_is_count(f))
		return fold_count_title(f, buf, size);
	return fold_is_cores(f) ? "CORES" : f->unit == STORE_TIME ? "TIME" : "BYTES";
}

const char *fold_amount(const struct fold *f, uint64_t amount, char *buf, size_t size)
{
	if (fold_is_cores(f)) {
		snprintf(buf, size, "%.2f", fold_cores(f, amount));
		return buf;
	}
	if (f->unit == STORE_TIME)
		return units_ns((int64_t)amount, buf, size);
	return f->unit == STORE_BYTES ? units_bytes(amount, buf, size) :
					units_count(amount, buf, size);
}

void fold_say(struct strbuf *s, const struct fold *f, uint64_t amount, uint64_t n)
{
	char text[32];

	if (!fold_is_count(f))
		strbuf_addf(s, "%s%s, ", fold_amount(f, amount, text, sizeof(text)),
			    fold_is_cores(f) ? " cores" : "");
	strbuf_addf(s, "%s %s", units_count(n, text, sizeof(text)), store_kind_counted(f->kind));
}
