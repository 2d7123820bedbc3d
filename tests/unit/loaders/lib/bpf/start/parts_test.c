/* SPDX-License-Identifier: Apache-2.0 */
/* The small parts of the common loop: CPU lists, cgroup directories, the command after `--`,
 * progress, checks. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "loaders/lib/bpf/start/cgroupdir.h"
#include "loaders/lib/bpf/start/check.h"
#include "loaders/lib/bpf/start/command.h"
#include "loaders/lib/bpf/load/cpulist.h"
#include "loaders/lib/bpf/run/progress.h"
#include "schema/base/array.h"
#include "tests/unit/test.h"

static struct cpulist list;

static int list_parse(const char *s)
{
	return cpulist_parse(s, strlen(s), &list);
}

TEST(a_cpu_list_has_ranges_and_single_numbers)
{
	assert_int_equal(list_parse("0-3,8,10-11\n"), 0);
	assert_int_equal(list.n, 7);
	assert_int_equal(list.last, 11);
	assert_true(list.has[0] && list.has[3] && list.has[8] && list.has[11]);
	assert_false(list.has[4] || list.has[9]);
	assert_int_equal(list_parse("5"), 0);
	assert_int_equal(list.n, 1);
	assert_int_equal(list_parse("7,1-2"), 0);
	assert_int_equal(list.n, 3);
	assert_int_equal(list.last, 7);
	assert_int_equal(list_parse("1,1-2"), 0);
	assert_int_equal(list.n, 2);
	assert_int_equal(list_parse("\n"), 0);
	assert_int_equal(list.n, 0);
}

TEST(what_is_no_cpu_list_is_refused)
{
	static const char *const bad[] = {"a",    "1-",    "-1",   "3-1",
					  "1,,2", "1,",    "4096", "99999999999999999999",
					  "1 2",  "0-4096"};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(list_parse(bad[i]), -EINVAL);
}

TEST(the_online_cpus_are_as_many_as_libc_says)
{
	assert_int_equal(cpulist_online(&list), 0);
	assert_int_equal(list.n, sysconf(_SC_NPROCESSORS_ONLN));
}

TEST(cgroup_mounts_are_told_by_type_and_controller)
{
	enum family_hierarchy h;
	char point[64];

	assert_true(cgroupdir_mount(
		"30 23 0:26 / /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup2 rw\n",
		point, sizeof(point), &h));
	assert_string_equal(point, "/sys/fs/cgroup/unified");
	assert_int_equal(h, FAMILY_CGROUP_V2);
	assert_true(
		cgroupdir_mount("36 25 0:31 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory",
				point, sizeof(point), &h));
	assert_int_equal(h, FAMILY_CGROUP_V1_MEMORY);
	assert_true(cgroupdir_mount("37 25 0:31 / /c/pids rw - cgroup x rw,pids\n", point,
				    sizeof(point), &h));
	assert_int_equal(h, FAMILY_CGROUP_V1_PIDS);
	assert_false(cgroupdir_mount("36 25 0:31 / /c/cpu rw - cgroup cgroup rw,cpu,cpuacct", point,
				     sizeof(point), &h));
	assert_false(cgroupdir_mount("36 25 0:31 / /tmp rw - tmpfs memory rw,memory", point,
				     sizeof(point), &h));
	assert_false(cgroupdir_mount("36 25", point, sizeof(point), &h));
	assert_false(cgroupdir_mount("", point, sizeof(point), &h));
	assert_false(cgroupdir_mount(
		"36 25 0:31 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory", point, 8, &h));
}

static int ids_count(void *ctx, const struct family_cgroup *cgroup)
{
	(void)cgroup;
	++*(int *)ctx;
	return 0;
}

TEST(a_cgroup_that_is_not_there_is_found_nowhere)
{
	int n = 0;

	cgroupdir_find("/no/such/cgroup", ids_count, &n);
	cgroupdir_find("/sys/fs/cgroup/unified/../../../../etc/no", ids_count, &n);
	assert_int_equal(n, 0);
}

static void command_wait(struct command *c)
{
	for (int i = 0; i < 500 && !command_poll(c); i++)
		usleep(10000);
	assert_true(c->ended);
}

TEST(a_command_waits_for_its_release_and_tells_its_status)
{
	char path[] = "/tmp/sonde-command-XXXXXX", script[128];
	char *argv[] = {"sh", "-c", script, NULL};
	struct command c = COMMAND_NONE;

	close(mkstemp(path));
	unlink(path);
	snprintf(script, sizeof(script), "touch %s; exit 7", path);
	assert_int_equal(command_start(&c, argv, NULL), 0);
	usleep(50000);
	assert_int_equal(access(path, F_OK), -1);
	assert_false(command_poll(&c));
	assert_int_equal(command_release(&c, argv[0], NULL), 0);
	command_wait(&c);
	assert_int_equal(c.status, 7);
	assert_int_equal(access(path, F_OK), 0);
	assert_false(command_poll(&c));
	command_close(&c);
	unlink(path);
}

TEST(a_command_that_is_never_released_never_runs)
{
	char *argv[] = {"sh", "-c", "kill -9 $PPID", NULL};
	struct command c = COMMAND_NONE;

	assert_int_equal(command_start(&c, argv, NULL), 0);
	command_close(&c);
	assert_true(c.ended);
	assert_int_equal(c.status, 127);
}

TEST(a_program_that_does_not_exist_is_a_usage_error)
{
	char *argv[] = {"/no/such/program", NULL};
	struct command c = COMMAND_NONE;
	struct err e = {0};

	assert_int_equal(command_start(&c, argv, &e), 0);
	assert_int_equal(command_release(&c, argv[0], &e), -ENOENT);
	assert_int_equal(e.exit, EXIT_USAGE);
	assert_non_null(strstr(e.what, "/no/such/program"));
	assert_true(c.ended);
	command_close(&c);
}

TEST(a_signal_ends_a_command_as_a_shell_would_show_it)
{
	char *argv[] = {"sleep", "100", NULL};
	struct command c = COMMAND_NONE;

	/* a shell ignores it for what it starts in the background, and that is passed on, as it
	 * should be */
	signal(SIGINT, SIG_DFL);
	assert_int_equal(command_start(&c, argv, NULL), 0);
	assert_int_equal(command_release(&c, argv[0], NULL), 0);
	command_signal(&c, SIGINT);
	command_wait(&c);
	assert_int_equal(c.status, 128 + SIGINT);
	command_close(&c);
}

