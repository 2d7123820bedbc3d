/* SPDX-License-Identifier: Apache-2.0 */
/* processes: see fixed.c. */
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/bench/fixed/fixed.h"

#include "loaders/lib/host/maps/hostmaps.h"
#include "loaders/lib/host/maps/hostmaps_packet.h"
#include "loaders/lib/host/maps/mapslink.h"
#include "loaders/maps/hub/hub.h"
#include "loaders/maps/world/cgroups.h"
#include "loaders/maps/world/containers.h"
#include "loaders/maps/world/world.h"
#include "schema/base/clock.h"

#define SHELL       1000 /* its pid: the parent of all */
#define FIRST       2000
#define EVERY_NS    (NSEC_PER_SEC / 100) /* from one process to the next */
#define IN_READING  10                   /* processes between two readings of the side-band */
#define MILLISECOND (NSEC_PER_SEC / 1000)

struct scene {
	struct world world;
	struct fixed loader;
	uint64_t now_ns; /* of what happens */
	int sock;        /* the loader's end */
	uint64_t ends;   /* that the loader has counted */
	char packet[MP_PACKET_MAX + 1];
};

static const char *const FILES[] = {"/usr/bin/true",
				    "/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2", "[vdso]",
				    "/usr/lib/x86_64-linux-gnu/libc.so.6"};
#define N_FILES (sizeof(FILES) / sizeof(FILES[0]))

/* ---- what the kernel says ---- */

static struct maps_event event(const struct scene *s, uint32_t type, uint32_t tgid,
			       uint64_t start_ns, uint32_t exec_id)
{
	struct maps_event ev = {.time_ns = s->now_ns,
				.start_ns = start_ns,
				.cgroup_id = 1,
				.root_ino = 2,
				.mntns = 3,
				.type = type,
				.tgid = tgid,
				.exec_id = exec_id,
				.ppid = SHELL,
				.from_tgid = SHELL,
				.nspid = tgid};

	memcpy(ev.comm, exec_id ? "true" : "sh", exec_id ? 5 : 3);
	return ev;
}

static void mapped(struct scene *s, uint32_t tgid, size_t i, uint64_t at)
{
	struct sideband_rec r = {.type = SIDEBAND_MMAP,
				 .pid = tgid,
				 .tid = tgid,
				 .time_ns = s->now_ns,
				 .name = FILES[i],
				 .name_len = (uint32_t)strlen(FILES[i]),
				 .addr = at + i * 0x1000000,
				 .len = 0x20000,
				 .pgoff = 0x1000,
				 .prot = PROT_READ | PROT_EXEC,
				 .major = 8,
				 .ino = 100 + i,
				 .ino_generation = 7};

	world_record(&s->world, &r);
}

/* /bin/true from a shell: each has its addresses somewhere else. */
static void executed(struct scene *s, uint32_t tgid, uint64_t start_ns, uint32_t exec_id)
{
	struct sideband_rec comm = {.type = SIDEBAND_COMM,
				    .pid = tgid,
				    .tid = tgid,
				    .time_ns = s->now_ns,
				    .name = "true",
				    .exec = true};
	struct maps_event ev = event(s, MAPS_EV_EXEC, tgid, start_ns, exec_id);
	static const char args[] = "/bin/true\0--help";
	uint64_t at = 0x550000000000 + (uint64_t)tgid * 0x10000000;

	world_record(&s->world, &comm);
	mapped(s, tgid, 0, at);
	mapped(s, tgid, 1, at);
	mapped(s, tgid, 2, at);
	ev.args_len = sizeof(args);
	world_event(&s->world, &ev, args);
	s->now_ns += MILLISECOND / 4;
	mapped(s, tgid, 3, at);
}

static void ended(struct scene *s, uint32_t tgid, uint64_t start_ns)
{
	struct maps_event gone = event(s, MAPS_EV_EXIT, tgid, start_ns, 2),
			  used = event(s, MAPS_EV_USED, tgid, start_ns, 2);
	struct maps_used u = {.cpu_ns = MILLISECOND};

	world_event(&s->world, &gone, NULL);
	used.args_len = sizeof(u);
	world_event(&s->world, &used, (const char *)&u);
}

