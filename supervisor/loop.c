/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/store/files/folder.h"
#include "schema/store/files/shedlog.h"
#include "schema/store/write/writer.h"
#include "supervisor/children/leftover.h"
#include "supervisor/retention/lock.h"
#include "supervisor/sup.h"
#include "supervisor/control/log_lines.h"

/* Turns fall on multiples of TURN_NS of the boot clock plus TURN_PHASE_NS: just after those of
 * sonde-maps and the loaders (loaders/lib/host/budget/pace.h), so that their reports are there. */
#define TURN_NS            (NSEC_PER_SEC / 2)
#define TURN_PHASE_NS      (NSEC_PER_SEC / 16)
#define LEFT_MS            2500
#define CHILD_MEMORY_LEAST (512ull << 20)
#define STATUS_NS          (10 * NSEC_PER_SEC)
#define PLACE_NS           (2 * NSEC_PER_SEC)
#define READY_LATEST_NS    (30 * NSEC_PER_SEC)
#define RECORDS_LATEST_NS  (60 * NSEC_PER_SEC)

#define CAP(x) (1ull << CAP_##x)
/* To read other users' processes and files, give the store's files to its group, and run on time on
 * a busy host. */
#define CAPS_READ (CAP(SYS_PTRACE) | CAP(DAC_READ_SEARCH) | CAP(CHOWN) | CAP(SYS_NICE))
/* To load BPF programs. */
#define CAPS_LOAD  (CAPS_READ | 1ull << 38 /* PERFMON */ | 1ull << 39 /* BPF */ | CAP(SYS_RESOURCE))
#define CAPS_PROBE (CAPS_LOAD | CAP(SYSLOG)) /* and names the kernel's functions */
/* To become the user of a Java program: root has them; the unit's user goes without. */
#define CAPS_ATTACH (CAPS_READ | CAP(SETUID) | CAP(SETGID))
/* Before 6.6 the process connector, which reports processes where no BPF program of sonde-maps
 * loads, needs one more. Root has it; the unit's user goes without. */
#define CAPS_MAPS (CAPS_PROBE | CAP(NET_ADMIN))

/* --- systemd --- */

/* Sends "READY=1\nSTATUS=..." to $NOTIFY_SOCKET; 0, also where there is none, or -errno. */
__attribute__((format(printf, 1, 2))) static int notify_send(const char *fmt, ...)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	const char *path = getenv("NOTIFY_SOCKET");
	cleanup_fd int fd = -1;
	char text[512];
	socklen_t len;
	va_list ap;

	if (!path || (*path != '/' && *path != '@') || strlen(path) >= sizeof(to.sun_path))
		return 0;
	memcpy(to.sun_path, path, strlen(path));
	len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
	if (*path == '@')
		to.sun_path[0] = '\0';
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 ||
	    sendto(fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT, (void *)&to, len) < 0)
		return -errno;
	return 0;
}

/* Half the interval in which systemd expects WATCHDOG=1; 0: it expects none. */
static int64_t notify_watchdog_ns(void)
{
	const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");

	if (!usec || (pid && strtol(pid, NULL, 10) != (long)getpid()))
		return 0;
	return strtoll(usec, NULL, 10) * 1000 / 2;
}

/* --- children --- */

static void note_children(struct sup *s)
{
	pid_t pids[SUP_CHILDREN] = {s->maps.service.pid, s->retain.prune.pid, s->sealer.pass.pid,
				    s->keeper.pass.pid};

	for (unsigned int i = 0; i < s->n_loaders; i++)
		pids[SUP_CHILDREN - FAMILIES_MAX + i] = s->loader[i].pid;
	if (!memcmp(pids, s->noted, sizeof(pids)))
		return;
	memcpy(s->noted, pids, sizeof(pids));
	leftover_note(s->store, pids, SUP_CHILDREN);
}

/* Twice the limit of all sonde processes: room to grow within the minute. */
static uint64_t child_memory(const struct sup *s)
{
	uint64_t most = 2 * s->conf.memory_bytes;

	return most && most < CHILD_MEMORY_LEAST ? CHILD_MEMORY_LEAST : most;
}

