/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world: which processes there are, what is mapped in each, and which files these are. Events go
 * in, in order of time; what changed goes out to the hub. Reads /proc only for the seed and for
 * what no event says.
 *
 * A file (image) is told apart by what the kernel says of it (device, inode and generation), its
 * path, and the root it was seen through (mount namespace and root directory): two containers'
 * /lib/libc.so.6 are two images.
 */
#ifndef SONDE_MAPS_WORLD_H
#define SONDE_MAPS_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uthash.h>

#include "loaders/lib/host/proc/args.h"
#include "loaders/lib/host/maps/mapset.h"
#include "loaders/lib/host/maps/mapsproto.h"
#include "loaders/lib/host/maps/sideband.h"
#include <linux/types.h>
#include "probes/maps.h"

struct hub;
struct cgroups;
struct world;

struct root_id {
	uint64_t ino;
	uint32_t dev, mntns;
};

/* What files are told apart by; hashed as bytes, so no padding and all of it set. */
struct file_id {
	struct root_id root;
	uint64_t ino, generation; /* of the inode, 32 bits; or FILE_BORN and more; 0: read from
				     /proc, which tells none */
	uint32_t major, minor;
};
_Static_assert(sizeof(struct file_id) == 40, "no padding");

/* Of a file whose generation nobody tells: when it was born (UTC, ns); or which process had it, if
 * that is not known either: then it is nobody else's file. */
#define FILE_BORN    (1ull << 63)
#define FILE_NOBODYS (1ull << 62)

enum image_state {
	IMAGE_PENDING = 0,
	IMAGE_READY = MP_INDEX_READY,
	IMAGE_REFUSED = MP_INDEX_REFUSED
};

struct mimage {
	uint32_t id;
	enum mp_image_kind kind;
	struct file_id file;
	char *path;
	uint64_t since_ns; /* it was first seen mapped then */
	enum image_state state;
	bool wanted;  /* a client has samples in it */
	bool awaited; /* and waits for its names now: they are not bound by the share (indexer.h) */
	bool rows_only; /* ready for publish; its symbols are still to be made, and no client is
			   told */
	bool marked;    /* used, by the last sweep */
	bool redone;    /* a client could not read its index, and it was made anew */
	bool rotten;    /* its index's checksum was wrong once, and it was made anew */
	uint32_t index_failed; /* so often making its index failed for reasons that are not the
				  file's */
	uint64_t again_ns;     /* not 0: it is tried again then */
	uint64_t unused_since_ns;
	char *key, *reason; /* NULL until known */
	int index_fd;       /* an index that could not be stored on disk; else -1 */
	uint64_t index_bytes;
	int fd;      /* opened early and kept, -1 */
	int root_fd; /* the root it was opened through, -1 */
	uint64_t fd_since_ns;
	uint64_t file_bytes; /* 0: not opened yet */
	uint64_t file_id;    /* cache_file_id of what was opened first, 0: nothing yet */
	struct mimage *next_wanted;
	bool lines_asked;  /* of linejobs, once */
	bool lines_failed; /* as index_failed, once */
	struct mimage *next_lines;
	struct pimage *published; /* publish's; NULL: not published */
	UT_hash_handle hh;        /* by file and path, in world.by_file */
	UT_hash_handle hh_id;     /* by id */
	size_t key_len;
	char *key_bytes;
};

/* Of a program that is being loaded: which file it is depends on the root that the program will
 * see. */
struct pending_map {
	uint64_t addr, len, pgoff;
	struct file_id file; /* without root */
	char *name;
};

struct proc {
	uint32_t tgid, exec_id, ppid, uid, nspid;
	uint64_t start_ns, from_ns, cgroup_id, cgroup1_id;
	struct root_id root;
	char comm[MAPS_COMM_LEN];
	char *exe, *args, *cgroup; /* never NULL */
	bool kthread;
	bool from_proc; /* no event and no iterator told of it: start time in clock ticks, exec id 0
			 */
	bool execing;   /* between the comm record of an exec and its end */
	uint64_t execing_ns;
	struct pending_map *pending;
	size_t n_pending, cap_pending;
	uint64_t changed_ns; /* last event of it */
	uint64_t sure_ns;    /* its mappings were read from /proc then; 0: never */
	uint8_t seen;        /* by reconcile */
	bool changed; /* its mappings or identity, since publish looked: it stands in world.changed
		       */
	struct proc *prev, *next;
	struct slice *slice; /* publish's: what the tables hold of it */
	struct mapset maps;  /* image: struct mimage *, NULL: anonymous */
	UT_hash_handle hh;
};

struct containers;
struct procevents;

struct world_stats {
	uint64_t procs, images, late, opened, open_failed;
};

struct world {
	struct hub *hub;
	struct cgroups *cgroups;
	struct containers *containers;
	struct procevents
		*procevents; /* without the program: how processes end; NULL: nobody tells */
	enum args_policy args_policy;
	bool bpf;         /* exec, fork and exit come from the program; else from the side-band */
	uint64_t open_ns; /* since when the side-band is complete */
	struct root_id own_root;
	size_t vdso_len;
	struct proc *procs; /* by tgid */
	struct proc *changed;
	struct mimage *by_file, *by_id;
	uint32_t last_image;
	uint64_t ends; /* told */
	struct world_stats stats;
	void (*image_new)(void *ctx, struct mimage *img, struct proc *p, uint64_t start,
			  uint64_t end);
	void (*image_gone)(void *ctx, struct mimage *img);
	uint64_t (*born)(void *ctx, const struct proc *p, const char *path, uint64_t ino,
			 uint64_t time_ns); /* see opening_born */
	bool (*is_still)(void *ctx,
			 const struct proc *
				 p); /* does it run what it is known to run? NULL: nobody can say */
	void *ctx;
	struct publish *publish; /* NULL: there are no tables */
};

void world_init(struct world *w);
void world_release(struct world *w);
/* One event of the program, or one record of the side-band. */
void world_event(struct world *w, const struct maps_event *ev, const char *args);
void world_record(struct world *w, const struct sideband_rec *r);
/* Take in a process from /proc. `ev`: what the iterator said of it, NULL: it is read from /proc
 * too. */
void world_seed_proc(struct world *w, uint32_t tgid, const struct maps_event *ev, uint64_t time_ns);
/* The same, but it is told to nobody yet: the caller finds out whether it went on to exec
 * meanwhile. NULL: there is none. */
struct proc *world_read_proc(struct world *w, uint32_t tgid, const struct maps_event *ev,
			     uint64_t time_ns);
void world_drop_maps(struct world *w, struct proc *p, uint64_t time_ns);
/* The process is no more, though no event said so. */
void world_forget(struct world *w, struct proc *p, uint64_t time_ns);
void world_tell_all(struct world *w);
struct proc *world_proc(struct world *w, uint32_t tgid);
/* The executable's path as the process sees it; the caller's (free). NULL: it cannot be read. */
char *world_exe_link(uint32_t tgid);
struct mimage *world_image(struct world *w, uint32_t id);
/* Drop images that nothing has mapped for a minute. */
void world_sweep(struct world *w, uint64_t now_ns);
/* More is known of the process: tell it again. */
void world_tell_proc(struct world *w, const struct proc *p);
void world_tell_maps(struct world *w, const struct proc *p);
/* Its mappings are to be published anew. */
void world_set_changed(struct world *w, struct proc *p);
/* What may change while it runs: its cgroup and its user. Told if it did. */
void world_update(struct world *w, struct proc *p, const struct maps_event *ev);

#endif
