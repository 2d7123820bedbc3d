/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hostmaps: a family's view of sonde-maps' messages: which processes exist and existed, what is
 * mapped where in each and since when, and the image indexes to name it with. It keeps a short
 * history, so that a sample is named by the mapping that was valid at its time.
 *
 * Use: hostmaps_open (connects, or starts sonde-maps as a child); call hostmaps_read when
 * hostmaps_fd is readable; hold each sample until hostmaps_watermark passes its time (or sonde-maps
 * is stale), then query.
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
	const char *store_dir;   /* has the folder images/ */
	const char *socket_path; /* connect here; NULL: start a private sonde-maps */
	const char *program;     /* path of sonde-maps, NULL: in this program's folder */
	const char *args_policy; /* "full", "masked" (default), "none" */
	bool no_lines;           /* a private sonde-maps makes indexes without lines */
	bool no_mappings;        /* the caller needs no mappings: skip their messages */
	bool books;              /* stores the cost of sonde-maps: gets a share of it */
};

int hostmaps_open(const struct hostmaps_opts *o, struct hostmaps **out, struct err *e);
void hostmaps_close(struct hostmaps *hm);   /* ends a private sonde-maps */
int hostmaps_fd(const struct hostmaps *hm); /* for poll; changes when sonde-maps is restarted */
/* The BPF maps to unwind with, by enum mp_tables_map; borrowed. All -1: there are no tables. They
 * arrive before the seed; after hostmaps_greeted no more will come. A restarted sonde-maps takes
 * them over: they stay the same. */
void hostmaps_tables(const struct hostmaps *hm, int fds[MP_TABLES_N]);
bool hostmaps_greeted(const struct hostmaps *hm);
/* Read what has arrived, without waiting. 0, or -EPIPE: sonde-maps is gone (a private one is
 * restarted, with back-off, and its seed taken over; keep calling). */
int hostmaps_read(struct hostmaps *hm);
bool hostmaps_seeded(const struct hostmaps *hm);
/* false: opts.no_mappings. */
bool hostmaps_has_mappings(const struct hostmaps *hm);
/* Ask for a watermark of the present time; without that one comes up to half a second later. */
void hostmaps_hurry(const struct hostmaps *hm);
uint64_t hostmaps_watermark(const struct hostmaps *hm);
/* Read until all that happened up to now has been reported, or until_ns (clock_boot_ns()). */
void hostmaps_await(struct hostmaps *hm, int64_t until_ns);
/* The number changes whenever processes, mappings, files or indexes came or went. */
uint64_t hostmaps_changes(const struct hostmaps *hm);
/* Side-band records lost so far. */
uint64_t hostmaps_lost(const struct hostmaps *hm);

/* How a process ended, as far as known. */
enum hostmaps_end {
	HOSTMAPS_RUNS = 0,
	HOSTMAPS_ENDED,  /* `status` says how */
	HOSTMAPS_OOM,    /* the out-of-memory killer ended it; `status` too */
	HOSTMAPS_EXECED, /* it runs another program now */
	HOSTMAPS_GONE    /* ended in an unknown way */
};

struct hostmaps_process {
	uint32_t tgid, exec_id, ppid, uid, nspid;
	enum hostmaps_end end;
	int status; /* as in wait(2) */
	struct { /* the last signal of another process that asked it to end or forced it; signal 0:
		    none known */
		uint32_t signal, tgid;
		uint64_t time_ns;
		char comm[17];
	} sent;                            /* once it has ended */
	uint64_t start_ns, from_ns, to_ns; /* to_ns UINT64_MAX: alive */
	uint64_t cgroup_id, cgroup1_id;
	const char *comm, *exe, *args, *cgroup; /* never NULL */
	bool args_later;                        /* args is "" until hostmaps_want_args */
	uint32_t serial;                        /* grows whenever more is known */
	void *user; /* the caller's, NULL at first; freed with free() when the process is forgotten
		     */
};
/* Borrowed, valid until the next hostmaps_read. NULL: unknown. Processes are forgotten 10 s after
 * their exit message. */
struct hostmaps_process *hostmaps_process(struct hostmaps *hm, uint32_t tgid, uint64_t start_ns,
					  uint32_t exec_id);

/* The process with this pid now; NULL: none. Borrowed as above. */
struct hostmaps_process *hostmaps_running(struct hostmaps *hm, uint32_t tgid);

/* All running processes. The callback may query everything, but must not read. */
void hostmaps_each(struct hostmaps *hm, void (*each)(void *ctx, struct hostmaps_process *p),
		   void *ctx);

/* The same for all known processes: also those that ended and are not forgotten yet, and each exec
 * separately. */
void hostmaps_each_known(struct hostmaps *hm, void (*each)(void *ctx, struct hostmaps_process *p),
			 void *ctx);

/* Called from within hostmaps_read, once for each process that ended, in order of time; `end` and
 * `to_ns` are set, `serial` has grown. */
void hostmaps_on_end(struct hostmaps *hm, void (*ended)(void *ctx, struct hostmaps_process *p),
		     void *ctx);

/* The usage of an ended process, from MP_USED. `p`: its last program; NULL: unknown or forgotten.
 * Called from within hostmaps_read, after its end. */
void hostmaps_on_used(struct hostmaps *hm,
		      void (*used)(void *ctx, const struct mp_used *u, struct hostmaps_process *p),
		      void *ctx);

/* Ask for its arguments, if they were not sent; what is learnt goes to hostmaps_on_args'
 * callback, from within hostmaps_read: `serial` has grown. */
void hostmaps_want_args(struct hostmaps *hm, struct hostmaps_process *p);
/* It has generated code, and no file that names it: sonde-maps may know a runtime there that writes
 * one if it is asked. */
