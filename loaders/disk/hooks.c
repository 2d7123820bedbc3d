/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/disk/hooks.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/limits.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "loaders/lib/bpf/load/leftout.h"
#include "loaders/lib/bpf/load/load.h"
#include "loaders/lib/bpf/load/maproom.h"
#include "loaders/lib/bpf/load/programs.h"
#include "loaders/lib/bpf/load/kerneltypes.h"
#include "loaders/lib/bpf/load/tracefs.h"
#include "probes/disk.skel.h"
#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/log.h"

#define NO_WHO   "which process asked for a request is not recorded"
#define NO_BIO   "errors of devices that lie on others (dm, md) are not recorded"
#define NO_STACK "where threads wait for slow requests is not recorded"
#define NO_SYNCS "calls that wait for a disk (fsync) are not recorded"
#define NO_OPENS "opens that fail are not recorded"
#define NO_DIRTY "who changes files that are written later is not recorded"
#define NO_CALLS "reads and writes of files are not recorded"
#define NO_RING  "reads and writes of files by io_uring are not recorded"
#define NO_LOCKS "waits for locks of files are not recorded"
#define NO_HELD  "deleted files that are open are not recorded"

static const struct leftout_program OPTIONAL[] = {
	{"disk_start", NULL}, /* disk_insert instead */
	{"disk_insert", NO_WHO},
	{"disk_merge", NULL}, /* entries of merged requests go when
				 there is no room */
	{"disk_bio_end", NO_BIO},
	{"disk_complete_stack", NO_STACK},
	{"disk_dirty", NO_DIRTY},
	{"disk_dirty_page", NO_DIRTY},
	{"disk_held", NO_HELD},
	{"fsync_begins", NO_SYNCS},
	{"fdatasync_begins", NO_SYNCS},
	{"range_begins", NO_SYNCS},
	{"syncfs_begins", NO_SYNCS},
	{"sync_ends", NO_SYNCS},
	{"open_ends", NO_OPENS},
	{"openat_ends", NO_OPENS},
	{"read_begins", NO_CALLS},
	{"read_begins_cast", NULL},
	{"write_begins", NO_CALLS},
	{"write_begins_cast", NULL},
	{"resize_begins", NO_CALLS},
	{"resize_begins_cast", NULL},
	{"sendfile_begins", NO_CALLS},
	{"sendfile_begins_cast", NULL},
	{"copy_begins", NO_CALLS},
	{"copy_begins_cast", NULL},
	{"calls_end", NO_CALLS},
	{"ring_submits", NO_RING},
	{"ring_submits_sqe", NO_RING},
	{"ring_completes", NO_RING},
	{"lock_flock", NO_LOCKS},
	{"lock_posix", NO_LOCKS},
	{"lock_ends", NO_LOCKS},
	{"lock_fcntl", NO_LOCKS},
	{"lock_signal", NULL}, /* then the loader finds that a wait is over */
	{0}};

/* Which programs attach to which system calls: words of the tracepoints' names, each absent on some
 * architecture. */
#define READS   "read pread64 readv preadv preadv2"
#define RESIZES "fallocate ftruncate"
#define WRITES  "write pwrite64 writev pwritev pwritev2"

static const struct {
	const char *program, *at, *calls;
} CALLS[] = {
	{"read_begins", "enter", READS},
	{"read_begins_cast", "enter", READS},
	{"write_begins", "enter", WRITES},
	{"write_begins_cast", "enter", WRITES},
	{"resize_begins", "enter", RESIZES},
	{"resize_begins_cast", "enter", RESIZES},
	{"sendfile_begins", "enter", "sendfile64"},
	{"sendfile_begins_cast", "enter", "sendfile64"},
	{"copy_begins", "enter", "copy_file_range"},
	{"copy_begins_cast", "enter", "copy_file_range"},
	{"calls_end", "exit", READS " " WRITES " " RESIZES " sendfile64 copy_file_range"},
	{"lock_ends", "exit", "flock"},
	{"fsync_begins", "enter", "fsync"},
	{"fdatasync_begins", "enter", "fdatasync"},
	{"range_begins", "enter", "sync_file_range"},
	{"syncfs_begins", "enter", "syncfs"},
	{"sync_ends", "exit", "fsync fdatasync sync_file_range syncfs"},
	{"open_ends", "exit", "open creat execve"},
	{"openat_ends", "exit", "openat openat2 execveat"},
};

static bool tells(const char *tracepoint)
{
	return libbpf_find_vmlinux_btf_id(tracepoint, BPF_TRACE_RAW_TP) > 0;
}

bool hooks_tells_start(void)
{
	return tells("block_io_start");
}

