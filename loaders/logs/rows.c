/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/logs/rows.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/lib/bpf/run/events.h"
#include "loaders/lib/bpf/start/target.h"
#include "loaders/lib/host/maps/hostmaps.h"
#include "loaders/lib/host/names/naming.h"
#include "loaders/lib/host/proc/container.h"
#include "loaders/lib/host/proc/containernames.h"
#include "loaders/logs/counts.h"
#include "schema/base/clock.h"
#include "schema/base/mem.h"
#include "schema/facts/logs.h"
#include "schema/store/write/facts.h"

#define NAME_TRIES 20
#define RENAMED_NS (60 * NSEC_PER_SEC)

/* ---- who a source is ---- */

static void name_set(struct tracked_source *s, const char *name)
{
	char *now = mem_strdup(name);

	free(s->name);
	s->name = now;
}

/* A container's name: of its runtime's files. Until it is known, the beginning of its id. */
static void name_find(struct tracked_source *s, int64_t now_ns)
{
	struct container_names names = {0};
	struct container_ref ref = {.runtime = !strcmp(s->kind, "podman") ? "podman" : "docker"};
	char id[16];

	if (!*s->container || !strcmp(s->kind, "cri") ||
	    (s->named ? now_ns - s->named_ns < RENAMED_NS : s->tries >= NAME_TRIES))
		return;
	s->tries++;
	snprintf(ref.id, sizeof(ref.id), "%s", s->container);
	ref.owner = s->uid;
	if (!containernames_find(containernames_docker_root(), "", &ref, &names) && names.name) {
		name_set(s, names.name);
		s->named = true;
		s->named_ns = now_ns;
	} else if (!*s->name) {
		snprintf(id, sizeof(id), "%.12s", s->container);
		name_set(s, id);
	}
	container_names_release(&names);
}

/* The path by which the rules judge a source whose processes were not met. */
static void path_of(const struct tracked_source *s, char *out, size_t size)
{
	if (!*s->container)
		snprintf(out, size, "/system.slice/%.200s", s->name);
	else if (!strcmp(s->kind, "podman"))
		snprintf(out, size, "/machine.slice/libpod-%s.scope", s->container);
	else if (!strcmp(s->kind, "cri"))
		snprintf(out, size, "/kubepods/podx/%s", s->container);
	else
		snprintf(out, size, "/docker/%s", s->container);
}

static bool is_own(const struct tracked_source *s)
{
	return !*s->container && (!strcmp(s->name, "sonded.service") ||
				  !strncmp(s->name, "sonde-", 6) || !strcmp(s->name, "sonded"));
}

static void judge(struct rows *r, struct tracked_source *s)
{
	char path[300];

	path_of(s, path, sizeof(path));
	s->excluded =
		is_own(s) || (strcmp(s->kind, "file") != 0 &&
			      naming_excludes_cgroup(r->h->naming, s->cgroup ? s->cgroup : path));
}

bool rows_wants(struct rows *r, struct tracked_source *s)
{
	name_find(s, clock_boot_ns());
	judge(r, s);
	return !s->excluded && (!r->narrow || s->covered);
}

void rows_meet(struct rows *r, struct hostmaps_process *p)
{
	struct tracked_source *s, *next;
	struct container_ref ref;

	if (!*p->cgroup || !container_parse(p->cgroup, strlen(p->cgroup), &ref))
		return;
	HASH_ITER (hh, r->tracked->sources, s, next) {
		if (!*s->container || strcmp(s->container, ref.id) != 0)
			continue;
		if (!s->cgroup)
			s->cgroup = mem_strndup(p->cgroup, ref.end);
		s->covered = s->covered || target_covers(r->h->target, r->h->maps, p);
	}
}

/* ---- rows ---- */

static int64_t time_of(const struct rows *r, int64_t bucket)
{
	int64_t ns = bucket * NSEC_PER_SEC, now = clock_utc_ns();

	ns = ns < now ? ns : now;
	return ns > r->begun_ns ? ns : r->begun_ns;
}

