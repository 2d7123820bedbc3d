/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/record/daemon.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/families/families.h"
#include "schema/base/strbuf.h"
#include "schema/base/units.h"
#include "schema/store/read/reader.h"
#include "tools/print/when.h"

#define PATIENCE_S  60 /* of a request that does something */
#define STATUS_S    5  /* of one that only asks */
#define ANSWER_MAX  (8u << 20)
#define STEPS_SHOWN 4

static int refused(const char *store, int error, struct err *e)
{
	if (error == EACCES || error == EPERM) {
		err_set(e, -error, EXIT_PERMISSION, "cannot ask the sonded that keeps %s: %s",
			store, strerror(error));
		store_rights_fix(store, e);
		return -error;
	}
	if (error == ENOENT || error == ECONNREFUSED || error == ENOTDIR) {
		err_set(e, -ENOENT, EXIT_NOTHING, "no sonded is running for the store %s", store);
		err_fix(e, "sudo sonde up");
		return -ENOENT;
	}
	return err_set(e, -error, EXIT_RUNTIME, "cannot ask the sonded that keeps %s: %s", store,
		       strerror(error));
}

static int reach(const char *store, int *out, struct err *e)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	struct timeval wait = {.tv_sec = STATUS_S};
	cleanup_fd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if ((size_t)snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/control.sock", store) >=
	    sizeof(addr.sun_path))
		return refused(store, ENOENT, e);
	if (fd < 0 || connect(fd, (void *)&addr, sizeof(addr)) < 0)
		return refused(store, errno, e);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
	*out = take_fd(&fd);
	return 0;
}

/* Waits for more of the answer, but not beyond `end_ns`: a server may send a byte now and then. */
static ssize_t receive(int fd, void *to, size_t size, int64_t end_ns)
{
	int64_t left = (end_ns - clock_boot_ns()) / 1000000;
	struct pollfd p = {.fd = fd, .events = POLLIN};
	int n = left > 0 ? poll(&p, 1, (int)left) : 0;

	if (n <= 0) {
		errno = n ? errno : ETIMEDOUT;
		return -1;
	}
	return recv(fd, to, size, MSG_DONTWAIT);
}

static int exchange(int fd, const json_t *request, int patience_s, struct strbuf *out)
{
	cleanup_free char *text = json_dumps(request, JSON_COMPACT);
	struct strbuf line cleanup_strbuf = STRBUF_INIT;
	int64_t end_ns = clock_boot_ns() + patience_s * NSEC_PER_SEC;
	char bytes[65536];
	ssize_t n;

	strbuf_addf(&line, "%s\n", text ? text : "");
	if (!text || send(fd, strbuf_str(&line), line.len, MSG_NOSIGNAL) < 0)
		return errno ? -errno : -EIO;
	while ((n = receive(fd, bytes, sizeof(bytes), end_ns)) > 0) {
		if (out->len + (size_t)n > ANSWER_MAX)
			return -EMSGSIZE;
		strbuf_add(out, bytes, (size_t)n);
	}
	return n < 0 ? (errno == EAGAIN ? -ETIMEDOUT : -errno) : 0;
}

/* For people: a stranger may answer, and what he sends goes to a terminal. */
static void escape_texts(json_t *o)
{
	const char *key;
	json_t *value;
	void *next;
	size_t i;

	if (json_is_string(o)) {
		struct strbuf text cleanup_strbuf = STRBUF_INIT;

		strbuf_addshown(&text, json_string_value(o), json_string_length(o));
		json_string_set(o, strbuf_str(&text));
	}
	json_object_foreach_safe (o, next, key, value)
		escape_texts(value);
	json_array_foreach (o, i, value)
		escape_texts(value);
}

