// SPDX-License-Identifier: Apache-2.0
#include "loaders/lib/bpf/load.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>

static bool load_verbose;

static int load_print(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	if (!load_verbose || level > LIBBPF_INFO)
		return 0;
	return vfprintf(stderr, fmt, ap);
}

static bool memlock_counts(void)
{
	unsigned int major = 0, minor = 0;
	struct utsname u;

	return !uname(&u) && sscanf(u.release, "%u.%u", &major, &minor) == 2 && (major < 5 || (major == 5 && minor < 11));
}

/*
 * libbpf would raise RLIMIT_MEMLOCK by itself and warn where that is forbidden. Only before 5.11 does BPF memory count
 * against it: there it is raised as far as that goes, and a refusal at load says so.
 */
void load_init(bool verbose)
{
	struct rlimit rl = {RLIM_INFINITY, RLIM_INFINITY};

	load_verbose = verbose;
	libbpf_set_strict_mode(LIBBPF_STRICT_ALL);
	libbpf_set_memlock_rlim(0);
	libbpf_set_print(load_print);
	if (memlock_counts() && setrlimit(RLIMIT_MEMLOCK, &rl) && !getrlimit(RLIMIT_MEMLOCK, &rl)) {
		rl.rlim_cur = rl.rlim_max;
		setrlimit(RLIMIT_MEMLOCK, &rl);
	}
}

int load_error(int err, const char *what, struct err *e)
{
	struct rlimit rl = {0};

	getrlimit(RLIMIT_MEMLOCK, &rl);
	if (err == -EPERM || err == -EACCES) {
		err_set(e, err, EXIT_PERMISSION,
			"the kernel does not offer this here: loading '%s' was refused (%s; RLIMIT_MEMLOCK %lld KiB)", what,
			strerror(-err), rl.rlim_cur == RLIM_INFINITY ? -1ll : (long long)(rl.rlim_cur >> 10));
		err_fix(e, "in a container: cap_add: [BPF, PERFMON] and a seccomp profile that allows bpf(2); -v shows libbpf's log");
		return err;
	}
	if (err == -ENOMEM)
		return err_set(e, err, EXIT_RUNTIME, "no memory for the programs of '%s'", what);
	err_set(e, err, EXIT_PREREQUISITE, "this kernel cannot run '%s': %s", what, strerror(-err));
	err_fix(e, "run it again with -v and report what libbpf says");
	return err;
}
