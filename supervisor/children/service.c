/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/children/service.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "schema/base/clock.h"
#include "schema/base/limits/memlimit.h"
#include "schema/base/sibling.h"
#include "supervisor/limits/load_limit.h"
#include "supervisor/children/policy.h"
#include "supervisor/control/log_lines.h"

#define LINE_MAX_BYTES (256u << 10)

const char *service_state_name(enum service_state s)
{
	static const char *const names[] = {"off",     "waiting",  "starting",
					    "running", "stopping", "failed"};

	return names[s];
}

void service_init(struct service *s, const char *name, const struct probe_family *f)
{
	*s = (struct service){.family = f, .progress_fd = -1, .stderr_fd = -1};
	snprintf(s->name, sizeof(s->name), "%s", name);
	snprintf(s->program, sizeof(s->program), "sonde-%.20s", name);
}

static void close_fds(struct service *s)
{
	if (s->progress_fd >= 0)
		close(s->progress_fd);
	if (s->stderr_fd >= 0)
		close(s->stderr_fd);
	s->progress_fd = s->stderr_fd = -1;
}

void service_release(struct service *s)
{
	close_fds(s);
	strbuf_release(&s->line);
	strbuf_release(&s->stderr_line);
}

static void enter(struct service *s, enum service_state state)
{
	s->state = state;
	s->since_ns = clock_mono_ns();
}

/* --- starting --- */

static void fail(struct service *s, bool was_ready)
{
	uint32_t chance = 0;

	s->failures++;
	s->last.code = 0;
	err_set(&s->last, -EIO, s->exit > 0 ? (enum sonde_exit)s->exit : EXIT_RUNTIME, "%s",
		s->why);
	err_fix(&s->last, "%s", s->fix);
	if (policy_gives_up(s->failures, was_ready, s->exit)) {
		enter(s, SERVICE_FAILED);
		log_line(LOG_LEVEL_ERROR, s->program, "will not be restarted: %s%s%s", s->why,
			 s->fix[0] ? "; fix: " : "", s->fix);
		return;
	}
	if (getrandom(&chance, sizeof(chance), GRND_NONBLOCK) != sizeof(chance))
		chance = (uint32_t)clock_mono_ns();
	enter(s, SERVICE_WAITING);
	s->again_ns = clock_mono_ns() + policy_delay_ns(s->failures, was_ready, chance);
	log_line(LOG_LEVEL_WARN, s->program, "%s; restarting in %.1f s", s->why,
		 (double)(s->again_ns - clock_mono_ns()) / 1e9);
}

static void fail_start(struct service *s, const struct err *e)
{
	s->exit = e->exit;
	snprintf(s->why, sizeof(s->why), "%.255s", e->what);
	snprintf(s->fix, sizeof(s->fix), "%.159s", e->fix);
	fail(s, false);
}

static int pipe_for(int *ours, int *theirs)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	fcntl(fds[0], F_SETFL, O_NONBLOCK);
	*ours = fds[0];
	*theirs = fds[1];
	return 0;
}

void service_start(struct service *s, char **argv, const struct child_fd *more, size_t n_more,
		   uint64_t caps)
{
	int stderr_end = -1, progress_end = -1, rc;
	struct child_fd fds[16];
	char path[PATH_MAX];
	struct err e = {0};
	size_t n = 0;

	s->ready_ns = 0;
	s->why[0] = s->fix[0] = '\0';
	s->in_store = false;
	s->unstored = (struct err){0};
	s->starts++;
	s->samples_before += s->samples;
	s->lost_before += s->lost;
	s->samples = s->lost = 0;
	s->wants[0] = '\0';
	s->store_error[0] = s->said[0] = s->said_fix[0] = '\0';
	strbuf_reset(&s->line);
	strbuf_reset(&s->stderr_line);
	rc = sibling_find(s->program, path, &e);
	if (!rc)
		rc = pipe_for(&s->stderr_fd, &stderr_end);
	if (!rc && s->family)
		rc = pipe_for(&s->progress_fd, &progress_end);
	if (!rc) {
		argv[0] = path;
		fds[n++] = (struct child_fd){stderr_end, 2};
		if (s->family)
			fds[n++] = (struct child_fd){progress_end, 3};
		for (size_t i = 0; i < n_more && n < 16; i++)
			fds[n++] = more[i];
		rc = child_start(&(struct child_opts){.argv = argv,
						      .fds = fds,
						      .n_fds = n,
						      .caps = caps,
						      .memory_bytes = s->memory_bytes},
				 &s->pid, &e);
	}
	if (stderr_end >= 0)
		close(stderr_end);
	if (progress_end >= 0)
		close(progress_end);
	if (rc) {
		if (!e.what[0])
			err_set(&e, rc, EXIT_RUNTIME, "cannot start %s: %s", s->program,
				strerror(-rc));
		if (s->pid) /* exec failed: it has ended by now */
			waitpid(s->pid, NULL, 0);
		s->pid = 0;
		close_fds(s);
		fail_start(s, &e);
		return;
	}
	enter(s, SERVICE_STARTING);
	s->heard_ns = s->since_ns;
	s->starved = (struct starved){0};
	s->told_starved = s->told_blocked = s->told_stuck = s->resumed = false;
	s->kills = memlimit_kills();
}

