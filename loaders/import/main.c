/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sonde-import: takes what another program's profile holds, as lines of JSON (line.h) from standard
 * input, and puts it into the store, as a run of the family "import". All or nothing: what cannot
 * be understood, and a disk that is full, end it, and the store is as it was (stage.h).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "loaders/import/line.h"
#include "loaders/import/stage.h"
#include "loaders/lib/host/proc/args.h"
#include "schema/base/cli/options.h"
#include "schema/base/clock.h"
#include "schema/base/hash.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"
#include "schema/store/files/folder.h"
#include "schema/store/files/location.h"
#include "schema/store/write/writer.h"

#define CLOSE_MS    600000
#define FAILED_MS   200 /* to close what is thrown away */
#define STUCK_TRIES 200 /* of 10 ms: how long the store may refuse what it is given */
#define WAIT_EVERY  10000
#define WAITING_MAX (64u << 20)
#define FRAMES_MAX  (8u << 20)

static const struct program PROGRAM = {
	.name = "sonde-import",
	.usage = "--store DIR < LINES",
	.about = "Part of sonde import: stores a profile that it has read. Use sonde import FILE.",
};

static const struct option OPTIONS[] = {
	{"store", 0, OPTION_STRING, "DIR", "store folder (default: $SONDE_STORE)",
	 OPTION_AT(struct store_writer_opts, dir)},
	{0},
};

struct importing {
	struct store_writer *w;
	const char *store;
	uint32_t run;
	uint32_t exec_id; /* of all its processes: what another import brings is another process */
	struct line *frames, *processes; /* defined once, and referred to by later lines */
	size_t n_frames, cap_frames, n_processes, cap_processes;
	size_t n_added;
};

static uint32_t image_of(struct importing *m, const struct line *f)
{
	struct store_image image = {.kind = f->kernel  ? STORE_IMAGE_KERNEL :
					    f->jit     ? STORE_IMAGE_JIT :
					    *f->module ? STORE_IMAGE_ELF :
							 STORE_IMAGE_UNKNOWN,
				    .name = *f->module ? f->module : "[unknown]",
				    .path = f->path,
				    .build_id = f->build_id,
				    .key = ""};

	return store_image(m->w, &image);
}

/* Where the file says no place, one is made of name and line: two lines of a function are two. */
static uint64_t frame_offset(const struct line *f)
{
	return f->offset ? f->offset : hash_u64(hash_str(HASH_SEED, f->name), f->line) >> 24;
}

/* `around`: the function at that place in the file: `f` itself, or the one it was inlined into. */
static uint32_t frame_of(struct importing *m, const struct line *f, const struct line *around,
			 uint32_t outer)
{
	struct store_frame frame = {.image = image_of(m, around),
				    .line = f->line,
				    .offset = frame_offset(around),
				    .outer = outer};
	struct store_function function = {.name = f->name, .image = frame.image, .file = f->file};

	if (!f->unnamed)
		frame.function = store_function(m->w, &function);
	return store_frame(m->w, &frame);
}

static uint32_t process_of(struct importing *m, uint32_t index)
{
	const struct line *l = &m->processes[index];
	struct store_container c = {.runtime = "",
				    .runtime_id = *l->container_id ? l->container_id : l->container,
				    .name = l->container,
				    .image = l->image,
				    .cgroup = ""};
	struct strbuf args cleanup_strbuf = STRBUF_INIT; /* another tool masks nothing */
	struct store_process p = {.pid = l->pid,
				  .ppid = l->ppid,
				  .uid = l->uid,
				  .start_ns = l->start_ns,
				  .comm = l->name,
				  .exe = l->exe,
				  .cgroup = "",
				  .unit = l->unit,
				  .exec_id = m->exec_id};

	args_mask_line(l->args, strlen(l->args), &args);
	p.args = strbuf_str(&args);

	/* no boot clock is known: what tells it from another of the pid is its place in the file
	 * and the run */
	p.start_ticks = l->start_ns ? (uint64_t)l->start_ns : index + 1;
	p.container = *l->container || *l->container_id ? store_container(m->w, &c) : 0;
	return store_process(m->w, &p);
}