/* Sends its step to a running loader without a rate; one with a rate is started with it. */
static void tell_step(struct sup *s, struct service *l)
{
	unsigned int step = shed_step(&s->shed, (unsigned int)(l - s->loader), l->family);

	if (l->family->has_freq) {
		l->step = step;
	} else if (l->step != step && targets_step(s->targets, l, step)) {
		l->step = step;
		l->told_step_ns = clock_mono_ns();
	}
}

static void start_loader(struct sup *s, struct service *l)
{
	static const uint64_t caps[] = {[FAMILY_PROBES] = CAPS_PROBE,
					[FAMILY_LOADS] = CAPS_LOAD,
					[FAMILY_READS] = CAPS_READ | CAP(SYSLOG),
					[FAMILY_ATTACHES] = CAPS_ATTACH};
	char freq[16], bytes[32], age[32], budget[32];
	char *own[] = {"--store",
		       s->store,
		       "--bucket",
		       "10s",
		       "--maps-socket",
		       s->maps_socket,
		       "--args",
		       s->conf.value[CONF_ARGS].text,
		       "--segment-bytes",
		       bytes,
		       "--segment-age",
		       age,
		       "--store-budget",
		       budget,
		       "--targets-fd",
		       "4",
		       "--progress-fd",
		       "3",
		       NULL};
	char share[16], size[32];
	char *flight[] = {"--flight", s->keeper.ring,   "--flight-share",
			  share,      "--flight-bytes", size};
	uint32_t fine = 0, of = 1;
	bool ring = l->family->has_ring && s->keeper.wanted;
	struct child_fd feed = {targets_begin(s->targets, l), TARGETS_FD};
	char *rules[] = {"--include", s->conf.value[CONF_INCLUDE].text, "--exclude",
			 s->conf.value[CONF_EXCLUDE].text};
	char *argv[40 + 2 * FAMILY_SETTINGS_MAX] = {NULL};
	int n = 1;

	snprintf(bytes, sizeof(bytes), "%llu",
		 (unsigned long long)retain_segment_bytes(&s->retain));
	snprintf(budget, sizeof(budget), "%llu", (unsigned long long)s->retain.limits.bytes);
	snprintf(age, sizeof(age), "%llds", (long long)(s->conf.segment_age_ns / NSEC_PER_SEC));
	l->freq = l->family->has_freq ? shed_freq(&s->shed, (unsigned int)(l - s->loader),
						  l->family, s->conf.freq) :
					0;
	l->step = 0;
	tell_step(s, l);
	if (l->freq) {
		ring = ring && l->freq == s->conf.freq; /* reduced, it does without */
		fine = ring ? keeper_freq(&s->keeper, l->freq, &of) : 0;
		snprintf(freq, sizeof(freq), "%u", fine ? fine : l->freq);
		argv[n++] = "--freq";
		argv[n++] = freq;
	}
	/* loaders that get targets report other processes too: how they ended */
	for (size_t i = 0; i < 4; i += 2)
		if (*rules[i + 1]) {
			argv[n++] = rules[i];
			argv[n++] = rules[i + 1];
		}
	n += (int)conf_family_options(&s->conf, l->family, argv + n);
	memcpy(argv + n, own, 2 * sizeof(*own));
	n += 2;
	if (ring) {
		snprintf(share, sizeof(share), "%u", of);
		snprintf(size, sizeof(size), "%llu", (unsigned long long)s->keeper.bytes);
		memcpy(argv + n, flight, sizeof(flight));
		n += (int)(sizeof(flight) / sizeof(*flight));
	}
	memcpy(argv + n, own + 2,
	       sizeof(own) - 2 * sizeof(*own)); /* from --store to --progress-fd: `sonde status`
						   leaves these out */
	l->memory_bytes = child_memory(s);
	service_start(l, argv, &feed, 1, caps[l->family->rights]);
	close(feed.from);
}

