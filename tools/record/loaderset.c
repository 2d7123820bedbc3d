/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/record/loaderset.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "schema/base/clock.h"
#include "schema/base/mem.h"
#include "schema/base/sibling.h"
#include "tools/cli/helper.h"
#include "tools/record/mapshare.h"

#define LINE_MAX_BYTES (1 << 20) /* no event is as long */

static volatile sig_atomic_t running[FAMILIES_MAX]; /* pids */

static void pass_on(int sig, siginfo_t *info, void *context)
{
	(void)context;
	const union sigval none = {0};

	for (size_t i = 0; i < FAMILIES_MAX; i++) {
		if (running[i] <= 0)
			continue;
		if (info->si_code <= 0)
			kill(running[i], sig);
		else /* from the terminal, of whose session the loaders are not */
			sigqueue(running[i], sig, none);
	}
}

void loaderset_catch_signals(void)
{
	struct sigaction sa = {.sa_sigaction = pass_on, .sa_flags = SA_SIGINFO | SA_RESTART};

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
}

/* --- command lines --- */

void argv_add(struct argv *a, const char *s)
{
	mem_grow(a->v, a->n, a->cap);
	a->v[a->n++] = s ? mem_strdup(s) : NULL;
}

void argv_release(struct argv *a)
{
	for (size_t i = 0; i < a->n; i++)
		free(a->v[i]);
	free(a->v);
}

int loaderset_start(struct loaderset *s, const struct probe_family *f, loaderset_fill *fill,
		    void *ctx, struct err *e)
{
	struct loader *l = &s->v[s->n];
	char program[64], path[PATH_MAX];
	struct argv a = {0};
	int fds[2], rc;

	snprintf(program, sizeof(program), "sonde-%s", f->name);
	rc = sibling_find(program, path, e);
	if (rc)
		return rc;
	if (pipe2(fds, O_CLOEXEC) < 0)
		return err_set(e, -errno, EXIT_RUNTIME, "cannot make a pipe: %s", strerror(errno));
	argv_add(&a, path);
	fill(&a, ctx, f, fds[1]);
	argv_add(&a, NULL);
	*l = (struct loader){.family = f, .fd = fds[0]};
	rc = helper_start(a.v, fds[1], &l->pid, e);
	close(fds[1]);
	argv_release(&a);
	if (rc) {
		close(fds[0]);
		return rc;
	}
	running[s->n++] = l->pid;
	return 0;
}

/* --- following --- */

static void keep(json_t **slot, json_t *ev)
{
	json_decref(*slot);
	*slot = json_incref(ev);
}

static void take_line(struct loaderset *s, struct loader *l, const char *text, size_t len)
{
	json_t *ev = json_loadb(text, len, 0, NULL);
	const char *name = json_string_value(json_object_get(ev, "event"));

	if (name) {
		if (!strcmp(name, "ready"))
			l->ready = true;
		else if (!strcmp(name, "progress"))
			keep(&l->progress, ev);
		else if (!strcmp(name, "done"))
			keep(&l->done, ev);
		else if (!strcmp(name, "error") && !l->error)
			keep(&l->error, ev);
		s->event(s->ctx, l, name, ev);
	}
	json_decref(ev);
}

static void take_bytes(struct loaderset *s, struct loader *l, const char *bytes, size_t n)
{
	const char *end;

	for (; (end = memchr(bytes, '\n', n)); n -= (size_t)(end - bytes) + 1, bytes = end + 1) {
		strbuf_add(&l->line, bytes, (size_t)(end - bytes));
		take_line(s, l, strbuf_str(&l->line), l->line.len);
		strbuf_reset(&l->line);
	}
	if (l->line.len + n <= LINE_MAX_BYTES)
		strbuf_add(&l->line, bytes, n);
}

/* The loader at `index` is gone, or its reader has closed. */
static void await(struct loaderset *s, size_t index)
{
	struct loader *l = &s->v[index];

	if (l->fd >= 0)
		close(l->fd);
	l->fd = -1;
	while (waitpid(l->pid, &l->status, 0) < 0 && errno == EINTR)
		;
	running[index] = 0;
}

static void read_one(struct loaderset *s, size_t index)
{
	char bytes[4096];
	ssize_t n = read(s->v[index].fd, bytes, sizeof(bytes));

	if (n > 0)
		take_bytes(s, &s->v[index], bytes, (size_t)n);
	else if (n == 0 || errno != EINTR)
		await(s, index);
}

/* Rule 4. The time to wait for the next line, in ms; -1: as long as it takes. */
static int time_left(struct loaderset *s)
{
	int64_t now = clock_boot_ns(), left;

	if (!s->length_ns || s->timed_out)
		return -1;
	for (size_t i = 0; !s->end_ns && i < s->n; i++)
		if (s->v[i].fd >= 0 && !s->v[i].ready)
			return -1;
	if (!s->end_ns)
		s->end_ns = now + s->length_ns;
	left = (s->end_ns - now + 999999) / 1000000;
	if (left > 0)
		return left < 1000 ? (int)left : 1000;
	s->timed_out = true;
	for (size_t i = 0; i < s->n; i++)
		if (s->v[i].fd >= 0)
			kill(s->v[i].pid, SIGTERM);
	return -1;
}

void loaderset_follow(struct loaderset *s)
{
	struct pollfd pfd[FAMILIES_MAX + 1];
	bool any = true;

	while (any) {
		any = false;
		for (size_t i = 0; i < s->n; i++) {
			pfd[i] = (struct pollfd){.fd = s->v[i].fd, .events = POLLIN};
			any = any || s->v[i].fd >= 0;
		}
		pfd[s->n] = (struct pollfd){.fd = s->maps ? s->maps->fd : -1, .events = POLLIN};
		if (!any || poll(pfd, s->n + 1, time_left(s)) < 0)
			continue; /* a signal: it was passed on */
		if (pfd[s->n].revents)
			mapshare_drain(s->maps);
		for (size_t i = 0; i < s->n; i++)
			if (pfd[i].revents)
				read_one(s, i);
	}
}

void loaderset_stop(struct loaderset *s)
{
	for (size_t i = 0; i < s->n; i++) {
		if (s->v[i].fd < 0)
			continue;
		kill(s->v[i].pid, SIGTERM);
		await(s, i);
	}
}

int loaderset_run_apart(char *const *argv, struct err *e)
{
	pid_t pid;
	int rc = helper_start_apart(argv, -1, &pid, e);

	if (rc)
		return rc;
	running[0] = pid;
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	running[0] = 0;
	return 0;
}

void loaderset_release(struct loaderset *s)
{
	for (size_t i = 0; i < s->n; i++) {
		json_decref(s->v[i].done);
		json_decref(s->v[i].error);
		json_decref(s->v[i].progress);
		strbuf_release(&s->v[i].line);
	}
}