/* An inlined function has the place and name of the function around it; the stack names only the
 * innermost. */
static uint32_t stack_of(struct importing *m, const struct line *l)
{
	uint32_t *ids = mem_array(l->n_stack + 1, sizeof(*ids)), stack;
	const struct line *around = NULL;
	size_t n = 0;

	for (uint32_t i = 0; i < l->n_stack; i++) {
		const struct line *f = &m->frames[l->stack[i]];

		if (f->inlined && n) {
			ids[n - 1] = frame_of(m, f, around, ids[n - 1]);
			continue;
		}
		around = f;
		ids[n++] = frame_of(m, f, f, 0);
	}
	stack = store_stack(m->w, ids, n);
	free(ids);
	return stack;
}

static uint32_t series_of(struct importing *m, const struct line *l)
{
	return store_series_told(m->w, m->run, process_of(m, l->process), l->thread, l->tid,
				 stack_of(m, l), l->kind, l->label, l->labels);
}

static int add_one(struct importing *m, const struct line *l, uint32_t series,
		   const struct line_time *t)
{
	const struct store_amount amount = {.n = t->n, .value = t->value};

	return l->kind == STORE_KIND_CPU ? store_add(m->w, series, t->at_ns, t->n) :
					   store_amount(m->w, series, t->at_ns, &amount);
}

/* After -ESTALE the series must be interned again. */
static int add_times(struct importing *m, const struct line *l)
{
	uint32_t series = series_of(m, l);
	int rc = 0;

	for (size_t i = 0; i < l->n_times && !rc; i++) {
		rc = add_one(m, l, series, &l->times[i]);
		if (rc != -ESTALE)
			continue;
		series = series_of(m, l);
		rc = add_one(m, l, series, &l->times[i]);
	}
	return rc;
}

/* A batch that finds no room is dropped: here there is time to wait until at most `most` bytes are
 * left. A store that goes on refusing them ends the import. */
static int wait_for_room(struct importing *m, uint64_t most, struct err *e)
{
	struct store_writer_stat stat;
	int tries = 0;

	store_flush(m->w);
	for (;;) {
		store_writer_stat(m->w, &stat);
		if (stat.dropped)
			return err_set(e, -ENOBUFS, EXIT_STORE,
				       "the store %s did not take samples as fast as they came",
				       m->store);
		if (stat.queued_bytes <= most && !stat.last_error)
			return 0;
		tries = stat.last_error ? tries + 1 : 0;
		if (tries >= STUCK_TRIES)
			break;
		nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
	}
	if (stat.last_error == -ENOSPC || stat.last_error == ENOSPC)
		return folder_full(m->store, e);
	return err_set(e, stat.last_error, EXIT_STORE, "cannot write to the store %s: %s", m->store,
		       strerror(abs(stat.last_error)));
}

static int add(struct importing *m, const struct line *l, struct err *e)
{
	int rc;

	if (l->process >= m->n_processes)
		return err_set(e, -EBADMSG, EXIT_RUNTIME, "process %u was not defined", l->process);
	for (uint32_t i = 0; i < l->n_stack; i++)
		if (l->stack[i] >= m->n_frames)
			return err_set(e, -EBADMSG, EXIT_RUNTIME, "frame %u was not defined",
				       l->stack[i]);
	rc = add_times(m, l);
	if (rc)
		return err_set(e, rc, EXIT_STORE, "cannot store the profile: %s", strerror(-rc));
	m->n_added += l->n_times;
	if (m->n_added < WAIT_EVERY)
		return 0;
	m->n_added = 0;
	return wait_for_room(m, WAITING_MAX, e);
}

