/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/checks/checkstate.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/hash.h"
#include "schema/base/mem.h"

#define PATIENCE_MS 60000
#define PATH_ROOM   (PATH_MAX + 64)

/* --- the file --- */

static void usual_path(const char *store, char *out, size_t size)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	char whole[PATH_MAX];
	const struct passwd *pw;
	uint64_t key;

	if (!realpath(store, whole))
		snprintf(whole, sizeof(whole), "%s", store);
	key = hash_bytes(HASH_SEED, whole, strlen(whole));
	if (!home || *home != '/') {
		pw = getpwuid(geteuid());
		home = pw ? pw->pw_dir : "/";
	}
	if (state && *state == '/')
		snprintf(out, size, "%s", state);
	else
		snprintf(out, size, "%s/.local/state", home);
	for (char *at = out + 1; (at = strchr(at, '/'));
	     *at++ = '/') { /* the part of the path that is missing */
		*at = '\0';
		mkdir(out, 0755);
	}
	mkdir(out, 0700);
	snprintf(out + strlen(out), size - strlen(out), "/sonde-checks-%016llx.json",
		 (unsigned long long)key);
}

static int cannot(const char *what, const char *path, struct err *e)
{
	int code = errno ? errno : EIO;

	err_set(e, -code, code == EACCES || code == EPERM ? EXIT_PERMISSION : EXIT_RUNTIME,
		"cannot %s %.300s: %s", what, path, strerror(code));
	err_fix(e, "name a file that you can write: --state FILE");
	return -code;
}

/* {} if there is no file yet. */
static json_t *state_load(const char *path)
{
	json_t *state = json_load_file(path, 0, NULL);

	if (!json_is_object(state)) {
		json_decref(state);
		state = json_object();
	}
	return state;
}

static int state_save(const char *path, const json_t *state, struct err *e)
{
	char next[PATH_ROOM + 8];

	snprintf(next, sizeof(next), "%s.new", path);
	errno = 0;
	if (json_dump_file(state, next, JSON_INDENT(1) | JSON_SORT_KEYS) || rename(next, path))
		return cannot("write", path, e);
	return 0;
}

/* --- the program --- */

static void set_env(const char *name, const char *value)
{
	setenv(name, value, 1);
}

static void child_main(const char *command, const struct check_result *r, const char *text,
		       const char *next, int in)
{
	char value[32];

	snprintf(value, sizeof(value), "%.6g", r->value);
	set_env("SONDE_STATE", check_state_name(r->state));
	set_env("SONDE_LEVEL", r->check->critical ? "critical" : "warning");
	set_env("SONDE_CHECK", r->check->name);
	set_env("SONDE_SUBJECT", r->subject);
	set_env("SONDE_VALUE", value);
	set_env("SONDE_UNIT", r->check->unit);
	set_env("SONDE_TEXT", text);
	set_env("SONDE_NEXT", next);
	dup2(in, STDIN_FILENO);
	dup2(STDERR_FILENO, STDOUT_FILENO); /* this process has the answer */
	setpgid(0, 0);
	execl("/bin/sh", "sh", "-c", command, (char *)NULL);
	_exit(127);
}

/* Did it end by itself within its time? Otherwise it is killed, with everything it started. */
static bool is_done(pid_t child)
{
	cleanup_fd int fd = (int)syscall(SYS_pidfd_open, child, 0);
	struct pollfd p = {.fd = fd, .events = POLLIN};
	int status = -1;

	if (fd >= 0 && poll(&p, 1, PATIENCE_MS) != 1) {
		kill(-child, SIGKILL);
		waitpid(child, &status, 0);
		return false;
	}
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) && !WEXITSTATUS(status);
}

