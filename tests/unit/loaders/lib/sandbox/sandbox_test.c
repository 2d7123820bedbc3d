/* SPDX-License-Identifier: Apache-2.0 */
/* The sandbox: each test forks, the child enters the sandbox and tries one thing, the parent checks
 * how the child ended. */
#include "schema/base/array.h"
#include "tests/unit/loaders/index/testing.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loaders/lib/sandbox/sandbox.h"

#define SURVIVED 7

static int run_caged(void (*deed)(void))
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		if (sandbox_enter(SANDBOX_SMALL, NULL))
			_exit(1);
		deed();
		_exit(SURVIVED);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void opens(void)
{
	syscall(SYS_openat, AT_FDCWD, "/etc/passwd", O_RDONLY);
}

static void opens_the_old_way(void)
{
	syscall(SYS_open, "/etc/passwd", O_RDONLY);
}

static void stats(void)
{
	char buf[256];

	syscall(SYS_stat, "/etc/passwd", buf);
}

static void makes_a_socket(void)
{
	socket(AF_INET, SOCK_STREAM, 0);
}

static void forks(void)
{
	syscall(SYS_fork);
}

static void clones(void)
{
	syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

static void executes(void)
{
	char *argv[] = {"true", NULL};

	execv("/bin/true", argv);
}

static void traces(void)
{
	ptrace(PTRACE_TRACEME, 0, 0, 0);
}

static void kills_its_parent(void)
{
	syscall(SYS_kill, getppid(), 0);
}

static void unlinks(void)
{
	unlink("/nonexistent/x");
}

static void maps_code(void)
{
	syscall(SYS_mmap, NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

TEST(what_is_not_allowed_kills)
{
	void (*const deeds[])(void) = {
		opens,  opens_the_old_way, stats,   makes_a_socket, forks, clones, executes,
		traces, kills_its_parent,  unlinks, maps_code};

	for (size_t i = 0; i < ARRAY_SIZE(deeds); i++) {
		int status = run_caged(deeds[i]);

		assert_true(WIFSIGNALED(status));
		assert_int_equal(WTERMSIG(status), SIGSYS);
	}
}

static void reads_and_computes(void)
{
	uint8_t buf[64];
	uint8_t *p = malloc(64 << 20);

	if (!p || pread(STDIN_FILENO, buf, sizeof(buf), 0) < -1)
		_exit(1);
	memset(p, 1, 64 << 20);
	p = realloc(p, 128 << 20);
	free(p);
}

TEST(reading_and_computing_go_on)
{
	int status = run_caged(reads_and_computes);

	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), SURVIVED);
}

TEST(no_capability_is_left)
{
	int up[2], go[2], status;
	char line[256], path[64], byte = 0;
	unsigned long long bits;
	int seen = 0;
	pid_t pid;
	FILE *f;

	assert_int_equal(pipe(up), 0);
	assert_int_equal(pipe(go), 0);
	pid = fork();
	if (pid == 0) {
		if (sandbox_enter(SANDBOX_SMALL, NULL) || write(up[1], "x", 1) != 1 ||
		    read(go[0], &byte, 1) != 1)
			_exit(1);
		_exit(SURVIVED);
	}
	assert_int_equal(read(up[0], &byte, 1), 1);
	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "CapPrm: %llx", &bits) == 1 ||
		    sscanf(line, "CapEff: %llx", &bits) == 1 ||
		    sscanf(line, "CapBnd: %llx", &bits) == 1 ||
		    sscanf(line, "CapInh: %llx", &bits) == 1 ||
		    sscanf(line, "CapAmb: %llx", &bits) == 1) {
			/* an unprivileged caller cannot empty the bounding set, whose capabilities
			 * are of no use to it */
			if (geteuid() == 0 || strncmp(line, "CapBnd", 6))
				assert_int_equal(bits, 0);
			seen++;
		}
		if (!strncmp(line, "NoNewPrivs:", 11))
			seen += atoi(line + 11) == 1;
		if (!strncmp(line, "Seccomp:", 8))
			seen += atoi(line + 8) == 2;
	}
	fclose(f);
	assert_int_equal(seen, 7);
	assert_int_equal(write(go[1], "x", 1), 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == SURVIVED);
	close(up[0]), close(up[1]), close(go[0]), close(go[1]);
}

static void spins(void)
{
	for (volatile unsigned long i = 0;; i++)
		;
}

TEST(a_hang_ends_with_its_cpu_time)
{
	struct rlimit two = {2, 2};
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		/* the sandbox never raises a limit: one second instead of ten, and one more until
		 * the kill */
		if (setrlimit(RLIMIT_CPU, &two) || sandbox_enter(SANDBOX_SMALL, NULL))
			_exit(1);
		spins();
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGXCPU); /* SIGKILL is what comes from outside */
}

#if !defined(__SANITIZE_ADDRESS__)
/* A sanitizer's own memory is beyond any limit. */
TEST(a_softer_limit_of_memory_of_who_started_it_is_not_its_own)
{
	struct rlimit r;
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		getrlimit(RLIMIT_DATA, &r);
		r.rlim_cur = 8 << 20;
		if (setrlimit(RLIMIT_DATA, &r) || malloc(64 << 20) ||
		    sandbox_enter(SANDBOX_SMALL, NULL))
			_exit(1);
		_exit(malloc(64 << 20) ? 0 : 2);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* libdw asks for the path of each file that it is given: the call fails with EACCES, and does not
 * kill. */
static void reads_a_link(void)
{
	char buf[64];

	if (readlink("/proc/self/exe", buf, sizeof(buf)) != -1 || errno != EACCES)
		_exit(1);
}

TEST(a_links_target_is_not_told)
{
	int status = run_caged(reads_a_link);

	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == SURVIVED);
}

static void fills_memory(void)
{
	size_t got = 0;

	while (malloc(16 << 20))
		got += 16 << 20;
	_exit(got < (1ull << 30) ? 0 : 1);
}

TEST(memory_ends_at_the_limit)
{
	int status = run_caged(fills_memory);

	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}
#endif
