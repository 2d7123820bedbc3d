/* SPDX-License-Identifier: Apache-2.0 */
/* confine: each test forks, is confined, tries one thing; the child's exit status is the errno of
 * it, 0: it could. */
#include <stdlib.h>
#include <string.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <pthread.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loaders/lib/sandbox/confine.h"
#include "schema/base/array.h"
#include "tests/unit/test.h"

static int of(unsigned int keeps, long (*deed)(void))
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		if (confine(keeps, NULL))
			_exit(255);
		errno = 0;
		_exit(deed() < 0 ? errno : 0);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static long runs_another(void)
{
	char *argv[] = {"true", NULL}, *envp[] = {NULL};

	return execve("/bin/true", argv, envp);
}

static long loads_a_program(void)
{
	union bpf_attr attr = {.prog_type = 0};

	return syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
}

static long traces_another(void)
{
	return ptrace(PTRACE_SEIZE, getppid(), 0, 0);
}

static long writes_to_another(void)
{
	return syscall(SYS_process_vm_writev, getppid(), NULL, 0, NULL, 0, 0);
}

static long reaches_the_network(void)
{
	return socket(AF_INET, SOCK_STREAM, 0);
}

static long reaches_it_by_ipv6(void)
{
	return socket(AF_INET6, SOCK_DGRAM, 0);
}

static long reaches_the_wire(void)
{
	return socket(AF_PACKET, SOCK_RAW, 0);
}

static long reaches_a_hypervisor(void)
{
	return socket(AF_VSOCK, SOCK_STREAM, 0);
}

static long mounts(void)
{
	return mount("none", "/nosuch", "tmpfs", 0, NULL);
}

static long leaves_its_namespace(void)
{
	return unshare(CLONE_NEWUSER);
}

static long makes_code(void)
{
	return mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		    0) == MAP_FAILED ?
		       -1 :
		       0;
}

static long makes_code_of_data(void)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return mprotect(p, 4096, PROT_READ | PROT_WRITE | PROT_EXEC);
}

static long types_into_a_terminal(void)
{
	return ioctl(0, TIOCSTI, "x");
}

static long queues_in_a_ring(void)
{
	return syscall(SYS_io_uring_setup, 1, NULL);
}

static long becomes_another(void)
{
	return setuid(getuid());
}

static long opens_by_handle(void)
{
	struct {
		struct file_handle of;
		unsigned char id[8];
	} h = {.of = {.handle_bytes = 8, .handle_type = 1}};

	return open_by_handle_at(-1, &h.of, O_PATH);
}

static void *tries(void *out)
{
	*(long *)out = runs_another() < 0 ? errno : 0;
	return NULL;
}

static pthread_barrier_t both;

static void *tries_later(void *out)
{
	pthread_barrier_wait(&both);
	pthread_barrier_wait(&both);
	return tries(out);
}

static long works_on(void)
{
	union bpf_attr attr = {
		.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 8, .max_entries = 1};
	char buf[16];
	struct iovec iov = {buf, sizeof(buf)};
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC),
	    unix_fd = socket(AF_UNIX, SOCK_SEQPACKET, 0), net = socket(AF_NETLINK, SOCK_RAW, 0);

	(void)syscall(SYS_process_vm_readv, getpid(), &iov, 1, &iov, 1, 0);
	if (errno)
		return -1;
	(void)syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof(attr)); /* any process may */
	if (geteuid() == 0 && errno)
		return -1;
	errno = 0;
	return fd < 0 || unix_fd < 0 || net < 0 || read(fd, buf, sizeof(buf)) != sizeof(buf) ? -1 :
											       0;
}

TEST(test_what_a_loader_never_does_is_refused)
{
	long (*const deeds[])(void) = {
		runs_another,          loads_a_program,      traces_another,
		writes_to_another,     reaches_the_network,  reaches_it_by_ipv6,
		reaches_the_wire,      reaches_a_hypervisor, mounts,
		leaves_its_namespace,  makes_code,           makes_code_of_data,
		types_into_a_terminal, queues_in_a_ring,     becomes_another};

	for (size_t i = 0; i < ARRAY_SIZE(deeds); i++)
		assert_int_equal(of(0, deeds[i]), EPERM);
}

TEST(test_what_it_records_with_it_keeps)
{
	assert_int_equal(of(0, works_on), 0);
}

TEST(test_a_family_keeps_what_it_says)
{
	assert_int_equal(of(CONFINE_EXECS, runs_another), 0);
	assert_int_equal(of(CONFINE_EXECS, loads_a_program), EPERM);
	assert_int_not_equal(of(CONFINE_LOADS | CONFINE_EXECS, loads_a_program),
			     geteuid() ? 0 : EPERM);
	assert_int_equal(of(CONFINE_LOADS, runs_another), EPERM);
	assert_int_equal(of(CONFINE_LOADS, opens_by_handle), EPERM);
	assert_int_equal(of(CONFINE_HANDLES, opens_by_handle), EBADF);
	assert_int_equal(of(CONFINE_HANDLES, reaches_the_network), EPERM);
	assert_int_equal(of(CONFINE_OTHERS, reaches_the_network), 0);
	assert_int_equal(of(CONFINE_OTHERS, makes_code), 0);
	assert_int_equal(of(CONFINE_OTHERS, traces_another), EPERM);
}

TEST(test_threads_that_run_already_are_confined_too)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		pthread_t thread;
		long refused = 0;

		pthread_barrier_init(&both, NULL, 2);
		pthread_create(&thread, NULL, tries_later, &refused);
		pthread_barrier_wait(&both);
		if (confine(0, NULL))
			_exit(255);
		pthread_barrier_wait(&both);
		pthread_join(thread, NULL);
		_exit((int)refused);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), EPERM);
}
