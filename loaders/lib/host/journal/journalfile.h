/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journalfile: the last entries of one file of systemd's journal that have a certain field, as its
 * format is published (JOURNAL_FILE_FORMAT of systemd): from the field's hash to its data object,
 * from there along its arrays of entries. Pure over a reader of bytes; a file that is being written
 * may be read.
 *
 *   1. Only the heads of arrays are read, and the entries asked for: the size of the file does not
 *      matter. At most JOURNALFILE_READS reads are made: a damaged file ends there.
 *   2. It reads regular and compact files, with either hash; data compressed by zstd, or
 *      uncompressed. A message compressed by LZ4 or XZ (systemd before 246) is only counted:
 *      `unread`.
 *   3. A message is cut at JOURNALFILE_MESSAGE bytes.
 *   4. All entries can be read one by one, in the order in which they were written, while more are
 *      written.
 *   5. The sender (_UID) is set by journald; no sender can forge it.
 */
#ifndef SONDE_HOST_JOURNALFILE_H
#define SONDE_HOST_JOURNALFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JOURNALFILE_READS 20000
/* one more than containerlog keeps of a line: so it is known that it is longer */
#define JOURNALFILE_MESSAGE 4097

struct journalfile {
	bool (*read)(void *ctx, void *out, size_t len, uint64_t at); /* all of it, or false */
	void *ctx;
	/* the rest is its own */
	uint32_t reads;
	uint32_t flags;
	uint8_t id[16];
	uint64_t table, buckets;
	struct journalfile_seen *seen; /* of journalfile_entry_from; freed by journalfile_release */
};

struct journalfile_entry {
	int64_t utc_ns;
	uint32_t uid; /* UINT32_MAX: unknown */
	int priority; /* as syslog's; -1: none */
	bool partial; /* the line goes on in the next one (CONTAINER_PARTIAL_MESSAGE) */
	bool unread;  /* there is a message, which is compressed in a way that is not known here */
	size_t len;
	char message[JOURNALFILE_MESSAGE];
	/* of journalfile_entry_from: who wrote it; "": it has none, or a longer one */
	char unit[128];      /* the system's, else the user's */
	char identifier[64]; /* as the program calls itself */
	char container[72];  /* the full id */
	uint32_t pid;        /* 0: unknown */
	bool kernel;
};

/* After `read` and `ctx` have been set. False: no journal, or of a form of later times. */
bool journalfile_begin(struct journalfile *j);
void journalfile_release(struct journalfile *j);
/* Where the last `most` entries with the field ("NAME=value") are that came before `until_ns`, the
 * oldest first; how many. */
size_t journalfile_find(struct journalfile *j, const char *field, int64_t until_ns, uint64_t *at,
			size_t most);
bool journalfile_entry(struct journalfile *j, uint64_t at, struct journalfile_entry *out);

/* A place in the order of all entries of a file: {0} is before the first. It stays right while the
 * file grows. */
struct journalfile_place {
	uint64_t array, index;
};
/* The next entry, and the place behind it. False: there is no further entry yet, or the file is
 * damaged. Each call may make JOURNALFILE_READS reads. */
bool journalfile_next(struct journalfile *j, struct journalfile_place *p, uint64_t *at);
/* Behind the last entry. */
void journalfile_end(struct journalfile *j, struct journalfile_place *p);
/* An entry with who wrote it. */
bool journalfile_entry_from(struct journalfile *j, uint64_t at, struct journalfile_entry *out);

#endif
