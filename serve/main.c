/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sonde-serve: shows the store in a browser, read-only. libmicrohttpd speaks HTTP; each request
 * runs `sonde` in a child with limits (child.h). This program opens no store.
 */
#include <errno.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "schema/base/cleanup.h"
#include "schema/base/cli/options.h"
#include "schema/base/log.h"
#include "schema/base/mem.h"
#include "schema/base/sibling.h"
#include "serve/address.h"
#include "serve/http_answer.h"

#define CONNECTIONS  64
#define HEAD_BYTES   (48 << 10)
#define IDLE_S       30
#define STACK_BYTES  (256 << 10)
#define ANSWER_BYTES (64ull << 20)
#define HELP_SECONDS 10

struct options {
	const char *store, *watch, *sonde, *listen, *token_file;
	struct option_list hosts;
	uint32_t timeout_s, memory_mb, questions;
};

static const struct program PROGRAM = {
	.name = "sonde-serve",
	.usage = "[options]       (sonde serve starts it)",
	.about = "Shows the store in a browser, read-only.",
};

/* clang-format off */
static const struct option OPTIONS[] = {
	{"store", 0, OPTION_STRING, "DIR", "store folder (default: the one that sonde finds)", OPTION_AT(struct options, store)},
	{"watch", 0, OPTION_STRING, "DIR", "folder to watch for changes that live pages show (default: that of --store)",
	 OPTION_AT(struct options, watch)},
	{"sonde", 0, OPTION_STRING, "PATH", "the sonde program that answers (default: the one next to this program)", OPTION_AT(struct options, sonde)},
	{"listen", 0, OPTION_STRING, "ADDRESS", "127.0.0.1:PORT, [::1]:PORT or unix:PATH (default " ADDRESS_DEFAULT "); other addresses need a token",
	 OPTION_AT(struct options, listen)},
	{"token-file", 0, OPTION_STRING, "FILE", "clients must send the token in this file", OPTION_AT(struct options, token_file)},
	{"host", 0, OPTION_LIST, "NAME", "accept this host name too, e.g. that of a reverse proxy (repeatable)", OPTION_AT(struct options, hosts)},
	{"timeout", 0, OPTION_UINT, "SECONDS", "time limit of a request (default 30)", OPTION_AT(struct options, timeout_s), .min = 1, .max = 3600},
	{"memory", 0, OPTION_UINT, "MB", "memory limit of a request (default 768)", OPTION_AT(struct options, memory_mb), .min = 1, .max = 65536},
	{"questions", 0, OPTION_UINT, "N", "how many requests at a time (default 4)", OPTION_AT(struct options, questions), .min = 1, .max = CONNECTIONS},
	{0},
};
/* clang-format on */

/* Reads the token, the first line of a file. The caller owns *token. */
static int token_read(const char *path, char **token, struct err *e)
{
	cleanup_file FILE *f = fopen(path, "re");
	struct stat st;
	char line[256];

	if (!f || fstat(fileno(f), &st) < 0)
		return err_set(e, -errno, errno == EACCES ? EXIT_PERMISSION : EXIT_USAGE,
			       "cannot read the token in %s: %s", path, strerror(errno));
	if (st.st_mode & 0007) {
		err_set(e, -EPERM, EXIT_PERMISSION,
			"%s: every user of this host can read the token", path);
		err_fix(e, "chmod o= '%s'", path);
		return -EPERM;
	}
	if (!fgets(line, sizeof(line), f))
		*line = '\0';
	line[strcspn(line, "\r\n")] = '\0';
	if (!guard_token_fits(line)) {
		err_set(e, -EINVAL, EXIT_USAGE,
			"%s: the first line must be a token of 16 to 200 letters and digits", path);
		err_fix(e, "(umask 077; head -c 24 /dev/urandom | base64 > '%s')", path);
		return -EINVAL;
	}
	*token = mem_strdup(line);
	return 0;
}

static int token_needed(const struct address *a, const char *token, struct err *e)
{
	if (a->loopback || token)
		return 0;
	err_set(e, -EPERM, EXIT_USAGE,
		"%s can be reached from other hosts: without a token, anyone there could read the whole store",
		a->shown);
	err_fix(e,
		"(umask 077; head -c 24 /dev/urandom | base64 > token); sonde serve --listen ADDRESS --token-file token");
	return -EPERM;
}

static int verbs_read(struct server *s, struct err *e)
{
	const char *const argv[] = {s->sonde, "help", "--json", NULL};
	const struct child_limits limits = {.seconds = HELP_SECONDS,
					    .memory_bytes = s->limits.memory_bytes,
					    .answer_bytes = ANSWER_BYTES,
					    .spans_fd = -1};
	struct child_answer a;
	int rc = child_ask(argv, &limits, -1, -1, &a, e);
	char *text;

	if (rc)
		return rc;
	text = mem_alloc((size_t)a.out_bytes + 1);
	if (pread(a.out_fd, text, (size_t)a.out_bytes, 0) != (ssize_t)a.out_bytes)
		*text = '\0';
	rc = questions_read(text, strlen(text), &s->questions, e);
	free(text);
	close(a.out_fd);
	return rc;
}

