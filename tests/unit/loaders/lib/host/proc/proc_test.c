/* SPDX-License-Identifier: Apache-2.0 */
/* proc: the parsers on lines made by hand, on hostile ones, and on this host's /proc as other
 * programs read it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "loaders/lib/host/proc/proc.h"
#include "schema/base/array.h"
#include "schema/base/clock.h"
#include "tests/unit/test.h"

static void parse_stat(const char *s, struct proc_stat *st)
{
	assert_int_equal(proc_parse_stat(s, strlen(s), st), 0);
}

TEST(a_comm_may_hold_parentheses_blanks_and_newlines)
{
	struct proc_stat st;

	parse_stat("77 (a) R 1 (b\n) S 5 1 1 0 -1 2129984 1 2 3 4 11 12 13 14 20 0 1 0 999 0", &st);
	assert_string_equal(st.comm, "a) R 1 (b\n");
	assert_int_equal(st.pid, 77);
	assert_int_equal(st.state, 'S');
	assert_int_equal(st.ppid, 5);
	assert_int_equal(st.utime, 11);
	assert_int_equal(st.stime, 12);
	assert_int_equal(st.n_threads, 1);
	assert_int_equal(st.start_ticks, 999);
	assert_true(st.flags & PROC_PF_KTHREAD);
}

TEST(a_broken_stat_is_refused_and_the_output_left_alone)
{
	static const char *const bad[] = {
		"",
		"77",
		"77 (a",
		"77 a) R 1",
		"x (a) R 1 2 3",
		"77 (a) R",
		"99999999999 (a) R 1 1 1 0 -1 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14",
		"77 (a) R 1 1 1 0 -1 0 1 2 3 4 5 6 7 8 9 10 11 12 99999999999999999999"};
	struct proc_stat st = {.pid = 4242};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_int_equal(proc_parse_stat(bad[i], strlen(bad[i]), &st), -EBADMSG);
		assert_int_equal(st.pid, 4242);
	}
}

TEST(our_own_stat_and_status_say_what_the_system_calls_say)
{
	char name[16];
	struct proc_status status;
	struct proc_stat st;

	prctl(PR_GET_NAME, name);
	prctl(PR_SET_NAME, "od) d\nname (x");
	assert_int_equal(proc_read_stat((uint32_t)getpid(), &st), 0);
	assert_int_equal(proc_read_status((uint32_t)getpid(), &status), 0);
	prctl(PR_SET_NAME, name);
	assert_string_equal(st.comm, "od) d\nname (x");
	assert_int_equal(st.pid, getpid());
	assert_int_equal(st.ppid, getppid());
	assert_int_equal(status.tgid, getpid());
	assert_int_equal(status.ppid, getppid());
	assert_int_equal(status.uid, getuid());
	assert_int_equal(status.euid, geteuid());
	assert_true(status.ns_depth >= 1);
	assert_true(st.start_ticks > 0);
}

TEST(the_innermost_number_of_nspid_is_taken)
{
	static const char s[] =
		"Name:\tx\nUmask:\t0022\nTgid:\t812\nPPid:\t4\nUid:\t7\t8\t9\t10\nNSpid:\t812\t31\t2\n";
	static const char old[] = "Tgid:\t812\nPPid:\t4\nUid:\t7\t8\t9\t10\n";
	struct proc_status st;

	assert_int_equal(proc_parse_status(s, strlen(s), &st), 0);
	assert_int_equal(st.nspid, 2);
	assert_int_equal(st.ns_depth, 3);
	assert_int_equal(st.uid, 7);
	assert_int_equal(proc_parse_status(old, strlen(old), &st), 0);
	assert_int_equal(st.nspid, 812);
	assert_int_equal(proc_parse_status("Tgid:\t1\n", 8, &st), -EBADMSG);
}

TEST(maps_lines_give_range_rights_and_path)
{
	static const char text[] =
		"00400000-00452000 r-xp 00001000 08:02 173521      /usr/bin/a b\\012c (deleted)\n"
		"garbage\n"
		"7f00-6f00 r-xp 0 0:0 0\n"
		"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\n"
		"7f0000000000-7f0000001000 rwxp 00000000 00:00 0 ";
	struct proc_map m;
	char path[64];
	size_t pos = 0;

	assert_true(proc_next_map(text, strlen(text), &pos, &m));
	assert_int_equal(m.start, 0x400000);
	assert_int_equal(m.end, 0x452000);
	assert_int_equal(m.offset, 0x1000);
	assert_int_equal(m.major, 8);
	assert_int_equal(m.inode, 173521);
	assert_true(m.exec && m.read && !m.write && !m.shared && m.deleted);
	assert_int_equal(proc_unescape(m.path, m.path_len, path), strlen("/usr/bin/a b\nc"));
	assert_string_equal(path, "/usr/bin/a b\nc");
	assert_true(proc_next_map(text, strlen(text), &pos, &m));
	assert_memory_equal(m.path, "[vsyscall]", m.path_len);
	assert_true(proc_next_map(text, strlen(text), &pos, &m));
	assert_int_equal(m.path_len, 0);
	assert_false(proc_next_map(text, strlen(text), &pos, &m));
}

TEST(every_line_of_our_own_maps_is_read)
{
	size_t len, pos = 0, lines = 0, got = 0;
	struct proc_map m;
	bool here = false;
	char *buf;

	assert_int_equal(proc_read((uint32_t)getpid(), "maps", 0, &buf, &len), 0);
	for (size_t i = 0; i < len; i++)
		lines += buf[i] == '\n';
	while (proc_next_map(buf, len, &pos, &m)) {
		uint64_t pc = (uint64_t)(uintptr_t)&every_line_of_our_own_maps_is_read;

		got++;
		here |= m.exec && pc >= m.start && pc < m.end;
	}
	free(buf);
	assert_int_equal(got, lines);
	assert_true(here);
}

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void expect_cgroup(const char *text, const char *path)
{
	struct proc_cgroup cg;
	const char *p;
	size_t n;

	assert_int_equal(proc_parse_cgroup(text, strlen(text), &cg), 0);
	p = proc_cgroup_path(&cg, &n);
	assert_int_equal(n, strlen(path));
	assert_memory_equal(p, path, n);
}

TEST(the_cgroup_that_tells_most_is_chosen)
{
	struct proc_cgroup cg;

	expect_cgroup("0::/system.slice/nginx.service\n", "/system.slice/nginx.service");
	expect_cgroup("8:pids:/p\n4:memory:/docker/x\n1:name=systemd:/s\n0::/\n", "/docker/x");
	expect_cgroup("8:pids:/p:q\n4:memory:/\n0::/\n", "/p:q");
	expect_cgroup("2:cpu,cpuacct:/c\n", "/c");
	expect_cgroup("2:cpuacct:/c\n1:name=systemd:/s\n", "/s");
	expect_cgroup("4:memory:/\n0::/\n", "/");
	/* hybrid: the manager's own hierarchy has its units, the runtime makes its groups where the
	 * controllers are */
	expect_cgroup("4:memory:/docker/" ID "\n0::/system.slice/containerd.service\n",
		      "/docker/" ID);
	expect_cgroup("8:pids:/kubepods/pod1/" ID
		      "\n4:memory:/user.slice\n0::/user.slice/a.scope\n",
		      "/kubepods/pod1/" ID);
	expect_cgroup("1:name=systemd:/lxc.payload.web\n4:memory:/user.slice\n0::/user.slice\n",
		      "/lxc.payload.web");
	expect_cgroup("4:memory:/user.slice\n0::/machine.slice/libpod-" ID ".scope\n",
		      "/machine.slice/libpod-" ID ".scope");
	expect_cgroup("4:memory:/docker/" ID "\n0::/docker/" ID "/inside\n",
		      "/docker/" ID "/inside");
	expect_cgroup("4:memory:/user.slice\n0::/user.slice/a.scope\n", "/user.slice/a.scope");
	assert_int_equal(proc_parse_cgroup("", 0, &cg), -EBADMSG);
	assert_int_equal(proc_parse_cgroup("0:x\n1::y\n", 9, &cg), -EBADMSG);
}

TEST(the_second_of_the_boot_is_read_from_stat)
{
	static const char stat[] =
		"cpu  1 2 3\nintr 5 btime 7\nctxt 9\nbtime 1763694600\nprocesses 4\n";

	assert_int_equal(proc_parse_btime(stat, strlen(stat)), 1763694600);
	assert_int_equal(proc_parse_btime("cpu 1\nbtime 99999999999999999999\n", 34), 0);
	assert_int_equal(proc_parse_btime("cpu 1\nbtime ", 12), 0);
	assert_int_equal(proc_parse_btime("", 0), 0);
	assert_true(llabs((long long)proc_btime() -
			  (long long)(time(NULL) - clock_boot_ns() / NSEC_PER_SEC)) <= 2);
}

TEST(a_process_that_is_not_there_is_an_error)
{
	char path[64];
	struct proc_stat st;

	assert_int_equal(proc_read_stat(4194305, &st), -ENOENT);
	assert_int_equal(proc_readlink(4194305, "exe", path, sizeof(path)), -ENOENT);
	assert_int_equal(proc_read_cgroup(4194305, path, sizeof(path)), -ENOENT);
}
