/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers in comments are the header's rules. */
#include "supervisor/retention/keeper.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "schema/base/cleanup.h"
#include "schema/store/files/folder.h"
#include "schema/store/files/segment.h"
#include "supervisor/control/log_lines.h"

#define LOOK_NS      (2 * NSEC_PER_SEC)
#define HOUR_NS      (3600 * NSEC_PER_SEC)
#define LAST_MOST_NS (24 * HOUR_NS) /* no ring has more */
#define AGAIN_NS     (10 * NSEC_PER_SEC)
#define TRIES        5
#define BUDGET_SHARE 8
#define MIB          1048576.0

void keeper_init(struct keeper *k, const char *store)
{
	*k = (struct keeper){.store = store};
	pass_init(&k->pass);
	for (int i = 0; i < KEEPER_PRESSURES; i++)
		k->pressure_fd[i] = -1;
	if ((size_t)snprintf(k->ring, sizeof(k->ring), "%s/flight", store) >= sizeof(k->ring))
		k->ring[0] = '\0';
}

/* The kernel reports by poll that all who worked waited so long in such a window (its
 * Documentation/accounting/psi.rst); windows of 2 s need no capability. */
static const struct {
	const char *path, *when, *name, *why;
} PRESSURES[KEEPER_PRESSURES] = {
	{"/proc/pressure/memory", "full 400000 2000000", "memory pressure",
	 "memory pressure: for 0.4 s of 2 s all who worked waited for memory"},
	{"/proc/pressure/io", "full 1600000 2000000", "io pressure",
	 "I/O pressure: for 1.6 s of 2 s all who worked waited for a disk"},
};

static void pressures_close(struct keeper *k)
{
	for (int i = 0; i < KEEPER_PRESSURES; i++) {
		if (k->pressure_fd[i] >= 0)
			close(k->pressure_fd[i]);
		k->pressure_fd[i] = -1;
	}
}