static void say_nothing(void *cls, const char *fmt, va_list ap)
{
	(void)cls;
	(void)fmt;
	(void)ap;
}

static struct MHD_Daemon *start(struct server *s, int fd)
{
	return MHD_start_daemon(MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD |
					MHD_USE_POLL | MHD_USE_ITC | MHD_USE_ERROR_LOG,
				0, NULL, NULL, http_answer, s, MHD_OPTION_EXTERNAL_LOGGER,
				say_nothing, NULL, /* first, because it applies to options too */
				MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
				CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT, IDLE_S,
				MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEAD_BYTES,
				MHD_OPTION_THREAD_STACK_SIZE, (size_t)STACK_BYTES,
				MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_NOTIFY_CONNECTION,
				http_answer_connection, s, MHD_OPTION_NOTIFY_COMPLETED,
				http_answer_done, s, MHD_OPTION_END);
}

/* Runs until a signal. Without connections nothing wakes up. */
static void wait_for_end(struct server *s, int signals)
{
	struct pollfd fds[] = {{.fd = signals, .events = POLLIN},
			       {.fd = s->connections.wake_fd, .events = POLLIN}};
	eventfd_t ignored;

	while (!fds[0].revents) {
		bool any = connections_check(&s->connections);

		if (poll(fds, 2, any ? 1000 : -1) > 0 && fds[1].revents)
			eventfd_read(s->connections.wake_fd, &ignored);
	}
}

static int serve(struct server *s, struct address *a, int signals, struct err *e)
{
	int fd = address_listen(a, e);
	struct MHD_Daemon *d;

	if (fd < 0)
		return fd;
	d = start(s, fd);
	if (!d) {
		close(fd);
		address_leave(a);
		return err_set(e, -EIO, EXIT_RUNTIME, "cannot start the HTTP server: %s",
			       strerror(errno));
	}
	fprintf(stderr, "%s    (Ctrl-C stops it)\n", a->shown);
	wait_for_end(s, signals);
	eventfd_write(s->stop_fd, 1);
	gate_close(&s->gate);
	store_watch_close(&s->watch);
	MHD_stop_daemon(d); /* waits for all requests in progress */
	address_leave(a);
	return 0;
}

/* Threads inherit that these signals are blocked: only signalfd receives them. */
static int signals_take(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	return signalfd(-1, &set, SFD_CLOEXEC);
}

static int run(const struct options *o, struct err *e)
{
	char sonde[PATH_MAX], exporter[PATH_MAX], own[256] = "";
	cleanup_free char *token = NULL;
	struct address a;
	struct server s = {.sonde = o->sonde ? o->sonde : sonde,
			   .store = o->store,
			   .limits = {.seconds = o->timeout_s,
				      .memory_bytes = (uint64_t)o->memory_mb << 20,
				      .answer_bytes = ANSWER_BYTES,
				      .spans_fd = child_spans_make()},
			   .stop_fd = eventfd(0, EFD_CLOEXEC)};
	int signals, rc = address_parse(o->listen, &a, e);

	if (!rc && o->token_file)
		rc = token_read(o->token_file, &token, e);
	if (!rc)
		rc = token_needed(&a, token, e);
	if (!rc && !o->sonde)
		rc = sibling_find("sonde", sonde, e);
	if (!sibling_find("sonde-export", exporter, NULL))
		s.exporter = exporter;
	if (!rc)
		rc = verbs_read(&s, e);
	if (rc)
		return rc;
	gethostname(own, sizeof(own) - 1);
	s.guard = (struct guard){
		.hosts = o->hosts.items, .n_hosts = o->hosts.n, .own = own, .token = token};
	s.check_host = a.any.sa_family != AF_UNIX;
	gate_init(&s.gate, o->questions);
	asked_init(&s.asked);
	mcp_calls_init(&s.calls);
	signals = signals_take();
	store_watch_init(&s.watch, o->watch ? o->watch : o->store);
	connections_init(&s.connections);
	rc = serve(&s, &a, signals, e);
	store_watch_release(&s.watch);
	asked_release(&s.asked);
	mcp_calls_release(&s.calls);
	connections_release(&s.connections);
	gate_release(&s.gate);
	questions_free(s.questions);
	return rc;
}

int main(int argc, char **argv)
{
	struct options o = {
		.listen = ADDRESS_DEFAULT, .timeout_s = 30, .memory_mb = 768, .questions = 4};
	const struct option_set set = {OPTIONS, &o};
	struct err e = {0};
	int rc;

	log_init(PROGRAM.name, LOG_LEVEL_WARN);
	rc = program_options(&PROGRAM, argc, argv, &set, 1, NULL, &e);
	if (!rc)
		rc = run(&o, &e);
	options_release(&set, 1, NULL);
	return program_end("sonde", rc, &e);
}
