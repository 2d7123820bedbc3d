/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mapsproto: what sonde-maps sends its clients, over a SOCK_SEQPACKET unix socket. Each packet is
 * one or more messages, each 8-aligned: struct mp_head {type, size}, a fixed struct, then strings.
 * Little endian, same host, same build (the hello carries a version; another version is refused).
 * Times are CLOCK_BOOTTIME nanoseconds.
 *
 * Order: HELLO, at once; TABLES, right after it, if HELLO's flags announce it (the client that
 * started sonde-maps gets both before sonde-maps loads its program; if that fails, a second HELLO
 * withdraws the announcement: those maps stay empty); then, when sonde-maps has looked over the
 * host, the seed (IMAGE, PROCESS, MAP for all running processes, PROCESS before its MAPs), then
 * SEEDED; then events in order of time, and from time to time WATERMARK. An IMAGE always comes
 * before the first MAP that names it. INDEX reports an index that is ready.
 *
 * After LOST everything is sent again (IMAGE, PROCESS, MAP), then SEEDED: whatever was not sent
 * again has ended, at the latest at the time in LOST. A mapping sent again unchanged has existed
 * all along.
 *
 * exec: the new identity and its first mappings carry the time just before the new program's first
 * instruction, a little after the kernel raised the exec id. A sample between the two shows the old
 * program's way into exec.
 */
#ifndef SONDE_HOST_MAPSPROTO_H
#define SONDE_HOST_MAPSPROTO_H

#include <stdint.h>

#define MP_VERSION    15
#define MP_PACKET_MAX 65536
#define MP_FDS_MAX    8 /* descriptors in one packet */

enum mp_type {
	MP_HELLO = 1, /* maps -> client: struct mp_hello */
	MP_SEEDED,    /* no body */
	MP_PROCESS,   /* struct mp_process: a process is running, exec'ed, or more is known of it
			 (same identity) */
	MP_EXIT,      /* struct mp_exit */
	MP_IMAGE,     /* struct mp_image */
	MP_INDEX, /* struct mp_index: its index is ready or will not come; ready a second time: now
		     with lines, which took longer */
	MP_MAP,   /* struct mp_map */
	MP_WATERMARK, /* struct mp_watermark: everything up to `time_ns` has been sent */
	MP_LOST,   /* struct mp_lost: side-band records were lost; the affected processes are sent
		      again after it */
	MP_COST,   /* struct mp_cost: the cost of sonde-maps and its sonde-index children */
	MP_TABLES, /* struct mp_tables: the BPF maps that probes unwind with */
	MP_CONTAINER, /* struct mp_container: a container's name, sent when a program starts in it
		       */
	MP_USED, /* struct mp_used: what an ended process used, a moment after its EXIT (its parent
		    may take longer) */
	MP_ARGS, /* struct mp_args: arguments that a client has asked for */
	/* client -> maps */
	MP_WANT_INDEX = 64, /* struct mp_want: this image has samples, make its index next */
	MP_HURRY = 65, /* no body: the client waits for a watermark of now; one comes within some 10
			  ms, and MP_COST before it */
	MP_BOOKS =
		66, /* no body: this client stores sonde-maps' cost: give it a share from now on */
	MP_WANT_ARGS = 67, /* struct mp_want_args: the client stores this program */
	MP_WANT_NAMES = 68 /* struct mp_want_names: it has code of this process that nothing names
			    */
};

struct mp_head {
	uint32_t type; /* enum mp_type */
	uint32_t size; /* whole message with head and strings, multiple of 8 */
};

struct mp_hello {
	struct mp_head head;
	uint32_t version;    /* MP_VERSION */
	uint32_t generation; /* of the tables, grows with each take-over; 0: no tables */
	int32_t pid;         /* of sonde-maps */
	uint32_t flags;      /* enum mp_hello_flags */
};

enum mp_hello_flags {
	MP_HELLO_DEGRADED = 1, /* no BPF program: exec ids are 0, start times are those of /proc
				  (clock ticks), short processes have no arguments */
	MP_HELLO_TABLES = 2    /* TABLES follows */
};

/* The maps of probes/lib/tables.h, in the order of their descriptors in the packet (SCM_RIGHTS, one
 * message a packet, all of MP_TABLES_N). A program must get them before it is loaded. */
enum mp_tables_map {
	MP_TABLES_ROWS = 0,
	MP_TABLES_MAPPINGS,
	MP_TABLES_IMAGES,
	MP_TABLES_PROCESSES,
	MP_TABLES_STATE,
	MP_TABLES_WANTED,
	MP_TABLES_RUNTIMES,
	MP_TABLES_INFLIGHT,
	MP_TABLES_N
};

struct mp_tables {
	struct mp_head head;
	uint32_t version;    /* TABLES_VERSION */
	uint32_t generation; /* as in HELLO */
};

/* Identity: (tgid, start_ns, exec_id) as in probes/lib/stack.h. Strings, NUL-terminated, in this
 * order: comm, exe, args (already masked, space-separated), cgroup path (v2 if there is one, else
 * the memory or pids hierarchy's).
 * A fork begins with the mappings that `from` (an identity; tgid 0: none) had at time_ns: they are
 * not sent. */
struct mp_process {
	struct mp_head head;
	uint64_t time_ns; /* when this identity begins: fork or exec */
	uint64_t start_ns;
	uint64_t cgroup_id;  /* 0: unknown */
	uint64_t cgroup1_id; /* in the memory hierarchy of version 1; 0: none */
	uint32_t tgid, exec_id, ppid, uid;
	uint32_t nspid;  /* pid in its innermost pid namespace */
	uint32_t len[4]; /* lengths of the strings without NUL */
	uint32_t from_tgid;
	uint64_t from_start_ns;
	uint32_t from_exec_id;
	uint32_t flags; /* enum mp_process_flags */
};

