/* SPDX-License-Identifier: Apache-2.0 */
/* sonded: the continuous recorder. Command line, configuration, going into the background; loop.c
 * does the rest. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "schema/base/cleanup.h"
#include "loaders/lib/sandbox/confine.h"
#include "schema/base/cli/options.h"
#include "schema/base/cli/quantity.h"
#include "schema/base/err.h"
#include "schema/base/log.h"
#include "schema/base/strbuf.h"
#include "schema/base/typed.h"
#include "schema/families/families.h"
#include "loaders/lib/host/budget/weight.h"
#include "schema/store/files/folder.h"
#include "schema/store/files/mend.h"
#include "schema/store/write/writer.h"
#include "supervisor/children/become.h"
#include "supervisor/children/front.h"
#include "supervisor/config/conf.h"
#include "supervisor/limits/load_limit.h"
#include "supervisor/loop.h"
#include "supervisor/retention/madestore.h"
#include "supervisor/control/log_lines.h"

#define NICE          (-5)      /* as in the unit */
#define LOG_BYTES_MAX (1 << 20) /* sonded.log is truncated past this (log_lines.h) */

struct sonded {
	const char *dir, *flags[CONF_KEYS];
	bool check, show, origin, background, replace, mend;
	int failed; /* in the background: the exit code of the first family that does not record */
	int told;   /* a pipe to the process that started sonded; -1: none */
	int before; /* its stderr, until sonded is ready; -1 */
	struct madestore
		madestore; /* in the background: undoes a store in which no recording began */
};

static const struct program PROGRAM = {
	.name = "sonded",
	.usage = "[options]",
	.about =
		"Keeps recording: starts the loaders, watches them, keeps the store within its budget.",
};

/* clang-format off */
static const struct option OPTIONS[] = {
	{"config", 0, OPTION_STRING, "DIR", "read DIR/sonde.conf and DIR/conf.d instead of " CONF_DIR, OPTION_AT(struct sonded, dir)},
	{"check-config", 0, OPTION_FLAG, NULL, "check the configuration, and exit", OPTION_AT(struct sonded, check)},
	{"show-config", 0, OPTION_FLAG, NULL, "print the settings in effect, and exit", OPTION_AT(struct sonded, show)},
	{"origin", 0, OPTION_FLAG, NULL, "with --show-config: also print where each value comes from", OPTION_AT(struct sonded, origin)},
	{"background", 0, OPTION_FLAG, NULL, "return once it records, and keep running", OPTION_AT(struct sonded, background)},
	{"replace", 0, OPTION_FLAG, NULL, "take over from a running sonded, which stops cleanly first", OPTION_AT(struct sonded, replace)},
	{"mend", 0, OPTION_FLAG, NULL, "give what root left in the store to the owner of its folder, and exit", OPTION_AT(struct sonded, mend)},
	{0},
};
/* clang-format on */

/* Each key of the configuration is an option as well. */
static int parse(int argc, char **argv, struct sonded *d, struct err *e)
{
	struct option keys[CONF_KEYS + 1] = {0};
	const struct option_set sets[] = {{keys, d}, {OPTIONS, d}};

	for (size_t i = 0; i < conf_count(); i++) {
		enum conf_key key = conf_shown(i);

		keys[i] = (struct option){.name = conf_setting(key)->name,
					  .type = OPTION_STRING,
					  .arg = "VALUE",
					  .help = conf_setting(key)->help,
					  .offset = offsetof(struct sonded, flags) +
						    (size_t)key * sizeof(d->flags[0])};
	}
	return program_options(&PROGRAM, argc, argv, sets, 2, NULL, e);
}

/* --- the background --- */

/* From now on the terminal is not used: messages go to the store's log. */
static void on_ready(void *ctx)
{
	struct sonded *d = ctx;
	char code = (char)d->failed;

	if (d->told < 0)
		return;
	if (write(d->told, &code, 1) != 1)
		log_line(LOG_LEVEL_WARN, "sonded", "the process that started sonded is gone");
	close(d->told);
	close(d->before);
	d->told = d->before = -1;
}

static void on_not_recording(void *ctx, const struct err *why)
{
	struct sonded *d = ctx;
	struct strbuf fix cleanup_strbuf = STRBUF_INIT;

	if (!d->failed)
		d->failed = why->exit;
	typed_add(&fix, why->fix);
	if (d->told >= 0)
		dprintf(d->before, "sonded: %s%s%s\n", why->what, fix.len ? "\n  fix: " : "",
			strbuf_str(&fix));
}

static const char *store_of(const struct conf *c)
{
	return *c->value[CONF_STORE].text ? c->value[CONF_STORE].text : store_default_dir();
}

static int open_log(struct sonded *d, const struct conf *c, struct err *e)
{
	const char *store = store_of(c);
	char path[PATH_MAX + 16];
	int fd, rc;

	madestore_note(&d->madestore, store);
	rc = folder_prepare(store, e);
	if (rc)
		return rc;
	snprintf(path, sizeof(path), "%s/sonded.log", store);
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0640);
	if (fd < 0)
		return err_set(e, -errno, EXIT_PERMISSION, "cannot write %s: %s", path,
			       strerror(errno));
	folder_own(fd, path, 0640);
	return fd;
}