TEST(progress_is_one_json_object_a_line)
{
	struct progress p;
	char buf[256] = {0};
	int fds[2];
	json_t *line;

	assert_int_equal(pipe(fds), 0);
	progress_init(&p, fds[1]);
	progress_send(&p, json_pack("{s:s}", "event", "a\nb"), true);
	assert_true(read(fds[0], buf, sizeof(buf) - 1) > 0);
	assert_ptr_equal(strchr(buf, '\n'), buf + strlen(buf) - 1);
	line = json_loads(buf, 0, NULL);
	assert_string_equal(json_string_value(json_object_get(line, "event")), "a\nb");
	json_decref(line);
	close(fds[0]);
	progress_send(&p, json_object(), true);
	assert_true(p.gone);
	close(fds[1]);
}

TEST(a_slow_reader_costs_only_refreshes)
{
	struct progress p;
	int fds[2];
	struct timespec from, to;

	assert_int_equal(pipe(fds), 0);
	progress_init(&p, fds[1]);
	fcntl(fds[1], F_SETPIPE_SZ, 4096);
	clock_gettime(CLOCK_MONOTONIC, &from);
	for (int i = 0; i < 1000; i++)
		progress_send(&p, json_pack("{s:s}", "event", "progress"), false);
	clock_gettime(CLOCK_MONOTONIC, &to);
	assert_false(p.gone);
	assert_true(to.tv_sec - from.tv_sec < 2);
	close(fds[0]);
	close(fds[1]);
}

TEST(checks_come_out_as_json_with_the_first_failure_s_exit_code)
{
	struct check c = {0};
	struct err e = {.exit = EXIT_PERMISSION, .what = "no rights", .fix = "sudo"};
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	json_t *root;

	check_add(&c, "BTF", CHECK_OK, NULL, "%d MiB \"quoted\"", 5);
	check_add_err(&c, "privileges", &e);
	check_add(&c, "other", CHECK_FAIL, NULL, "second failure");
	assert_int_equal(c.exit, EXIT_PERMISSION);
	check_print_json(&c, "cpu", f);
	fclose(f);
	root = json_loads(text, 0, NULL);
	assert_non_null(root);
	assert_string_equal(json_string_value(json_object_get(root, "schema")), "sonde.check/1");
	assert_true(json_is_false(json_object_get(root, "ok")));
	assert_int_equal(json_array_size(json_object_get(root, "items")), 3);
	assert_string_equal(json_string_value(json_object_get(
				    json_array_get(json_object_get(root, "items"), 1), "fix")),
			    "sudo");
	json_decref(root);
	free(text);
	check_release(&c);
}

static int ignore_sigpipe(void **state)
{
	(void)state;
	signal(SIGPIPE, SIG_IGN);
	return 0;
}

const struct test_group test_group = {ignore_sigpipe, NULL};
