/* SPDX-License-Identifier: Apache-2.0 */
/* What a family says it has added is what the store says it has stored: the difference is told as
 * lost. */
#include <stdio.h>

#include "loaders/lib/bpf/family.h"
#include "loaders/lib/bpf/run/events.h"
#include "schema/facts/host.h"
#include "tests/unit/schema/store/fixture.h"
#include "tests/unit/test.h"

static void lines_put(struct family_host *h, int n)
{
	for (int i = 0; i < n; i++) {
		struct fact_row row = {0};

		fact_put_text(&row, EVENT_LOG_WHICH, "4f1c");
		fact_put(&row, EVENT_LOG_AT, (uint64_t)(T0_S * 1000000));
		fact_put(&row, EVENT_LOG_NTH, (uint64_t)i + 1);
		fact_put_text(&row, EVENT_LOG_LINE, "cannot read config");
		fact_put(&row, EVENT_LOG_CUT, 0);
		event_row_put(h, T0_S * NS, &EVENT_LOG_FACT, &row, -1, NULL);
	}
}

STORE_TEST(the_last_lines_of_a_container_that_failed_are_not_lost)
{
	struct store_writer *w = fixture_writer(*state, 0);
	struct store_writer_stat stat = {0};
	struct err e = {0};
	struct family_host h = {.store = w,
				.run = fixture_run(w, STORE_SCOPE_HOST, 10, 0, T0_S * NS),
				.bucket_s = 10};

	event_put(&h, &(struct event){.kind = "exited",
				      .subject = "container",
				      .name = "web",
				      .which = "4f1c",
				      .utc_ns = T0_S * NS});
	lines_put(&h, 5);
	assert_int_equal(store_writer_end(w, 10000, &stat, &e), 0);
	assert_int_equal(
		fixture_sql(fixture_segment(*state, 0), "SELECT count(*) FROM event_log_row"), 5);
	assert_int_equal(stat.stored, 1);
	assert_int_equal(h.added, stat.stored);
	assert_int_equal(h.refused, 0);
}