/* Ids are of an epoch of the store: they are asked for again when it has begun another one. */
static bool put(struct rows *r, const struct tracked_source *s, int64_t utc_ns,
		const struct fact *f, struct fact_row *row, int container, int process,
		struct hostmaps_process *p)
{
	int rc = -ESTALE;

	for (int i = 0; i < 3 && rc == -ESTALE; i++) {
		fact_put(row, container,
			 s->cgroup ? naming_container_at(r->h->naming, s->cgroup) : 0);
		if (process >= 0)
			fact_put(row, process, p ? naming_row(r->h->naming, p) : 0);
		rc = store_fact(r->h->store, r->h->run, utc_ns, f, row);
	}
	r->h->added += rc == 0;
	r->h->refused += rc == -ESTALE;
	return rc == 0;
}

/* What the ring has: how many messages in this second. `pattern` NULL: of this level. */
static void second_put(struct rows *r, const struct tracked_source *s, const struct wire_said *x,
		       const char *pattern)
{
	struct fact_row row = {0};
	int rc = -ESTALE;

	if (!r->h->fine_s)
		return;
	fact_put_text(&row, LOG_SECOND_SOURCE, s->name);
	fact_put_text(&row, LOG_SECOND_LEVEL, LEVEL_NAMES[x->level]);
	fact_put_text(&row, LOG_SECOND_PATTERN, pattern ? pattern : "");
	fact_put(&row, LOG_SECOND_MESSAGES, x->messages);
	for (int i = 0; i < 3 && rc == -ESTALE; i++) {
		fact_put(&row, LOG_SECOND_CONTAINER,
			 s->cgroup ? naming_container_at(r->h->naming, s->cgroup) : 0);
		rc = store_fact_fine(r->h->store, r->h->run, time_of(r, x->bucket),
				     &LOG_SECOND_FACT, &row);
	}
}

/* Rows of seconds become one of the store's bucket, in which a gauge is the last one's. */
static void span_join(const struct rows *r, struct tracked_pattern *p, const struct wire_said *x)
{
	const int64_t bucket = x->bucket - x->bucket % r->h->bucket_s;

	if (p->bucket != bucket || p->level != x->level) {
		p->bucket = bucket;
		p->level = x->level;
		p->first_ns = x->first_ns;
		p->last_ns = x->last_ns;
	}
	p->first_ns = x->first_ns < p->first_ns ? x->first_ns : p->first_ns;
	p->last_ns = x->last_ns > p->last_ns ? x->last_ns : p->last_ns;
}

static void sum_put(struct rows *r, struct tracked_source *s, const struct wire_said *x)
{
	struct fact_row row = {0};

	s->used_ns = clock_boot_ns();
	fact_put_text(&row, LOG_SOURCE, s->name);
	fact_put_text(&row, LOG_LEVEL, LEVEL_NAMES[x->level]);
	fact_put_text(&row, LOG_KIND, s->kind);
	fact_put(&row, LOG_LINES, x->lines);
	fact_put(&row, LOG_MESSAGES, x->messages);
	fact_put(&row, LOG_BYTES, x->bytes);
	if (x->burst)
		fact_put(&row, LOG_BURST, 1);
	if (put(r, s, time_of(r, x->bucket), &LOG_FACT, &row, LOG_CONTAINER, -1, NULL))
		r->lines += x->lines;
	second_put(r, s, x, NULL);
	pulse_lines(&s->pulse, x->lines, x->level >= LEVEL_ERROR ? x->messages : 0, x->burst);
}

static void cut_put(struct rows *r, const struct tracked_source *s, uint64_t n)
{
	struct fact_row row = {0};

	fact_put_text(&row, LOG_SOURCE, s->name);
	fact_put_text(&row, LOG_LEVEL, LEVEL_NAMES[LEVEL_UNKNOWN]);
	fact_put_text(&row, LOG_KIND, s->kind);
	fact_put(&row, LOG_CUTS, n);
	put(r, s, time_of(r, INT64_MAX / NSEC_PER_SEC - 1), &LOG_FACT, &row, LOG_CONTAINER, -1,
	    NULL);
}

