/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/bpf/load/load.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "loaders/lib/bpf/load/leftout.h"
#include "loaders/lib/bpf/start/preflight.h"
#include "schema/base/limits/memlimit.h"

#define MEMORY_FEW (128u << 20)
#define FILES_FIT  4096 /* a big host: some thousand CPUs' events */

static bool load_verbose;

static int load_print(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	if (level == LIBBPF_WARN)
		leftout_hear(fmt, ap);
	if (!load_verbose || level > LIBBPF_INFO)
		return 0;
	return vfprintf(stderr, fmt, ap);
}

/*
 * libbpf raises RLIMIT_MEMLOCK by itself, and only before 5.11, where BPF memory counts against it;
 * if that is forbidden it goes on, and the load fails with a message. (libbpf_set_memlock_rlim is
 * in libbpf 1.1's header but not among the symbols that Debian 12's library exports.)
 */
void load_init(bool verbose)
{
	struct rlimit files;

	/* each program, map, link and CPU's event is an open file */
	if (!getrlimit(RLIMIT_NOFILE, &files) && files.rlim_cur < files.rlim_max) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	load_verbose = verbose;
	libbpf_set_strict_mode(LIBBPF_STRICT_ALL);
	libbpf_set_print(load_print);
}

static int no_files(int err, const char *what, struct err *e)
{
	struct rlimit rl = {0};

	getrlimit(RLIMIT_NOFILE, &rl);
	if (err == -ENFILE) {
		err_set(e, err, EXIT_PREREQUISITE,
			"too many files are open on this host (fs.file-max) to load '%s'", what);
		err_fix(e, "sudo sysctl fs.file-max=1000000");
		return err;
	}
	err_set(e, err, EXIT_PREREQUISITE,
		"too many open files to load '%s': this process may have %llu (RLIMIT_NOFILE)",
		what, (unsigned long long)rl.rlim_max);
	err_fix(e, "ulimit -n %d    (systemd: LimitNOFILE=%d)", FILES_FIT, FILES_FIT);
	return err;
}

/* The process has the rights (preflight), so something else refuses it. */
static int refused(int err, const char *what, struct err *e)
{
	const char *program = leftout_last();
	char why[256];
	const char *fix = preflight_refused(why, sizeof(why));

	err_set(e, err, EXIT_PERMISSION, "loading '%s' was refused%s%s (%s): %s", what,
		*program ? ", at the program " : "", program, strerror(-err), why);
	err_fix(e, "%s", fix);
	return err;
}

int load_error(int err, const char *what, struct err *e)
{
	struct memlimit limit;

	if (err == -EPERM || err == -EACCES)
		return refused(err, what, e);
	if (err == -EMFILE || err == -ENFILE)
		return no_files(err, what, e);
	memlimit_read(&limit);
	if (err == -ENOMEM ||
	    (err == -ESRCH && limit.bytes < MEMORY_FEW)) { /* of reading types, too */
		err_set(e, err, EXIT_RUNTIME, "no memory for the programs of '%s'%s%s", what,
			limit.bytes == UINT64_MAX ? "" : ": ", limit.what);
		err_fix(e, "%s", limit.fix);
		return err;
	}
	err_set(e, err, EXIT_PREREQUISITE, "this kernel cannot run '%s': %s", what, strerror(-err));
	err_fix(e, "run it again with -v and report what libbpf says");
	return err;
}