void hostmaps_want_names(struct hostmaps *hm, const struct hostmaps_process *p);
void hostmaps_on_args(struct hostmaps *hm, void (*learnt)(void *ctx, struct hostmaps_process *p),
		      void *ctx);

/* Processes so far that came and went while sonde-maps could not report them: only their number is
 * known. */
uint64_t hostmaps_missed(const struct hostmaps *hm);

/* What sonde-maps read about a Docker container when a program started in it; its file may be gone
 * by now. NULL: nothing. Borrowed, valid until the next hostmaps_read. */
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
	uint32_t told; /* number of indexes received: a second one of the same file also has its
			  lines */
	uint64_t generation; /* hostmaps generation it belongs to */
	uint64_t file;       /* as in mp_image */
	void *user;          /* as above */
};

/* The file with this id (mp_image.id), from its last message; NULL: unknown. Requests no index. */
struct hostmaps_image *hostmaps_image(const struct hostmaps *hm, uint32_t id);

struct hostmaps_frame {
	struct hostmaps_image *image; /* NULL: anonymous (JIT), or unknown */
	bool mapped;                  /* false: no executable mapping known there at that time */
	uint64_t offset;              /* within the file; the address itself when image is NULL */
	uint64_t address;             /* 0: unknown, and not needed */
	bool stale; /* hostmaps_frame_owner: it was unwound with rows of a file that is no longer
		       mapped there */
};
/* What was at address `addr` of the process at `time_ns`. The first call for a pending image
 * requests its index. */
void hostmaps_frame(struct hostmaps *hm, struct hostmaps_process *p, uint64_t addr,
		    uint64_t time_ns, struct hostmaps_frame *out);
/* What a user frame of a stack_event was at `time_ns`. tables_ns: the event's, 0 if its flag is not
 * set. A return address is looked up at the byte before it; `offset` and `address` are those of the
 * return address. */
void hostmaps_frame_owner(struct hostmaps *hm, struct hostmaps_process *p, uint64_t frame,
			  uint64_t tables_ns, uint64_t time_ns, struct hostmaps_frame *out);
/* Do all frames of tables as of tables_ns, in a stack of time_ns, mean what they say, by the image
 * ids of hostmaps_generation? false: each must be asked for (hostmaps_frame_owner). */
bool hostmaps_frames_stand(const struct hostmaps *hm, const struct hostmaps_process *p,
			   uint64_t tables_ns, uint64_t time_ns);
/* Grows whenever image ids begin to mean others. */
uint64_t hostmaps_generation(const struct hostmaps *hm);
/* The mapping that held `addr` at time_ns, and its file's rows, to unwind a stack of that time into
 * addresses. false: none. Requests the index as above. *pending: names the image while its index is
 * pending, else unchanged. */
bool hostmaps_where(struct hostmaps *hm, struct hostmaps_process *p, uint64_t addr,
		    uint64_t time_ns, struct unwind_where *out, uint64_t *pending);
/* Is the image that *pending names still pending? */
bool hostmaps_awaits(const struct hostmaps *hm, uint64_t pending);
/* The executable mappings of the process now; `image` NULL: memory without a file. Requests the
 * indexes as above. */
void hostmaps_mappings(struct hostmaps *hm, const struct hostmaps_process *p,
		       void (*each)(void *ctx, uint64_t start, uint64_t end,
				    struct hostmaps_image *image),
		       void *ctx);
/* The same for the files that `wanted` accepts (`bytes`: how much of it is mapped there); requests
 * only their indexes. */
void hostmaps_mappings_wanted(struct hostmaps *hm, const struct hostmaps_process *p,
			      bool (*wanted)(void *ctx, const struct hostmaps_image *image,
					     uint64_t bytes),
			      void (*each)(void *ctx, uint64_t start, uint64_t end,
					   struct hostmaps_image *image),
			      void *ctx);
/* A person is waiting for the index of a file that was requested: make it at once, before all
 * others. */
void hostmaps_image_hurry(struct hostmaps *hm, struct hostmaps_image *image);
/* The process's executable: its file and its first executable mapping, which shows the file from
 * `offset` on. Requests its index as above. NULL: not known (yet), or a kernel thread. */
struct hostmaps_image *hostmaps_exe(struct hostmaps *hm, const struct hostmaps_process *p,
				    uint64_t *start, uint64_t *end, uint64_t *offset);
/* Paths of the files that it has mapped executable now, at most `max`, borrowed like the process;
 * and its executable's image, NULL: unknown. Requests no index. */
size_t hostmaps_files(const struct hostmaps_process *p, const char **paths, size_t max,
		      const struct hostmaps_image **exe);
/* Has it mapped a file of this name, in any folder, executable? */
bool hostmaps_has_file(const struct hostmaps_process *p, const char *name);
/* Images that left the state "pending" since the last call, or of which, still pending, the
 * build-id is known now; one per call; NULL: no more. */
struct hostmaps_image *hostmaps_next_ready(struct hostmaps *hm);
/* A person is waiting for the names of everything that was requested. */
void hostmaps_await_names(struct hostmaps *hm);
/* How many requested images are still pending. */
uint32_t hostmaps_pending(const struct hostmaps *hm);

struct hostmaps_cost {
	uint64_t cpu_ns, index_cpu_ns, bpf_ns, bpf_runs, rss_bytes, private_bytes, map_bytes;
};
/* From the last report: this client's share of sonde-maps' cost since it connected (opts.books),
 * and of its present memory. */
void hostmaps_cost(const struct hostmaps *hm, struct hostmaps_cost *c);

#endif
