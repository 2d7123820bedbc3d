// SPDX-License-Identifier: Apache-2.0
/* syscalls: by name, as this architecture numbers them. A call that is in no row is of class "other". */
#include "loaders/offcpu/syscalls.h"

#include <sys/syscall.h>

#include "probes/offcpu.h"

static const struct {
	short number;
	unsigned char class;
} rows[] = {
	{SYS_futex, OFFCPU_LOCK},
#ifdef SYS_futex_waitv
	{SYS_futex_waitv, OFFCPU_LOCK},
#endif
	{SYS_flock, OFFCPU_LOCK}, {SYS_semop, OFFCPU_LOCK}, {SYS_semtimedop, OFFCPU_LOCK},

	{SYS_read, OFFCPU_BY_FILE}, {SYS_write, OFFCPU_BY_FILE}, {SYS_readv, OFFCPU_BY_FILE}, {SYS_writev, OFFCPU_BY_FILE},
	{SYS_pread64, OFFCPU_BY_FILE}, {SYS_pwrite64, OFFCPU_BY_FILE}, {SYS_preadv, OFFCPU_BY_FILE},
	{SYS_pwritev, OFFCPU_BY_FILE}, {SYS_preadv2, OFFCPU_BY_FILE}, {SYS_pwritev2, OFFCPU_BY_FILE},
	{SYS_ioctl, OFFCPU_BY_FILE}, {SYS_fcntl, OFFCPU_BY_FILE}, {SYS_close, OFFCPU_BY_FILE},
	{SYS_sendfile, OFFCPU_BY_FILE}, {SYS_splice, OFFCPU_BY_FILE}, {SYS_tee, OFFCPU_BY_FILE},
	{SYS_vmsplice, OFFCPU_BY_FILE}, {SYS_copy_file_range, OFFCPU_BY_FILE},

	{SYS_fsync, OFFCPU_DISK}, {SYS_fdatasync, OFFCPU_DISK}, {SYS_sync, OFFCPU_DISK}, {SYS_syncfs, OFFCPU_DISK},
	{SYS_sync_file_range, OFFCPU_DISK}, {SYS_msync, OFFCPU_DISK}, {SYS_io_getevents, OFFCPU_DISK},
	{SYS_io_pgetevents, OFFCPU_DISK}, {SYS_fallocate, OFFCPU_DISK}, {SYS_truncate, OFFCPU_DISK},
	{SYS_ftruncate, OFFCPU_DISK}, {SYS_readahead, OFFCPU_DISK}, {SYS_openat, OFFCPU_DISK}, {SYS_unlinkat, OFFCPU_DISK},
	{SYS_renameat2, OFFCPU_DISK}, {SYS_getdents64, OFFCPU_DISK},
#ifdef SYS_open
	{SYS_open, OFFCPU_DISK}, {SYS_unlink, OFFCPU_DISK}, {SYS_rename, OFFCPU_DISK}, {SYS_mkdir, OFFCPU_DISK},
	{SYS_rmdir, OFFCPU_DISK}, {SYS_stat, OFFCPU_DISK},
#endif

	{SYS_accept, OFFCPU_NETWORK}, {SYS_accept4, OFFCPU_NETWORK}, {SYS_connect, OFFCPU_NETWORK},
	{SYS_recvfrom, OFFCPU_NETWORK}, {SYS_recvmsg, OFFCPU_NETWORK}, {SYS_recvmmsg, OFFCPU_NETWORK},
	{SYS_sendto, OFFCPU_NETWORK}, {SYS_sendmsg, OFFCPU_NETWORK}, {SYS_sendmmsg, OFFCPU_NETWORK},
	{SYS_shutdown, OFFCPU_NETWORK},

	{SYS_ppoll, OFFCPU_POLL}, {SYS_pselect6, OFFCPU_POLL}, {SYS_epoll_pwait, OFFCPU_POLL},
#ifdef SYS_poll
	{SYS_poll, OFFCPU_POLL}, {SYS_select, OFFCPU_POLL}, {SYS_epoll_wait, OFFCPU_POLL},
#endif
#ifdef SYS_epoll_pwait2
	{SYS_epoll_pwait2, OFFCPU_POLL},
#endif
	{SYS_io_uring_enter, OFFCPU_POLL},

	{SYS_nanosleep, OFFCPU_SLEEP}, {SYS_clock_nanosleep, OFFCPU_SLEEP},
	{SYS_wait4, OFFCPU_CHILD}, {SYS_waitid, OFFCPU_CHILD},
#ifdef SYS_vfork
	{SYS_vfork, OFFCPU_CHILD},
#endif
	{SYS_restart_syscall, OFFCPU_RESTART},
};

void syscalls_fill(volatile __u8 *class, size_t n)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if ((size_t)rows[i].number < n)
			class[rows[i].number] = rows[i].class;
}