/* A kernel without PSI has no such file: then there is no such cause. */
static void pressures_open(struct keeper *k)
{
	for (int i = 0; i < KEEPER_PRESSURES; i++) {
		const char *when = PRESSURES[i].when;

		if (k->pressure_fd[i] >= 0)
			continue;
		k->pressure_fd[i] = open(PRESSURES[i].path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
		if (k->pressure_fd[i] < 0 || write(k->pressure_fd[i], when, strlen(when) + 1) >= 0)
			continue;
		close(k->pressure_fd[i]);
		k->pressure_fd[i] = -1;
	}
}

void keeper_release(struct keeper *k)
{
	pressures_close(k);
	pass_release(&k->pass);
}

static void remove_ring(const char *ring)
{
	static const char *const suffix[] = {"", "-wal", "-shm"};
	cleanup_free char(*names)[SEGMENT_NAME_MAX] = NULL;
	char path[PATH_MAX];
	size_t n = 0;

	if (folder_segments(ring, &names, &n))
		return;
	for (size_t i = 0; i < 3 * n; i++)
		if ((size_t)snprintf(path, sizeof(path), "%s/%s%s", ring, names[i / 3],
				     suffix[i % 3]) < sizeof(path))
			(void)unlink(path);
}

/* A reason is one line, and of a character that did not fit nothing is left. */
static void tidy(char *why)
{
	size_t n = strlen(why), last = n;

	for (size_t i = 0; i < n; i++)
		why[i] = (unsigned char)why[i] < ' ' ? ' ' : why[i];
	while (last && ((unsigned char)why[last - 1] & 0xc0) == 0x80)
		last--;
	if (last) {
		const unsigned char first = (unsigned char)why[last - 1];
		const size_t whole = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 1;

		if (n - (last - 1) < whole)
			why[last - 1] = '\0';
	}
}

/* Rule 2. */
static void window_join(struct keeper_window *w, int64_t from_ns, int64_t to_ns, const char *why)
{
	size_t len = strlen(w->why);

	w->from_ns = from_ns < w->from_ns ? from_ns : w->from_ns;
	w->to_ns = to_ns > w->to_ns ? to_ns : w->to_ns;
	if (!strstr(w->why, why))
		snprintf(w->why + len, sizeof(w->why) - len, "; %s", why);
	tidy(w->why);
}

/* What waits, and what a pass is at, outlives sonded: as one line in the ring's folder. What is in
 * the store by then is not kept again (keep.h). */
static bool pending_path(const struct keeper *k, char out[PATH_MAX])
{
	return (size_t)snprintf(out, PATH_MAX, "%s/pending", k->ring) < PATH_MAX;
}

static void pending_note(const struct keeper *k)
{
	struct keeper_window w = k->next.to_ns ? k->next : k->now;
	char path[PATH_MAX];
	cleanup_file FILE *f = NULL;

	if (!pending_path(k, path))
		return;
	if (k->next.to_ns && k->now.to_ns)
		window_join(&w, k->now.from_ns, k->now.to_ns, k->now.why);
	(void)unlink(path);
	f = w.to_ns ? fopen(path, "wxe") : NULL;
	if (f)
		fprintf(f, "%lld %lld %lld %s\n", (long long)w.from_ns, (long long)w.to_ns,
			(long long)w.at_ns, w.why);
}

static_assert(KEEPER_WHY == 400, "as the format below has it");
static void pending_read(struct keeper *k)
{
	struct keeper_window w = {0};
	long long from, to, at;
	char path[PATH_MAX];
	cleanup_file FILE *f = pending_path(k, path) ? fopen(path, "re") : NULL;
	int64_t now = clock_utc_ns();

	if (!f || fscanf(f, "%lld %lld %lld %399[^\n]", &from, &to, &at, w.why) != 4 || to < from ||
	    to > now + HOUR_NS || from < now - HOUR_NS)
		return;
	w.from_ns = from;
	w.to_ns = to;
	w.at_ns = at;
	w.due_ns = clock_mono_ns() + (to > now ? to - now : 0) + KEEPER_LATE_NS;
	w.latest_ns = clock_mono_ns() + KEEPER_WAIT_NS;
	k->next = w;
}

void keeper_follow(struct keeper *k, bool wanted, uint64_t bytes)
{
	k->wanted = wanted && *k->ring;
	k->bytes = bytes;
	if (k->wanted) {
		pressures_open(k);
		if (!k->next.to_ns && !k->pass.pid)
			pending_read(k);
	} else {
		pressures_close(k);
	}
	if (!k->wanted && !k->next.to_ns && !k->pass.pid)
		remove_ring(k->ring);
}

uint32_t keeper_freq(const struct keeper *k, uint32_t coarse, uint32_t *share)
{
	if (!k->wanted || !coarse)
		return 0;
	*share = (KEEPER_FREQ + coarse / 2) / coarse;
	*share = *share ? *share : 1;
	return coarse * *share;
}

/* --- windows --- */

static void want(struct keeper *k, int64_t from_ns, int64_t to_ns, const char *why)
{
	struct keeper_window *w = &k->next;
	int64_t now = clock_utc_ns();
	bool fresh = !w->to_ns || !strstr(w->why, why);

	if (!w->to_ns) {
		*w = (struct keeper_window){.from_ns = from_ns,
					    .to_ns = to_ns,
					    .at_ns = now,
					    .latest_ns = clock_mono_ns() + KEEPER_WAIT_NS};
		snprintf(w->why, sizeof(w->why), "%s", why);
		tidy(w->why);
	} else {
		window_join(w, from_ns, to_ns, why);
	}
	w->due_ns = clock_mono_ns() + w->to_ns - now + KEEPER_LATE_NS;
	w->due_ns = w->due_ns < w->latest_ns ? w->due_ns : w->latest_ns;
	pending_note(k);
	if (!fresh)
		return;
	log_line(LOG_LEVEL_INFO, "sonded", "keeps the flight ring of the last %lld s: %s",
		 (long long)((now - w->from_ns) / NSEC_PER_SEC), w->why);
}

int keeper_refuses(const struct keeper *k, struct err *e)
{
	if (k->wanted)
		return 0;
	err_set(e, -ENOENT, EXIT_NOTHING, "there is no flight ring to keep");
	err_fix(e,
		"set flight = on in section [flight] of /etc/sonde/sonde.conf, then: sudo systemctl reload sonded");
	return -ENOENT;
}

int keeper_ask(struct keeper *k, int64_t last_ns, const char *why, struct err *e)
{
	int64_t now = clock_utc_ns();
	int rc = keeper_refuses(k, e);

	if (rc)
		return rc;
	last_ns = last_ns < 0 ? 0 : last_ns < LAST_MOST_NS ? last_ns : LAST_MOST_NS;
	want(k, now - (last_ns ? last_ns : KEEPER_BEFORE_NS), now + (last_ns ? 0 : KEEPER_AFTER_NS),
	     why && *why ? why : "sonde keep");
	return 0;
}

/* Where all are taken, one that has not happened for an hour makes room. */
static struct keeper_cause *cause_of(struct keeper *k, const char *name, int64_t now)
{
	for (int i = 0; i < KEEPER_CAUSES; i++) {
		struct keeper_cause *c = &k->causes[i];

		if (!*c->name)
			snprintf(c->name, sizeof(c->name), "%s", name);
		if (!strncmp(c->name, name, sizeof(c->name) - 1))
			return c;
	}
	for (int i = 0; i < KEEPER_CAUSES; i++) {
		struct keeper_cause *c = &k->causes[i];

		if (c->last_ns && now - c->last_ns < HOUR_NS)
			continue;
		*c = (struct keeper_cause){0};
		snprintf(c->name, sizeof(c->name), "%s", name);
		return c;
	}
	return &k->causes[KEEPER_CAUSES - 1];
}

/* What windows take in the store whose hour was begun since then. */
static uint64_t kept_since(const struct keeper *k, int64_t utc_ns)
{
	cleanup_free char(*names)[SEGMENT_NAME_MAX] = NULL;
	char path[PATH_MAX];
	uint64_t sum = 0;
	size_t n = 0;

	if (folder_segments(k->store, &names, &n))
		return 0;
	for (size_t i = 0; i < n; i++)
		if (folder_is_kept_name(names[i]) && folder_begun_ns(names[i]) >= utc_ns &&
		    (size_t)snprintf(path, sizeof(path), "%s/%s", k->store, names[i]) <
			    sizeof(path))
			sum += segment_bytes(path);
	return sum;
}

/* Rule 3. */
void keeper_happened(struct keeper *k, uint64_t budget, const char *cause, const char *why)
{
	int64_t now = clock_mono_ns(), utc = clock_utc_ns();
	struct keeper_cause *c;

	if (!k->wanted)
		return;
	c = cause_of(k, cause, now);
	if ((c->last_ns && now - c->last_ns < HOUR_NS) ||
	    kept_since(k, utc - 24 * HOUR_NS) > budget / BUDGET_SHARE)
		return;
	c->last_ns = now;
	want(k, utc - KEEPER_BEFORE_NS, utc + KEEPER_AFTER_NS, why);
}

/* --- rule 5 --- */

bool keeper_oom_kills(const char *vmstat, uint64_t *out)
{
	static const char key[] = "oom_kill ";
	const char *line = vmstat;

	while (line && strncmp(line, key, sizeof(key) - 1)) {
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
	}
	if (line)
		*out = strtoull(line + sizeof(key) - 1, NULL, 10);
	return line;
}

static void look_at_pressures(struct keeper *k, uint64_t budget)
{
	for (int i = 0; i < KEEPER_PRESSURES; i++) {
		struct pollfd p = {.fd = k->pressure_fd[i], .events = POLLPRI};

		if (p.fd >= 0 && poll(&p, 1, 0) > 0 && p.revents & POLLPRI &&
		    !(p.revents & POLLERR))
			keeper_happened(k, budget, PRESSURES[i].name, PRESSURES[i].why);
	}
}

static void look(struct keeper *k, uint64_t budget)
{
	cleanup_fd int fd = open("/proc/vmstat", O_RDONLY | O_CLOEXEC);
	char text[16384], why[64];
	uint64_t kills = 0;
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (n <= 0)
		return;
	text[n] = '\0';
	if (!keeper_oom_kills(text, &kills))
		return;
	if (k->oom_known && kills > k->oom_kills) {
		snprintf(why, sizeof(why), "out of memory: %llu process%s killed",
			 (unsigned long long)(kills - k->oom_kills),
			 kills - k->oom_kills == 1 ? "" : "es");
		keeper_happened(k, budget, "oom", why);
	}
	k->oom_kills = kills;
	k->oom_known = true;
}

/* --- the pass --- */

/* Rule 4. */
static void failed(struct keeper *k, int code)
{
	bool again = ++k->failures < TRIES;

	log_line(LOG_LEVEL_WARN, "sonded", "the flight ring could not be kept (code %d)%s", code,
		 again ? ", retrying" : "");
	if (!again) {
		k->failures = 0;
	} else if (k->next.to_ns) {
		window_join(&k->next, k->now.from_ns, k->now.to_ns, k->now.why);
	} else {
		k->next = k->now;
		k->next.due_ns = clock_mono_ns() + AGAIN_NS;
	}
	k->now.to_ns = 0;
	pending_note(k);
}

static void start(struct keeper *k)
{
	char from[24], to[24], at[24];
	char *argv[] = {NULL,   "--store", (char *)k->store, "--ring", k->ring, "--from",   from,
			"--to", to,        "--at",           at,       "--why", k->now.why, NULL};
	struct err e = {0};

	k->now = k->next;
	k->next = (struct keeper_window){0};
	snprintf(from, sizeof(from), "%lld", (long long)k->now.from_ns);
	snprintf(to, sizeof(to), "%lld", (long long)k->now.to_ns);
	snprintf(at, sizeof(at), "%lld", (long long)k->now.at_ns);
	if (!pass_start(&k->pass, "sonde-seal", argv, &e))
		return;
	log_line(LOG_LEVEL_ERROR, "sonded", "%s", e.what);
	failed(k, e.exit);
}

void keeper_tick(struct keeper *k, uint64_t budget, bool busy)
{
	int64_t now = clock_mono_ns();

	if (k->wanted && now - k->looked_ns >= LOOK_NS) {
		k->looked_ns = now;
		look(k, budget);
		look_at_pressures(k, budget);
	}
	if (k->next.to_ns && !k->pass.pid && !busy && now >= k->next.due_ns)
		start(k);
}

void keeper_stop(struct keeper *k)
{
	if (k->pass.pid)
		kill(k->pass.pid,
		     SIGTERM); /* what it made has no name yet; the next sonded does it */
}

static void take_end(struct keeper *k, int status)
{
	int code;
	json_t *o = pass_ended(&k->pass, status, &code);
	json_int_t segments = json_integer_value(json_object_get(o, "segments")),
		   bytes = json_integer_value(json_object_get(o, "bytes"));

	if (!o) {
		failed(k, code);
		return;
	}
	k->failures = 0;
	k->now.to_ns = 0;
	pending_note(k);
	if (segments) {
		k->windows++;
		k->kept_bytes += (uint64_t)bytes;
		k->last_from_ns = json_integer_value(json_object_get(o, "from_ns"));
		k->last_to_ns = json_integer_value(json_object_get(o, "to_ns"));
		memcpy(k->last_why, k->now.why, sizeof(k->last_why));
		log_line(LOG_LEVEL_INFO, "sonded", "kept %lld s of the flight ring, %.1f MiB: %s",
			 (long long)((k->last_to_ns - k->last_from_ns) / NSEC_PER_SEC),
			 (double)bytes / MIB, k->now.why);
	} else {
		log_line(LOG_LEVEL_WARN, "sonded",
			 "the flight ring has nothing of that time that is not kept yet: %s",
			 k->now.why);
	}
	json_decref(o);
}

void keeper_ended(struct keeper *k, int status)
{
	take_end(k, status);
	if (!k->wanted && !k->next.to_ns)
		remove_ring(k->ring);
}

static uint64_t ring_bytes(const struct keeper *k)
{
	cleanup_free char(*names)[SEGMENT_NAME_MAX] = NULL;
	char path[PATH_MAX];
	uint64_t sum = 0;
	size_t n = 0;

	if (folder_segments(k->ring, &names, &n))
		return 0;
	for (size_t i = 0; i < n; i++)
		if ((size_t)snprintf(path, sizeof(path), "%s/%s", k->ring, names[i]) < sizeof(path))
			sum += segment_bytes(path);
	return sum;
}

json_t *keeper_json(const struct keeper *k)
{
	return json_pack(
		"{s:b, s:I, s:I, s:I, s:I, s:b, s:o, s:o, s:s}", "on", k->wanted, "bytes",
		(json_int_t)(k->wanted ? ring_bytes(k) : 0), "limit_bytes", (json_int_t)k->bytes,
		"windows", (json_int_t)k->windows, "kept_bytes", (json_int_t)k->kept_bytes,
		"pending", k->next.to_ns || k->pass.pid, "last_from_ns",
		k->last_from_ns ? json_integer(k->last_from_ns) : json_null(), "last_to_ns",
		k->last_to_ns ? json_integer(k->last_to_ns) : json_null(), "last_why", k->last_why);
}
