/* SPDX-License-Identifier: Apache-2.0 */
/* kstack: the kernel's own unwinder is the oracle, for each stack of a workload that is deep in
 * system calls, interrupted anywhere. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <linux/types.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "loaders/lib/host/names/kallsyms.h"
#include "probes/lib/kstack.h"
#include "tests/unit/missing.h"
#include "tests/unit/probes/kstack_check.bpf.h"

#include "tests/unit/probes/kstack_check.skel.h"
#include "tests/unit/test.h"

#define WANTED  500 /* stacks */
#define LONGEST 60  /* seconds that they may take on a busy machine */

/* Page faults, pipes, sockets, paths, new processes: until it is killed. */
static void load(void)
{
	static char page[4096];
	int pipes[2], pair[2];

	if (pipe(pipes) || socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		_exit(1);
	for (;;) {
		struct stat st;
		char *fresh = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		for (size_t i = 0; fresh != MAP_FAILED && i < 1 << 20; i += 4096)
			fresh[i] = 1;
		if (fresh != MAP_FAILED)
			munmap(fresh, 1 << 20);
		for (int i = 0; i < 20; i++) {
			if (write(pipes[1], page, sizeof(page)) != sizeof(page) ||
			    read(pipes[0], page, sizeof(page)) < 0 ||
			    write(pair[0], page, sizeof(page)) != sizeof(page) ||
			    read(pair[1], page, sizeof(page)) < 0)
				_exit(1);
			stat("/proc/self/status", &st);
		}
		if (!fork())
			_exit(0);
		waitpid(-1, NULL, 0);
	}
}

static int attach(int prog)
{
	struct perf_event_attr attr = {.size = sizeof(attr),
				       .type = PERF_TYPE_SOFTWARE,
				       .config = PERF_COUNT_SW_CPU_CLOCK,
				       .sample_freq = 997,
				       .freq = 1,
				       .inherit = 0};
	int n = 0;

	for (int cpu = 0; cpu < (int)sysconf(_SC_NPROCESSORS_CONF); cpu++) {
		int fd =
			(int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

		if (fd >= 0 && !ioctl(fd, PERF_EVENT_IOC_SET_BPF, prog) &&
		    !ioctl(fd, PERF_EVENT_IOC_ENABLE, 0))
			n++; /* closed with this program */
	}
	return n;
}

static bool tables_find(struct kstack_tables *t)
{
	struct kallsyms *k = NULL;
	struct kallsyms_orc orc;
	bool found = !kallsyms_load(NULL, &k) && kallsyms_orc(k, &orc);

	if (found)
		*t = (struct kstack_tables){.text = orc.text,
					    .text_bytes = orc.text_end - orc.text,
					    .ips = orc.ips,
					    .entries = orc.entries,
					    .hook = orc.hook,
					    .count = (__u32)((orc.ips_end - orc.ips) / 4)};
	kallsyms_free(k);
	return found;
}

TEST(every_stack_that_is_walked_is_the_kernel_s_own)
{
	static struct kstack_check_bpf *skel; /* to the end of this program */
	volatile struct kstack_check *check;
	pid_t child;

	skel = geteuid() ? NULL : kstack_check_bpf__open_and_load();
	if (!skel)
		skip_missing("the right to load BPF programs");
	if (!tables_find(&skel->bss->kstack_tables))
		skip_missing("the kernel's ORC tables in /proc/kallsyms");
	check = &skel->bss->check;
	child = fork();
	if (!child)
		load();
	assert_true(attach(bpf_program__fd(skel->progs.check_sample)) > 0);
	for (int i = 0; i < LONGEST * 50 && check->stacks < WANTED && (check->possible || i < 250);
	     i++)
		nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	print_message("%llu stacks, %llu frames, %llu otherwise\n",
		      (unsigned long long)check->stacks, (unsigned long long)check->frames,
		      (unsigned long long)check->otherwise);
	if (!check->possible)
		skip_missing("ORC tables of the form of Linux 6.4");
	assert_true(check->stacks >= WANTED);
	assert_int_equal(check->differ, 0);
	assert_true(check->otherwise <
		    check->stacks); /* of modules, where most of it runs in those */
	assert_true(check->frames > check->stacks - check->otherwise);
}