static int begin(struct importing *m, const struct line *l, struct err *e)
{
	struct store_run run = {.family = "import",
				.options = l->name,
				.scope = STORE_SCOPE_NARROW,
				.bucket_s = l->bucket_s,
				.period_ns = l->period_ns,
				.cpus = 1,
				.from_ns = l->from_ns,
				.boot_offset_ns = clock_boot_offset_ns()};

	if (m->run)
		return err_set(e, -EBADMSG, EXIT_RUNTIME, "there is a second run");
	m->run = store_run_begin(m->w, &run);
	m->exec_id = (uint32_t)(hash_u64(hash_u64(HASH_SEED, (uint64_t)clock_utc_ns()),
					 (uint64_t)getpid()) >>
				32);
	store_run_until(m->w, m->run, l->to_ns);
	return 0;
}

static int take(struct importing *m, const char *bytes, size_t len, struct err *e)
{
	struct line l;
	int rc = line_parse(bytes, len, &l, e);

	if (!rc && l.what != LINE_RUN && !m->run)
		rc = err_set(e, -EBADMSG, EXIT_RUNTIME, "no run comes before");
	if (!rc && l.what == LINE_FRAME && m->n_frames < FRAMES_MAX) {
		mem_grow(m->frames, m->n_frames, m->cap_frames);
		m->frames[m->n_frames++] = l;
		return 0;
	}
	if (!rc && l.what == LINE_PROCESS && m->n_processes < FRAMES_MAX) {
		mem_grow(m->processes, m->n_processes, m->cap_processes);
		m->processes[m->n_processes++] = l;
		return 0;
	}
	if (!rc)
		rc = l.what == LINE_RUN ? begin(m, &l, e) :
		     l.what == LINE_ADD ? add(m, &l, e) :
					  err_set(e, -E2BIG, EXIT_RUNTIME,
						  "more frames or processes than %u", FRAMES_MAX);
	line_release(&l);
	return rc;
}

static int take_all(struct importing *m, struct err *e)
{
	char *line = NULL;
	size_t cap = 0;
	ssize_t n;
	int rc = 0;

	while (!rc && (n = getline(&line, &cap, stdin)) > 0)
		rc = take(m, line, (size_t)n, e);
	free(line);
	if (!rc && (ferror(stdin) || !m->run))
		rc = err_set(e, -EIO, EXIT_RUNTIME, "nothing came in");
	return rc;
}

static void release(struct importing *m)
{
	for (size_t i = 0; i < m->n_frames; i++)
		line_release(&m->frames[i]);
	for (size_t i = 0; i < m->n_processes; i++)
		line_release(&m->processes[i]);
	free(m->frames);
	free(m->processes);
}

static int import(struct importing *m, struct store_writer_opts *opts, struct err *e)
{
	struct err closing = {0};
	int closed, rc = store_writer_open(opts, &m->w, e);

	if (rc)
		return rc;
	rc = take_all(m, e);
	if (!rc)
		rc = wait_for_room(m, 0, e);
	closed = store_writer_close(m->w, rc ? FAILED_MS : CLOSE_MS, &closing);
	if (!rc && closed)
		*e = closing;
	return rc ? rc : closed;
}

int main(int argc, char **argv)
{
	/* one segment, which is moved in one step */
	struct store_writer_opts opts = {
		.max_bytes = 256u << 20, .segment_bytes = 1ull << 40, .segment_s = UINT32_MAX};
	struct importing m = {0};
	struct stage stage;
	struct err e = {0};
	int rc = program_options(&PROGRAM, argc, argv, &(struct option_set){OPTIONS, &opts}, 1,
				 NULL, &e);

	if (rc)
		return program_end(PROGRAM.name, rc, &e);
	m.store = opts.dir && *opts.dir ? opts.dir : store_default_dir();
	rc = stage_begin(&stage, m.store, &e);
	if (rc)
		return err_report(&e, PROGRAM.name);
	opts.dir = stage.dir;
	rc = import(&m, &opts, &e);
	release(&m);
	if (!rc)
		rc = stage_move(&stage, &e);
	stage_end(&stage, rc != 0);
	return rc ? err_report(&e, PROGRAM.name) : 0;
}
