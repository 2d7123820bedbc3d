/* SPDX-License-Identifier: Apache-2.0 */
/* totals, their file and their text: counters never fall, names are bounded, what is read back is
 * what was written. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/expose.h"
#include "export/spread.h"
#include "export/statetext.h"
#include "schema/base/array.h"
#include "tests/unit/test.h"

static unsigned metric(const char *name)
{
	unsigned part;
	int found = metric_find(name, strlen(name), &part);

	assert_true(found >= 0);
	return (unsigned)found;
}

static void add(struct totals *t, const char *name, const char *labels, int64_t ts, uint64_t value,
		bool settled)
{
	const struct totals_value v = {.metric = metric(name),
				       .labels = labels,
				       .other = "container=\"~other\"",
				       .ts = ts,
				       .value = value};

	totals_add(t, &v, settled);
}

/* What is shown of a series; UINT64_MAX: nothing. */
static uint64_t shown(struct totals *t, const char *name, const char *labels)
{
	size_t n;
	struct totals_row *rows = totals_rows(t, &n);
	uint64_t value = UINT64_MAX;

	for (size_t i = 0; i < n; i++)
		if (rows[i].metric == metric(name) && !strcmp(rows[i].labels, labels))
			value = rows[i].shown;
	free(rows);
	return value;
}

TEST(a_counter_is_what_settled_and_what_is_open)
{
	struct totals t;

	totals_init(&t, 100);
	add(&t, "sonde_events_total", "a=\"1\"", 1000, 5, false);
	add(&t, "sonde_events_total", "a=\"1\"", 1010, 7, false);
	totals_close(&t, 1010);
	assert_int_equal(shown(&t, "sonde_events_total", "a=\"1\""), 12);
	add(&t, "sonde_events_total", "a=\"1\"", 1000, 5, true);
	totals_close(&t, 1010);
	assert_int_equal(shown(&t, "sonde_events_total", "a=\"1\""), 12);
	totals_reopen(&t);
	add(&t, "sonde_events_total", "a=\"1\"", 1010, 9, false);
	totals_close(&t, 1020);
	assert_int_equal(shown(&t, "sonde_events_total", "a=\"1\""), 14);
	totals_release(&t);
}

TEST(a_counter_never_falls)
{
	struct totals t;

	totals_init(&t, 100);
	add(&t, "sonde_events_total", "", 1000, 12, false);
	totals_close(&t, 1000);
	assert_false(t.clamped);
	totals_reopen(&t);
	add(&t, "sonde_events_total", "", 1000, 11, false);
	totals_close(&t, 1000);
	assert_int_equal(shown(&t, "sonde_events_total", ""), 12);
	assert_true(t.clamped);
	totals_release(&t);
}

TEST(a_gauge_is_its_latest_value_and_ends)
{
	struct totals t;

	totals_init(&t, 100);
	add(&t, "sonde_container_tasks", "", 1010, 3, false);
	add(&t, "sonde_container_tasks", "", 1000, 9, false);
	totals_close(&t, 1010);
	assert_int_equal(shown(&t, "sonde_container_tasks", ""), 3);
	totals_close(&t, 1010 + TOTALS_GAUGE_S + 1);
	assert_int_equal(shown(&t, "sonde_container_tasks", ""), UINT64_MAX);
	totals_release(&t);
}

TEST(beyond_the_limit_names_are_one_and_nothing_is_lost)
{
	struct totals t;

	totals_init(&t, 10);
	for (int i = 0; i < 100; i++) {
		char labels[32];

		snprintf(labels, sizeof(labels), "container=\"c%d\"", i);
		add(&t, "sonde_events_total", labels, 1000, 1, false);
		add(&t, "sonde_container_tasks", labels, 1000, 1, false);
	}
	totals_close(&t, 1000);
	assert_int_equal(t.n, 11);
	assert_int_equal(shown(&t, "sonde_events_total", "container=\"~other\""), 95);
	assert_int_equal(t.folded, 0);
	add(&t, "sonde_events_total", "container=\"c99\"", 1000, 1, true);
	assert_int_equal(t.folded, 1);
	totals_release(&t);
}

