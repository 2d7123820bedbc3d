/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/checks/checkslo.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/cli/quantity.h"
#include "schema/base/mem.h"

#define WHICH \
	"side = 'server' AND (:service = '' OR service = :service) AND (:container = '' OR container = :container) AND (:operation = '' OR operation = :operation)"

/* asked(ts, n, bad) of the long window, then both rates. */
#define RATES(what_)                                                                                                                                \
	", rates AS (SELECT sum(n) AS n, sum(bad) AS bad, sum(bad) / (sum(n) * :budget) AS long,"                                                   \
	" sum(CASE WHEN ts >= :to - 60 * :short THEN bad END) / (sum(CASE WHEN ts >= :to - 60 * :short THEN n END) * :budget) AS short FROM asked)" \
	" SELECT :slo AS subject, round(min(long, short), 1) AS value, printf('%d of %d requests " what_                                            \
	" in %d min: %.1f times as many as the budget has, %.1f times in the last %d min',"                                                         \
	" bad, n, :for, long, short, :short) AS text FROM rates WHERE n >= :least AND long >= :threshold AND short >= :threshold;"

static const char AVAILABILITY[] =
	"WITH asked AS (SELECT ts, requests AS n, errors AS bad FROM requests WHERE ts >= :from AND ts < :to AND " WHICH
	")" RATES(
		"failed") "SELECT service, operation, status, sum(errors) AS failed FROM requests WHERE ts >= :from AND ts < :to AND errors > 0 AND " WHICH
			  " GROUP BY 1, 2, 3 ORDER BY failed DESC LIMIT 5;";
static const char LATENCY[] =
	"WITH steps AS (SELECT r.ts, json_extract(r.hist, '$[0]') + j.key - 1 AS k, j.value AS n FROM requests r, json_each(r.hist) j"
	" WHERE r.ts >= :from AND r.ts < :to AND r.hist IS NOT NULL AND j.key > 0 AND " WHICH "),"
	" asked AS (SELECT ts, n, CASE WHEN (CASE WHEN k < 8 THEN k ELSE (8 + k % 8) << (k / 8 - 1) END) >= :latency_ns THEN n ELSE 0 END AS bad FROM steps)" RATES(
		"were slow") "SELECT service, operation, sum(requests) AS requests, max(max_ns) / 1000000 AS max_ms FROM requests WHERE ts >= :from AND ts < :to AND " WHICH
			     " GROUP BY 1, 2 ORDER BY 4 DESC LIMIT 5;";

static const struct alert {
	const char *name;
	double rate;
	int long_min, short_min;
	bool critical;
} ALERTS[] = {{"fast", 14.4, 60, 5, true}, {"slow", 6, 360, 30, false}};

struct slo {
	char service[CHECK_TEXT], container[CHECK_TEXT], operation[CHECK_TEXT];
	double availability, latency_target; /* percent; 0: none */
	int64_t latency_ns;
};

/* ---- its lines ---- */

static const char *percent_set(const char *value, double *out)
{
	char *end;

	*out = strtod(value, &end);
	if (end == value || (*end && strcmp(end, "%") && strcmp(end, " %")) ||
	    !(*out > 0 && *out < 100))
		return "a target must be a percentage between 0 and 100, such as 99.9";
	return NULL;
}

static const char *key_set(struct slo *s, const char *key, const char *value)
{
	const struct {
		const char *key;
		char *to;
	} texts[] = {
		{"service", s->service}, {"container", s->container}, {"operation", s->operation}};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		if (strcmp(texts[i].key, key) != 0)
			continue;
		snprintf(texts[i].to, CHECK_TEXT, "%s", value);
		return strlen(value) < CHECK_TEXT ? NULL : "this is too long";
	}
	if (!strcmp(key, "availability"))
		return percent_set(value, &s->availability);
	if (!strcmp(key, "latency-target"))
		return percent_set(value, &s->latency_target);
	if (strcmp(key, "latency") != 0)
		return "unknown key (known: availability, latency, latency-target, service, container, operation)";
	return quantity_ns(value, &s->latency_ns) ? "latency must be a time, such as 300ms" : NULL;
}

