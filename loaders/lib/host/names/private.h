/* SPDX-License-Identifier: Apache-2.0 */
/*
 * private: what the files of naming share. naming.c puts stacks together and names pending frames;
 * naming_kernel.c names kernel addresses, naming_user.c user addresses, naming_script.c script
 * frames; naming_process.c and naming_container.c have the processes and their containers. All
 * caches here belong to one epoch of the store.
 */
#ifndef SONDE_HOST_NAMES_PRIVATE_H
#define SONDE_HOST_NAMES_PRIVATE_H

#include <limits.h>
#include <uthash.h>

#include "loaders/lib/host/proc/containernames.h"
#include "loaders/lib/host/maps/hostmaps.h"
#include "loaders/lib/host/proc/instance.h"
#include "loaders/lib/host/names/jitreader.h"
#include "loaders/lib/host/names/kallsyms.h"
#include "loaders/lib/host/names/naming.h"
#include "loaders/lib/host/names/perfmap.h"
#include "loaders/lib/host/proc/runtime.h"
#include "schema/base/idmap.h"
#include "schema/image/image.h"
#include "schema/store/write/writer.h"

/* Why a frame has no name. struct frame_name is packed into 64 bits for the caches. */
enum why {
	WHY_NAMED,
	WHY_PENDING,
	WHY_REFUSED,
	WHY_SYMBOL,
	WHY_ANON,
	WHY_UNMAPPED,
	WHY_KERNEL,
	WHY_N
};

struct frame_name {
	uint32_t frame; /* store id */
	enum why why;
	uint32_t slot;  /* of n->pending if WHY_PENDING, SLOT_NONE: no room */
	uint32_t image; /* user: the store's id of its image; not in the caches */
};
#define SLOT_NONE 0xffffffu

/* How an address is looked up: see the rules in naming.h. */
enum look {
	LOOK_LEAF,      /* the pc; folded to its function */
	LOOK_EXACT,     /* the pc, kept exact */
	LOOK_BACK,      /* at the byte before it */
	LOOK_LEAF_BACK, /* both: folded, and looked up at the byte before */
	LOOK_LOGICAL,   /* at the byte before it, only the innermost function there */
	LOOK_N
};

static inline bool look_is_leaf(enum look look)
{
	return look == LOOK_LEAF || look == LOOK_LEAF_BACK;
}

static inline bool look_is_back(enum look look)
{
	return look == LOOK_BACK || look == LOOK_LEAF_BACK || look == LOOK_LOGICAL;
}

/* A frame that waits for an index. */
struct pending {
	uint64_t generation; /* hostmaps image */
	uint32_t image;
	uint32_t store_image, frame;
	uint64_t offset;
	uint64_t uses, leaf_uses; /* how often it occurred, counted as named later */
	enum look look;
	bool used;
};

/* hostmaps_image.user: plain memory, hostmaps frees it. */
struct image_note {
	uint32_t epoch, store_image;
	uint32_t pending_image; /* its row from before it was ready, which gets the build-id; 0:
				   none */
	int state; /* of the image when it was interned: a pending one gets another row when it is
		      ready */
};

/* hostmaps_process.user */
struct process_note {
	uint32_t epoch, serial, store_process, containers;
	int64_t look_ns; /* when to look for its runtime again */
	uint32_t looks;
	struct runtime runtime;
	bool judged, excluded; /* the rules' verdict, with what was known then: */
	uint32_t judged_serial, judged_containers;
};

struct container_entry {
	char *cgroup; /* key */
	struct container_ref ref;
	char *path; /* the container's own cgroup */
	struct container_names names;
	uint32_t epoch, id;
	int64_t next_try_ns;
	int tries;
	uint64_t began_ns;  /* the instance that has row `id`; 0: its runtime says when it began */
	uint64_t cgroup_id; /* of the last process that came; another id for this path: it was
			       started again */
	int looks;          /* remaining tries to read the runtime's record of that */
	int64_t look_ns;
	int64_t file_ns; /* when names.file was last written; 0: not looked yet */
	UT_hash_handle hh;
};