TEST(what_is_read_back_is_what_was_written)
{
	struct strbuf first cleanup_strbuf = STRBUF_INIT, second cleanup_strbuf = STRBUF_INIT;
	struct totals t, u;

	totals_init(&t, 100);
	totals_init(&u, 100);
	t.begun_ts = 900;
	t.settled_ts[2] = 950;
	add(&t, "sonde_events_total", "a=\"x y\\\"\",b=\"\\n\"", 1000, 5, true);
	add(&t, "sonde_container_tasks", "", 1000, 4, false);
	totals_close(&t, 1000);
	state_print(&t, &first);
	assert_int_equal(state_parse(&u, strbuf_str(&first), first.len), 0);
	state_print(&u, &second);
	assert_string_equal(strbuf_str(&first), strbuf_str(&second));
	/* whatever is left of it: whole, or nothing */
	for (size_t cut = 0; cut < first.len; cut++) {
		struct totals v;

		totals_init(&v, 100);
		if (state_parse(&v, strbuf_str(&first), cut))
			assert_int_equal(v.n + (v.begun_ts != 0), 0);
		totals_release(&v);
	}
	totals_release(&t);
	totals_release(&u);
}

TEST(numbers_have_no_digit_too_many)
{
	static const struct {
		uint64_t value;
		unsigned decimals;
		const char *text;
	} cases[] = {{0, 9, "0"},
		     {1500, 3, "1.5"},
		     {1, 9, "0.000000001"},
		     {12000000, 6, "12"},
		     {UINT64_MAX, 0, "18446744073709551615"}};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct strbuf s cleanup_strbuf = STRBUF_INIT;

		metric_value(&s, cases[i].value, cases[i].decimals);
		assert_string_equal(strbuf_str(&s), cases[i].text);
	}
}

TEST(a_histogram_counts_what_lies_below_each_bound)
{
	uint64_t below[METRIC_BOUNDS] = {0}, wide[METRIC_BOUNDS] = {0};

	assert_true(spread_add(below, "[12,3,4,5]", 10,
			       1)); /* 3 below 2^13, 4 below 2^14, 5 below 2^15 */
	assert_int_equal(below[0], 3);
	assert_int_equal(below[1], 12);
	assert_int_equal(below[METRIC_BOUNDS - 1], 12);
	/* of eight steps, 80 is the first of [2^12, 2^13): (8 + 0) << 9 is 4096 */
	assert_true(spread_add(wide, "[80,1,1,1,1,1,1,1,1,1]", 22, 8));
	assert_int_equal(wide[0], 8);
	assert_int_equal(wide[1], 9);
	assert_true(spread_add(wide, "[144,2]", 7, 1)); /* the same step of any other table */
	assert_int_equal(wide[0], 10);
	assert_false(spread_add(below, "[12,3", 5, 1));
	assert_false(spread_add(below, "[]", 2, 1));
	assert_false(spread_add(below, "", 0, 1));
}

TEST(the_text_has_each_metric_once_and_whole_histograms)
{
	const struct update_store about = {.segments = 1};
	struct strbuf out cleanup_strbuf = STRBUF_INIT;
	struct totals t;

	totals_init(&t, 100);
	t.begun_ts = 1;
	add(&t, "sonde_runqueue_wait_seconds", "", 1000, 3, false);
	add(&t, "sonde_container_cpu_seconds_total", "mode=\"user\"", 1000, 1500000, false);
	totals_close(&t, 1000);
	expose(&t, &about, true, &out);
	assert_non_null(strstr(
		strbuf_str(&out),
		"# TYPE sonde_container_cpu_seconds counter\n# UNIT sonde_container_cpu_seconds seconds\n"
		"sonde_container_cpu_seconds_total{mode=\"user\"} 1.5\n"));
	assert_non_null(strstr(strbuf_str(&out),
			       "sonde_runqueue_wait_seconds_bucket{le=\"0.000008191\"} 3\n"));
	assert_non_null(strstr(
		strbuf_str(&out),
		"sonde_runqueue_wait_seconds_bucket{le=\"+Inf\"} 3\nsonde_runqueue_wait_seconds_sum 0\n"
		"sonde_runqueue_wait_seconds_count 3\n"));
	assert_string_equal(strbuf_str(&out) + out.len - 6, "# EOF\n");
	totals_release(&t);
}
