/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world: which processes there are, what is mapped in each, and which files these are. Events go
 * in, in order of time; changes go out to the hub. Reads /proc only for the seed and for what no
 * event reports.
 *
 * A file (image) is identified by what the kernel says of it (device, inode and generation), its
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
#include "loaders/maps/world/lateargs.h"
#include <linux/types.h>
#include "probes/maps.h"

struct hub;
struct cgroups;
struct world;

struct root_id {
	uint64_t ino;
	uint32_t dev, mntns;
};

/* Identifies a file; hashed as bytes, so there is no padding and all of it is set. */
struct file_id {
	struct root_id root;
	uint64_t ino, generation; /* the inode's, 32 bits; or with FILE_BORN or more; 0: from /proc,
				     which does not show it */
	uint32_t major, minor;
};
_Static_assert(sizeof(struct file_id) == 40, "no padding");

/* For a file of unknown generation: its birth time (UTC, ns); if that is unknown too, the process
 * that had it: the file is then never the same as another process's. */
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
	uint64_t since_ns; /* when it was first seen mapped */
	enum image_state state;
	bool wanted;    /* a client has samples in it */
	uint32_t uses;  /* how often the client that needed it most did */
	bool awaited;   /* and waits for its names now: the share does not limit them (indexer.h) */
	bool rows_only; /* it has rows and no symbols yet: clients get MP_INDEX_ROWS */
	bool marked;    /* in use, at the last sweep */
	bool redone;    /* a client could not read its index, and it was made again */
	bool rotten;    /* its index had a wrong checksum once, and was made again */
	uint32_t index_failed; /* attempts that failed for reasons outside the file */
	uint64_t again_ns;     /* not 0: try again then */
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
	bool lines_failed; /* like index_failed, once */
	struct mimage *next_lines;
	struct pimage *published; /* publish's; NULL: not published */
	UT_hash_handle hh;        /* by file and path, in world.by_file */
	UT_hash_handle hh_id;     /* by id */
	size_t key_len;
	char *key_bytes;
};

/* A mapping of a program that is being loaded: its root is only known when the exec is complete. */
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
	char *raw;                 /* not NULL: its arguments as the kernel had them; `args` is made
				      of them once a client asks (world_tell_args) */
	size_t raw_len;
	bool kthread;
	bool from_proc; /* known only from /proc, from no event or iterator: start time in clock
			   ticks, exec id 0 */
	bool execing;   /* between the comm record of an exec and its end */
	uint64_t execing_ns;
	struct pending_map *pending;
	size_t n_pending, cap_pending;
	uint64_t changed_ns; /* its last event */
	uint64_t sure_ns;    /* when its mappings were last read from /proc; 0: never */
	uint8_t seen;        /* by reconcile */
	bool changed;        /* its mappings or identity changed since publish looked; it is in
				world.changed */
	struct proc *prev, *next;
	struct slice *slice; /* publish's: its mappings in the tables */
	uint64_t due_ns;     /* publish's: not before this, */
	uint32_t due_exec;   /* unless it is another program by then: its exec_id */
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
	struct procevents *procevents; /* how processes end, without the program; NULL: unknown */
	enum args_policy args_policy;
	bool args_at_once; /* mask the arguments of each program, asked for or not */
	struct lateargs lateargs;
	bool bpf;         /* the program reports exec, fork and exit; else the side-band does */
	uint64_t open_ns; /* the side-band is complete from here on */
	struct root_id own_root;
	size_t vdso_len;
	struct proc *procs; /* by tgid */
	struct proc *changed;
	struct mimage *by_file, *by_id;
	uint32_t last_image;
	uint64_t ends;     /* exits sent */
	uint64_t readings; /* of the side-band */
	struct world_stats stats;
	void (*image_new)(void *ctx, struct mimage *img, struct proc *p, uint64_t start,
			  uint64_t end);
	void (*image_gone)(void *ctx, struct mimage *img);
	uint64_t (*born)(void *ctx, const struct proc *p, const char *path, const struct file_id *f,
			 uint64_t time_ns); /* see opening_born */
	bool (*is_still)(void *ctx,
			 const struct proc *p); /* does it still run what we know? NULL: unknown */
	void *ctx;
	struct publish *publish; /* NULL: there are no tables */
};

void world_init(struct world *w);
void world_release(struct world *w);
/* One event of the program, or one record of the side-band. */
void world_event(struct world *w, const struct maps_event *ev, const char *args);
void world_record(struct world *w, const struct sideband_rec *r);
/* Take in a process from /proc. `ev`: the iterator's event; NULL: read that from /proc too. */
void world_seed_proc(struct world *w, uint32_t tgid, const struct maps_event *ev, uint64_t time_ns);
/* The same without sending it: the caller first checks whether it has exec'ed meanwhile. NULL: no
 * such process. */
struct proc *world_read_proc(struct world *w, uint32_t tgid, const struct maps_event *ev,
			     uint64_t time_ns);
void world_drop_maps(struct world *w, struct proc *p, uint64_t time_ns);
/* The process is gone, though no event said so. */
void world_forget(struct world *w, struct proc *p, uint64_t time_ns);
void world_tell_all(struct world *w);
struct proc *world_proc(struct world *w, uint32_t tgid);
/* The executable's path as the process sees it; the caller frees it. NULL: cannot be read. */
char *world_exe_link(uint32_t tgid);
struct mimage *world_image(struct world *w, uint32_t id);
/* A client asks for the arguments of a program, which may have ended. */
void world_tell_args(struct world *w, const struct mp_want_args *want);
/* Drop images that nothing has mapped for a minute. */
void world_sweep(struct world *w, uint64_t now_ns);
/* More is known of the process: send it again. */
void world_tell_proc(struct world *w, const struct proc *p);
void world_tell_maps(struct world *w, const struct proc *p);
/* Its mappings must be published again. */
void world_set_changed(struct world *w, struct proc *p);
/* Update its cgroup and user, which may change while it runs; sends the process if they did. */
void world_update(struct world *w, struct proc *p, const struct maps_event *ev);

#endif