enum mp_process_flags {
	/* args is "": they are sent to who asks (MP_WANT_ARGS), also some 30 s after the program's
	 * end. Masking them takes longer than all else about a short process, and few are stored */
	MP_PROCESS_ARGS_LATER = 1
};

/* One string: args, as in PROCESS. */
struct mp_args {
	struct mp_head head;
	uint64_t start_ns;
	uint32_t tgid, exec_id;
	uint32_t len, pad;
};

struct mp_exit {
	struct mp_head head;
	uint64_t time_ns, start_ns;
	uint32_t tgid, exit_code; /* as in wait(2) */
	uint32_t flags;           /* enum mp_exit_flags */
	uint32_t signal; /* the last one from a process that asked it to end or forced it; 0: none
			    known */
	uint64_t signal_ns;
	uint32_t from_tgid, pad; /* its sender */
	char from_comm[16];      /* NUL-terminated if shorter */
};

enum mp_exit_flags {
	MP_EXIT_OOM = 1,    /* the out-of-memory killer ended it */
	MP_EXIT_UNKNOWN = 2 /* unknown how: it is just gone */
};

/* probes/maps.h, struct maps_used. Only sent if sonde-maps has its BPF program. */
struct mp_used {
	struct mp_head head;
	uint64_t time_ns, start_ns;
	uint64_t cpu_ns, user_ns, system_ns, runq_ns; /* user and system: how cpu_ns divides */
	uint64_t read_bytes, write_bytes, minflt, majflt, maxrss_bytes;
	uint32_t tgid;
	uint32_t flags; /* enum mp_used_flags */
};

enum mp_used_flags {
	MP_USED_RUNQ = 1, /* runq_ns is known for the whole process */
	MP_USED_IO = 2
};

enum mp_image_kind {
	MP_IMAGE_ELF = 0,
	MP_IMAGE_VDSO = 1,
	MP_IMAGE_OTHER = 2 /* not ELF, or cannot be opened */
};

/* Strings: path as the process sees it. An id is never reused within a generation. */
struct mp_image {
	struct mp_head head;
	uint32_t id;              /* from 1 */
	uint32_t kind;            /* enum mp_image_kind */
	uint64_t ino, generation; /* of the file; generation 0: unknown */
	uint32_t major, minor;
	uint64_t
		file; /* cache_file_id of the opened file; 0: it could not be opened at that time */
	uint32_t len, pad;
};

enum mp_index_state {
	MP_INDEX_READY = 1,
	MP_INDEX_REFUSED = 2, /* see reason */
	MP_INDEX_ROWS = 3     /* an index with only the rows: READY or REFUSED follows */
};

/* Strings: key (file name in <store>/images/, "" if refused), reason. When it (or its rows) is
 * ready the packet carries the index's descriptor, read-only (SCM_RIGHTS, one message a packet). */
struct mp_index {
	struct mp_head head;
	uint32_t id;
	uint32_t state;
	uint32_t len[2];
};

/* [start, end) of the process shows `image` from `offset` on, from time_ns on, and replaces what it
 * overlaps. image 0: anonymous executable memory (JIT code). Only executable mappings are sent. */
struct mp_map {
	struct mp_head head;
	uint64_t time_ns, start_ns;
	uint64_t start, end, offset;
	uint32_t tgid, exec_id, image, pad;
};

/* Strings: id, name, image, project, service, labels, started, as in the file of its runtime, which
 * may be gone by now. */
struct mp_container {
	struct mp_head head;
	uint32_t len[7];
	uint32_t restarts;
};

struct mp_watermark {
	struct mp_head head;
	uint64_t time_ns;
	uint64_t ends; /* how many EXITs there have been, including those that this client did not
			  get because its queue was full */
};

struct mp_lost {
	struct mp_head head;
	uint64_t time_ns, records;
};

struct mp_cost_share {
	uint64_t cpu_ns, index_cpu_ns, bpf_ns, bpf_runs;
};

struct mp_cost {
	struct mp_head head;
	uint64_t cpu_ns, index_cpu_ns; /* since start */
	uint64_t bpf_ns, bpf_runs;     /* 0 while kernel.bpf_stats_enabled is off */
	uint64_t rss_bytes, private_bytes, map_bytes;
	/* of the tables: 64-bit elements in use of `rows` and `mappings`, slots of `images`; how
	 * often rows of a file were evicted to make room; mappings or entries that found no room */
	uint64_t rows_used, mappings_used, images_used, rows_evicted, tables_refused;
	uint64_t rows_cpu_ns; /* part of cpu_ns: copying rows from their indexes into `rows` */
	/* this client's part since it sent MP_BOOKS; all clients that did get equal shares, which
	 * add up to the whole */
	struct mp_cost_share share;
	uint64_t sharers; /* number of such clients; 0: none: the cost goes to the next one */
};

struct mp_want {
	struct mp_head head;
	uint32_t id, flags; /* enum mp_want_flags */
	uint32_t uses, pad; /* how often the client needed it so far; sent again as it grows */
};

struct mp_want_args {
	struct mp_head head;
	uint64_t start_ns;
	uint32_t tgid, exec_id;
};

struct mp_want_names {
	struct mp_head head;
	uint64_t start_ns;
	uint32_t tgid, exec_id;
};

enum mp_want_flags {
	MP_WANT_DAMAGED = 1, /* the index sent before cannot be read: make it again */
	MP_WANT_NOW = 2      /* a person is waiting for its names */
};

_Static_assert(MP_TABLES_N == MP_FDS_MAX, "they fit in one packet");

#endif
