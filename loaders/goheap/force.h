/* SPDX-License-Identifier: Apache-2.0 */
/*
 * force: changes one word of another process's memory: it is recorded before the change, and
 * restored afterwards. All that sonde ever writes into a process is written here: a sampling rate
 * where there was 0, and 0 again.
 *
 * On record: DIR/PID-START, one line of text (force_record_parse), synced before the process is
 * written to, and removed after it was put back. The writer holds a lock on it (flock); a record
 * without a lock was left by a killed writer, and the next one that starts restores the word.
 * 1. The process's memory is opened first, by /proc/PID/mem, and checked afterwards: the descriptor
 *    refers to the memory of one program, and a write fails after an exec or if the pid was reused.
 * 2. A record is about one program in one process: pid, its start, its executable (device, inode),
 *    and a hash of its auxiliary vector, which changes with each exec (random addresses). If one of
 *    them differs, nothing is written.
 * 3. Only a word that still has the written value is restored: the program may have changed it
 *    since.
 * 4. A record decides what is written into memory: it is trusted only if DIR and the record belong
 *    to this user and no other user may write there. The restored value is always 0.
 */
#ifndef SONDE_GOHEAP_FORCE_H
#define SONDE_GOHEAP_FORCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"

#define FORCE_DIR "/run/sonde/goheap"

struct force_record {
	uint32_t pid;
	uint64_t start_ticks; /* as in /proc/PID/stat */
	uint64_t exe_dev, exe_ino;
	uint64_t mark; /* of its auxiliary vector */
	uint64_t addr;
	uint64_t rate; /* what was written */
};

/* "sonde-goheap 1 PID START DEV INO MARK ADDR RATE\n", decimal. 0 or -EBADMSG. */
int force_record_parse(const char *data, size_t len, struct force_record *out);

/* Make the folder (0700) if it is not there, and open it. 0, or -errno with *e. */
int force_dir_open(const char *path, int *out, struct err *e);
/* Put back what those that were killed left behind, in DIR if it is there. */
void force_put_back_left(const char *path);

struct force; /* one process; opaque */
/* Opens its memory; what is checked from now on and then written to belongs to one program (1).
 * start_ns: of /proc/PID/stat. 0, -ESRCH: it has ended, or -errno. */
int force_open(uint32_t pid, uint64_t start_ns, struct force **out);
/* Put on record, then write. 0: written; -EBUSY: another sonde-goheap has it; -errno: not written.
 * Borrows `dirfd`. */
int force_write(struct force *f, int dirfd, uint64_t addr, uint64_t rate);
/* Put back what was written, if anything was, remove the record, free. NULL is fine. */
void force_close(struct force *f);

#endif
