/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/formats/pprof_kind.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/strbuf.h"

static size_t type_named(const struct pprof_names *p, const char *name)
{
	for (size_t i = 0; i < p->n_types; i++)
		if (!strcmp(p->types[i].type, name))
			return i;
	return SIZE_MAX;
}

/* How much of the store's unit (ns, bytes) one of a pprof unit is; 0: another sort of unit. */
static double scale_of(const char *unit, enum store_unit to)
{
	static const struct {
		const char *name;
		enum store_unit of;
		double scale;
	} units[] = {
		{"nanoseconds", STORE_TIME, 1},
		{"ns", STORE_TIME, 1},
		{"microseconds", STORE_TIME, 1e3},
		{"us", STORE_TIME, 1e3},
		{"milliseconds", STORE_TIME, 1e6},
		{"ms", STORE_TIME, 1e6},
		{"seconds", STORE_TIME, 1e9},
		{"s", STORE_TIME, 1e9},
		{"bytes", STORE_BYTES, 1},
		{"byte", STORE_BYTES, 1},
		{"b", STORE_BYTES, 1},
		{"kilobytes", STORE_BYTES, 1024},
		{"megabytes", STORE_BYTES, 1048576},
	};

	if (to != STORE_TIME && to != STORE_BYTES)
		return strcmp(unit, "count") ? 0 : 1;
	for (size_t i = 0; i < ARRAY_SIZE(units); i++)
		if (units[i].of == to && !strcmp(unit, units[i].name))
			return units[i].scale;
	return 0;
}

/* Are their values worth something without a number of samples? */
static bool stands_alone(const struct store_kind_info *k)
{
	return k->kind == STORE_KIND_CPU || k->kind == STORE_KIND_WALLCLOCK || k->sized;
}

/* Its sample types by these names; false: they are not there, or in a unit of another sort. */
static bool take(const struct pprof_names *p, const struct store_kind_info *k, const char *n,
		 const char *value, struct pprof_kind *out)
{
	const size_t v = type_named(p, value);
	const double scale = v == SIZE_MAX ? 0 : scale_of(p->types[v].unit, k->unit_value);

	if (!(scale > 0) || (type_named(p, n) == SIZE_MAX && !stands_alone(k)))
		return false;
	*out = (struct pprof_kind){
		.kind = k, .value = v, .count = type_named(p, n), .scale = scale, .timed = true};
	return true;
}

/* CPU samples whose time is their number times the period, or is not known. */
static bool take_counted(const struct pprof_names *p, size_t count, struct pprof_kind *out)
{
	const double period =
		p->n_types == 1 ? scale_of(p->period_type.unit, STORE_TIME) * (double)p->period : 0;

	if (strcmp(p->types[count].unit, "count") && strcmp(p->types[count].unit, "samples"))
		return false;
	*out = (struct pprof_kind){.kind = store_kind_info(STORE_KIND_CPU),
				   .value = count,
				   .count = count,
				   .scale = period > 0 ? period : 1,
				   .timed = period > 0};
	return true;
}

/* Old versions of Pyroscope give samples a unit and no name. */
static bool only_samples(const struct pprof_names *p)
{
	const char *type = p->types[0].type;

	return p->n_types == 1 &&
	       (!strcmp(type, "samples") || (!*type && !strcmp(p->types[0].unit, "samples")));
}

/* Samples of a CPU's cycles, as far as their name says so. */
static size_t cycles_of(const struct pprof_names *p)
{
	for (size_t i = 0; i < p->n_types; i++) {
		const char *t = p->types[i].type, *end = strrchr(t, '_');

		if (end && !strcmp(end, "_sample") &&
		    (!strncmp(t, "cycles", 6) || !strncmp(t, "cpu", 3)))
			return i;
	}
	return only_samples(p) ? 0 : SIZE_MAX;
}