void service_ready(struct service *s)
{
	if (s->state != SERVICE_STARTING)
		return;
	enter(s, SERVICE_RUNNING);
	s->ready_ns = s->since_ns;
	s->last = (struct err){0};
	log_line(LOG_LEVEL_INFO, s->program, "ready, pid %d", (int)s->pid);
}

/* --- words --- */

static double number(const json_t *ev, const char *key)
{
	return json_number_value(json_object_get(ev, key));
}

static void take_store_error(struct service *s, const char *text)
{
	if (!*text && s->store_error[0])
		log_line(LOG_LEVEL_INFO, s->program, "it can write to the store again");
	snprintf(s->store_error, sizeof(s->store_error), "%.63s", text);
}

/* The last line of a loader that ends has no cost. */
static void take_cost(struct service *s, const json_t *ev)
{
	json_int_t ns = json_integer_value(json_object_get(ev, "bpf_ns")),
		   bytes = json_integer_value(json_object_get(ev, "map_bytes"));

	if (ns > 0)
		s->bpf_ns = (uint64_t)ns;
	if (bytes > 0)
		s->map_bytes = (uint64_t)bytes;
}

static void take_happened(struct service *s, const json_t *ev)
{
	const char *cause = json_string_value(json_object_get(ev, "cause")),
		   *why = json_string_value(json_object_get(ev, "why"));

	if (s->happened && cause && *cause)
		s->happened(s->happened_ctx, cause, why ?: cause);
}

static void take_event(struct service *s, const json_t *ev)
{
	const char *name = json_string_value(json_object_get(ev, "event")) ?: "";
	const char *what = json_string_value(json_object_get(ev, "what")),
		   *fix = json_string_value(json_object_get(ev, "fix"));

	s->heard_ns = clock_mono_ns();
	s->resumed = false;
	if (!strcmp(name, "ready"))
		service_ready(s);
	/* the store has its run; or its first rows, if that took long */
	if ((!strcmp(name, "ready") && number(ev, "run") > 0) || !strcmp(name, "first"))
		s->in_store = true;
	if (!strcmp(name, "progress") || !strcmp(name, "done")) {
		s->samples = number(ev, "samples");
		s->lost = number(ev, *name == 'd' ? "lost_total" : "lost");
		s->unsure = number(ev, "unsure");
		take_cost(s, ev);
	}
	if (!strcmp(name, "progress"))
		take_store_error(s, json_string_value(json_object_get(ev, "store_error")) ?: "");
	if (!strcmp(name, "wants"))
		snprintf(s->wants, sizeof(s->wants), "%.15s",
			 json_string_value(json_object_get(ev, "targets")) ?: "");
	if (!strcmp(name, "happened"))
		take_happened(s, ev);
	if (!strcmp(name, "error")) {
		snprintf(s->why, sizeof(s->why), "%.255s", what ?: "it failed");
		snprintf(s->fix, sizeof(s->fix), "%.159s", fix ?: "");
	}
}

static void take_progress_line(struct service *s, const char *text, size_t len)
{
	json_t *ev = json_loadb(text, len, 0, NULL);

	if (ev)
		take_event(s, ev);
	json_decref(ev);
}

static void take_stderr_line(struct service *s, const char *text, size_t len)
{
	size_t prefix = strlen(s->program);

	if (len > prefix + 2 && !memcmp(text, s->program, prefix) &&
	    !memcmp(text + prefix, ": ", 2)) {
		text += prefix + 2;
		len -= prefix + 2;
	}
	if (len > 7 && !memcmp(text, "  fix: ", 7)) {
		snprintf(s->said_fix, sizeof(s->said_fix), "%.*s",
			 (int)(len - 7 < 159 ? len - 7 : 159), text + 7);
	} else if (len) {
		snprintf(s->said, sizeof(s->said), "%.*s", (int)(len < 255 ? len : 255), text);
		s->said_fix[0] = '\0';
	}
	if (len)
		log_line(LOG_LEVEL_WARN, s->program, "%.*s", (int)(len < 800 ? len : 800), text);
}