struct service *sup_service(struct sup *s, const char *family)
{
	for (unsigned int i = 0; i < s->n_loaders; i++)
		if (!strcmp(s->loader[i].name, family))
			return &s->loader[i];
	return NULL;
}

static void happened(void *ctx, const char *cause, const char *why)
{
	struct sup *s = ctx;

	keeper_happened(&s->keeper, s->retain.limits.bytes, cause, why);
}

static void want(struct sup *s, const struct probe_family *f)
{
	struct service *l = sup_service(s, f->name);

	if (!l && s->n_loaders < FAMILIES_MAX) {
		l = &s->loader[s->n_loaders++];
		service_init(l, f->name, f);
		l->happened = happened;
		l->happened_ctx = s;
	}
	if (l)
		l->wanted = true;
}

void sup_follow(struct sup *s, const struct conf *c)
{
	const struct probe_family *out[FAMILIES_MAX];
	bool args = strcmp(c->value[CONF_ARGS].text, s->conf.value[CONF_ARGS].text) != 0;
	bool dotnet = c->no_dotnet != s->conf.no_dotnet;
	uint64_t budget_before = s->retain.limits.bytes;
	bool rules = strcmp(c->value[CONF_INCLUDE].text, s->conf.value[CONF_INCLUDE].text) ||
		     strcmp(c->value[CONF_EXCLUDE].text, s->conf.value[CONF_EXCLUDE].text);
	bool all = args || c->segment_age_ns != s->conf.segment_age_ns;
	bool own[FAMILIES_MAX] = {false}, was[FAMILIES_MAX] = {false}, flight;
	size_t n = 0;

	for (unsigned int i = 0; i < s->n_loaders; i++)
		own[i] = conf_family_differs(&s->conf, c, s->loader[i].family);
	s->conf = *c;
	retain_limits(&s->retain, c);
	sealer_follow(&s->sealer, c->seal, c->segment_age_ns, c->fine_age_ns);
	flight = s->keeper.wanted != c->flight || s->keeper.bytes != c->flight_bytes;
	keeper_follow(&s->keeper, c->flight, c->flight_bytes);
	all |= budget_before != s->retain.limits.bytes;
	for (unsigned int i = 0; i < s->n_loaders; i++) {
		was[i] = s->loader[i].wanted;
		s->loader[i].wanted = false;
	}
	families_of(c->value[CONF_FAMILIES].text, out, &n, NULL);
	for (size_t i = 0; i < n; i++)
		want(s, out[i]);
	for (unsigned int i = 0; i < s->n_loaders; i++) {
		struct service *l = &s->loader[i];
		bool other_freq = l->freq && l->freq != shed_freq(&s->shed, i, l->family, c->freq);

		if (was[i] != l->wanted && (l->down || s->shed.of[i].step)) {
			l->down = SERVICE_UP;
			cost_note(s, l);
		}
		if (l->pid && (!l->wanted || all || other_freq || rules || own[i] ||
			       (flight && l->family->has_ring)))
			service_stop(
				l, SERVICE_STOP_NS); /* the next turn restarts one that is wanted */
		else if (service_is_failing(l))
			service_try_anew(l);
	}
	if (service_is_failing(&s->maps.service))
		service_try_anew(&s->maps.service);
	if ((args || dotnet) && s->maps.service.pid)
		service_stop(&s->maps.service, SERVICE_STOP_NS);
}

/* A reload applies what changed in the configuration; otherwise the families set by `sonde up` and
 * `down` stay. */
static void keep_families(struct sup *s, struct conf *c)
{
	char read[CONF_TEXT_MAX];

	memcpy(read, c->value[CONF_FAMILIES].text, sizeof(read));
	if (!strcmp(read, s->families_read))
		c->value[CONF_FAMILIES] = s->conf.value[CONF_FAMILIES];
	memcpy(s->families_read, read, sizeof(read));
}