/* "key = value"; lines that are empty or only a comment are skipped. NULL: accepted. */
static const char *line_take(struct slo *s, char *line)
{
	char *key = line + strspn(line, " \t"), *value, *end = line + strcspn(line, "#\r");

	*end = '\0';
	while (end > key && strchr(" \t", end[-1]))
		*--end = '\0';
	if (!*key)
		return NULL;
	value = strchr(key, '=');
	if (!value)
		return "a line must be key = value";
	for (end = value; end > key && strchr(" \t", end[-1]); end--)
		;
	value += 1 + strspn(value + 1, " \t");
	*end = '\0';
	return *value ? key_set(s, key, value) : "the value is missing";
}

static int bad_line(const char *origin, size_t line, const char *why, struct err *e)
{
	err_set(e, -EINVAL, EXIT_USAGE, "%.300s:%zu: %s", origin, line, why);
	err_fix(e, "sonde help check");
	return -EINVAL;
}

static const char *slo_whole(struct slo *s)
{
	if (s->latency_target > 0 && !s->latency_ns)
		return "latency-target needs latency";
	if (!(s->availability > 0) && !s->latency_ns)
		return "availability or latency is missing";
	s->latency_target = s->latency_ns && !(s->latency_target > 0) ? 99 : s->latency_target;
	return NULL;
}

/* ---- its checks ---- */

static void text_bind(struct checkfile *c, const char *name, const char *text)
{
	struct check_bind *b = &c->binds[c->n_binds++];

	snprintf(b->name, sizeof(b->name), "%s", name);
	snprintf(b->text, sizeof(b->text), "%s", text);
	b->is_text = true;
}

static void number_bind(struct checkfile *c, const char *name, double number)
{
	struct check_bind *b = &c->binds[c->n_binds++];

	snprintf(b->name, sizeof(b->name), "%s", name);
	b->number = number;
}

static void check_make(struct checkfile *c, const char *name, const struct slo *s,
		       const struct alert *a, bool latency)
{
	double target = latency ? s->latency_target : s->availability;

	*c = (struct checkfile){.critical = a->critical,
				.threshold = a->rate,
				.for_min = a->long_min,
				.window_min = a->long_min,
				.own = true};
	snprintf(c->name, sizeof(c->name), "%s-%s-%s", name, latency ? "latency" : "availability",
		 a->name);
	snprintf(c->summary, sizeof(c->summary), "%s: %s", name,
		 latency ? "too many requests are slower than the target allows" :
			   "more requests fail than the target allows");
	snprintf(c->threshold_is, sizeof(c->threshold_is),
		 "times the failures that %g %% allows, over %d and over %d minutes", target,
		 a->long_min, a->short_min);
	snprintf(c->unit, sizeof(c->unit), "x");
	snprintf(c->needs, sizeof(c->needs), "l7");
	snprintf(c->next, sizeof(c->next), "sonde requests --side server%s",
		 latency ? " --slowest" : " --failed");
	text_bind(c, ":slo", name);
	text_bind(c, ":service", s->service);
	text_bind(c, ":container", s->container);
	text_bind(c, ":operation", s->operation);
	number_bind(c, ":budget", (100 - target) / 100);
	number_bind(c, ":short", a->short_min);
	number_bind(c, ":least", CHECKSLO_LEAST);
	number_bind(c, ":latency_ns", (double)s->latency_ns);
	c->sql = mem_strdup(latency ? LATENCY : AVAILABILITY);
}

static bool is_name(const char *name)
{
	size_t n = strlen(name);

	return n && n <= 40 && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_") == n;
}

int checkslo_parse(const char *name, const char *origin, const char *text, size_t len,
		   struct checkfile *out, size_t *n, struct err *e)
{
	cleanup_free char *copy = mem_strndup(text, len);
	struct slo s = {0};
	const char *why = is_name(name) ? strlen(copy) == len ? NULL : "it contains a NUL byte" :
					  "its name may contain a-z, 0-9, - and _, at most 40";
	size_t line = 1;

	for (char *at = copy; !why && *at; line++) {
		char *end = at + strcspn(at, "\n");
		const bool last = !*end;

		*end = '\0';
		why = line_take(&s, at);
		if (why || last)
			break;
		at = end + 1;
	}
	if (!why)
		why = slo_whole(&s);
	if (why)
		return bad_line(origin, line, why, e);
	*n = 0;
	for (size_t i = 0; i < ARRAY_SIZE(ALERTS); i++) {
		if (s.availability > 0)
			check_make(&out[(*n)++], name, &s, &ALERTS[i], false);
		if (s.latency_ns)
			check_make(&out[(*n)++], name, &s, &ALERTS[i], true);
	}
	return 0;
}