/* --type cpu: the last time, with the last count, else the last count. */
static bool take_any_as_cpu(const struct pprof_names *p, struct pprof_kind *out)
{
	const struct store_kind_info *cpu = store_kind_info(STORE_KIND_CPU);
	size_t count = SIZE_MAX, time = SIZE_MAX;

	if (take(p, cpu, cpu->pprof_n, cpu->pprof_value, out))
		return true;
	for (size_t i = 0; i < p->n_types; i++) {
		if (scale_of(p->types[i].unit, STORE_TIME) > 0)
			time = i;
		else if (!strcmp(p->types[i].unit, "count") || only_samples(p))
			count = i;
	}
	if (time == SIZE_MAX)
		return count != SIZE_MAX &&
		       take_counted(p, cycles_of(p) == SIZE_MAX ? count : cycles_of(p), out);
	*out = (struct pprof_kind){.kind = cpu,
				   .value = time,
				   .count = count,
				   .scale = scale_of(p->types[time].unit, STORE_TIME),
				   .timed = true};
	return true;
}

/* --- the file's own --- */

/* In Go's mutex profile all stacks end where something is unlocked, in its block profile none. */
static enum store_kind by_leaves(const struct pprof_names *p)
{
	size_t unlocks = 0;

	for (size_t i = 0; i < p->n_leaves; i++) {
		const char *l = p->leaves[i], *dot = strrchr(l, '.');

		if (strncmp(l, "sync.", 5) && strncmp(l, "internal/sync.", 14) &&
		    strncmp(l, "runtime.", 8))
			return 0;
		unlocks += dot && (!strcmp(dot, ".Unlock") || !strcmp(dot, ".RUnlock") ||
				   !strncmp(dot, ".unlock", 7) ||
				   !strcmp(dot, "._LostContendedRuntimeLock"));
	}
	return !p->n_leaves || (unlocks && unlocks < p->n_leaves) ? 0 :
	       unlocks                                            ? STORE_KIND_MUTEX :
								    STORE_KIND_BLOCK;
}

static bool said_by_comment(const struct pprof_names *p, const struct store_kind_info *k)
{
	const size_t n = strlen(k->name);

	return !strncmp(p->comment, "sonde ", 6) && !strncmp(p->comment + 6, k->name, n) &&
	       p->comment[6 + n] == ' ';
}

static const char *default_of(const struct pprof_names *p)
{
	return type_named(p, p->default_type) != SIZE_MAX ? p->default_type :
							    p->types[p->n_types - 1].type;
}

/* All kinds that the default type may be of, as bits. */
static uint32_t kinds_of_default(const struct pprof_names *p)
{
	const char *type = default_of(p);
	struct pprof_kind x;
	uint32_t kinds = 0;

	for (enum store_kind i = 1; i < STORE_KINDS; i++) {
		const struct store_kind_info *k = store_kind_info(i);

		if (k->own)
			continue;
		if ((!strcmp(type, k->pprof_value) || !strcmp(type, k->pprof_n)) &&
		    take(p, k, k->pprof_n, k->pprof_value, &x))
			kinds |= 1u << i;
		if (k->sized && (!strcmp(type, "space") || !strcmp(type, "objects")) &&
		    take(p, k, "objects", "space", &x))
			kinds |= 1u << i;
	}
	if (!strcmp(type, "goroutineleak"))
		kinds |= 1u << STORE_KIND_GOROUTINE;
	return kinds;
}

static bool take_asked(const struct pprof_names *p, const struct store_kind_info *k,
		       struct pprof_kind *out)
{
	const uint32_t times = 1u << STORE_KIND_CPU | 1u << STORE_KIND_WALLCLOCK;

	if (k->kind == STORE_KIND_CPU && !(kinds_of_default(p) & ~times))
		return take_any_as_cpu(p, out);
	if (take(p, k, k->pprof_n, k->pprof_value, out))
		return true;
	if (k->kind == STORE_KIND_GOROUTINE) /* those of Go that leak are goroutines */
		return take(p, k, "goroutineleak", "goroutineleak", out);
	return k->sized && take(p, k, "objects", "space", out);
}

static uint32_t decide(const struct pprof_names *p, uint32_t kinds)
{
	const uint32_t locks =
		1u << STORE_KIND_MUTEX | 1u << STORE_KIND_BLOCK | 1u << STORE_KIND_JAVALOCK;

	for (enum store_kind i = 1; i < STORE_KINDS; i++)
		if (kinds & 1u << i && said_by_comment(p, store_kind_info(i)))
			return 1u << i;
	if (kinds == locks && by_leaves(p))
		return 1u << by_leaves(p);
	if (kinds & 1u << STORE_KIND_EXCEPTION) /* of any language; Java's say so */
		kinds &= ~(1u << STORE_KIND_JAVAEXCEPTION);
	return kinds;
}

