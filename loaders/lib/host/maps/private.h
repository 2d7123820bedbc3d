/* SPDX-License-Identifier: Apache-2.0 */
/*
 * private: what the files of hostmaps share. hostmaps.c has the processes, the containers and
 * sonde-maps' messages, hostmaps_link.c the connection, hostmaps_images.c the files; frame_owner.c
 * finds what was mapped where at which time.
 *
 * Three tables: processes by (tgid, start, exec id), chained from the newest by tgid; images by
 * (generation, id); and in each process a mapset with its history.
 */
#ifndef SONDE_HOST_MAPS_PRIVATE_H
#define SONDE_HOST_MAPS_PRIVATE_H

#include <sys/types.h>
#include <uthash.h>

#include "loaders/lib/host/proc/containernames.h"
#include "loaders/lib/host/maps/hostmaps.h"
#include "loaders/lib/host/maps/mapset.h"
#include "loaders/lib/host/maps/mapspack.h"
#include "loaders/lib/host/maps/mapsproto.h"
#include "loaders/lib/host/unwind/unwind.h"
#include "schema/base/file/place.h"

#define GENERATIONS 8 /* how many generations of sonde-maps are searched for an image id */

struct process_key {
	uint64_t start_ns;
	uint32_t tgid, exec_id;
};

struct process {
	struct hostmaps_process pub; /* first: callers hold a pointer to it */
	struct process_key key;
	struct mapset maps, before;
	uint64_t known_ns;   /* its first mappings are valid from here; 0: none yet */
	uint64_t changed_ns; /* the last change of a mapping */
	uint64_t unsure_ns;  /* not 0: between a loss and its SEEDED */
	uint64_t ended_ns;   /* when its end was reported: on a busy host long afterwards */
	bool confirmed, args_asked;
	struct process *older; /* the identity before this exec */
	UT_hash_handle hh;     /* by key */
};

/* The newest identity of a tgid. */
struct newest {
	uint32_t tgid;
	struct process *p;
	UT_hash_handle hh;
};

struct image_entry {
	struct hostmaps_image pub;
	struct mp_image file; /* as in its message */
	struct image *index;
	struct unwind_section rows;
	uint64_t key; /* generation << 32 | id */
	bool asked, hurried, reported, marked;
	uint32_t uses, uses_told; /* how often its index was needed while it was pending */
	uint64_t unused_since_ns;
	struct image_entry *next_ready;
	UT_hash_handle hh;
};

struct told_container {
	struct container_names names;
	UT_hash_handle hh;
	char id[];
};

struct hostmaps {
	char *store_dir, *socket_path, *program, *args_policy;
	struct place store; /* of store_dir, which is followed if it is renamed */
	bool no_lines, no_mappings, books;
	int fd;
	pid_t child;
	uint64_t gone_ns;                /* when the previous sonde-maps ended */
	uint64_t restart_ns, backoff_ns; /* when to try again; the delay after the next failure */
	bool seeded, degraded, greeted;
	int tables[MP_TABLES_N]; /* the BPF maps, -1 */
	uint64_t generation;
	uint64_t generation_ns[GENERATIONS]; /* when generation % GENERATIONS began: the previous
						one had ended by then */
	uint64_t watermark, lost, changes;
	uint32_t pending;
	uint64_t swept_ns;
	void (*ended)(void *ctx, struct hostmaps_process *p);
	void *ended_ctx;
	void (*used)(void *ctx, const struct mp_used *u, struct hostmaps_process *p);
	void *used_ctx;
	void (*learnt)(void *ctx, struct hostmaps_process *p);
	void *learnt_ctx;
	/* ends by sonde-maps' count since `ends_base`, and ends received since then; see
	 * hostmaps_missed */
	uint64_t ends_base, ends_told, ends_missed;
	uint32_t ended_unswept;
	bool crowded; /* at the last sweep */
	bool ends_based;
	struct process *processes;
	struct process
		*last; /* the last one looked up: its mappings come one after another; NULL: none */
	struct newest *newest;
	struct image_entry *images;
	struct told_container *containers; /* by id */
	struct image_entry *ready, **ready_tail;
	struct hostmaps_cost cost, cost_before; /* of this sonde-maps; of its predecessors */
	char packet[MP_PACKET_MAX + 1];
};

/* hostmaps.c */
struct newest *hostmaps_newest(const struct hostmaps *hm, uint32_t tgid);
void hostmaps_containers_release(struct hostmaps *hm);
void hostmaps_process_free(struct hostmaps *hm, struct process *p);
void hostmaps_sweep(struct hostmaps *hm); /* from time to time: forget what ended long ago */
void hostmaps_close_process(struct hostmaps *hm, struct process *p, uint64_t time_ns,
			    enum hostmaps_end end, int status);

/* hostmaps_images.c */
struct image_entry *hostmaps_image_told(const struct hostmaps *hm,
					uint32_t id); /* by the present sonde-maps */
/* The image that frames of tables as of `tables_ns` mean by this id; NULL: none. */
struct image_entry *hostmaps_image_of(const struct hostmaps *hm, uint32_t id, uint64_t tables_ns);
bool hostmaps_same_file(const struct image_entry *a, const struct image_entry *b);
void hostmaps_image_want(struct hostmaps *hm, struct image_entry *img);
void hostmaps_on_image(struct hostmaps *hm, const struct mapspack_msg *msg);
void hostmaps_on_index(struct hostmaps *hm, const struct mapspack_msg *msg, int fd);
void hostmaps_images_orphaned(
	struct hostmaps *hm); /* sonde-maps is gone: its open requests will not be answered */
void hostmaps_images_sweep(struct hostmaps *hm, uint64_t now); /* those not `marked` */
void hostmaps_image_free(struct hostmaps *hm, struct image_entry *img);

/* frame_owner.c */
void hostmaps_on_map(struct hostmaps *hm, struct process *p, const struct mp_map *m);
/* `p` is a new fork of `parent` (NULL: not known here): it begins with its mappings. */
void hostmaps_inherit(struct process *p, const struct process *parent);
void hostmaps_unsure(struct hostmaps *hm, uint64_t time_ns);
void hostmaps_sure(struct hostmaps *hm, struct process *p);
void hostmaps_maps_release(struct process *p);

#endif