/* Gives a thread by its number: since 6.2. */
bool hooks_tells_stack(void)
{
	return libbpf_find_vmlinux_btf_id("bpf_task_from_pid", BPF_TRACE_FENTRY) > 0;
}

bool hooks_tells_calls(void)
{
	return libbpf_probe_bpf_helper(BPF_PROG_TYPE_TRACEPOINT, BPF_FUNC_task_storage_get, NULL) >
	       0;
}

/* A request of io_uring has its result since 5.19, and says of a submission which it is from 6.0
 * on. */
bool hooks_tells_ring(void)
{
	struct btf *kernel;
	bool found;

	if (tells("io_uring_submit_req")) /* from 6.4 on */
		return true;
	kernel = btf__load_vmlinux_btf();
	found = kernel && btf__find_by_name_kind(kernel, "io_cqe", BTF_KIND_STRUCT) > 0;
	btf__free(kernel);
	return found;
}

SKELETON_OPEN(disk)

static void autoload(struct hooks *k, const char *program, bool on)
{
	bpf_program__set_autoload(bpf_object__find_program_by_name(k->skel->obj, program), on);
}

/* What programs need for bpf_rdonly_cast, which is there since 6.2. */
static bool casts_set(struct hooks *k, const struct btf *kernel)
{
	int head, file;
	bool found;

	head = btf__find_by_name_kind(kernel, "hlist_head", BTF_KIND_STRUCT);
	file = btf__find_by_name_kind(kernel, "file", BTF_KIND_STRUCT);
	found = head > 0 && file > 0 &&
		btf__find_by_name_kind(kernel, "bpf_rdonly_cast", BTF_KIND_FUNC) > 0;
	if (found) {
		k->skel->rodata->type_hlist_head = (__u32)head;
		k->skel->rodata->type_file = (__u32)file;
	}
	return found;
}

/* Those of calls.bpf.h. */
static void calls_autoload(struct hooks *k, const struct btf *kernel)
{
	static const char *const begins[][2] = {{"read_begins", "read_begins_cast"},
						{"write_begins", "write_begins_cast"},
						{"resize_begins", "resize_begins_cast"},
						{"sendfile_begins", "sendfile_begins_cast"},
						{"copy_begins", "copy_begins_cast"}};
	bool on = k->calls && hooks_tells_calls(), ring = k->calls && hooks_tells_ring(),
	     req = tells("io_uring_submit_req"), casts = on && kernel && casts_set(k, kernel);

	for (size_t i = 0; i < ARRAY_SIZE(begins); i++) {
		bool cast = casts && !leftout_is(begins[i][1]);

		autoload(k, begins[i][0], on && !cast);
		autoload(k, begins[i][1], on && cast);
	}
	autoload(k, "calls_end", on);
	bpf_map__set_autocreate(k->skel->maps.calling, on);
	bpf_program__set_autoload(k->skel->progs.ring_submits, ring && req);
	bpf_program__set_autoload(k->skel->progs.ring_submits_sqe, ring && !req);
	bpf_program__set_autoload(k->skel->progs.ring_completes, ring);
}

static int load(struct hooks *k, const struct family_config *c)
{
	bool start = hooks_tells_start() && !leftout_is("disk_start");
	bool stack = hooks_tells_stack() && !leftout_is("disk_complete_stack");
	uint32_t flush_bit = DISK_FLUSH_SEQ_BEFORE;
	struct btf *kernel;

	k->skel = skel_open(c->store_dir);
	if (!k->skel)
		return -errno;
	kernel = btf__load_vmlinux_btf();
	/* Since 6.11 the bit is an enumerator, of an enum that has a name in some versions only,
	 * so that a program cannot ask for it. Before, it was no type of the kernel. */
	if (kernel)
		kerneltypes_enumerator(kernel, "__RQF_FLUSH_SEQ", &flush_bit);
	k->skel->rodata->flush_seq_bit = flush_bit;
	bpf_program__set_autoload(k->skel->progs.disk_start, start);
	bpf_program__set_autoload(k->skel->progs.disk_insert, !start);
	bpf_program__set_autoload(k->skel->progs.disk_complete_stack, stack);
	bpf_program__set_autoload(k->skel->progs.disk_complete, !stack);
	bpf_program__set_autoload(k->skel->progs.disk_merge, tells("block_rq_merge"));
	bpf_program__set_autoload(k->skel->progs.disk_bio_end, tells("block_bio_complete"));
	bpf_program__set_autoload(k->skel->progs.disk_dirty, tells("writeback_dirty_folio"));
	bpf_program__set_autoload(k->skel->progs.disk_dirty_page, tells("writeback_dirty_page"));
	bpf_program__set_autoload(k->skel->progs.lock_flock, k->files && tells("flock_lock_inode"));
	bpf_program__set_autoload(k->skel->progs.lock_posix, k->files && tells("posix_lock_inode"));
	bpf_program__set_autoload(k->skel->progs.lock_fcntl, k->files && tells("fcntl_setlk"));
	bpf_program__set_autoload(k->skel->progs.lock_signal, k->files && tells("signal_deliver"));
	for (size_t i = 0; i < ARRAY_SIZE(CALLS); i++)
		autoload(k, CALLS[i].program, k->files);
	calls_autoload(k, kernel);
	btf__free(kernel);
	programs_keep_still(k->skel->obj);
	leftout_disable(k->skel->obj);
	maproom_on_demand(k->skel->obj);
	return disk_bpf__load(k->skel);
}

