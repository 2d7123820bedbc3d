/* SPDX-License-Identifier: Apache-2.0 */
/*
 * err: an error that a person will read, and the exit codes of every program.
 *
 * Functions return 0 or a negative errno. Those whose failure a person must act on also take a
 * `struct err *`. The place that knows the facts fills it, once: what failed, why (with the
 * evidence), and the command that fixes it. Callers pass it up unchanged; main prints it and exits
 * with its code. `e` may be NULL. On failure outputs are untouched.
 */
#ifndef SONDE_BASE_ERR_H
#define SONDE_BASE_ERR_H

enum sonde_exit {
	EXIT_OK = 0,
	EXIT_RUNTIME = 1, /* something failed while running */
	EXIT_USAGE = 2,   /* the command line is wrong, or names something that does not exist */
	EXIT_PREREQUISITE = 3, /* the kernel lacks something: BTF, a hook; lockdown */
	EXIT_NOTHING = 4,      /* nothing matched: empty range, idle target */
	EXIT_PERMISSION = 5,   /* rights are missing */
	EXIT_STORE = 6,        /* the store is locked, damaged, full, or of a newer schema */
	EXIT_INTERRUPTED = 130 /* SIGINT before any data */
};

struct err {
	int code;       /* negative errno, 0: no error yet */
	int exit;       /* enum sonde_exit */
	char what[768]; /* "cannot open /x/y: permission denied" */
	char fix[384];  /* a command or a sentence; "": no fix */
};

/* Fill in `e` and return `code` (a negative errno), so that `return err_set(...)` reads well. */
int err_set(struct err *e, int code, enum sonde_exit exit, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* Add the fix. No effect on NULL. */
void err_fix(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Print "PROG: WHAT" and "  fix: FIX" (its commands as they are typed here, schema/base/typed.h) on
 * stderr; returns the exit code for main (EXIT_RUNTIME if none was set). */
int err_report(const struct err *e, const char *prog);

#endif
