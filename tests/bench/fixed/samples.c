/* SPDX-License-Identifier: Apache-2.0 */
/* samples: see fixed.c. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <linux/types.h>

#include "tests/bench/fixed/fixed.h"

#include "loaders/lib/host/maps/hostmaps.h"
#include "loaders/lib/host/maps/hostmaps_packet.h"
#include "loaders/lib/host/maps/mapspack.h"
#include "probes/lib/stack.h"
#include "probes/runtimes/runtime.h"
#include "schema/base/clock.h"
#include "schema/base/strbuf.h"
#include "schema/image/image.h"

#define PID     1000
#define DEPTH   40
#define STACKS  64
#define SCRIPTS 20 /* of the frames, in the middle */
#define FLUSHES 10
#define BASE    0x550000000000ull
#define IMAGE   1

struct scene {
	struct fixed loader;
	struct image *index;
	bool scripts;
	struct stack_event ev;
	uint64_t frames[DEPTH];
	uint64_t stored;
};

/* ---- what sonde-maps says ---- */

static void say(struct scene *s, uint32_t type, const void *m, const char *const *str, int fd)
{
	int fds[MP_FDS_MAX];
	struct strbuf b = STRBUF_INIT;

	for (int i = 0; i < MP_FDS_MAX; i++)
		fds[i] = -1;
	fds[0] = fd;
	mapspack_add(&b, type, m, str);
	if (hostmaps_packet(s->loader.hm, b.buf, b.len, fds))
		exit(EXIT_RUNTIME);
	strbuf_release(&b);
}

static void say_all(struct scene *s, int index_fd)
{
	uint64_t start_ns = s->loader.from_ns - NSEC_PER_SEC;
	const char *const process[] = {"busy", "/usr/bin/busy", "busy 1", "/"},
			  *const image[] = {"/usr/bin/busy"}, *const key[] = {"abc", ""};

	say(s, MP_HELLO, &(struct mp_hello){.version = MP_VERSION}, NULL, -1);
	say(s, MP_IMAGE, &(struct mp_image){.id = IMAGE, .ino = 5}, image, -1);
	say(s, MP_PROCESS,
	    &(struct mp_process){
		    .time_ns = start_ns, .start_ns = start_ns, .tgid = PID, .exec_id = 1},
	    process, -1);
	say(s, MP_MAP,
	    &(struct mp_map){.time_ns = start_ns,
			     .start_ns = start_ns,
			     .start = BASE,
			     .end = BASE + (1ull << 32),
			     .tgid = PID,
			     .exec_id = 1,
			     .image = IMAGE},
	    NULL, -1);
	say(s, MP_INDEX, &(struct mp_index){.id = IMAGE, .state = MP_INDEX_READY}, key, index_fd);
	say(s, MP_SEEDED, &(struct mp_head){0}, NULL, -1);
	say(s, MP_WATERMARK, &(struct mp_watermark){.time_ns = UINT64_MAX / 2}, NULL, -1);
	s->ev = (struct stack_event){.start_ns = start_ns,
				     .tables_ns = s->loader.from_ns,
				     .tgid = PID,
				     .tid = PID,
				     .exec_id = 1,
				     .n_user = DEPTH,
				     .flags = STACK_F_TABLES,
				     .end = STACK_END_ROOT,
				     .thread = "busy"};
}

/* ---- samples ---- */

static uint64_t native(struct scene *s, uint32_t n)
{
	struct image_symbol f = {0};

	image_symbol_get(s->index, n % image_symbol_count(s->index), &f);
	return FRAME_IMAGE | (uint64_t)IMAGE << FRAME_OFFSET_BITS | (f.addr + 8);
}

static uint64_t script(struct scene *s, uint32_t n)
{
	char name[32];

	snprintf(name, sizeof(name), "function_%u", n % 50);
	return naming_script_word(s->loader.naming, RUNTIME_PYTHON, IMAGE, name, "/srv/busy.py",
				  n % 400);
}

/* Stack number k: its outer half is that of all, the rest its own. Leaf first. */
static void stack_make(struct scene *s, uint32_t k)
{
	for (uint32_t i = 0; i < DEPTH; i++) {
		uint32_t n = i * 7 + (i < DEPTH / 2 ? k * 31 : 0);
		bool is_script = s->scripts && i >= 8 && i < 8 + SCRIPTS;

		s->frames[i] = is_script ? script(s, n) : native(s, n);
	}
	s->frames[0] |= FRAME_EXACT;
}

static void sample(struct scene *s, uint64_t time_ns)
{
	struct naming_result named;
	char thread[STACK_COMM_LEN + 1];
	uint32_t series, tid = s->ev.tid;
	int64_t utc_ns = clock_utc_ns();

	s->ev.time_ns = time_ns;
	naming_stack(s->loader.naming, &s->ev, s->frames, &named);
	naming_thread(&named, s->ev.thread, thread, &tid);
	series = store_series(s->loader.store, s->loader.run, named.process, thread, tid,
			      named.stack, STORE_KIND_CPU);
	if (store_add(s->loader.store, series, utc_ns, 1))
		return;
	store_unwound(s->loader.store, s->loader.run, utc_ns, named.exe, 0, named.end, 1);
	s->stored++;
}

int fixed_samples(const char *folder, long n, const char *index, bool scripts)
{
	static struct scene s;
	int fd = open(index, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || image_open_sound_fd(fd, &s.index, NULL) || !image_symbol_count(s.index)) {
		fprintf(stderr, "fixed: %s is no index with functions: %s\n", index,
			strerror(errno));
		return EXIT_USAGE;
	}
	s.scripts = scripts;
	s.loader = fixed_open(folder);
	say_all(&s, fd);
	naming_tick(s.loader.naming);
	for (long i = 0; i < n; i++) {
		stack_make(&s, (uint32_t)(i * 11 % STACKS));
		sample(&s, s.loader.from_ns + NSEC_PER_SEC + (uint64_t)i);
		if (i % (n / FLUSHES) == 0)
			store_flush(s.loader.store);
	}
	printf("%llu\n", (unsigned long long)s.stored);
	fixed_close(&s.loader);
	image_close(s.index);
	close(fd);
	return s.stored == (uint64_t)n ? EXIT_OK : EXIT_RUNTIME;
}