/* --- refusals --- */

static void list_types(const struct pprof_names *p, struct strbuf *out)
{
	for (size_t i = 0; i < p->n_types && i < 6; i++)
		strbuf_addf(out, "%s%.60s (%.30s)", i ? ", " : "", p->types[i].type,
			    p->types[i].unit);
}

static int refuse_ambiguous(uint32_t kinds, const char *holds, const char *name, struct err *e)
{
	struct strbuf may cleanup_strbuf = STRBUF_INIT, fix cleanup_strbuf = STRBUF_INIT;

	for (uint32_t left = kinds; left; left &= left - 1) {
		const struct store_kind_info *k =
			store_kind_info((enum store_kind)__builtin_ctz(left));

		strbuf_addf(&may, "%s%s (%s)", left == kinds ? "" : " or ", k->name, k->what);
		strbuf_addf(&fix, "%s--type %s", left == kinds ? "" : "    ", k->name);
	}
	err_set(e, -EINVAL, EXIT_USAGE,
		"%.300s holds %.200s, which may be %s, and it does not say which", name, holds,
		strbuf_str(&may));
	err_fix(e, "%s", strbuf_str(&fix));
	return -EINVAL;
}

static int refuse(const struct pprof_names *p, const struct store_kind_info *asked,
		  const char *holds, const char *name, struct err *e)
{
	bool time = false;

	for (size_t i = 0; i < p->n_types; i++)
		time |= scale_of(p->types[i].unit, STORE_TIME) > 0;
	if (asked) {
		err_set(e, -EINVAL, EXIT_USAGE,
			"%.300s has no values of --type %s (%s, %s): it holds %.200s", name,
			asked->name, asked->pprof_n, asked->pprof_value, holds);
		err_fix(e, "sonde import %.200s (without --type the file decides)", name);
	} else {
		err_set(e, -EINVAL, EXIT_USAGE,
			"%.300s holds %.200s: a store has no such kind of value", name, holds);
		err_fix(e,
			time ? "--type cpu (takes its time for CPU time)    go tool pprof -top %.200s" :
			       "go tool pprof -top %.200s",
			name);
	}
	return -EINVAL;
}

static int choose(const struct pprof_names *p, enum store_kind asked, const char *name,
		  struct pprof_kind *out, struct err *e)
{
	struct strbuf holds cleanup_strbuf = STRBUF_INIT;
	uint32_t kinds;

	list_types(p, &holds);
	if (!p->n_types)
		return err_set(e, -EBADMSG, EXIT_USAGE,
			       "%.300s is not a readable pprof profile: it has no sample type",
			       name);
	if (asked)
		return take_asked(p, store_kind_info(asked), out) ?
			       0 :
			       refuse(p, store_kind_info(asked), strbuf_str(&holds), name, e);
	kinds = decide(p, kinds_of_default(p));
	if (!kinds && cycles_of(p) != SIZE_MAX && take_counted(p, cycles_of(p), out))
		return 0;
	if (kinds & (kinds - 1))
		return refuse_ambiguous(kinds, strbuf_str(&holds), name, e);
	if (!kinds || !take_asked(p, store_kind_info((enum store_kind)__builtin_ctz(kinds)), out))
		return refuse(p, NULL, strbuf_str(&holds), name, e);
	return 0;
}

/* A period of another type than the value (a number of cycles, a contention) is not the value's
 * period. */
static uint64_t period_of(const struct pprof_names *p, const struct pprof_kind *k)
{
	const bool has = k->kind->sized || (k->kind->kind == STORE_KIND_CPU && k->timed);
	const double period =
		has ? scale_of(p->period_type.unit, k->kind->unit_value) * (double)p->period : 0;

	return period < 1e18 ? (uint64_t)period : 0;
}

int pprof_kind_choose(const struct pprof_names *p, enum store_kind asked, const char *name,
		      struct pprof_kind *out, struct err *e)
{
	int rc = choose(p, asked, name, out, e);

	if (!rc)
		out->period = period_of(p, out);
	return rc;
}
