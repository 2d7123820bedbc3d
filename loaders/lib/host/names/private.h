/* SPDX-License-Identifier: Apache-2.0 */
/*
 * naming_parts: what the files of naming share, and nobody else includes. naming.c puts stacks
 * together and names what was pending; naming_kernel.c, naming_user.c, naming_process.c and
 * naming_container.c each answer one question: a kernel address, a user address, the process, its
 * container. Everything cached here belongs to one epoch of the store.
 */
#ifndef SONDE_HOST_NAMES_PRIVATE_H
#define SONDE_HOST_NAMES_PRIVATE_H

#include <limits.h>
#include <uthash.h>

#include "loaders/lib/host/proc/containernames.h"
#include "loaders/lib/host/maps/hostmaps.h"
#include "loaders/lib/host/proc/instance.h"
#include "loaders/lib/host/names/kallsyms.h"
#include "loaders/lib/host/names/naming.h"
#include "loaders/lib/host/names/perfmap.h"
#include "loaders/lib/host/proc/runtime.h"
#include "schema/base/idmap.h"
#include "schema/image/image.h"
#include "schema/store/write/writer.h"

/* Why a frame has no name; a frame's answer packed into 64 bits for the caches. */
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
	uint32_t slot;  /* of n->pending when WHY_PENDING, SLOT_NONE if it found no room */
	uint32_t image; /* user: the store's id of what it lies in; not in the caches */
};
#define SLOT_NONE 0xffffffu

/* How an address is looked up: see the rules in naming.h. */
enum look {
	LOOK_LEAF,      /* the pc; folded to its function */
	LOOK_EXACT,     /* the pc, kept exact */
	LOOK_BACK,      /* at the byte before it */
	LOOK_LEAF_BACK, /* both: folded, and looked up at the byte before */
	LOOK_LOGICAL,   /* at the byte before it, and the innermost function there alone */
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
	uint64_t uses, leaf_uses; /* how often it occurred, to be booked as named later */
	enum look look;
	bool used;
};

/* hostmaps_image.user: plain memory, hostmaps frees it. */
struct image_note {
	uint32_t epoch, store_image;
	uint32_t pending_image; /* its row from before it was ready, which gains the build-id; 0:
				   none */
	int state; /* of the image when it was interned: a pending one gets another row when it is
		      ready */
};

/* hostmaps_process.user */
struct process_note {
	uint32_t epoch, serial, store_process, containers;
	int64_t look_ns; /* its runtime is looked for again then */
	uint32_t looks;
	struct runtime runtime;
	bool judged, excluded; /* by the rules, with what was known then: */
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
	uint64_t began_ns;  /* the instance that `id` is the row of; 0: its runtime tells */
	uint64_t cgroup_id; /* of the last process that came; another one of this path: it was
			       started again */
	int looks;          /* that are left to see what its runtime has written then */
	int64_t look_ns;
	UT_hash_handle hh;
};

/* The instances of a container that are known, whatever cgroups are in it. */
struct instances {
	struct instance now, before;
	UT_hash_handle hh;
	char path[];
};

struct jit_map {
	uint32_t tgid, exec_id;
	uint64_t start_ns;
	struct perfmap *map;
	struct perfmap_stamp stamp;
	int64_t next_read_ns, pause_ns, used_ns;
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
	struct pending *pending;
	size_t n_pending, cap_pending, used_pending;
	struct pending *lineless; /* named by an index whose lines are still being read */
	size_t n_lineless, cap_lineless;
	uint32_t *free_slots;
	size_t n_free, cap_free;
	uint32_t image_anon, image_jit, image_unknown, image_vsyscall;
	struct jit_map jit[JIT_MAPS];

	struct script_note *script_notes; /* by id */
	struct idmap script_frames;       /* word -> frame_name */
	struct script_text *script_texts; /* by what they say */
	uint32_t script_words;            /* ids given out for them */
	uint64_t *settled;                /* of naming_script_settle */

	struct kallsyms *kallsyms;
	bool kallsyms_tried,
		kallsyms_partial; /* partial: what is kept of them; there may be more */
	int64_t kallsyms_read_ns, kallsyms_pause_ns;
	struct idmap kernel[4];     /* by enum look: address -> frame_name */
	struct idmap kernel_images; /* hash of the module's name -> store image */