int sup_reload(struct sup *s, struct err *e)
{
	struct conf c;
	int rc = conf_load(s->o->conf_dir, s->o->flags, &c, e);

	if (rc)
		return rc;
	if (strcmp(c.value[CONF_STORE].text, s->conf.value[CONF_STORE].text))
		log_line(LOG_LEVEL_WARN, "sonded", "the new store takes effect at the next start");
	keep_families(s, &c);
	sup_follow(s, &c);
	log_line(LOG_LEVEL_INFO, "sonded", "configuration reloaded");
	return 0;
}

/* Its family records nothing from its last sign of life on, until it is ready again. */
static void loader_ended(const struct sup *s, struct service *l, int status, uint64_t used_ns)
{
	enum service_down before = l->down;
	int64_t silent = clock_mono_ns() - l->heard_ns;

	service_ended(l, status, used_ns);
	if (!before && l->down)
		shedlog_add(s->store, clock_utc_ns() - silent, l->name,
			    l->down == SERVICE_DOWN_HUNG ? SHEDLOG_HUNG : SHEDLOG_FAILED, 0, 0);
}

static void ended(struct sup *s, pid_t pid, int status, uint64_t used_ns)
{
	if (pid == s->retain.prune.pid) {
		s->retain.prune.ended_ns += used_ns;
		retain_ended(&s->retain, status);
	} else if (pid == s->sealer.pass.pid) {
		s->sealer.pass.ended_ns += used_ns;
		sealer_ended(&s->sealer, status);
	} else if (pid == s->keeper.pass.pid) {
		s->keeper.pass.ended_ns += used_ns;
		keeper_ended(&s->keeper, status);
	} else if (pid == s->maps.service.pid) {
		mapsowner_read(&s->maps);
		mapsowner_hang_up(&s->maps);
		service_ended(&s->maps.service, status, used_ns);
	} else {
		for (unsigned int i = 0; i < s->n_loaders; i++)
			if (pid == s->loader[i].pid)
				loader_ended(s, &s->loader[i], status, used_ns);
	}
}

static int64_t timeval_ns(struct timeval t)
{
	return t.tv_sec * NSEC_PER_SEC + t.tv_usec * 1000;
}

static void reap(struct sup *s)
{
	struct rusage u;
	int status;
	pid_t pid;

	while ((pid = wait4(-1, &status, WNOHANG, &u)) > 0)
		ended(s, pid, status, (uint64_t)(timeval_ns(u.ru_utime) + timeval_ns(u.ru_stime)));
}

/* --- what is due --- */

static bool is_time(const struct service *v)
{
	return !v->pid && (v->state == SERVICE_OFF ||
			   (v->state == SERVICE_WAITING && clock_mono_ns() >= v->again_ns));
}

static void replace_tables(struct sup *s)
{
	s->maps.replaced = false;
	for (unsigned int i = 0; i < s->n_loaders; i++)
		if (s->loader[i].pid)
			service_stop(&s->loader[i], SERVICE_STOP_NS);
}

static void start_due(struct sup *s)
{
	bool any = false;

	for (unsigned int i = 0; i < s->n_loaders; i++)
		any |= s->loader[i].wanted;
	if (s->maps.replaced)
		replace_tables(s);
	s->maps.service.memory_bytes = child_memory(s);
	if (any && is_time(&s->maps.service))
		mapsowner_start(&s->maps, s->store, s->maps_socket, s->conf.value[CONF_ARGS].text,
				retain_images_mb(&s->retain), !s->conf.no_dotnet,
				s->conf.no_dotnet ? CAPS_MAPS :
						    CAPS_MAPS | CAP(SETUID) | CAP(SETGID));
	for (unsigned int i = 0; i < s->n_loaders; i++) {
		struct service *l = &s->loader[i];
		bool may = l->wanted && !shed_stopped(&s->shed, i, l->family);

		if (may && is_time(l) && s->maps.service.state == SERVICE_RUNNING)
			start_loader(s, l);
		else if (!may && l->pid)
			service_stop(l, SERVICE_STOP_NS);
		else if (l->pid)
			tell_step(s, l);
		else if (!l->wanted && l->state == SERVICE_WAITING)
			service_stop(l, 0);
	}
}

