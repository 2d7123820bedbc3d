/* SPDX-License-Identifier: Apache-2.0 */
/* hottest: the end of a recording names containers and commands, not their single processes. */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/test.h"
#include "tools/record/hottest.h"

#define MANY 200

static struct fold_frame frames[] = {{.name = "root", .module = ""},
				     {.name = "parse", .module = "app"},
				     {.name = "serve", .module = "app"},
				     {.name = "spin", .module = "app"}};
static struct fold_node nodes[] = {{0}, {.frame = 1}, {.frame = 2}, {.frame = 3}};
static struct fold_process processes[MANY + 4];
static struct fold_leaf leaves[MANY + 4];

static void add(struct fold *f, struct fold_process p, uint32_t node)
{
	processes[f->n_processes] = p;
	leaves[f->n_leaves++] =
		(struct fold_leaf){.node = node, .process = (uint32_t)f->n_processes++, .ns = p.ns};
}

static struct fold host(void)
{
	struct fold f = {.frames = frames,
			 .n_frames = 4,
			 .nodes = nodes,
			 .n_nodes = 4,
			 .processes = processes,
			 .leaves = leaves,
			 .to_ns = 1000000};

	add(&f, (struct fold_process){.pid = 7, .comm = "burn", .ns = 300000}, 3);
	for (uint32_t i = 0; i < MANY; i++)
		add(&f, (struct fold_process){.pid = 100 + i, .comm = "cc1", .ns = 2500}, 1);
	add(&f, (struct fold_process){.pid = 500, .comm = "sh", .container = "web", .ns = 100000},
	    1);
	add(&f, (struct fold_process){.pid = 501, .comm = "cc1", .container = "web", .ns = 150000},
	    2);
	add(&f, (struct fold_process){.pid = 600, .comm = "sonde-cpu", .ns = 900000, .self = true},
	    3);
	return f;
}

TEST(processes_of_one_command_or_container_are_one_line)
{
	struct fold f = host();
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	assert_string_equal(hottest_print(&f, out), "cc1");
	fclose(out);
	assert_string_equal(text,
			    "  hottest  cc1                200 procs   0.50 cores  parse 100 %\n"
			    "           burn               pid 7       0.30 cores  spin 100 %\n"
			    "           web                2 procs     0.25 cores  serve 60 %\n");
	free(text);
}

TEST(a_recording_in_which_nothing_ran_names_nobody)
{
	struct fold f = {.to_ns = 1};
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	assert_null(hottest_print(&f, out));
	fclose(out);
	assert_string_equal(text, "");
	free(text);
}