static void one(struct scene *s, uint32_t tgid)
{
	uint64_t start_ns = s->now_ns, next_ns = s->now_ns + EVERY_NS;
	struct maps_event fork = event(s, MAPS_EV_FORK, tgid, start_ns, 0);

	fork.exec_id = 1;
	world_event(&s->world, &fork, NULL);
	s->now_ns += MILLISECOND / 4;
	executed(s, tgid, start_ns, 2);
	s->now_ns += MILLISECOND;
	ended(s, tgid, start_ns);
	s->now_ns = next_ns;
}

/* ---- sonde-maps ---- */

static void no_dump(void *ctx)
{
	world_tell_all(&((struct scene *)ctx)->world);
}

static void no_want(void *ctx, const struct mp_want *want)
{
	(void)ctx;
	(void)want;
}

static void no_names(void *ctx, const struct mp_want_names *want)
{
	(void)ctx;
	(void)want;
}

static void no_args(void *ctx, const struct mp_want_args *want)
{
	(void)ctx;
	(void)want;
}

static void no_hurry(void *ctx)
{
	(void)ctx;
}

/* No index is made of any. */
static void image_new(void *ctx, struct mimage *img, struct proc *p, uint64_t start, uint64_t end)
{
	(void)ctx;
	(void)p;
	(void)start;
	(void)end;
	img->state = IMAGE_REFUSED;
}

static int maps_begin(struct scene *s)
{
	struct hub_ops ops = {.ctx = s,
			      .dump = no_dump,
			      .want = no_want,
			      .want_args = no_args,
			      .want_names = no_names,
			      .hurry = no_hurry};
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -1;
	world_init(&s->world);
	s->world.bpf = true;
	s->world.cgroups = cgroups_new();
	s->world.containers = containers_new();
	s->world.hub = hub_new(&ops, epoll_create1(EPOLL_CLOEXEC), NULL, 0);
	s->world.image_new = image_new;
	hub_own(s->world.hub, pair[0]);
	hub_open(s->world.hub);
	s->sock = pair[1];
	return 0;
}

static void maps_end(struct scene *s)
{
	hub_free(s->world.hub);
	world_release(&s->world);
	cgroups_free(s->world.cgroups);
	containers_free(s->world.containers);
	close(s->sock);
}

static void maps_tick(struct scene *s)
{
	struct mp_watermark w = {.time_ns = s->now_ns, .ends = s->world.ends};

	s->world.readings++;
	hub_emit(s->world.hub, MP_WATERMARK, &w, NULL);
	hub_flush(s->world.hub);
}

/* ---- the loader ---- */

static void on_end(void *ctx, struct hostmaps_process *p)
{
	struct scene *s = ctx;
	struct store_end e = {.comm = p->comm};

	e.how = naming_end(p, &e.status);
	if (e.how == STORE_END_EXEC || naming_excludes(s->loader.naming, p))
		return;
	e.container = naming_container(s->loader.naming, p);
	s->ends += !store_end(s->loader.store, s->loader.run, clock_utc_ns(), &e);
}

static void loader_tick(struct scene *s)
{
	int fds[MP_FDS_MAX];
	size_t len;

	while (maps_link_receive(s->sock, s->packet, MP_PACKET_MAX, &len, fds) == 1)
		hostmaps_packet(s->loader.hm, s->packet, len, fds);
	naming_tick(s->loader.naming);
}

int fixed_processes(const char *folder, long n)
{
	static struct scene s;
	struct maps_event shell;

	s.loader = fixed_open(folder);
	s.now_ns = s.loader.from_ns;
	if (maps_begin(&s))
		return EXIT_RUNTIME;
	hostmaps_on_end(s.loader.hm, on_end, &s);
	shell = event(&s, MAPS_EV_FORK, SHELL, s.now_ns, 1);
	world_event(&s.world, &shell, NULL);
	executed(&s, SHELL, s.now_ns, 1);
	for (long i = 0; i < n; i++) {
		one(&s, (uint32_t)(FIRST + i % 20000));
		if (i % IN_READING == IN_READING - 1) {
			maps_tick(&s);
			loader_tick(&s);
		}
	}
	maps_tick(&s);
	loader_tick(&s);
	printf("%llu\n", (unsigned long long)s.ends);
	maps_end(&s);
	fixed_close(&s.loader);
	return s.ends == (uint64_t)n ? EXIT_OK : EXIT_RUNTIME;
}