int daemon_ask(const char *store, json_t *request, json_t **answer, struct err *e)
{
	struct strbuf text cleanup_strbuf = STRBUF_INIT;
	cleanup_fd int fd = -1;
	const char *error;
	json_t *root;
	const char *what = json_string_value(json_object_get(request, "do"));
	int rc = reach(store, &fd, e);

	if (!rc) {
		rc = exchange(fd, request, what && !strcmp(what, "status") ? STATUS_S : PATIENCE_S,
			      &text);
		if (rc)
			refused(store, -rc, e);
	}
	json_decref(request);
	if (rc)
		return rc;
	root = json_loadb(strbuf_str(&text), text.len, 0, NULL);
	escape_texts(root);
	error = json_string_value(json_object_get(root, "error"));
	if (error || !root) {
		err_set(e, -EIO,
			root ? (enum sonde_exit)json_integer_value(json_object_get(root, "exit")) :
			       EXIT_RUNTIME,
			"%s", error ?: "sonded did not answer");
		if (json_string_value(json_object_get(root, "fix")))
			err_fix(e, "%s", json_string_value(json_object_get(root, "fix")));
		json_decref(root);
		return -EIO;
	}
	*answer = root;
	return 0;
}

/* --- status --- */

static double number(const json_t *o, const char *key)
{
	return json_number_value(json_object_get(o, key));
}

static const char *text_of(const json_t *o, const char *key)
{
	return json_string_value(json_object_get(o, key)) ?: "";
}

/* How much less it does, for one that can be slowed while it runs; one with a rate shows that. */
static void print_less(const json_t *o, const char *family)
{
	const struct probe_family *f = family_named(family);
	double step = number(o, "step");
	const struct family_less *less = step > 0 ? family_less(f, (unsigned int)step) : NULL;

	if (number(o, "hz") > 0)
		printf(", %.0f Hz", number(o, "hz"));
	else if (less)
		printf(", step %.0f of %u: %s", step, f->steps, less->status);
}

static void print_service(const json_t *s)
{
	char took[32], samples[32], lost[32];
	const char *state = text_of(s, "state"), *why = text_of(s, "why"), *fix = text_of(s, "fix");

	if (!strcmp(state, "off"))
		return;
	printf("  %-8s %s for %s", text_of(s, "name"), state,
	       units_seconds(number(s, "for_seconds"), took, sizeof(took)));
	if (number(s, "pid") > 0)
		printf(", pid %.0f", number(s, "pid"));
	print_less(s, text_of(s, "name"));
	if (strcmp(text_of(s, "name"), "maps"))
		printf(", %s events, %s lost",
		       units_count((uint64_t)number(s, "samples"), samples, sizeof(samples)),
		       units_count((uint64_t)number(s, "lost"), lost, sizeof(lost)));
	if (number(s, "starts") > 1)
		printf(", started %.0f times", number(s, "starts"));
	putchar('\n');
	if (*text_of(s, "store_error"))
		printf("           keeps what it can in memory: the store cannot be written (%s)\n",
		       text_of(s, "store_error"));
	if (*why)
		printf("           %s\n", why);
	if (*fix)
		printf("           fix: %s\n", fix);
}

/* What was done because of the limits, the last of it. */
static void print_steps(const json_t *steps)
{
	size_t n = json_array_size(steps);
	char when[32];

	for (size_t i = n > STEPS_SHOWN ? n - STEPS_SHOWN : 0; i < n; i++) {
		const json_t *o = json_array_get(steps, i);

		const char *what = text_of(o, "what");
		bool back = !strcmp(what, "records again") || !strcmp(what, "is less slowed");

		printf("  limit    %s: %s its %s limit, %s %s",
		       when_local(json_integer_value(json_object_get(o, "ts")), clock_utc_ns(),
				  when, sizeof(when)),
		       back ? "within" : "over", text_of(o, "limit"), text_of(o, "family"), what);
		print_less(o, text_of(o, "family"));
		putchar('\n');
	}
}

static void print_sealing(const json_t *o)
{
	char before[32], after[32];

	if (!json_is_true(json_object_get(o, "on")))
		return;
	printf("  sealing  %s", text_of(o, "state"));
	if (number(o, "segments") > 0)
		printf("; %.0f segments archived, %s are %s", number(o, "segments"),
		       units_bytes((uint64_t)number(o, "bytes_before"), before, sizeof(before)),
		       units_bytes((uint64_t)number(o, "bytes_after"), after, sizeof(after)));
	putchar('\n');
}

