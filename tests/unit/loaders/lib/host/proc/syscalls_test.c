/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "loaders/lib/host/proc/syscalls.h"
#include "tests/unit/test.h"

TEST(a_number_has_the_name_that_the_headers_give_it)
{
	assert_string_equal(syscall_name(SYS_read), "read");
	assert_string_equal(syscall_name(SYS_futex), "futex");
	assert_string_equal(syscall_name(SYS_epoll_pwait), "epoll_pwait");
	assert_string_equal(syscall_name(SYS_clock_nanosleep), "clock_nanosleep");
	assert_null(syscall_name(-1));
	assert_null(syscall_name(100000));
}

TEST(a_call_tells_what_is_waited_for)
{
	assert_int_equal(syscall_wait(SYS_futex), SYSCALL_LOCK);
	assert_int_equal(syscall_wait(SYS_accept4), SYSCALL_NETWORK);
	assert_int_equal(syscall_wait(SYS_wait4), SYSCALL_CHILD);
	assert_int_equal(syscall_wait(SYS_read), SYSCALL_BY_FILE);
	assert_int_equal(syscall_wait(SYS_rt_sigsuspend), SYSCALL_SLEEP);
	assert_int_equal(syscall_wait(SYS_restart_syscall), SYSCALL_RESTART);
	assert_int_equal(syscall_wait(SYS_getpid), SYSCALL_OTHER);
	assert_int_equal(syscall_wait(-1), SYSCALL_OTHER);
}

TEST(a_descriptor_tells_what_is_waited_for)
{
	assert_int_equal(syscall_wait_of_mode(S_IFIFO | 0600), SYSCALL_PIPE);
	assert_int_equal(syscall_wait_of_mode(S_IFSOCK), SYSCALL_NETWORK);
	assert_int_equal(syscall_wait_of_mode(S_IFREG | 0644), SYSCALL_DISK);
	assert_int_equal(syscall_wait_of_mode(S_IFBLK), SYSCALL_DISK);
	assert_int_equal(syscall_wait_of_mode(S_IFCHR), SYSCALL_OTHER);
	assert_string_equal(syscall_wait_name(SYSCALL_PIPE), "pipe");
	assert_string_equal(syscall_wait_name((enum syscall_wait)99), "other");
}