/* Passes whole lines from *fd to `take`; at the end of file *fd becomes -1. */
static void read_lines(struct service *s, int *fd, struct strbuf *begun,
		       void (*take)(struct service *s, const char *text, size_t len))
{
	char bytes[8192];
	const char *at, *nl;
	ssize_t n;

	while (*fd >= 0 && (n = read(*fd, bytes, sizeof(bytes))) != 0) {
		if (n < 0)
			return; /* nothing to read now */
		for (at = bytes; (nl = memchr(at, '\n', (size_t)(bytes + n - at))); at = nl + 1) {
			strbuf_add(begun, at, (size_t)(nl - at));
			take(s, strbuf_str(begun), begun->len);
			strbuf_reset(begun);
		}
		if (begun->len < LINE_MAX_BYTES)
			strbuf_add(begun, at, (size_t)(bytes + n - at));
	}
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void service_read_progress(struct service *s)
{
	read_lines(s, &s->progress_fd, &s->line, take_progress_line);
}

void service_read_stderr(struct service *s)
{
	read_lines(s, &s->stderr_fd, &s->stderr_line, take_stderr_line);
}

/* --- ending --- */

void service_stop(struct service *s, int64_t patience_ns)
{
	if (s->pid && s->state != SERVICE_STOPPING) {
		kill(s->pid, SIGTERM);
		kill(s->pid, SIGCONT); /* one that is stopped takes no SIGTERM */
		enter(s, SERVICE_STOPPING);
		s->patience_ns = patience_ns;
		s->asked_again = false;
		s->kill_ns = s->since_ns + patience_ns;
	} else if (!s->pid && s->state != SERVICE_FAILED) {
		service_try_anew(s);
	}
}

void service_try_anew(struct service *s)
{
	if (s->pid)
		return;
	enter(s, SERVICE_OFF);
	s->failures = 0;
	s->last = (struct err){0};
}

bool service_is_failing(const struct service *s)
{
	if (s->state == SERVICE_RUNNING)
		return s->family && !s->in_store && s->store_error[0];
	return s->state == SERVICE_FAILED ||
	       ((s->state == SERVICE_WAITING || s->state == SERVICE_STARTING) &&
		s->failures >= POLICY_FAILING);
}

int service_failure(const struct service *s, struct err *e)
{
	const char *fix = "sonde status    and    sonde status --log    tell how it goes on";

	if (s->last.code) {
		err_set(e, -EIO, s->last.exit, "%s does not record: %s", s->program, s->last.what);
		fix = s->last.fix;
	} else if (s->why[0]) {
		err_set(e, -EIO, s->exit > 0 ? (enum sonde_exit)s->exit : EXIT_RUNTIME,
			"%s does not record: %s", s->program, s->why);
		fix = s->fix;
	} else if (s->store_error[0]) {
		err_set(e, -EIO, EXIT_STORE, "%s does not record: the store cannot be written (%s)",
			s->program, s->store_error);
	} else {
		err_set(e, -EIO, EXIT_RUNTIME, "%s does not record: it has not begun yet",
			s->program);
	}
	err_fix(e, "%s", fix);
	return -EIO;
}

/* A service with helpers reports the CPU time of those that still run, too. */
static uint64_t with_helpers(const struct service *s, uint64_t cpu_ns)
{
	return cpu_ns > s->told_ns ? cpu_ns : s->told_ns;
}

uint64_t service_cpu_ns(const struct service *s)
{
	return s->ended_ns + (s->pid ? with_helpers(s, (uint64_t)process_cpu_ns(s->pid)) : 0) +
	       s->bpf_ns;
}

/* It was asked to end: what it could not store by then is lost. */
static void end_unstored(struct service *s)
{
	if (s->exit != EXIT_STORE)
		return;
	s->unstored.code = 0;
	err_set(&s->unstored, -EIO, EXIT_STORE,
		"%s could not store all that it held (%.0f events are lost in all, and %.0f more may be missing): %s",
		s->program, s->lost + s->lost_before, s->unsure,
		s->why[0] ? s->why : "the store cannot be written");
	err_fix(&s->unstored, "%s", s->fix);
	log_line(LOG_LEVEL_ERROR, "sonded", "%s", s->unstored.what);
}

/* By the kernel. */
static void killed_for_memory(struct service *s)
{
	struct memlimit limit;

	memlimit_read(&limit);
	snprintf(s->why, sizeof(s->why), "the kernel ended it for lack of memory%s%.200s",
		 *limit.what ? ": " : "", limit.what);
	snprintf(s->fix, sizeof(s->fix), "%.159s", limit.fix);
}

void service_ended(struct service *s, int status, uint64_t used_ns)
{
	bool was_ready = s->ready_ns != 0, asked = s->state == SERVICE_STOPPING;
	bool hung = s->state != SERVICE_STOPPING && s->kill_ns;

	service_read_progress(s);
	service_read_stderr(s);
	close_fds(s);
	s->pid = 0;
	s->ended_ns += with_helpers(s, used_ns) + s->bpf_ns;
	s->ended_helpers_ns += s->helpers_ns;
	s->told_ns = s->helpers_ns = s->bpf_ns = s->map_bytes = 0;
	s->exit = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	if (asked) {
		end_unstored(s);
		enter(s, SERVICE_OFF);
		s->failures = 0;
		s->last = (struct err){0};
		s->kill_ns = 0;
		return;
	}
	if (was_ready)
		s->down = hung ? SERVICE_DOWN_HUNG : SERVICE_DOWN_FAILED;
	if (was_ready && clock_mono_ns() - s->ready_ns >= POLICY_HEALTHY_NS)
		s->failures = 0;
	if (!s->why[0] && hung)
		snprintf(s->why, sizeof(s->why), "it did not respond and was killed");
	else if (!s->why[0] && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL &&
		 memlimit_kills() > s->kills)
		killed_for_memory(s);
	else if (!s->why[0] && WIFSIGNALED(status))
		snprintf(s->why, sizeof(s->why), "ended by signal %d (%s)", WTERMSIG(status),
			 strsignal(WTERMSIG(status)));
	else if (!s->why[0] && s->said[0] && s->exit) {
		memcpy(s->why, s->said, sizeof(s->why));
		memcpy(s->fix, s->said_fix, sizeof(s->fix));
	} else if (!s->why[0])
		snprintf(s->why, sizeof(s->why), "ended with code %d", s->exit);
	s->kill_ns = 0;
	fail(s, was_ready);
}

static void tell_starved(struct service *s, int64_t silent_ns, int64_t waited_ns)
{
	if (!s->told_starved && waited_ns > silent_ns / 2)
		log_line(
			LOG_LEVEL_WARN, s->program,
			"silent for %.0f s, but it waited %.0f s of them for a CPU: not killed; this host is overloaded",
			(double)silent_ns / 1e9, (double)waited_ns / 1e9);
	s->told_starved |= waited_ns > silent_ns / 2;
}

static void tell_blocked(struct service *s, int64_t silent_ns)
{
	if (!s->told_blocked)
		log_line(
			LOG_LEVEL_WARN, s->program,
			"silent for %.0f s: it waits in the kernel, mostly for a disk or a file system that is slow or does not answer (state D); it is given time, since a kill would not end that wait, and what happens meanwhile is counted. See: sudo cat /proc/%d/stack",
			(double)silent_ns / 1e9, (int)s->pid);
	s->told_blocked = true;
}

/* It could not act: it waits for a CPU or for a disk. */
static void tell_excused(struct service *s, int64_t silent_ns, int64_t waited_ns)
{
	if (s->starved.blocked_ns > waited_ns)
		tell_blocked(s, silent_ns);
	else
		tell_starved(s, silent_ns, waited_ns);
}

/* Waits for a CPU, and for a disk as long as that may last. */
static int64_t excused(const struct service *s, int64_t waited_ns)
{
	return waited_ns +
	       (s->starved.blocked_ns <= SERVICE_BLOCKED_NS ? s->starved.blocked_ns : 0);
}

static void watch_stopping(struct service *s, int64_t now, int64_t waited_ns)
{
	int64_t since = s->since_ns;

	switch (policy_judge(now - since, excused(s, waited_ns), s->kill_ns - since)) {
	case POLICY_IN_TIME:
		return;
	case POLICY_STARVED:
		if (now - since <= SERVICE_STARVED_NS)
			return tell_excused(s, now - since, waited_ns);
		break;
	case POLICY_HANGS:
		break;
	}
	if (!s->asked_again) {
		log_line(LOG_LEVEL_WARN, s->program, "did not stop in time: asked again");
		kill(s->pid, SIGTERM);
		s->asked_again = true;
		s->kill_ns = now + s->patience_ns;
		return;
	}
	log_line(LOG_LEVEL_WARN, s->program, "did not stop in time: killed");
	kill(s->pid, SIGKILL);
	s->kill_ns = now + NSEC_PER_SEC;
}

/* The first time. */
static bool resume(struct service *s, int64_t now)
{
	if (s->resumed)
		return false;
	log_line(LOG_LEVEL_WARN, s->program,
		 "a signal has stopped it (SIGSTOP): it goes on by SIGCONT");
	kill(s->pid, SIGCONT);
	s->resumed = true;
	s->heard_ns = s->since_ns = now;
	return true;
}

/* It was killed, and is still there. */
static void tell_stuck(struct service *s, const struct starved_look *look)
{
	if (!s->told_stuck && look->blocked)
		log_line(
			LOG_LEVEL_ERROR, s->program,
			"did not respond and was killed, but does not end: it waits in the kernel for a disk or a file system that does not answer. %s%s until then. See: sudo cat /proc/%d/stack",
			s->family ? "Nothing is recorded of family " : "Nothing new is named",
			s->family ? s->name : "", (int)s->pid);
	s->told_stuck |= look->blocked;
}

static void watch_running(struct service *s, int64_t now, int64_t waited_ns,
			  const struct starved_look *look)
{
	bool starting = s->state == SERVICE_STARTING;
	int64_t silent = now - (starting ? s->since_ns : s->heard_ns);

	switch (policy_judge(silent, excused(s, waited_ns),
			     starting ? POLICY_SLOW_NS : POLICY_HUNG_NS)) {
	case POLICY_IN_TIME:
		return;
	case POLICY_STARVED:
		return tell_excused(s, silent, waited_ns);
	case POLICY_HANGS:
		break;
	}
	if (look->stopped && resume(s, now))
		return;
	if (s->kill_ns)
		return tell_stuck(s, look);
	kill(s->pid, SIGKILL);
	s->kill_ns = now;
}

void service_watch(struct service *s)
{
	int64_t now = clock_mono_ns(), waited;
	struct starved_look look;

	if (!s->pid || !starved_read(s->pid, &look))
		return;
	waited = starved_take(&s->starved, &look,
			      s->state == SERVICE_RUNNING ? s->heard_ns : s->since_ns, now);
	if (s->state == SERVICE_STOPPING)
		watch_stopping(s, now, waited);
	else if (s->state == SERVICE_RUNNING || s->state == SERVICE_STARTING)
		watch_running(s, now, waited, &look);
}

json_t *service_json(const struct service *s)
{
	int64_t now = clock_mono_ns();
	struct err e = {0};
	json_t *o = json_pack("{s:s, s:s, s:i, s:f, s:i, s:i, s:i, s:f, s:f, s:f}", "name", s->name,
			      "state", service_state_name(s->state), "pid", (int)s->pid,
			      "for_seconds", (double)(now - s->since_ns) / 1e9, "starts",
			      (int)s->starts, "failures", (int)s->failures, "exit", s->exit,
			      "samples", s->samples + s->samples_before, "lost",
			      s->lost + s->lost_before, "cores", s->cores);

	if (service_is_failing(s))
		service_failure(s, &e);
	json_object_set_new(o, "failing", json_boolean(e.code));
	json_object_set_new(o, "in_store", json_boolean(s->in_store));
	if (s->last.code) {
		json_object_set_new(o, "why", json_string(s->last.what));
		json_object_set_new(o, "fix",
				    s->last.fix[0] ? json_string(s->last.fix) : json_null());
	} else {
		json_object_set_new(o, "why", s->why[0] ? json_string(s->why) : json_null());
		json_object_set_new(o, "fix", s->fix[0] ? json_string(s->fix) : json_null());
	}
	json_object_set_new(o, "store_error",
			    s->store_error[0] ? json_string(s->store_error) : json_null());
	json_object_set_new(o, "hz", s->freq ? json_integer(s->freq) : json_null());
	json_object_set_new(o, "step", json_integer((json_int_t)s->step));
	json_object_set_new(o, "again_seconds",
			    s->state == SERVICE_WAITING ?
				    json_real((double)(s->again_ns - now) / 1e9) :
				    json_null());
	return o;
}