static bool tell(const char *command, const struct check_result *r)
{
	struct strbuf text cleanup_strbuf = STRBUF_INIT, next cleanup_strbuf = STRBUF_INIT;
	int in[2];
	pid_t child;

	check_say(r, &text);
	check_next(r, &next);
	if (pipe2(in, O_CLOEXEC))
		return false;
	child = fork();
	if (!child)
		child_main(command, r, strbuf_str(&text), strbuf_str(&next), in[0]);
	close(in[0]);
	if (child > 0) {
		strbuf_addch(&text, '\n');
		signal(SIGPIPE, SIG_IGN); /* a program that does not read it is fine; the pipe has
					     room for all of it */
		if (write(in[1], text.buf, text.len) < 0)
			errno = 0;
	}
	close(in[1]);
	return child > 0 && is_done(child);
}

/* --- changes --- */

static void key_of(const struct check_result *r, struct strbuf *out)
{
	strbuf_reset(out);
	strbuf_addf(out, "%s\n%s", r->check->name, r->subject);
}

static const struct check_result *bad_of(const struct check_results *r, const char *key)
{
	struct strbuf own cleanup_strbuf = STRBUF_INIT;

	for (size_t i = 0; i < r->n; i++) {
		key_of(&r->rows[i], &own);
		if (r->rows[i].state == CHECK_BAD && !strcmp(strbuf_str(&own), key))
			return &r->rows[i];
	}
	return NULL;
}

/* The check of a key; NULL: it was not run, or is not measured. */
static const struct checkfile *asked(const struct check_results *r, const struct checkfiles *checks,
				     const char *key)
{
	const size_t len = strcspn(key, "\n");

	for (size_t i = 0; i < r->n; i++)
		if (r->rows[i].state == CHECK_UNMEASURED && strlen(r->rows[i].check->name) == len &&
		    !strncmp(r->rows[i].check->name, key, len))
			return NULL;
	for (size_t i = 0; i < checks->n; i++)
		if (strlen(checks->rows[i].name) == len && !strncmp(checks->rows[i].name, key, len))
			return &checks->rows[i];
	return NULL;
}

static void tell_bad(json_t *state, const char *command, const struct check_results *r,
		     size_t *told, size_t *failed)
{
	struct strbuf key cleanup_strbuf = STRBUF_INIT;

	for (size_t i = 0; i < r->n; i++) {
		if (r->rows[i].state != CHECK_BAD)
			continue;
		key_of(&r->rows[i], &key);
		if (json_object_get(state, strbuf_str(&key)))
			continue;
		if (tell(command, &r->rows[i])) {
			json_object_set_new(state, strbuf_str(&key),
					    json_integer(r->to_s * NSEC_PER_SEC));
			++*told;
		} else {
			++*failed;
		}
	}
}

static void tell_recovered(json_t *state, const char *command, const struct check_results *r,
			   const struct checkfiles *checks, size_t *told, size_t *failed)
{
	const char *key;
	json_t *since;
	void *next;

	json_object_foreach_safe (state, next, key, since) {
		const struct checkfile *c = asked(r, checks, key);
		struct check_result gone = {
			.check = c, .state = CHECK_RECOVERED, .text = (char *)(uintptr_t) ""};

		if (!c || bad_of(r, key))
			continue;
		gone.subject = (char *)(uintptr_t)key + strcspn(key, "\n") + 1;
		if (tell(command, &gone)) {
			json_object_del(state, key);
			++*told;
		} else {
			++*failed;
		}
	}
}

int checkstate_notify(const char *path, const char *store, const char *command,
		      const struct check_results *r, const struct checkfiles *checks, size_t *told,
		      size_t *failed, struct err *e)
{
	char usual[PATH_ROOM] = "", lock[PATH_ROOM + 8];
	cleanup_fd int fd = -1;
	json_t *state;
	int rc;

	*told = *failed = 0;
	if (!path) {
		usual_path(store, usual, sizeof(usual));
		path = usual;
	}
	snprintf(lock, sizeof(lock), "%.*s.lock", PATH_ROOM - 1, path);
	fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 ||
	    flock(fd, LOCK_EX)) /* another process that is running reports the same changes */
		return cannot("write", lock, e);
	state = state_load(path);
	tell_bad(state, command, r, told, failed);
	tell_recovered(state, command, r, checks, told, failed);
	rc = *told ? state_save(path, state, e) : 0;
	json_decref(state);
	return rc;
}
