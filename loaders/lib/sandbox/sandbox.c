/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/sandbox/sandbox.h"
#include "schema/base/array.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

int sandbox_powers_drop(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[2] = {0};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	/* EINVAL: past the last one this kernel knows; EPERM: we have none to drop */
	for (unsigned long cap = 0; cap < 64; cap++)
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) && errno != EINVAL && errno != EPERM)
			return -errno;
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) && errno != EINVAL)
		return -errno;
	return syscall(SYS_capset, &head, none) ? -errno : 0;
}

void sandbox_powers_keep(uint64_t keep)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct caps[2];

	if (syscall(SYS_capget, &head, caps))
		return;
	for (int i = 0; i < 2; i++) {
		caps[i].permitted &= (uint32_t)(keep >> (32 * i));
		caps[i].effective = caps[i].permitted;
		caps[i].inheritable = 0;
	}
	(void)syscall(SYS_capset, &head, caps);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

static int limit(int what, rlim_t value)
{
	struct rlimit r, old;

	/* never more than there was: raising needs a capability */
	if (getrlimit(what, &old))
		return -errno;
	r.rlim_cur = r.rlim_max = value < old.rlim_max ? value : old.rlim_max;
	return setrlimit(what, &r) ? -errno : 0;
}

/* It ends by SIGXCPU: SIGKILL, which the hard limit sends, is what comes from outside
 * (indexchild.h). */
static int limit_cpu(rlim_t seconds)
{
	struct rlimit r;
	int rc = limit(RLIMIT_CPU, seconds + 1);

	if (rc || getrlimit(RLIMIT_CPU, &r))
		return rc ? rc : -errno;
	r.rlim_cur = r.rlim_max > 1 ? r.rlim_max - 1 : r.rlim_max;
	return setrlimit(RLIMIT_CPU, &r) ? -errno : 0;
}

/* What it has mapped; 0: unknown. */
static rlim_t address_space(void)
{
	char text[64] = "";
	int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		close(fd);
	return n > 0 ? strtoull(text, NULL, 10) * (rlim_t)sysconf(_SC_PAGESIZE) : 0;
}

static rlim_t memory_of(enum sandbox_size size)
{
	switch (size) {
	case SANDBOX_STAYS:
	case SANDBOX_FILES:
		return SANDBOX_MEMORY_BYTES_STAYS;
	case SANDBOX_LARGE:
		return SANDBOX_MEMORY_BYTES_LARGE;
	case SANDBOX_NAMES:
		return address_space() + SANDBOX_MEMORY_BYTES_NAMES;
	case SANDBOX_SMALL:
	default:
		return SANDBOX_MEMORY_BYTES;
	}
}

static int cpu_limit_set(enum sandbox_size size)
{
	if (size == SANDBOX_STAYS || size == SANDBOX_FILES)
		return 0;
	return limit_cpu(size == SANDBOX_LARGE ? SANDBOX_CPU_SECONDS_LARGE :
			 size == SANDBOX_NAMES ? SANDBOX_CPU_SECONDS_NAMES :
						 SANDBOX_CPU_SECONDS);
}

static int limits_set(enum sandbox_size size)
{
	const rlim_t memory = memory_of(size);
	int rc = cpu_limit_set(size);

	if (!rc) /* who started us may have a softer one for himself */
		rc = limit(RLIMIT_DATA, RLIM_INFINITY);
	if (!rc && !SANITIZED)
		rc = limit(RLIMIT_AS, memory);
	if (!rc)
		rc = limit(RLIMIT_FSIZE, SANDBOX_OUTPUT_BYTES);
	if (!rc)
		rc = limit(RLIMIT_NOFILE,
			   size == SANDBOX_FILES ? SANDBOX_DESCRIPTORS_FILES : SANDBOX_DESCRIPTORS);
	if (!rc)
		rc = limit(RLIMIT_NPROC, 0);
	if (!rc)
		rc = limit(RLIMIT_CORE, 0);
	return rc;
}

/* ---- system calls ---- */

/* clang-format off */
static const int allowed[] = {
	SCMP_SYS(read), SCMP_SYS(pread64), SCMP_SYS(write), SCMP_SYS(pwrite64), SCMP_SYS(lseek), SCMP_SYS(fstat),
	SCMP_SYS(ftruncate), SCMP_SYS(close), SCMP_SYS(recvmsg), SCMP_SYS(sendmsg), SCMP_SYS(munmap),
	SCMP_SYS(mremap), SCMP_SYS(brk), SCMP_SYS(madvise), SCMP_SYS(futex), SCMP_SYS(clock_gettime),
	SCMP_SYS(rt_sigaction), SCMP_SYS(rt_sigprocmask), SCMP_SYS(rt_sigreturn), SCMP_SYS(restart_syscall),
	SCMP_SYS(exit), SCMP_SYS(exit_group),
#if SANITIZED
	SCMP_SYS(mprotect), SCMP_SYS(sigaltstack), SCMP_SYS(sched_yield), SCMP_SYS(gettid), SCMP_SYS(getpid),
	SCMP_SYS(prctl), SCMP_SYS(sysinfo), SCMP_SYS(getrlimit), SCMP_SYS(prlimit64), SCMP_SYS(getuid),
	SCMP_SYS(sched_getaffinity), SCMP_SYS(newfstatat), SCMP_SYS(readlink), SCMP_SYS(tgkill),
#endif
};
/* clang-format on */

static int calls_allow(scmp_filter_ctx ctx, enum sandbox_size size)
{
	/* no memory that can be run */
	int rc = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1,
				  SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));

	if (!rc && !SANITIZED)
		rc = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EACCES), SCMP_SYS(readlink), 0);
	if (!rc && size == SANDBOX_STAYS)
		rc = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(poll), 0) ?:
			     seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(epoll_wait), 0);
	for (size_t i = 0; !rc && i < ARRAY_SIZE(allowed); i++)
		rc = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, allowed[i], 0);
	return rc;
}

static int calls_limit(enum sandbox_size size)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_KILL_PROCESS);
	int rc;

	if (!ctx)
		return -ENOMEM;
	rc = calls_allow(ctx, size);
	if (!rc)
		rc = seccomp_load(ctx);
	seccomp_release(ctx);
	return rc;
}

/* ---- what glibc asks once ---- */

static int by_value(const void *a, const void *b)
{
	return *(const uint8_t *)a - *(const uint8_t *)b;
}

/* libdw sorts with qsort, which asks for the machine's memory size at the first large array and
 * remembers it. */
static void sort_once(void)
{
	uint8_t bytes[2048] = {0};

	qsort(bytes, sizeof(bytes), 1, by_value);
}

int sandbox_enter(enum sandbox_size size, struct err *e)
{
	int rc;

	sort_once();
	rc = limits_set(size);

	if (rc)
		return err_set(e, rc, EXIT_RUNTIME, "sandbox: cannot set limits: %s",
			       strerror(-rc));
	rc = sandbox_powers_drop();
	if (rc)
		return err_set(e, rc, EXIT_RUNTIME, "sandbox: cannot drop privileges: %s",
			       strerror(-rc));
	rc = calls_limit(size);
	if (rc)
		return err_set(e, rc, EXIT_PREREQUISITE, "sandbox: cannot filter system calls: %s",
			       strerror(-rc));
	return 0;
}
