/* SPDX-License-Identifier: Apache-2.0 */
/* tally: of a writer that is killed, all that its programs have seen is stored or on record as
 * lost, what never reached the writer too. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "schema/store/files/tally.h"
#include "tests/unit/schema/store/fixture.h"
#include "tests/unit/test.h"

#define PERIOD 10101010

/* In a child: `stored` and `held` of `offered` events reach the writer, which is killed with the
 * latter. `ring`: lost before it; `besides`: events that the programs did not see. */
static pid_t killed_writer(const struct fixture *f, uint64_t offered, uint64_t stored,
			   uint64_t held, uint64_t ring, uint64_t besides)
{
	pid_t child = fork();

	if (!child) {
		struct store_writer *w = fixture_writer(f, 0);
		uint32_t run = fixture_run(w, STORE_SCOPE_HOST, 1, PERIOD, T0_S * NS);

		for (uint64_t i = 0; i < stored; i++)
			fixture_add(w, run, 100, 1, T0_S * NS, 1);
		store_loss(w, run, T0_S * NS, "ring", ring);
		store_loss(w, run, T0_S * NS, "throttled", besides);
		store_flush(w);
		if (!fixture_wait_stored(w, stored))
			_exit(1);
		for (uint64_t i = 0; i < held; i++)
			fixture_add(w, run, 100, 1, T0_S * NS, 1);
		store_run_offered(w, run, offered);
		kill(getpid(), SIGKILL);
	}
	waitpid(child, NULL, 0);
	return child;
}

static int64_t lost(const struct fixture *f, const char *reason)
{
	char sql[128];

	snprintf(sql, sizeof(sql), "SELECT coalesce(sum(lost), 0) FROM loss WHERE reason = '%s'",
		 reason);
	return fixture_sql_all(f, sql);
}

STORE_TEST(what_a_killed_writers_programs_had_seen_is_stored_or_lost)
{
	struct fixture *f = *state;
	uint64_t seen = 0, accounted = 0;
	pid_t pid = killed_writer(f, 1000, 40, 5, 30, 7);

	assert_int_equal(tally_missing(f->dir, pid, &seen, &accounted), 0);
	assert_int_equal(seen, 1007);
	assert_int_equal(accounted, 40 + 30 + 7);
	fixture_close(fixture_writer(f, 0));
	assert_int_equal(fixture_sql_all(f, "SELECT sum(samples) FROM cpu_samples"), 40);
	assert_int_equal(lost(f, "ring"), 30);
	assert_int_equal(lost(f, "throttled"), 7);
	assert_int_equal(lost(f, "killed"), 1000 - 40 - 30);
	assert_int_equal(tally_missing(f->dir, pid, &seen, &accounted), -2);
}

STORE_TEST(without_a_word_on_what_was_offered_what_the_writer_held_is_lost)
{
	struct fixture *f = *state;

	killed_writer(f, 0, 40, 5, 30, 7);
	fixture_close(fixture_writer(f, 0));
	assert_int_equal(fixture_sql_all(f, "SELECT sum(samples) FROM cpu_samples"), 40);
	assert_int_equal(lost(f, "killed"), 5);
}