static void hit_put(struct rows *r, struct tracked_source *s, const struct wire_said *x)
{
	struct hostmaps_process *p = x->pid ? hostmaps_running(r->h->maps, x->pid) : NULL;
	struct fact_row row = {0};
	struct tracked_pattern *t;

	if (x->pattern >= s->n_patterns || !s->patterns[x->pattern].text)
		return;
	t = &s->patterns[x->pattern];
	span_join(r, t, x);
	if (p && naming_excludes(r->h->naming, p))
		p = NULL;
	if (x->level >= LEVEL_ERROR)
		pulse_hit(&s->pulse, x->pattern, x->messages);
	fact_put_text(&row, LOG_PATTERN_SOURCE, s->name);
	fact_put_text(&row, LOG_PATTERN_LEVEL, LEVEL_NAMES[x->level]);
	fact_put_text(&row, LOG_PATTERN_TEXT, t->text);
	fact_put_text(&row, LOG_PATTERN_SAMPLE, t->sample);
	fact_put(&row, LOG_PATTERN_MESSAGES, x->messages);
	fact_put(&row, LOG_PATTERN_FIRST, t->first_ns > 0 ? (uint64_t)t->first_ns / 1000 : 0);
	fact_put(&row, LOG_PATTERN_LAST, t->last_ns > 0 ? (uint64_t)t->last_ns / 1000 : 0);
	put(r, s, time_of(r, x->bucket), &LOG_PATTERN_FACT, &row, LOG_PATTERN_CONTAINER,
	    LOG_PATTERN_PROCESS, p);
	second_put(r, s, x, t->text);
}

void rows_take(struct rows *r, const struct wire_said *x, const char *const text[2])
{
	struct tracked_source *s;

	if (x->kind == WIRE_PLACE) {
		tracked_place(r->tracked, x);
		return;
	}
	s = x->kind == WIRE_SOURCE && x->source >= WIRE_OWN &&
			    x->source - WIRE_OWN < WIRE_OWN_MOST ?
		    tracked_own(r->tracked, x->source, text[0], text[1]) :
		    tracked_source(r->tracked, x->source);
	if (!s)
		return;
	if (x->kind == WIRE_SOURCE) {
		rows_wants(r, s);
		return;
	}
	if (x->kind == WIRE_PATTERN) {
		tracked_pattern(s, x->pattern, text[0], text[1]);
		return;
	}
	if (s->excluded || (r->narrow && !s->covered))
		return;
	if (x->kind == WIRE_SUM)
		sum_put(r, s, x);
	else if (x->kind == WIRE_HIT)
		hit_put(r, s, x);
	else if (x->kind == WIRE_CUT)
		cut_put(r, s, x->lines);
}

/* ---- events ---- */

static void tell(struct rows *r, const struct tracked_source *s, const char *kind,
		 const char *detail)
{
	const struct event e = {.kind = kind,
				.subject = *s->container               ? "container" :
					   !strcmp(s->kind, "journal") ? "unit" :
									 "log",
				.name = s->name,
				.detail = detail,
				.which = s->container,
				.cause = kind,
				.utc_ns = clock_utc_ns()};

	event_put(r->h, &e);
}

void rows_flushed(struct rows *r, int64_t now_ns)
{
	struct tracked_source *s, *next;
	char detail[300];

	HASH_ITER (hh, r->tracked->sources, s, next) {
		const struct pulse was = s->pulse;
		unsigned int tells = pulse_beat(&s->pulse, now_ns);
		const char *pattern =
			was.pattern < s->n_patterns ? s->patterns[was.pattern].text : NULL;

		if (tells & PULSE_BURST) {
			snprintf(detail, sizeof(detail), "%llu lines",
				 (unsigned long long)was.lines);
			tell(r, s, "log burst", detail);
		}
		if (tells & PULSE_OF_ERRORS) {
			snprintf(detail, sizeof(detail), "%llu errors%s%.200s",
				 (unsigned long long)was.errors,
				 pattern && was.most ? ", most of them: " : "",
				 pattern && was.most ? pattern : "");
			tell(r, s, "log errors", detail);
		}
		pulse_clear(&s->pulse);
		if (s->cuts && !s->excluded && (!r->narrow || s->covered))
			cut_put(r, s, s->cuts);
		s->cuts = 0;
	}
}