/* The known instances of a container, whatever cgroups are in it. */
struct instances {
	struct instance now, before;
	UT_hash_handle hh;
	char path[];
};

struct jit_map {
	uint32_t tgid, exec_id;
	uint64_t start_ns;
	struct perfmap *map;
	struct jitnames_stamp stamp, reading; /* of `map`; of what `job` reads */
	struct jitjob job;
	int64_t next_read_ns, pause_ns, used_ns;
	char why[256];     /* its names are not read, or not all; "": they are */
	uint64_t noted_at; /* the store's gauge epoch when that was noted, + 1; 0: never */
	bool told;         /* the log has it that its names are not read */
};
#define JIT_MAPS  128
#define JIT_BYTES (48u << 20)

struct naming {
	struct hostmaps *hm;
	struct store_writer *w;
	struct naming_opts o;
	char docker_root[512];
	uint32_t epoch;
	int64_t boot_offset_ns;
	struct naming_stat stat;

	struct idmap frames; /* (store image, offset, look) -> frame_name */
	/* frame of tables -> frame_name, of files whose index is there; by whether it is a leaf */
	struct idmap standing[2];
	uint64_t standing_generation; /* of hostmaps */
	struct pending *pending;
	size_t n_pending, cap_pending, used_pending;
	struct pending *lineless; /* named by an index whose lines are still being read */
	size_t n_lineless, cap_lineless;
	uint32_t *free_slots;
	size_t n_free, cap_free;
	uint32_t image_anon, image_jit, image_unknown, image_vsyscall;
	struct jit_map jit[JIT_MAPS];
	struct jitreader *jitreader; /* NULL: it did not start */
	uint32_t run;                /* 0: none yet */

	struct script_note *script_notes; /* by id */
	struct idmap script_frames;       /* word -> frame_name */
	struct script_text *script_texts; /* by their content */
	uint32_t script_words;            /* ids given out for them */
	uint64_t *settled;                /* of naming_script_settle */

	struct kallsyms *kallsyms;
	bool kallsyms_tried,
		kallsyms_partial; /* partial: from the kept file; there may be more symbols */
	int64_t kallsyms_read_ns, kallsyms_pause_ns, kallsyms_least_ns;
	struct idmap kernel[4];     /* by enum look: address -> frame_name */
	struct idmap kernel_images; /* hash of the module's name -> store image */

	struct container_entry *containers;
	struct instances *instances; /* by path */
	uint32_t containers_serial;  /* grows when one gets a name */
	int64_t containers_next_ns;
	int64_t runtimes_next_ns, runtimes_due_ns; /* of naming_runtime_tick: not before the first;
						      the second is when there is work at all */
	uint32_t turned;                           /* see naming_turned */
	struct idmap unknown;                      /* processes that hostmaps does not know */
	struct idmap selves;                       /* pids of sonde's own processes */
	uint32_t self_tgid;
	char self_dir[512], self_cgroup[512];

	uint32_t *buf; /* frames of the stack being made, root first */
	size_t cap_buf;
};

/* naming_kernel.c */
struct frame_name naming_kernel(struct naming *n, uint64_t addr, enum look look);
void naming_kernel_forget(struct naming *n);
void naming_kernel_release(struct naming *n);

/* naming_user.c: names the result of hostmaps_frame_owner. */
struct frame_name naming_user(struct naming *n, struct hostmaps_process *p,
			      const struct hostmaps_frame *at, enum look look);
struct frame_name naming_unknown(struct naming *n);
/* A frame of tables that still holds (hostmaps_frames_stand), if it was named before. `leaf`: of
 * the stack. */
bool naming_standing(struct naming *n, uint64_t frame, bool leaf, struct frame_name *out);
/* naming_user named it as `a`, from `at`: the next time it need not be asked. */
void naming_standing_add(struct naming *n, uint64_t frame, bool leaf,
			 const struct hostmaps_frame *at, struct frame_name a);