static void watch(struct sup *s)
{
	service_watch(&s->maps.service);
	for (unsigned int i = 0; i < s->n_loaders; i++) {
		struct service *l = &s->loader[i];

		service_watch(l);
		if (l->down && l->state == SERVICE_RUNNING) {
			l->down = SERVICE_UP;
			cost_note(s, l);
		}
	}
}

/* What keeps a family from recording: its loader, or sonde-maps. */
static const struct service *culprit(const struct sup *s, const struct service *l)
{
	return service_is_failing(&s->maps.service) ? &s->maps.service : l;
}

/* The first that fails; if none does, the first that has not begun. */
static const struct service *first_failed(const struct sup *s)
{
	const struct service *slow = NULL;

	for (unsigned int i = 0; i < s->n_loaders; i++) {
		const struct service *l = &s->loader[i];

		if (l->wanted && service_is_failing(culprit(s, l)))
			return culprit(s, l);
		if (l->wanted && !slow)
			slow = l;
	}
	return slow ?: &s->maps.service;
}

/* In the background, ready means that the store has something of each family. */
static bool records(const struct sup *s, const struct service *l)
{
	return l->state == SERVICE_RUNNING && (l->in_store || !s->o->must_record);
}

static void tell_failures(const struct sup *s)
{
	for (unsigned int i = 0; s->o->not_recording && i < s->n_loaders; i++) {
		const struct service *l = &s->loader[i];
		struct err why = {0};

		if (!l->wanted || records(s, l))
			continue;
		service_failure(culprit(s, l), &why);
		s->o->not_recording(s->o->ctx, &why);
	}
}

/* For must_record, what may still mend itself (a full disk) counts as failed too. */
static bool has_failed(const struct sup *s, const struct service *v)
{
	return s->o->must_record ? service_is_failing(v) : v->state == SERVICE_FAILED;
}

/* Status comes before READY=1, so that a client that waits for READY can read it. */
static void tell_systemd(struct sup *s)
{
	unsigned int wanted = 0, running = 0, failed = 0;
	int64_t now = clock_mono_ns();
	bool ready, late;

	for (unsigned int i = 0; i < s->n_loaders; i++) {
		const struct service *l = &s->loader[i];

		wanted += l->wanted;
		running += l->wanted && records(s, l);
		failed += l->wanted && !records(s, l) && has_failed(s, culprit(s, l));
	}
	late = now - s->began_ns > (s->o->must_record ? RECORDS_LATEST_NS : READY_LATEST_NS);
	ready = !s->ready && !s->stopping && (running + failed >= wanted || late);
	if (ready || now - s->watched_ns >= (s->watchdog_ns ?: STATUS_NS)) {
		s->watched_ns = now;
		notify_send("%sSTATUS=%u of %u families record, %u failed",
			    s->watchdog_ns ? "WATCHDOG=1\n" : "", running, wanted, failed);
	}
	if (!ready)
		return;
	if (s->o->must_record && !running) {
		service_failure(first_failed(s), &s->failure);
		sup_stop(s);
		return;
	}
	s->ready = true;
	notify_send("READY=1");
	log_line(LOG_LEVEL_INFO, "sonded", "ready: %u of %u families record into %s", running,
		 wanted, s->store);
	tell_failures(s);
	if (s->o->ready)
		s->o->ready(s->o->ctx);
}

/* Its loaders store what they hold where the folder is now, or in a new one. */
static void look_for_store(struct sup *s)
{
	char now[PATH_MAX] = "";
	enum place_state at;

	if (clock_mono_ns() - s->placed_ns < PLACE_NS)
		return;
	s->placed_ns = clock_mono_ns();
	at = place_look(&s->place, s->store, now);
	if (at == PLACE_SAME)
		return;
	log_line(LOG_LEVEL_WARN, "sonded",
		 "the store's folder %s was %s%s: all families begin again in a new one", s->store,
		 at == PLACE_MOVED ? "renamed to " : "removed", at == PLACE_MOVED ? now : "");
	s->misplaced = true;
	sup_stop(s);
}