static int slow_taken(void *ctx, void *record, size_t size)
{
	struct hooks *k = ctx;

	if (size >= sizeof(struct disk_slow))
		k->slow(k->ctx, record);
	return 0;
}

int hooks_open(struct hooks *k, const struct family_config *c, struct hooks_wanted wanted,
	       hooks_slow slow, void *ctx, struct err *e)
{
	int err;

	*k = (struct hooks){.slow = slow, .ctx = ctx, .files = wanted.files, .calls = wanted.calls};
	while ((err = load(k, c))) {
		hooks_close(k);
		if (!leftout_next(OPTIONAL, err))
			return load_error(err, "disk", e);
	}
	k->ring = ring_buffer__new(bpf_map__fd(k->skel->maps.slow_ring), slow_taken, k, NULL);
	if (k->ring)
		return 0;
	err = -errno;
	hooks_close(k);
	return load_error(err, "disk", e);
}

struct bpf_object *hooks_object(const struct hooks *k)
{
	return k->skel->obj;
}

static int link_add(struct hooks *k, struct bpf_link *link)
{
	if (!link)
		return -errno;
	if (k->n == HOOKS_LINKS) {
		bpf_link__destroy(link);
		return -E2BIG;
	}
	k->links[k->n++] = link;
	return 0;
}

/* One event for all CPUs: a program at a tracepoint runs on all of them. */
static int call_attach(struct hooks *k, struct bpf_program *prog, uint64_t id)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT, .size = sizeof(attr), .config = id};
	int fd = (int)syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	struct bpf_link *link;

	if (fd < 0)
		return -errno;
	link = bpf_program__attach_perf_event(prog, fd);
	if (!link) {
		int err = -errno;

		close(fd);
		return err;
	}
	return link_add(k, link);
}

/* How many of its calls there are; -errno. */
static int calls_attach(struct hooks *k, int events, size_t i)
{
	struct bpf_program *prog = bpf_object__find_program_by_name(k->skel->obj, CALLS[i].program);
	char words[128], name[64], *rest = NULL;
	int n = 0;

	snprintf(words, sizeof(words), "%s", CALLS[i].calls);
	for (const char *call = strtok_r(words, " ", &rest); call;
	     call = strtok_r(NULL, " ", &rest)) {
		uint64_t id;
		int err;

		snprintf(name, sizeof(name), "syscalls/sys_%s_%s", CALLS[i].at, call);
		if (tracefs_id(events, name, &id))
			continue;
		err = call_attach(k, prog, id);
		if (err)
			return err;
		n++;
	}
	return n;
}

/* Without them the requests are still recorded. */
static void files_attach(struct hooks *k)
{
	struct err why = {0};
	cleanup_fd int events = tracefs_open(&why);

	if (events < 0)
		log_debug("disk: %s", why.what);
	for (size_t i = 0; i < ARRAY_SIZE(CALLS); i++) {
		struct bpf_program *prog =
			bpf_object__find_program_by_name(k->skel->obj, CALLS[i].program);

		if (!bpf_program__autoload(prog) || bpf_program__fd(prog) < 0)
			continue;
		if (events < 0 || calls_attach(k, events, i) < 0)
			leftout_add(OPTIONAL, CALLS[i].program);
	}
}

int hooks_attach(struct hooks *k, struct err *e)
{
	struct bpf_program *prog;
	int err;

	bpf_object__for_each_program (prog, k->skel->obj) {
		if (bpf_program__type(prog) == BPF_PROG_TYPE_TRACEPOINT ||
		    prog == k->skel->progs.disk_held || !bpf_program__autoload(prog))
			continue;
		err = link_add(k, bpf_program__attach(prog));
		if (err)
			return load_error(err, bpf_program__name(prog), e);
	}
	if (k->files || k->calls)
		files_attach(k);
	if (bpf_program__autoload(k->skel->progs.disk_held))
		k->held = bpf_program__attach_iter(k->skel->progs.disk_held, NULL);
	return 0;
}