static void print_flight(const json_t *o)
{
	char own[32], most[32], kept[32], from[32];
	int64_t last = json_integer_value(json_object_get(o, "last_from_ns"));

	if (!json_is_true(json_object_get(o, "on")))
		return;
	printf("  flight   ring of %s, at most %s; %.0f window%s kept",
	       units_bytes((uint64_t)number(o, "bytes"), own, sizeof(own)),
	       units_bytes((uint64_t)number(o, "limit_bytes"), most, sizeof(most)),
	       number(o, "windows"), number(o, "windows") == 1 ? "" : "s");
	if (last)
		printf(" (%s), the last from %s: %s",
		       units_bytes((uint64_t)number(o, "kept_bytes"), kept, sizeof(kept)),
		       when_local(last, clock_utc_ns(), from, sizeof(from)),
		       text_of(o, "last_why"));
	putchar('\n');
}

static void print_store(const json_t *o)
{
	char own[32], budget[32], left[32], begins[32];
	int64_t history = json_integer_value(json_object_get(o, "history_begins_ns"));

	printf("  budget   %s of %s, %s free on its disk%s",
	       units_bytes((uint64_t)number(o, "bytes"), own, sizeof(own)),
	       units_bytes((uint64_t)number(o, "budget_bytes"), budget, sizeof(budget)),
	       units_bytes((uint64_t)number(o, "free_bytes"), left, sizeof(left)),
	       json_is_true(json_object_get(o, "unmet")) ?
		       ": over its limits, and nothing more may be removed" :
		       "");
	if (history)
		printf("; history begins %s (%.0f segment%s removed)",
		       when_local(history, clock_utc_ns(), begins, sizeof(begins)),
		       number(o, "removed_segments"),
		       number(o, "removed_segments") == 1 ? "" : "s");
	putchar('\n');
	print_sealing(json_object_get(o, "sealing"));
	print_flight(json_object_get(o, "flight"));
}

/* What is in the sums and takes no step. */
static void print_bursts(const json_t *d)
{
	double cores = number(d, "store_cores") + number(d, "index_cores");
	char memory[32];

	if (cores > 0)
		printf("; of it %.2f %% to seal, prune and index", 100 * cores);
	if (number(d, "burst_bytes") > 0)
		printf("%s%s to seal, prune and index", cores > 0 ? ", " : "; of it ",
		       units_bytes((uint64_t)number(d, "burst_bytes"), memory, sizeof(memory)));
	putchar('\n');
}

void daemon_print(const json_t *status)
{
	const json_t *d = json_object_get(status, "sonded"), *service;
	char took[32], memory[32], most[32];
	size_t i;

	printf("sonded     pid %.0f, up for %s, %s; all of sonde: ", number(d, "pid"),
	       units_seconds(number(d, "for_seconds"), took, sizeof(took)),
	       json_is_true(json_object_get(d, "ready")) ? "ready" : "starting");
	if (number(d, "private_bytes") <= 0) /* not even its own memory was read yet */
		printf("not measured yet (limits %.3g %% of one core, %s)",
		       100 * number(d, "limit_cores"),
		       units_bytes((uint64_t)number(d, "limit_bytes"), most, sizeof(most)));
	else
		printf("%.2f %% of one core lately (limit %.3g %%), %s (limit %s)",
		       100 * number(d, "cores"), 100 * number(d, "limit_cores"),
		       units_bytes((uint64_t)number(d, "private_bytes"), memory, sizeof(memory)),
		       units_bytes((uint64_t)number(d, "limit_bytes"), most, sizeof(most)));
	print_bursts(d);
	if (number(d, "step") + number(d, "memory_step") > 0)
		print_steps(json_object_get(d, "steps"));
	json_array_foreach (json_object_get(status, "services"), i, service)
		print_service(service);
	print_store(json_object_get(status, "store"));
}