static void turn(struct sup *s)
{
	if (!s->stopping)
		look_for_store(s);
	if (!s->stopping) {
		start_due(s);
		retain_tick(&s->retain, s->prune_now);
		s->prune_now = s->prune_now && !s->retain.prune.pid;
		if (!s->keeper.pass.pid)
			sealer_tick(&s->sealer, &s->retain);
		keeper_tick(&s->keeper, s->retain.limits.bytes, s->sealer.pass.pid);
		targets_tick(s->targets, &s->conf, s->store, s->maps_socket, s->loader,
			     s->n_loaders);
		cost_look(s);
	}
	watch(s);
	note_children(s);
	tell_systemd(s);
}

/* --- waiting --- */

void sup_stop(struct sup *s)
{
	if (s->stopping)
		return;
	s->stopping = true;
	notify_send("STOPPING=1");
	sealer_stop(&s->sealer);
	keeper_stop(&s->keeper);
	for (unsigned int i = 0; i < s->n_loaders; i++)
		service_stop(&s->loader[i], SERVICE_STOP_NS);
}

static void take_signals(struct sup *s)
{
	struct signalfd_siginfo si;
	struct err e = {0};

	while (read(s->signal_fd, &si, sizeof(si)) == sizeof(si)) {
		if (si.ssi_signo == SIGTERM || si.ssi_signo == SIGINT)
			sup_stop(s);
		else if (si.ssi_signo == SIGHUP && !s->stopping && sup_reload(s, &e))
			log_line(LOG_LEVEL_ERROR, "sonded", "%s; keeping the old configuration%s%s",
				 e.what, e.fix[0] ? "; fix: " : "", e.fix);
	}
	reap(s);
}

static int wait_ms(void)
{
	int64_t into = (clock_boot_ns() - TURN_PHASE_NS) % TURN_NS;

	return (int)((TURN_NS - into + 999999) / 1000000);
}

/* A running service's messages can wait until the next turn; those of a starting one are polled. */
static int if_starting(const struct service *v, int fd)
{
	return v->state == SERVICE_STARTING ? fd : -1;
}

static size_t service_fds(const struct service *v, int says_fd, struct pollfd *out)
{
	out[0] = (struct pollfd){.fd = if_starting(v, says_fd), .events = POLLIN};
	out[1] = (struct pollfd){.fd = v->stderr_fd, .events = POLLIN};
	return 2;
}

static void wait_for_any(struct sup *s)
{
	struct pollfd pfd[4 + 2 * (1 + FAMILIES_MAX) + 1 + CONTROL_CLIENTS], *control;
	size_t n = 0;

	pfd[n++] = (struct pollfd){.fd = s->signal_fd, .events = POLLIN};
	pfd[n++] = (struct pollfd){.fd = s->retain.prune.fd, .events = POLLIN};
	pfd[n++] = (struct pollfd){.fd = s->sealer.pass.fd, .events = POLLIN};
	pfd[n++] = (struct pollfd){.fd = s->keeper.pass.fd, .events = POLLIN};
	n += service_fds(&s->maps.service, s->maps.sock, pfd + n);
	for (unsigned int i = 0; i < s->n_loaders; i++)
		n += service_fds(&s->loader[i], s->loader[i].progress_fd, pfd + n);
	control = pfd + n;
	n += control_fds(&s->control, control);
	if (poll(pfd, n, wait_ms()) > 0)
		control_serve(&s->control, control);
}

static void wait_and_take(struct sup *s)
{
	wait_for_any(s);
	mapsowner_read(&s->maps);
	service_read_stderr(&s->maps.service);
	pass_read(&s->retain.prune);
	pass_read(&s->sealer.pass);
	pass_read(&s->keeper.pass);
	for (unsigned int i = 0; i < s->n_loaders; i++) {
		service_read_progress(&s->loader[i]);
		service_read_stderr(&s->loader[i]);
	}
	take_signals(s);
}

