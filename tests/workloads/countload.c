/* SPDX-License-Identifier: Apache-2.0 */
/*
 * countload: takes the place of a loader, to count events: it makes numbered events through the
 * same writer, speaks the same progress protocol, takes the same options (and ignores those that it
 * does not need), and ends normally at SIGTERM. Called as sonde-X, its runs belong to the family X.
 * It makes $COUNTLOAD_EVENTS (40) every 10 ms. Their number is in a file, $COUNTLOAD_DIR/PID-TIME,
 * mapped, so that a kill cannot lose it: two 64-bit numbers, begun (raised before an event is given
 * to the writer) and done (raised after).
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "schema/base/clock.h"
#include "schema/base/err.h"
#include "schema/base/log.h"
#include "schema/store/write/writer.h"

#define EVENTS_PER_TURN 40
#define TURN_NS         10000000
#define STACKS          3000
#define DEPTH           12

struct options {
	struct store_writer_opts store;
	int progress_fd;
};

static volatile sig_atomic_t stop;

static void on_term(int sig)
{
	(void)sig;
	stop = 1;
}

/* Every option of a loader has a value here but --no-lines. */
static void read_options(int argc, char **argv, struct options *o)
{
	for (int i = 1; i + 1 < argc; i++) {
		const char *value = argv[i + 1];

		if (!strcmp(argv[i], "--store"))
			o->store.dir = value;
		else if (!strcmp(argv[i], "--segment-bytes"))
			o->store.segment_bytes = strtoull(value, NULL, 10);
		else if (!strcmp(argv[i], "--store-budget"))
			o->store.budget_bytes = strtoull(value, NULL, 10);
		else if (!strcmp(argv[i], "--segment-age"))
			o->store.segment_s = (uint32_t)atoi(value);
		else if (!strcmp(argv[i], "--progress-fd"))
			o->progress_fd = atoi(value);
	}
}

static volatile uint64_t *open_count(void)
{
	const char *dir = getenv("COUNTLOAD_DIR");
	char path[4096];
	void *map;
	int fd;

	snprintf(path, sizeof(path), "%s/%d-%lld", dir ? dir : ".", (int)getpid(),
		 (long long)clock_boot_ns());
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 || posix_fallocate(fd, 0, 4096))
		return NULL;
	map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return map == MAP_FAILED ? NULL : map;
}

static uint32_t series_of(struct store_writer *w, uint32_t run, uint64_t number)
{
	struct store_process p = {.pid = (uint32_t)(1000 + number % 7),
				  .exec_id = 1,
				  .start_ticks = 1,
				  .comm = "count",
				  .exe = "/count",
				  .args = "count",
				  .cgroup = "/",
				  .unit = ""};
	struct store_image i = {.name = "count", .path = "/count", .build_id = "", .key = ""};
	uint32_t image = store_image(w, &i), frames[DEPTH];
	uint64_t path = number * 2654435761u % STACKS;

	for (int d = 0; d < DEPTH; d++) {
		char name[40];
		struct store_function f = {.name = name, .image = image, .file = ""};
		struct store_frame x = {.image = image};

		snprintf(name, sizeof(name), "f%d_%llu", d,
			 (unsigned long long)(path % (uint64_t)(d + 1) + path * (d > 8)));
		x.function = store_function(w, &f);
		x.offset = 16ull * x.function;
		frames[d] = store_frame(w, &x);
	}
	return store_series(w, run, store_process(w, &p), "count", 1, store_stack(w, frames, DEPTH),
			    STORE_KIND_CPU);
}

static void say(const struct options *o, const char *line)
{
	if (o->progress_fd >= 0 && write(o->progress_fd, line, strlen(line)) < 0)
		stop = 1; /* the reader of the progress has gone */
}

static void work(const struct options *o, struct store_writer *w, uint32_t run,
		 volatile uint64_t *count)
{
	const struct timespec nap = {0, TURN_NS};
	const char *each = getenv("COUNTLOAD_EVENTS");
	int events = each ? atoi(each) : EVENTS_PER_TURN;
	char line[200];

	for (uint64_t turn = 0; !stop; turn++) {
		int64_t now = clock_utc_ns();

		for (int i = 0; i < events; i++) {
			int rc;

			count[0]++;
			do
				rc = store_add(w, series_of(w, run, count[0]), now, 1);
			while (rc == -ESTALE);
			count[1]++;
		}
		store_run_until(w, run, now);
		if (turn % 20 == 0)
			store_flush(w);
		if (turn % 50 == 0) {
			struct store_writer_stat st;

			store_writer_stat(w, &st);
			snprintf(
				line, sizeof(line),
				"{\"event\":\"progress\",\"samples\":%llu,\"lost\":%llu,\"self_cores\":0,"
				"\"store_error\":\"%s\"}\n",
				(unsigned long long)count[1], (unsigned long long)st.dropped,
				st.last_error ? strerror(-st.last_error) : "");
			say(o, line);
		}
		nanosleep(&nap, NULL);
	}
}

static const char *family_of(const char *program)
{
	const char *name = strrchr(program, '/');

	name = name ? name + 1 : program;
	return strncmp(name, "sonde-", 6) ? "cpu" : name + 6;
}

int main(int argc, char **argv)
{
	struct options o = {.progress_fd = -1};
	struct sigaction sa = {.sa_handler = on_term};
	volatile uint64_t *count = open_count();
	struct store_writer *w;
	struct err e = {0};
	uint32_t run;

	log_init("countload", LOG_LEVEL_WARN);
	read_options(argc, argv, &o);
	sigaction(SIGTERM, &sa, NULL);
	signal(SIGPIPE, SIG_IGN);
	if (!count)
		return 1;
	if (store_writer_open(&o.store, &w, &e))
		return err_report(&e, "countload");
	run = store_run_begin(w, &(struct store_run){.family = family_of(argv[0]),
						     .options = "countload",
						     .bucket_s = 1,
						     .cpus = 1,
						     .period_ns = 1000000,
						     .from_ns = clock_utc_ns(),
						     .boot_offset_ns = clock_boot_offset_ns()});
	say(&o, "{\"event\":\"ready\",\"run\":1,\"segment\":\"\",\"clock\":\"count\",\"hz\":0}\n");
	work(&o, w, run, count);
	return store_writer_close(w, 1200, &e) ? err_report(&e, "countload") : 0;
}
