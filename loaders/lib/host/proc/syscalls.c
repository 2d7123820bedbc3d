/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/host/proc/syscalls.h"

#include <stddef.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static const char *const NAMES[] = {
#include "loaders/lib/host/proc/syscalls.inc"
#include "schema/base/array.h"
};

/* The system calls that can wait long, by name, with this architecture's numbers. All others are
 * "other". */
static const struct {
	int number;
	enum syscall_wait wait;
} WAITS[] = {
	{SYS_futex, SYSCALL_LOCK},
#ifdef SYS_futex_waitv
	{SYS_futex_waitv, SYSCALL_LOCK},
#endif
	{SYS_flock, SYSCALL_LOCK},
	{SYS_semop, SYSCALL_LOCK},
	{SYS_semtimedop, SYSCALL_LOCK},

	{SYS_read, SYSCALL_BY_FILE},
	{SYS_write, SYSCALL_BY_FILE},
	{SYS_readv, SYSCALL_BY_FILE},
	{SYS_writev, SYSCALL_BY_FILE},
	{SYS_pread64, SYSCALL_BY_FILE},
	{SYS_pwrite64, SYSCALL_BY_FILE},
	{SYS_preadv, SYSCALL_BY_FILE},
	{SYS_pwritev, SYSCALL_BY_FILE},
	{SYS_preadv2, SYSCALL_BY_FILE},
	{SYS_pwritev2, SYSCALL_BY_FILE},
	{SYS_ioctl, SYSCALL_BY_FILE},
	{SYS_fcntl, SYSCALL_BY_FILE},
	{SYS_close, SYSCALL_BY_FILE},
	{SYS_sendfile, SYSCALL_BY_FILE},
	{SYS_splice, SYSCALL_BY_FILE},
	{SYS_tee, SYSCALL_BY_FILE},
	{SYS_vmsplice, SYSCALL_BY_FILE},
	{SYS_copy_file_range, SYSCALL_BY_FILE},

	{SYS_fsync, SYSCALL_DISK},
	{SYS_fdatasync, SYSCALL_DISK},
	{SYS_sync, SYSCALL_DISK},
	{SYS_syncfs, SYSCALL_DISK},
	{SYS_sync_file_range, SYSCALL_DISK},
	{SYS_msync, SYSCALL_DISK},
	{SYS_io_getevents, SYSCALL_DISK},
	{SYS_io_pgetevents, SYSCALL_DISK},
	{SYS_fallocate, SYSCALL_DISK},
	{SYS_truncate, SYSCALL_DISK},
	{SYS_ftruncate, SYSCALL_DISK},
	{SYS_readahead, SYSCALL_DISK},
	{SYS_openat, SYSCALL_DISK},
	{SYS_unlinkat, SYSCALL_DISK},
	{SYS_renameat2, SYSCALL_DISK},
	{SYS_getdents64, SYSCALL_DISK},
#ifdef SYS_open
	{SYS_open, SYSCALL_DISK},
	{SYS_unlink, SYSCALL_DISK},
	{SYS_rename, SYSCALL_DISK},
	{SYS_mkdir, SYSCALL_DISK},
	{SYS_rmdir, SYSCALL_DISK},
	{SYS_stat, SYSCALL_DISK},
#endif

	{SYS_accept, SYSCALL_NETWORK},
	{SYS_accept4, SYSCALL_NETWORK},
	{SYS_connect, SYSCALL_NETWORK},
	{SYS_recvfrom, SYSCALL_NETWORK},
	{SYS_recvmsg, SYSCALL_NETWORK},
	{SYS_recvmmsg, SYSCALL_NETWORK},
	{SYS_sendto, SYSCALL_NETWORK},
	{SYS_sendmsg, SYSCALL_NETWORK},
	{SYS_sendmmsg, SYSCALL_NETWORK},
	{SYS_shutdown, SYSCALL_NETWORK},

	{SYS_ppoll, SYSCALL_POLL},
	{SYS_pselect6, SYSCALL_POLL},
	{SYS_epoll_pwait, SYSCALL_POLL},
#ifdef SYS_poll
	{SYS_poll, SYSCALL_POLL},
	{SYS_select, SYSCALL_POLL},
	{SYS_epoll_wait, SYSCALL_POLL},
#endif
#ifdef SYS_epoll_pwait2
	{SYS_epoll_pwait2, SYSCALL_POLL},
#endif
	{SYS_io_uring_enter, SYSCALL_POLL},

	{SYS_nanosleep, SYSCALL_SLEEP},
	{SYS_clock_nanosleep, SYSCALL_SLEEP},
	{SYS_rt_sigtimedwait, SYSCALL_SLEEP},
	{SYS_rt_sigsuspend, SYSCALL_SLEEP},
#ifdef SYS_pause
	{SYS_pause, SYSCALL_SLEEP},
#endif

	{SYS_wait4, SYSCALL_CHILD},
	{SYS_waitid, SYSCALL_CHILD},
#ifdef SYS_vfork
	{SYS_vfork, SYSCALL_CHILD},
#endif
	{SYS_restart_syscall, SYSCALL_RESTART},
};

const char *syscall_name(int number)
{
	return number >= 0 && (size_t)number < ARRAY_SIZE(NAMES) ? NAMES[number] : NULL;
}

enum syscall_wait syscall_wait(int number)
{
	for (size_t i = 0; i < ARRAY_SIZE(WAITS); i++)
		if (WAITS[i].number == number)
			return WAITS[i].wait;
	return SYSCALL_OTHER;
}

enum syscall_wait syscall_wait_of_mode(uint32_t st_mode)
{
	if (S_ISFIFO(st_mode))
		return SYSCALL_PIPE;
	if (S_ISSOCK(st_mode))
		return SYSCALL_NETWORK;
	return S_ISREG(st_mode) || S_ISBLK(st_mode) ? SYSCALL_DISK : SYSCALL_OTHER;
}

const char *syscall_wait_name(enum syscall_wait w)
{
	static const char *const names[] = {"other", "lock", "disk",  "network",
					    "pipe",  "poll", "sleep", "child"};

	return (size_t)w < ARRAY_SIZE(names) ? names[w] : names[0];
}