/* Loaders first, then sonde-maps; false: none is left. */
static bool going_down(struct sup *s)
{
	bool loaders = false;

	for (unsigned int i = 0; i < s->n_loaders; i++)
		loaders |= s->loader[i].pid != 0;
	if (!loaders && s->maps.service.pid && s->maps.service.state != SERVICE_STOPPING) {
		service_stop(&s->maps.service, NSEC_PER_SEC);
		mapsowner_hang_up(&s->maps);
	}
	return loaders || s->maps.service.pid || s->retain.prune.pid || s->sealer.pass.pid ||
	       s->keeper.pass.pid;
}

/* --- begin and end --- */

static int open_all(struct sup *s, struct err *e)
{
	const char *store = s->conf.value[CONF_STORE].text;
	sigset_t set;
	int rc, killed;

	snprintf(s->store, sizeof(s->store), "%s", *store ? store : store_default_dir());
	snprintf(s->maps_socket, sizeof(s->maps_socket), "%s/maps.sock", s->store);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	rc = folder_prepare(s->store, e);
	if (!rc)
		rc = lock_take(s->store, s->o->replace, &s->lock_fd, e);
	if (!rc)
		rc = place_open(&s->place, s->store);
	if (rc)
		return rc;
	killed = leftover_end(s->store, LEFT_MS);
	if (killed)
		log_line(LOG_LEVEL_WARN, "sonded", "killed %d hung children of an earlier sonded",
			 killed);
	s->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (s->signal_fd < 0)
		return err_set(e, -errno, EXIT_RUNTIME, "cannot take signals: %s", strerror(errno));
	return control_open(&s->control, s->store, e);
}

static void close_all(struct sup *s)
{
	control_close(&s->control);
	targets_free(s->targets);
	mapsowner_release(&s->maps);
	retain_release(&s->retain);
	sealer_release(&s->sealer);
	keeper_release(&s->keeper);
	for (unsigned int i = 0; i < s->n_loaders; i++)
		service_release(&s->loader[i]);
	if (s->signal_fd >= 0)
		close(s->signal_fd);
	if (s->lock_fd >= 0) {
		note_children(s);
		close(s->lock_fd);
	}
	place_close(&s->place);
}

/* The first that could not store what it held when it was asked to end. */
static int unstored(const struct sup *s, struct err *e)
{
	for (unsigned int i = 0; i < s->n_loaders; i++) {
		if (!s->loader[i].unstored.code)
			continue;
		if (e)
			*e = s->loader[i].unstored;
		return s->loader[i].unstored.code;
	}
	return 0;
}

int loop_run(const struct loop_opts *o, struct err *e)
{
	static struct sup s; /* large: contains a packet buffer */
	int rc;

	s = (struct sup){.o = o,
			 .conf = *o->conf,
			 .lock_fd = -1,
			 .signal_fd = -1,
			 .place = {.fd = -1},
			 .began_ns = clock_mono_ns(),
			 .watchdog_ns = notify_watchdog_ns(),
			 .targets = targets_new(),
			 .control = {.listen_fd = -1, .answer = sup_answer, .ctx = &s}};
	memcpy(s.families_read, s.conf.value[CONF_FAMILIES].text, sizeof(s.families_read));
	mapsowner_init(&s.maps);
	rc = open_all(&s, e);
	if (!rc) {
		shedlog_add(s.store, clock_utc_ns(), "*", SHEDLOG_FULL, 0, 0);
		retain_init(&s.retain, s.store, &s.conf);
		sealer_init(&s.sealer, s.store);
		keeper_init(&s.keeper, s.store);
		sup_follow(&s, &s.conf);
		s.cost.looked_ns = clock_mono_ns();
		while (!s.stopping || going_down(&s)) {
			turn(&s);
			wait_and_take(&s);
		}
		shedlog_add(s.store, clock_utc_ns(), "*", SHEDLOG_FULL, 0, 0);
		log_line(LOG_LEVEL_INFO, "sonded", "ended");
		rc = s.failure.code;
		if (rc && e)
			*e = s.failure;
		if (!rc)
			rc = unstored(&s, e);
		if (s.misplaced) {
			*o->conf = s.conf;
			rc = -ESTALE;
		}
	}
	close_all(&s);
	return rc;
}
