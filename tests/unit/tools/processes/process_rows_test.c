/* SPDX-License-Identifier: Apache-2.0 */
/* procs: rows of processes and of containers from one fold. */
#include <errno.h>
#include <string.h>

#include "schema/base/array.h"
#include "tests/unit/test.h"
#include "tools/processes/process_rows.h"

static struct fold_frame frames[] = {{.name = "root", .module = ""},
				     {.name = "parse", .module = "app"},
				     {.name = "serve", .module = "app"},
				     {.name = "parse", .module = "app", .line = 9}};
static struct fold_node nodes[] = {{0}, {.frame = 1}, {.frame = 2}, {.frame = 3}};
/* clang-format off */
static struct fold_process processes[] = {
	{.pid = 30, .comm = "web", .exe = "", .container = "shop", .container_id = "aa", .ns = 40, .samples = 4, .start_ns = 3},
	{.pid = 20, .comm = "db", .exe = "", .container = "shop", .container_id = "aa", .ns = 50, .samples = 5, .start_ns = 1},
	{.pid = 10, .comm = "make", .exe = "", .container = "", .container_id = "", .ns = 70, .samples = 7, .start_ns = 2},
	{.pid = 40, .comm = "idle", .exe = "", .container = "", .container_id = ""},
	{.pid = 50, .comm = "job", .exe = "", .container = "", .container_id = "bb", .ns = 10, .samples = 1, .start_ns = 4},
};
/* clang-format on */
/* web is 25 ns in parse by two lines, 15 in serve; make is half without a stack */
static struct fold_leaf leaves[] = {
	{.node = 1, .process = 0, .ns = 12}, {.node = 2, .process = 0, .ns = 15},
	{.node = 3, .process = 0, .ns = 13}, {.node = 2, .process = 1, .ns = 50},
	{.node = 0, .process = 2, .ns = 40}, {.node = 1, .process = 2, .ns = 30},
	{.node = 0, .process = 4, .ns = 10},
};
static const struct fold host = {.frames = frames,
				 .n_frames = 4,
				 .nodes = nodes,
				 .n_nodes = 4,
				 .processes = processes,
				 .n_processes = 5,
				 .leaves = leaves,
				 .n_leaves = 7};

TEST(each_process_has_a_row_and_the_function_that_it_was_in_most)
{
	struct process_rows p;

	process_rows_init(&p, &host, PROCESS_ROWS_BY_PROCESS);
	assert_int_equal(p.n, 4); /* idle had no sample */
	assert_int_equal(p.rows[0].who->pid, 10);
	assert_int_equal(p.rows[0].ns, 70);
	assert_string_equal(frames[p.rows[0].frame].name, "parse");
	assert_int_equal(p.rows[0].frame_ns, 30);
	assert_int_equal(p.rows[2].who->pid, 30);
	assert_string_equal(frames[p.rows[2].frame].name,
			    "parse"); /* its two lines are one function */
	assert_int_equal(p.rows[2].frame_ns, 25);
	assert_int_equal(p.rows[3].frame_ns, 0);
	process_rows_release(&p);
}

TEST(containers_add_up_and_what_runs_outside_is_one_row)
{
	struct process_rows p;

	process_rows_init(&p, &host, PROCESS_ROWS_BY_CONTAINER);
	assert_int_equal(p.n, 3);
	assert_string_equal(p.rows[0].container, "shop");
	assert_int_equal(p.rows[0].ns, 90);
	assert_int_equal(p.rows[0].samples, 9);
	assert_int_equal(p.rows[0].n_processes, 2);
	assert_string_equal(p.rows[0].who->comm, "db");
	assert_string_equal(frames[p.rows[0].frame].name, "serve");
	assert_int_equal(p.rows[0].frame_ns, 50); /* of db alone, which is named with it */
	assert_string_equal(p.rows[1].container, "[host]");
	assert_string_equal(p.rows[2].container, "bb"); /* no name is known: its id */
	process_rows_release(&p);
}