void hooks_detach(struct hooks *k)
{
	while (k->n)
		bpf_link__destroy(k->links[--k->n]);
}

void hooks_close(struct hooks *k)
{
	hooks_detach(k);
	bpf_link__destroy(k->held);
	k->held = NULL;
	ring_buffer__free(k->ring);
	k->ring = NULL;
	disk_bpf__destroy(k->skel);
	k->skel = NULL;
}

uint32_t *hooks_made(const struct hooks *k, enum disk_made which)
{
	return &k->skel->bss->disk_made[which];
}

bool hooks_quiet(const struct hooks *k)
{
	for (int i = 0; i < DISK_MADE_N; i++)
		if (__atomic_load_n(&k->skel->bss->disk_made[i], __ATOMIC_SEQ_CST))
			return false;
	return true;
}

void hooks_read(struct hooks *k)
{
	ring_buffer__consume(k->ring);
}

int hooks_asked(struct hooks *k, mapread_fn fn, void *ctx)
{
	return mapread_each(bpf_map__fd(k->skel->maps.asked), sizeof(uint64_t),
			    sizeof(struct disk_asked), fn, ctx);
}

int hooks_syncing(struct hooks *k, mapread_fn fn, void *ctx)
{
	return mapread_any(hooks_made(k, DISK_MADE_SYNCING), bpf_map__fd(k->skel->maps.syncing),
			   sizeof(uint64_t), sizeof(struct disk_syncing), fn, ctx);
}

void hooks_locking_over(struct hooks *k, uint64_t thread, uint64_t begin_ns)
{
	int fd = bpf_map__fd(k->skel->maps.locking);
	struct disk_locking l;

	if (!mapread_take_one(fd, &thread, &l))
		return;
	if (l.begin_ns == begin_ns)
		__atomic_fetch_add(&k->skel->bss->disk_lost.locks, 1, __ATOMIC_RELAXED);
	else /* it waits again */
		bpf_map_update_elem(fd, &thread, &l, BPF_NOEXIST);
}

int hooks_locking(struct hooks *k, mapread_fn fn, void *ctx)
{
	return mapread_any(hooks_made(k, DISK_MADE_LOCKING), bpf_map__fd(k->skel->maps.locking),
			   sizeof(uint64_t), sizeof(struct disk_locking), fn, ctx);
}

struct hooks_files hooks_files(const struct hooks *k)
{
	return (struct hooks_files){.sums = k->skel->maps.disk_files,
				    .rest = k->skel->maps.disk_rest_files,
				    .sums_made = hooks_made(k, DISK_MADE_FILES),
				    .rest_made = hooks_made(k, DISK_MADE_REST_FILES),
				    .names = k->skel->maps.disk_names};
}

int hooks_held(struct hooks *k, hooks_held_fn fn, void *ctx)
{
	cleanup_fd int fd = k->held ? bpf_iter_create(bpf_link__fd(k->held)) : -1;
	struct disk_held found[64];
	size_t have = 0;
	ssize_t got;

	if (fd < 0)
		return k->held ? -errno : -ENOENT;
	while ((got = read(fd, (char *)found + have, sizeof(found) - have)) > 0 ||
	       (got < 0 && (errno == EAGAIN || errno == EINTR))) {
		size_t n;

		have += got > 0 ? (size_t)got : 0;
		n = have / sizeof(*found);
		for (size_t i = 0; i < n; i++)
			fn(ctx, &found[i]);
		have -= n * sizeof(*found);
		memmove(found, &found[n], have);
	}
	return got < 0 ? -errno : 0;
}

uint32_t hooks_epoch_end(struct hooks *k)
{
	k->skel->bss->calls_named = 0;
	return __atomic_fetch_add(&k->skel->bss->disk_epoch, 1, __ATOMIC_SEQ_CST);
}

void hooks_reduce(struct hooks *k, uint32_t step)
{
	__atomic_store_n(&k->skel->bss->calls_shift, 2 * step, __ATOMIC_RELAXED);
}

void hooks_slowest_reset(struct hooks *k)
{
	int fd = bpf_map__fd(k->skel->maps.slowest);
	uint64_t key;

	for (size_t i = 0; i < bpf_map__max_entries(k->skel->maps.slowest) &&
			   !bpf_map_get_next_key(fd, NULL, &key);
	     i++)
		bpf_map_delete_elem(fd, &key);
}

void hooks_lost(const struct hooks *k, struct disk_lost *out)
{
	*out = k->skel ? k->skel->bss->disk_lost : (struct disk_lost){0};
}