static int log_to_store(struct sonded *d, const struct conf *c, struct err *e)
{
	cleanup_fd int log = open_log(d, c, e);

	if (log < 0)
		return log;
	dup2(log, STDOUT_FILENO);
	dup2(log, STDERR_FILENO);
	log_lines_init_file(LOG_BYTES_MAX);
	return 0;
}

/* In the parent: waits for the child's byte. -1: this is the child, which continues. */
static int leave_to_child(struct sonded *d)
{
	int fds[2], status;
	char word;
	pid_t child;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return EXIT_RUNTIME;
	child = fork();
	if (child < 0)
		return EXIT_RUNTIME;
	if (!child) {
		close(fds[0]);
		d->told = fds[1];
		setsid();
		return -1;
	}
	close(fds[1]);
	if (read(fds[0], &word, 1) == 1)
		return word;
	return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) :
									  EXIT_RUNTIME;
}

/* Out of what started it: into the background, or into a session that it may give weight. -1: go on
 * as sonded; else an exit code. */
static int leave(struct sonded *d, const struct conf *c)
{
	int code;

	if (d->background)
		return leave_to_child(d);
	if (c->cpu <= 0 || !front_needed())
		return -1;
	code = front_leave();
	if (code < 0 && errno)
		log_warn(
			"cannot begin a session: %s; on a busy host sonde gets no more CPU time than its terminal's other programs",
			strerror(errno));
	return code;
}

/* A minute; for tests, $SONDE_PATIENCE. */
static int64_t patience(void)
{
	const char *text = getenv("SONDE_PATIENCE");
	int64_t ns;

	return text && !quantity_ns(text, &ns) ? ns : LOAD_LIMIT_WHILE_NS;
}

/* All of sonde alike: loaders that raised their own priority alone would leave sonde-maps, which
 * makes their tables, without a CPU. */
static void hurry(void)
{
	weight_raise(WEIGHT_DAEMON);
	if (getpriority(PRIO_PROCESS, 0) == 0 && setpriority(PRIO_PROCESS, 0, NICE))
		log_debug("cannot raise the priority: %s", strerror(errno));
}

static int run(struct sonded *d, struct conf *c, struct err *e)
{
	struct loop_opts o = {.conf_dir = d->dir,
			      .flags = d->flags,
			      .replace = d->replace,
			      .patience_ns = patience(),
			      .conf = c,
			      .ready = on_ready,
			      .not_recording = on_not_recording,
			      .must_record = d->background,
			      .ctx = d};
	cleanup_fd int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int rc = 0;

	if (null >= 0)
		dup2(null, STDIN_FILENO);
	if (d->background) {
		d->before = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
		rc = log_to_store(d, c, e);
		if (rc)
			return rc;
	}
	if (c->cpu > 0) /* without a limit of its own it takes no more than its share */
		hurry();
	while ((rc = loop_run(&o, e)) == -ESTALE)
		if (d->background && (rc = log_to_store(d, c, e)))
			break;
	if (rc && d->told >= 0) {
		dup2(d->before,
		     STDERR_FILENO); /* the process that started sonded still reads this */
		madestore_remove(&d->madestore);
	}
	return rc;
}

/* A store that is not there yet needs none. */
static int mend(const char *store, struct err *e)
{
	int rc = folder_mend(store);

	if (rc >= 0 || rc == -ENOENT)
		return 0;
	err_set(e, rc, EXIT_PERMISSION, "cannot give root's files in %s to the folder's owner: %s",
		store, strerror(-rc));
	err_fix(e, "sudo chown -R --reference=%s %s", store, store);
	return rc;
}

/* Does it record a family whose loader becomes the user of others' programs? */
static bool attaches(const struct conf *c)
{
	const struct probe_family *of[FAMILIES_MAX];
	struct err e = {0};
	size_t n = 0;

	if (families_of(c->value[CONF_FAMILIES].text, of, &n, &e))
		return false;
	while (n && of[n - 1]->rights != FAMILY_ATTACHES)
		n--;
	return n;
}

int main(int argc, char **argv)
{
	struct sonded d = {.told = -1, .before = -1};
	struct conf c;
	struct err e = {0};
	int rc = parse(argc, argv, &d, &e);

	log_init("sonded", LOG_LEVEL_WARN);
	log_lines_init();
	if (rc > 0)
		return program_end(PROGRAM.name, rc, &e);
	if (!rc)
		rc = conf_load(d.dir, d.flags, &c, &e);
	if (rc)
		return err_report(&e, "sonded");
	if (d.show || d.check) {
		if (d.show)
			conf_print(&c, d.origin, stdout);
		return fflush(stdout) ? EXIT_RUNTIME : EXIT_OK;
	}
	if (d.mend)
		return mend(store_of(&c), &e) ? err_report(&e, "sonded") : EXIT_OK;
	if (become_store_user(store_of(&c), argv, &e))
		return err_report(&e, "sonded");
	rc = leave(&d, &c);
	if (rc >= 0)
		return rc;
	/* a kernel that cannot confine it is no reason not to record */
	if (confine(CONFINE_EXECS | CONFINE_LOADS | CONFINE_HANDLES | CONFINE_OTHERS |
			    (attaches(&c) || !c.no_dotnet ? CONFINE_USERS : 0),
		    &e))
		log_warn("%s", e.what);
	return run(&d, &c, &e) ? err_report(&e, "sonded") : EXIT_OK;
}
