/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hostmaps: a family's view of what sonde-maps tells: which processes there are and were, what is
 * mapped where in each of them and since when, and the image indexes to name it with. Keeps a short
 * history, so that a sample is named by the mapping that held at its time.
 *
 * Use: hostmaps_open (connects, or starts sonde-maps as a child); call hostmaps_read when
 * hostmaps_fd is readable; hold each sample until hostmaps_watermark passes its time (or sonde-maps
 * is stale), then ask.
 */
#ifndef SONDE_HOST_HOSTMAPS_H
#define SONDE_HOST_HOSTMAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loaders/lib/host/maps/mapsproto.h"
#include "schema/base/err.h"

struct hostmaps;
struct image;
struct unwind_where; /* unwind.h */

struct hostmaps_opts {
	const char *store_dir;   /* images/ stands in it */
	const char *socket_path; /* connect here; NULL: start a sonde-maps of our own */
	const char *program;     /* path of sonde-maps, NULL: beside this program */
	const char *args_policy; /* "full", "masked" (default), "none" */
	bool no_lines;           /* a sonde-maps of our own makes indexes without them */
	bool no_mappings; /* what is mapped where is not asked for: what is told of it is passed
			     over */
	bool books;       /* stores what sonde-maps costs: has a share of it */
};

int hostmaps_open(const struct hostmaps_opts *o, struct hostmaps **out, struct err *e);
void hostmaps_close(struct hostmaps *hm);   /* ends a sonde-maps that it started */
int hostmaps_fd(const struct hostmaps *hm); /* for poll; changes when sonde-maps is restarted */
/* The BPF maps to unwind with, by enum mp_tables_map; borrowed. -1 in each: there are none. They
 * come before the seed: hostmaps_greeted says that what will come has come. A restarted sonde-maps
 * takes them over: they stay the same. */
void hostmaps_tables(const struct hostmaps *hm, int fds[MP_TABLES_N]);
bool hostmaps_greeted(const struct hostmaps *hm);
/* Take in what has arrived, without waiting. 0, or -EPIPE: sonde-maps is gone (a child of ours is
 * started again, with back-off, and its seed taken over; call on). */
int hostmaps_read(struct hostmaps *hm);
bool hostmaps_seeded(const struct hostmaps *hm);
/* false: opts.no_mappings. */
bool hostmaps_has_mappings(const struct hostmaps *hm);
/* Ask for a watermark of now, instead of waiting for the one that comes anyway, up to half a second
 * later. */
void hostmaps_hurry(const struct hostmaps *hm);
uint64_t hostmaps_watermark(const struct hostmaps *hm);
/* Another number than before: processes, mappings, files or indexes came or went since. */
uint64_t hostmaps_changes(const struct hostmaps *hm);
/* Side-band records lost so far. */
uint64_t hostmaps_lost(const struct hostmaps *hm);

/* How a process is no more, as far as it was told. */
enum hostmaps_end {
	HOSTMAPS_RUNS = 0,
	HOSTMAPS_ENDED,  /* `status` says how */
	HOSTMAPS_OOM,    /* the out-of-memory killer ended it; `status` too */
	HOSTMAPS_EXECED, /* it goes on as another program */
	HOSTMAPS_GONE    /* nobody told how */
};

struct hostmaps_process {
	uint32_t tgid, exec_id, ppid, uid, nspid;
	enum hostmaps_end end;
	int status; /* as in wait(2) */
	struct { /* the last signal from a process that asked it to end, or made it; signal 0: none
		    is known */
		uint32_t signal, tgid;
		uint64_t time_ns;
		char comm[17];
	} sent;                            /* once it has ended */
	uint64_t start_ns, from_ns, to_ns; /* to_ns UINT64_MAX: alive */
	uint64_t cgroup_id, cgroup1_id;
	const char *comm, *exe, *args, *cgroup; /* never NULL */
	uint32_t serial;                        /* grows whenever more is known of it */
	void *user; /* the caller's, NULL at first; freed with free() when the process is forgotten
		     */
};
/* Borrowed, valid until the next hostmaps_read. NULL: never heard of. Processes are forgotten 10 s
 * after their exit was told. */
struct hostmaps_process *hostmaps_process(struct hostmaps *hm, uint32_t tgid, uint64_t start_ns,
					  uint32_t exec_id);

/* What runs under this pid now; NULL: nothing. Borrowed as above. */
struct hostmaps_process *hostmaps_running(struct hostmaps *hm, uint32_t tgid);

/* All that run now. The callback may ask anything here, but not read. */
void hostmaps_each(struct hostmaps *hm, void (*each)(void *ctx, struct hostmaps_process *p),
		   void *ctx);

/* The same of all that are known: those that ended and are not forgotten yet too, and each exec of
 * them for itself. */
void hostmaps_each_known(struct hostmaps *hm, void (*each)(void *ctx, struct hostmaps_process *p),
			 void *ctx);

/* Each process that is no more, once, from within hostmaps_read, in order of time as it is told;
 * `end` and `to_ns` are set, `serial` has grown. */
void hostmaps_on_end(struct hostmaps *hm, void (*ended)(void *ctx, struct hostmaps_process *p),
		     void *ctx);

/* What an ended process used, as MP_USED tells it. `p`: its last program; NULL: it is not known
 * (any more). Called from within hostmaps_read, after the end of it was told. */