	struct container_entry *containers;
	struct instances *instances; /* by path */
	uint32_t containers_serial;  /* grows when one gains a name */
	int64_t containers_next_ns;
	int64_t runtimes_next_ns, runtimes_due_ns; /* of naming_runtime_tick: not before; and when
						      there is something to do at all */
	uint32_t turned;                           /* see naming_turned */
	struct idmap unknown;                      /* processes that hostmaps does not know */
	struct idmap selves;                       /* pids of sonde's own processes */
	char self_dir[512], self_cgroup[512];

	uint32_t *buf; /* frames of the stack being made, root first */
	size_t cap_buf;
};

/* naming_kernel.c */
struct frame_name naming_kernel(struct naming *n, uint64_t addr, enum look look);
void naming_kernel_forget(struct naming *n);
void naming_kernel_release(struct naming *n);

/* naming_user.c: a place, from hostmaps_frame_owner, gets its name. */
struct frame_name naming_user(struct naming *n, struct hostmaps_process *p,
			  const struct hostmaps_frame *at, enum look look);
struct frame_name naming_unknown(struct naming *n);
void naming_user_ready(struct naming *n, struct hostmaps_image *img);
void naming_user_tick(struct naming *n);
void naming_user_forget(struct naming *n);
void naming_user_release(struct naming *n);

/* naming_script.c: a frame with FRAME_SCRIPT. */
struct frame_name naming_script(struct naming *n, struct hostmaps_process *p, uint64_t word);
void naming_script_forget(struct naming *n);
void naming_script_tick(struct naming *n); /* forgets words, where there are too many */
/* User frames of a whole stack. The program says each chunk of script frames behind the call of the
 * interpreter's loop that is its own, by counting; where they are not as many (one call has begun,
 * and its frame is not there yet; or the frame has gone, and its call not), some are left when the
 * native frames are said. Then all stand at the outermost call. Returns `frames`, or a copy until
 * the next call. */
const uint64_t *naming_script_settle(struct naming *n, const uint64_t *frames, size_t count);
void naming_script_release(struct naming *n);

/* location.c: gives `f` (its image, offset, leaf and exact are set) function, line and what it
 * was inlined into; with `fold` a leaf's offset becomes that of its function's first byte. false:
 * no name, `f` is untouched. */
bool naming_location(struct naming *n, const struct image *index, enum look look, bool fold,
		  struct store_frame *f);

/* naming.c: ids of another epoch of the store are forgotten. */
void naming_epoch(struct naming *n);

/* naming_process.c; `ev` NULL: there is no sample, the process is known */
int naming_process_init(struct naming *n);
uint32_t naming_process(struct naming *n, struct hostmaps_process *p, const struct stack_event *ev);
/* naming_container.c. What a cgroup's path means. `p` runs in it now, NULL: nobody may. Valid until
 * the next call. */
struct container_entry *naming_container_entry(struct naming *n, const char *cgroup,
					       const struct hostmaps_process *p);
/* Its row, as the instance that this process is of; NULL: the latest that is known. 0: it is no
 * container. */
uint32_t naming_container_row(struct naming *n, struct container_entry *c,
			      const struct hostmaps_process *p);
/* One that had no name yet may have one now. */
void naming_containers_tick(struct naming *n);
void naming_containers_drop(struct naming *n);
/* The path of its cgroup, in `buf` where only an id of it is known: the process's own, or on v2
 * `cgroup_id`; "": nobody knows. */
const char *naming_cgroup(const struct hostmaps_process *p, uint64_t cgroup_id, char buf[PATH_MAX]);
/* naming_excluded.c */
void naming_excluded_stack(struct naming *n, struct naming_result *out);
/* naming_runtime.c: what the process is a program of, as far as it can be told now; false: as
 * before. */
bool naming_runtime(struct process_note *note, const struct hostmaps_process *p);
/* Once a second: those that were told too early are told again. */
void naming_runtime_tick(struct naming *n);
/* It has a row, and may have to be looked at again. */
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

/* naming_process.c: is the folder of `exe`, its first `len` bytes, `ours` (the loaders'), or, where
 * they are installed (schema/base/sibling.h), the one that `sonde` and `sonded` are in? Who asks
 * the store is no more of the host's load than who writes it. Pure. */
bool naming_in_our_folder(const char *ours, const char *exe, size_t len);

#endif
