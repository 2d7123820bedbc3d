/* SPDX-License-Identifier: Apache-2.0 */
/* naming_excluded: the processes and names that the rules exclude (namingfakes.h has the fakes). */
#include "schema/base/array.h"
#include "tests/unit/loaders/lib/host/names/namingfakes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/missing.h"

NAMING_TEST(what_the_rules_leave_out_is_one_process_without_names)
{
	char name[STACK_COMM_LEN] = "secret-thread", thread[STACK_COMM_LEN + 1];
	uint32_t tid = 7;

	reopen("command:vault user:4242", NULL);
	make_ready();
	assert_string_equal(STACK(0, 1, 0x10001010), "libx.so:one+1000!");
	assert_false(last.excluded);
	/* it becomes an excluded one: the rules are applied again when more is known of it */
	proc_a.comm = "vault";
	assert_string_equal(STACK(0, 1, 0x10001010), "libx.so:one+1000!");
	proc_a.serial++;
	assert_string_equal(STACK(1, 1, 0xffffffff81000210, 0x10001010), "[excluded]+0");
	assert_true(last.excluded);
	assert_string_equal(processes[last.process].comm, "[excluded]");
	assert_int_equal(processes[last.process].pid, 0);
	assert_string_equal(last.exe, "");
	naming_thread(&last, name, thread, &tid);
	assert_string_equal(thread, "");
	assert_int_equal(tid, 0);
	proc_a.comm = "a";
	proc_a.serial++;
	assert_string_equal(STACK(0, 1, 0x10001010), "libx.so:one+1000!");
	assert_int_equal(naming_turned(n), 1);
	reopen(NULL, "command:a");
	assert_false(naming_excludes(n, &proc_a));
}

NAMING_TEST(of_a_process_that_nobody_told_of_nothing_is_told_where_there_are_rules)
{
	struct sample s = {.ev = {.tgid = 4190009, .start_ns = 3, .thread = "ghost", .n_user = 1},
			   .addrs = {0x10001155}};
	struct sample idle = {.ev = {.n_kernel = 1, .thread = "swapper/0"},
			      .addrs = {0xffffffff81000210}};
	static const struct {
		const char *exclude, *include;
	} rules[] = {{"unit:vault.service", NULL}, {NULL, "command:a"}};

	for (size_t i = 0; i < 2; i++) {
		reopen(rules[i].exclude, rules[i].include);
		assert_true(naming_excludes(n, NULL));
		assert_string_equal(name_it(&s), "[excluded]+0");
		assert_true(last.excluded);
	}
	for (uint32_t i = 1; i <= n_processes; i++)
		assert_string_equal(processes[i].comm, "[excluded]");
	reopen("unit:vault.service", NULL);
	naming_stack(n, &idle.ev, idle.addrs, &last); /* no process at all: the CPU's idle task */
	assert_false(last.excluded);
}

#define VAULT "/docker/00000000000000000000000000000000000000000000000000000000000000fa"

NAMING_TEST(a_container_whose_name_is_not_known_yet_is_left_out_until_it_is)
{
	proc_a.cgroup = VAULT;
	reopen("container:vault", NULL);
	make_ready();
	assert_string_equal(STACK(0, 1, 0x10001010), "[excluded]+0");
	assert_int_equal(n_containers, 0);
	told = (struct container_names){.name = (char *)(uintptr_t) "web"};
	reopen("container:vault", NULL);
	assert_string_equal(STACK(0, 1, 0x10001010), "libx.so:one+1000!");
	told.name = (char *)(uintptr_t) "vault";
	reopen("container:vault", NULL);
	assert_string_equal(STACK(0, 1, 0x10001010), "[excluded]+0");
	told = (struct container_names){0};
}

NAMING_TEST(one_that_turned_out_to_be_left_out_is_not_written_again)
{
	reopen("command:vault", NULL);
	STACK(0, 0, 0);
	assert_int_equal(n_processes, 1);
	proc_a.comm = "vault";
	proc_a.serial++;
	proc_a.end = HOSTMAPS_ENDED;
	assert_string_equal(processes[naming_row(n, &proc_a)].comm, "[excluded]");
	assert_int_equal(naming_turned(n), 1);
	proc_a.end = HOSTMAPS_RUNS;
}

/* A process whose cgroup path was never read gets the path that the cgroup's id leads to: the rules
 * apply to that too. */
NAMING_TEST(a_process_is_judged_by_the_path_that_its_cgroups_id_leads_to)
{
	const char *mount = access("/sys/fs/cgroup/cgroup.procs", F_OK) ? "/sys/fs/cgroup/unified" :
									  "/sys/fs/cgroup";
	char dir[256];
	struct stat st;

	snprintf(dir, sizeof(dir), "%s/sonde-vault-%d.service", mount, getpid());
	if (geteuid() || mkdir(dir, 0755))
		skip_missing("root, and a cgroup2 mount that can be written");
	assert_int_equal(stat(dir, &st), 0);
	proc_a.cgroup = "";
	proc_a.cgroup_id = st.st_ino;
	reopen("unit:sonde-vault-*", NULL);
	STACK(0, 0, 0);
	assert_true(last.excluded);
	reopen("unit:other.service", NULL);
	STACK(0, 0, 0);
	assert_false(last.excluded);
	rmdir(dir);
	reopen("unit:other.service", NULL); /* the way from the id is gone: it may be that one */
	STACK(0, 0, 0);
	assert_true(last.excluded);
	reopen("command:other", NULL);
	STACK(0, 0, 0);
	assert_false(last.excluded);
	proc_a.cgroup_id = 0;
}

NAMING_TEST(a_cgroup_is_left_out_by_its_path_and_where_nobody_in_it_may_be_told_of)
{
	struct hostmaps_process vault = {.tgid = 4190010,
					 .comm = "vault",
					 .exe = "/bin/vault",
					 .args = "",
					 .cgroup = "/system.slice/v.service/sub"};
	static const struct {
		const char *exclude, *include, *cgroup;
		bool out;
	} table[] = {
		{NULL, NULL, "/system.slice/v.service", false},
		{"command:vault", NULL, "/system.slice/v.service", true},
		{"command:vault", NULL, "/system.slice/a.service", false},
		{"command:vault", NULL, "/system.slice", false},
		{"command:vault", NULL, "/system.slice/empty.service", true},
		{"unit:a.service container:web", NULL, "/system.slice/a.service", true},
		{"unit:a.service container:web", NULL, "/system.slice/empty.service", false},
		{"unit:a.service container:web", NULL, VAULT, true},
		{NULL, "unit:a.service", "/system.slice/v.service", true},
		{NULL, "unit:a.service", "/system.slice/a.service", false},
		{NULL, "unit:a.service", "/system.slice/empty.service", true},
	};

	running[0] = &vault;
	running[1] = &proc_a;
	n_running = 2;
	proc_a.cgroup = "/system.slice/a.service";
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		reopen(table[i].exclude, table[i].include);
		if (naming_excludes_cgroup(n, table[i].cgroup) != table[i].out)
			fail_msg("row %zu", i);
		free(vault.user);
		vault.user = NULL;
	}
	n_running = 0;
}