void hostmaps_on_used(struct hostmaps *hm,
		      void (*used)(void *ctx, const struct mp_used *u, struct hostmaps_process *p),
		      void *ctx);

/* Processes that came and went while sonde-maps could not tell of them, so far: they ended and
 * nobody knows more. */
uint64_t hostmaps_missed(const struct hostmaps *hm);

/* What sonde-maps read of a container of Docker's when something was executed in it; its file may
 * be gone since. NULL: it read nothing. Borrowed, valid until the next hostmaps_read. */
struct container_names;
const struct container_names *hostmaps_container(const struct hostmaps *hm, const char *id);

struct hostmaps_image {
	uint32_t id;
	uint32_t kind;             /* enum mp_image_kind */
	const char *path;          /* as the process sees it */
	const char *name;          /* its last component */
	const char *build_id;      /* hex; "" until ready, or it has none */
	const char *key;           /* "" until ready */
	const char *reason;        /* why there is no index, "" */
	int state;                 /* 0 pending, MP_INDEX_READY, MP_INDEX_REFUSED */
	const struct image *index; /* NULL unless ready */
	uint32_t told; /* how many indexes came: a second one of the same file has its lines too */
	uint64_t generation; /* hostmaps generation it belongs to */
	uint64_t file;       /* as in mp_image */
	void *user;          /* as above */
};

/* The file with this id (mp_image.id), as last told; NULL: nobody told of it. Asks for no index. */
struct hostmaps_image *hostmaps_image(const struct hostmaps *hm, uint32_t id);

struct hostmaps_frame {
	struct hostmaps_image *image; /* NULL: anonymous (JIT), or nothing known at that address */
	bool mapped;                  /* false: no executable mapping known there at that time */
	uint64_t offset;              /* within the file; the address itself when image is NULL */
	uint64_t address;             /* 0: not known, and not needed */
	bool stale; /* hostmaps_frame_owner: it was unwound with rows of what is not there any more */
};
/* What address `addr` of the process was at `time_ns`. The first call for a pending image asks for
 * its index. */
void hostmaps_frame(struct hostmaps *hm, struct hostmaps_process *p, uint64_t addr,
		    uint64_t time_ns, struct hostmaps_frame *out);
/* What a user frame of a stack_event was at `time_ns`. tables_ns: that of the event, 0 if its flag
 * is not set. A return address is looked up at the byte before it; `offset` and `address` are its
 * own. */
void hostmaps_frame_owner(struct hostmaps *hm, struct hostmaps_process *p, uint64_t frame,
		    uint64_t tables_ns, uint64_t time_ns, struct hostmaps_frame *out);
/* The mapping that held `addr` at time_ns, and its file's rows; to unwind what was taken then.
 * false: none. Its frames are to be addresses. Asks for the index as above. *pending: names the
 * image while its index is awaited, else untouched. */
bool hostmaps_where(struct hostmaps *hm, struct hostmaps_process *p, uint64_t addr,
		    uint64_t time_ns, struct unwind_where *out, uint64_t *pending);
/* Is what *pending named still awaited? */
bool hostmaps_awaits(const struct hostmaps *hm, uint64_t pending);
/* What is mapped executable in it now; `image` NULL: memory without a file. Asks for the indexes as
 * above. */
void hostmaps_mappings(struct hostmaps *hm, const struct hostmaps_process *p,
		       void (*each)(void *ctx, uint64_t start, uint64_t end,
				    struct hostmaps_image *image),
		       void *ctx);
/* The same of the files that `wanted` says, and of their indexes alone. */
void hostmaps_mappings_wanted(struct hostmaps *hm, const struct hostmaps_process *p,
			      bool (*wanted)(void *ctx, const struct hostmaps_image *image),
			      void (*each)(void *ctx, uint64_t start, uint64_t end,
					   struct hostmaps_image *image),
			      void *ctx);
/* Somebody waits at this moment for the index of a file that was asked for: it is made at once,
 * whatever else is to be read. */
void hostmaps_image_hurry(struct hostmaps *hm, struct hostmaps_image *image);
/* The process's executable: its file and its first executable mapping, from which on it shows
 * `offset`. Asks for its index as above. NULL: not told (yet), or it has none (a kernel thread). */
struct hostmaps_image *hostmaps_exe(struct hostmaps *hm, const struct hostmaps_process *p,
				    uint64_t *start, uint64_t *end, uint64_t *offset);
/* Paths of the files that it has mapped executable now, at most `max`, borrowed as it is; and the
 * image of its executable, NULL: not told. Asks for no index. */
size_t hostmaps_files(const struct hostmaps_process *p, const char **paths, size_t max,
		      const struct hostmaps_image **exe);
/* Images whose state left "pending" since the last call, one by one; NULL: no more. */
struct hostmaps_image *hostmaps_next_ready(struct hostmaps *hm);
/* Somebody waits for the names of what was asked for. */
void hostmaps_await_names(struct hostmaps *hm);
/* How many images that were asked for are still pending. */
uint32_t hostmaps_pending(const struct hostmaps *hm);

struct hostmaps_cost {
	uint64_t cpu_ns, index_cpu_ns, bpf_ns, bpf_runs, rss_bytes, private_bytes, map_bytes;
};
/* As last told: this client's share of what sonde-maps costs since it came (opts.books), of its
 * memory now. */
void hostmaps_cost(const struct hostmaps *hm, struct hostmaps_cost *c);

#endif