void naming_user_init(struct naming *n);
void naming_user_ready(struct naming *n, struct hostmaps_image *img);
void naming_user_tick(struct naming *n);
void naming_user_forget(struct naming *n);
void naming_user_release(struct naming *n);

/* naming_script.c: a frame with FRAME_SCRIPT. */
struct frame_name naming_script(struct naming *n, struct hostmaps_process *p, uint64_t word);
void naming_script_forget(struct naming *n);
void naming_script_tick(struct naming *n); /* drops words if there are too many */
/* User frames of a whole stack. The program puts each chunk of script frames behind the call of the
 * interpreter's loop that it belongs to, by counting. If the counts differ (a call has begun and
 * has no script frame yet; or its script frame is gone and the call is not), some chunks remain at
 * the end of the native frames. Then all go to the outermost call. Returns `frames`, or a copy that
 * is valid until the next call. */
const uint64_t *naming_script_settle(struct naming *n, const uint64_t *frames, size_t count);
void naming_script_release(struct naming *n);

/* location.c: fills `f` (image, offset, leaf and exact are set) with function, line and the
 * functions it was inlined into; with `fold` a leaf's offset becomes that of its function's first
 * byte. false: no name, `f` is unchanged. */
bool naming_location(struct naming *n, const struct image *index, enum look look, bool fold,
		     struct store_frame *f);

/* naming.c: drops the ids of another epoch of the store. */
void naming_epoch(struct naming *n);

/* naming_process.c; `ev` NULL: no sample, a known process */
int naming_process_init(struct naming *n);
uint32_t naming_process(struct naming *n, struct hostmaps_process *p, const struct stack_event *ev);
/* Its arguments have come: they go into its row, if it has one. `ctx`: struct naming. */
void naming_process_learnt(void *ctx, struct hostmaps_process *p);
/* naming_container.c: the container of a cgroup's path. `p` runs in it now, NULL: maybe no process.
 * Valid until the next call. */
struct container_entry *naming_container_entry(struct naming *n, const char *cgroup,
					       const struct hostmaps_process *p);
/* Its row, for the instance of this process; NULL: for the latest known instance. 0: not a
 * container. */
uint32_t naming_container_row(struct naming *n, struct container_entry *c,
			      const struct hostmaps_process *p);
/* Look again for missing names. */
void naming_containers_tick(struct naming *n);
void naming_containers_drop(struct naming *n);
/* The path of its cgroup: the process's own, or that of id `cgroup_id` on v2, in `buf`; "":
 * unknown. */
const char *naming_cgroup(const struct hostmaps_process *p, uint64_t cgroup_id, char buf[PATH_MAX]);
/* naming_excluded.c */
void naming_excluded_stack(struct naming *n, struct naming_result *out);
/* naming_runtime.c: finds the process's runtime, as far as it is known now; false: nothing new. */
bool naming_runtime(struct process_note *note, const struct hostmaps_process *p);
/* Once a second: check processes again that were checked too early. */
void naming_runtime_tick(struct naming *n);
/* It has a row, and may have to be checked again. */
void naming_runtime_due(struct naming *n, const struct process_note *note);
void naming_process_forget(struct naming *n);
void naming_process_release(struct naming *n);

static inline uint64_t frame_name_pack(struct frame_name a)
{
	return (uint64_t)a.frame | (uint64_t)a.why << 32 | (uint64_t)a.slot << 40;
}

static inline struct frame_name frame_name_unpack(uint64_t v)
{
	return (struct frame_name){.frame = (uint32_t)v,
				   .why = (enum why)(v >> 32 & 0xff),
				   .slot = (uint32_t)(v >> 40)};
}

/* naming_process.c: is the folder of `exe`, its first `len` bytes, `ours` (the loaders'), or, in an
 * installation (schema/base/sibling.h), that of `sonde` and `sonded`? Readers of the store are part
 * of sonde's load just like its writers. Pure. */
bool naming_in_our_folder(const char *ours, const char *exe, size_t len);

#endif
