/* SPDX-License-Identifier: Apache-2.0 */
/* naming_container: names of containers, and their instances (namingfakes.h has the fakes). */
#include "schema/base/array.h"
#include "tests/unit/loaders/lib/host/names/namingfakes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ID  "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define ID2 "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"

NAMING_TEST(containers_and_units_come_from_the_cgroup)
{
	proc_a.cgroup =
		"/docker/0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef/x";
	STACK(0, 0, 0);
	assert_int_equal(n_containers, 1);
	assert_string_equal(containers[1].runtime, "docker");
	assert_int_equal(processes[last.process].container, 1);
	proc_a.cgroup = "/system.slice/nginx.service";
	proc_a.serial++;
	STACK(0, 0, 0);
	assert_int_equal(n_containers, 1);
	assert_string_equal(processes[last.process].unit, "nginx.service");
	assert_int_equal(processes[last.process].container, 0);
}

NAMING_TEST(a_container_whose_file_is_gone_has_the_name_that_was_read_in_time)
{
	told = (struct container_names){.name = (char *)(uintptr_t) "brief",
					.image = (char *)(uintptr_t) "tool:1"};
	proc_a.cgroup = "/docker/0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdee";
	STACK(0, 0, 0);
	told = (struct container_names){0};
	assert_string_equal(containers[processes[last.process].container].name, "brief");
	assert_string_equal(containers[processes[last.process].container].image, "tool:1");
}

NAMING_TEST(a_container_within_another_is_told_by_the_name_of_that)
{
	static const struct {
		const char *cgroup, *name;
	} table[] = {
		{"/lxc.payload.web1/docker/" ID, "web1/0123456789ab"},
		{"/machine.slice/systemd-nspawn@deb\\x2d12.service/payload/docker/" ID,
		 "deb-12/0123456789ab"},
		{"/lxc.payload.web1/machine.slice/systemd-nspawn@deb.service/payload", "web1/deb"},
		{"/lxc.payload.web1/docker/" ID "/docker/" ID2, "web1/0123456789ab/fedcba987654"},
		{"/lxc.payload.web1/system.slice/nginx.service", "web1"},
		{"/docker/" ID "/docker/" ID2, ""}, /* the outer one has no name either */
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		proc_a.cgroup = table[i].cgroup;
		proc_a.serial++;
		STACK(0, 0, 0);
		assert_string_equal(containers[processes[last.process].container].name,
				    table[i].name);
	}
}

/* A process of a container in that cgroup; it becomes the one that has samples. */
static const char *started_of(const char *cgroup, uint32_t tgid, uint32_t ppid, uint64_t start_ns,
			      bool first)
{
	proc_a.cgroup = cgroup;
	proc_a.tgid = tgid;
	proc_a.ppid = ppid;
	proc_a.start_ns = start_ns;
	proc_a.nspid = first ? 1 : tgid;
	proc_a.serial++;
	free(proc_a.user);
	proc_a.user = NULL;
	STACK(0, 0, 0);
	return containers[processes[last.process].container].started;
}

#define S(x) ((x)*1000000000ull)

NAMING_TEST(one_that_is_started_again_is_another_instance_where_no_file_tells)
{
	static const char *const paths[] = {"/machine.slice/libpod-" ID ".scope",
					    "/lxc.payload.db1",
					    "/machine.slice/systemd-nspawn@deb.service"};
	char below[128], first[40], second[40];

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		struct hostmaps_process init = {.tgid = 4191000,
						.ppid = 7,
						.nspid = 1,
						.start_ns = S(100),
						.to_ns = UINT64_MAX,
						.comm = "init",
						.exe = "",
						.args = "",
						.cgroup = paths[i]};
		uint32_t rows = n_containers;

		running[0] = &init;
		n_running = 1;
		snprintf(below, sizeof(below), "%s/system.slice/x.service", paths[i]);
		/* more processes, and nested cgroups, are the same container */
		snprintf(first, sizeof(first), "%s",
			 started_of(paths[i], 4191001, 4191000, S(101), false));
		assert_int_equal(strlen(first), strlen("2026-11-21T03:10:00.50Z"));
		assert_string_equal(started_of(below, 4191002, 4191000, S(500), false), first);
		assert_string_equal(started_of(paths[i], 4191003, 4191000, S(501), true), first);
		/* its first process ended, and another one began */
		init.to_ns = S(600);
		snprintf(second, sizeof(second), "%s",
			 started_of(paths[i], 4191004, 7, S(700), true));
		assert_string_not_equal(second, first);
		assert_int_equal(n_containers, rows + 3); /* the row of the cgroup, each time that
							     it differs from the one before */
		/* a loader that is started now, and one of whose processes is older */
		reopen(NULL, NULL);
		assert_string_equal(started_of(paths[i], 4191004, 7, S(700), true), second);
		assert_string_equal(started_of(paths[i], 4191001, 4191000, S(101), false), first);
	}
	n_running = 0;
	proc_a.nspid = proc_a.ppid = 0;
}