TEST(rows_go_by_the_key_asked_for_and_an_unknown_key_is_told_which_there_are)
{
	static const struct {
		const char *key;
		uint32_t first;
	} keys[] = {{"cpu", 10}, {"pid", 10}, {"name", 20}, {"start", 20}};
	struct err e = {0};
	struct process_rows p;

	process_rows_init(&p, &host, PROCESS_ROWS_BY_PROCESS);
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		assert_int_equal(process_rows_sort(&p, keys[i].key, &e), 0);
		assert_int_equal(p.rows[0].who->pid, keys[i].first);
	}
	assert_true(process_rows_sort(&p, "colour", &e) < 0);
	assert_int_equal(e.exit, EXIT_USAGE);
	assert_non_null(strstr(e.what, "start"));
	process_rows_release(&p);
}

TEST(nobody_ran_is_no_row)
{
	static const struct fold nothing = {
		.frames = frames, .n_frames = 1, .nodes = nodes, .n_nodes = 1};
	struct process_rows p;

	process_rows_init(&p, &nothing, PROCESS_ROWS_BY_CONTAINER);
	assert_int_equal(p.n, 0);
	process_rows_release(&p);
}

TEST(what_else_was_recorded_finds_its_row_and_brings_those_without_cpu_time)
{
	/* clang-format off */
	struct fold_process waits[] = {
		{.pid = 20, .comm = "db", .exe = "", .container_id = "aa", .ns = 9, .start_ns = 1},
		{.pid = 20, .comm = "db", .exe = "", .container_id = "aa", .ns = 99, .start_ns = 7}, /* another of that pid */
		{.pid = 60, .comm = "cache", .exe = "", .container_id = "", .ns = 5, .start_ns = 1},
	};
	/* clang-format on */
	struct fold offcpu = {
		.processes = waits, .n_processes = 3, .kind = store_kind_info(STORE_KIND_OFFCPU)};
	struct procs_more more = {.fold = {&offcpu}, .n = 1};
	struct err e = {0};
	struct process_rows p;

	process_rows_init(&p, &host, PROCESS_ROWS_BY_PROCESS);
	process_rows_add(&p, &more);
	assert_int_equal(p.n, 4);
	assert_int_equal(p.rows[1].who->pid, 20);
	assert_int_equal(p.rows[1].more[0], 9);
	assert_int_equal(process_rows_sort(&p, "inuse", &e), -ENODATA);
	assert_int_equal(process_rows_sort(&p, "offcpu", &e), 0);
	assert_int_equal(p.n, 6);
	assert_int_equal(p.rows[0].who->start_ns, 7);
	assert_int_equal(p.rows[0].ns, 0);
	assert_int_equal(p.rows[1].more[0], 9);
	assert_int_equal(p.rows[2].who->pid, 60);
	assert_int_equal(p.rows[3].who->pid, 10); /* the rest by CPU time */
	process_rows_release(&p);
}

/* A pid that was used again: the one that lived when the child began. */
TEST(a_parent_is_the_last_that_had_the_pid_before_the_child_began)
{
	/* clang-format off */
	static struct fold_process all[] = {
		{.pid = 5, .comm = "later", .exe = "", .container = "", .container_id = "", .ns = 1, .samples = 1, .start_ns = 90},
		{.pid = 5, .comm = "first", .exe = "", .container = "", .container_id = "", .ns = 1, .samples = 1, .start_ns = 10},
		{.pid = 5, .comm = "second", .exe = "", .container = "", .container_id = "", .ns = 1, .samples = 1, .start_ns = 40},
		{.pid = 9, .ppid = 5, .comm = "child", .exe = "", .container = "", .container_id = "", .ns = 1, .samples = 1, .start_ns = 50},
		{.pid = 9, .ppid = 9, .comm = "own", .exe = "", .container = "", .container_id = "", .ns = 1, .samples = 1, .start_ns = 60},
		{.pid = 7, .ppid = 6, .comm = "orphan", .exe = "", .container = "", .container_id = "", .ns = 1, .samples = 1, .start_ns = 50},
	};
	/* clang-format on */
	static const struct fold f = {
		.nodes = nodes, .n_nodes = 1, .processes = all, .n_processes = 6};
	struct process_rows p;

	process_rows_init(&p, &f, PROCESS_ROWS_BY_PROCESS);
	assert_ptr_equal(process_rows_parent(&p, &all[3]), &all[2]);
	assert_ptr_equal(process_rows_parent(&p, &all[4]), &all[3]); /* not itself */
	assert_null(process_rows_parent(&p, &all[5]));
	process_rows_release(&p);
}
