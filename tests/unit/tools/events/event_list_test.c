/* SPDX-License-Identifier: Apache-2.0 */
/* event_list: repeated events are one row; an event stored twice is listed once. */
#include <string.h>

#include "schema/base/clock.h"
#include "schema/base/mem.h"
#include "tests/unit/test.h"
#include "tools/events/event_list.h"

static struct event_list all;
static size_t cap;

static void put(int64_t at_s, const char *kind, const char *subject, const char *name,
		const char *detail, uint32_t pid)
{
	struct listed_event x = {.first_ns = at_s * NSEC_PER_SEC,
				 .last_ns = at_s * NSEC_PER_SEC,
				 .kind = mem_strdup(kind),
				 .subject = mem_strdup(subject),
				 .name = mem_strdup(name),
				 .detail = mem_strdup(detail),
				 .which = mem_strdup(""),
				 .comm = mem_strdup(""),
				 .container = mem_strdup(strcmp(subject, "container") ? "" : name),
				 .by = mem_strdup(""),
				 .pid = pid,
				 .n = 1,
				 .lived_ns = strcmp(subject, "process") ? -1 : 60 * NSEC_PER_SEC};

	mem_grow(all.rows, all.n, cap);
	all.rows[all.n++] = x;
}

static int end(void **state)
{
	(void)state;
	event_list_release(&all);
	cap = 0;
	return 0;
}

TEST_WITH(a_restart_loop_is_one_row_with_how_often_and_how_it_ended, NULL, end)
{
	put(90, "started", "container", "web", "", 1);
	for (int i = 0; i < 21; i++) {
		put(100 + 60 * i, "stopped", "container", "web",
		    i == 3 ? "signal 9 (KILL)" : "exit 1", 0);
		put(101 + 60 * i, "restarted", "container", "web", "", 0);
	}
	put(130, "started", "container", "db", "", 7);
	event_list_fold(&all, false);
	assert_int_equal(all.n, 2);
	assert_string_equal(all.rows[0].kind, "restart loop");
	assert_string_equal(all.rows[0].detail, "exit 1");
	assert_int_equal(all.rows[0].n, 21);
	assert_true(listed_event_is_bad(&all.rows[0]));
	assert_string_equal(all.rows[1].name, "db");
}

TEST_WITH(two_restarts_are_no_loop_and_neither_are_those_far_apart, NULL, end)
{
	for (int i = 0; i < 4; i++)
		put(100 + 3600 * i, "restarted", "container", "web", "", 0);
	put(200, "restarted", "container", "web", "", 0);
	event_list_fold(&all, false);
	assert_int_equal(all.n,
			 4); /* the two within a quarter of an hour are one row, and no loop */
	assert_string_equal(all.rows[0].kind, "restarted");
	assert_int_equal(all.rows[0].n, 2);
}

TEST_WITH(the_end_of_a_containers_process_is_told_by_the_container, NULL, end)
{
	put(100, "killed", "process", "tail", "signal 9", 77);
	put(100, "stopped", "container", "web", "signal 9 (KILL)", 77);
	put(100, "killed", "process", "other", "signal 9", 78);
	event_list_fold(&all, true);
	assert_int_equal(all.n, 2);
	assert_string_equal(all.rows[0].subject, "container");
	assert_string_equal(all.rows[1].name, "other");
}

TEST_WITH(a_processs_row_of_two_segments_is_one_and_equal_kills_are_a_count, NULL, end)
{
	put(100, "killed", "process", "tail", "signal 9", 77);
	put(100, "killed", "process", "tail", "signal 9", 77);
	put(110, "killed", "process", "tail", "signal 9", 79);
	event_list_fold(&all, false);
	assert_int_equal(all.n, 1);
	assert_int_equal(all.rows[0].n, 2);
	assert_int_equal(all.rows[0].pid, 0);
}

TEST_WITH(what_failed_early_on_is_told_only_where_each_is_asked_for, NULL, end)
{
	put(100, "failed", "process", "grep", "exit 1", 5);
	all.rows[0].lived_ns = NSEC_PER_SEC;
	event_list_fold(&all, true);
	assert_int_equal(all.n, 1);
	event_list_fold(&all, false);
	assert_int_equal(all.n, 0);
}
