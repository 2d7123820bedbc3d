/* SPDX-License-Identifier: Apache-2.0 */
/* disk: what family disk stores (loaders/disk): the columns of its tables, in the tables' order. */
#ifndef SONDE_FACTS_DISK_H
#define SONDE_FACTS_DISK_H

#include "schema/facts/fact.h"

#define DISK_STEPS       22 /* of a histogram of times: less than 8 us, 8 to 15, ..., 2^23 or more */
#define DISK_STEP_0_BITS 3  /* the second begins at 2^this us */

/* A table's histogram: P is the prefix of its columns' names in the enum. */
#define DISK_TIMES(X, P)                                                            \
	X(P##_T0, "below_8us", NUMBER, TALLY, "", "those that took less than 8 us") \
	X(P##_T1, "us_8", NUMBER, TALLY, "", "8 to 15 us")                          \
	X(P##_T2, "us_16", NUMBER, TALLY, "", "16 to 31 us")                        \
	X(P##_T3, "us_32", NUMBER, TALLY, "", "32 to 63 us")                        \
	X(P##_T4, "us_64", NUMBER, TALLY, "", "64 to 127 us")                       \
	X(P##_T5, "us_128", NUMBER, TALLY, "", "128 to 255 us")                     \
	X(P##_T6, "us_256", NUMBER, TALLY, "", "256 to 511 us")                     \
	X(P##_T7, "us_512", NUMBER, TALLY, "", "512 to 1023 us")                    \
	X(P##_T8, "us_1024", NUMBER, TALLY, "", "1024 to 2047 us")                  \
	X(P##_T9, "us_2048", NUMBER, TALLY, "", "2048 to 4095 us")                  \
	X(P##_T10, "us_4096", NUMBER, TALLY, "", "4096 to 8191 us")                 \
	X(P##_T11, "us_8192", NUMBER, TALLY, "", "8192 to 16383 us")                \
	X(P##_T12, "us_16384", NUMBER, TALLY, "", "16384 to 32767 us")              \
	X(P##_T13, "us_32768", NUMBER, TALLY, "", "32768 to 65535 us")              \
	X(P##_T14, "us_65536", NUMBER, TALLY, "", "65536 to 131071 us")             \
	X(P##_T15, "us_131072", NUMBER, TALLY, "", "131072 to 262143 us")           \
	X(P##_T16, "us_262144", NUMBER, TALLY, "", "262144 to 524287 us")           \
	X(P##_T17, "us_524288", NUMBER, TALLY, "", "524288 to 1048575 us")          \
	X(P##_T18, "us_1048576", NUMBER, TALLY, "", "1048576 to 2097151 us")        \
	X(P##_T19, "us_2097152", NUMBER, TALLY, "", "2097152 to 4194303 us")        \
	X(P##_T20, "us_4194304", NUMBER, TALLY, "", "4194304 to 8388607 us")        \
	X(P##_T21, "us_8388608", NUMBER, TALLY, "", "8388608 us or more")

#define BLOCK_COLUMNS(X)                                                                       \
	X(BLOCK_DISK, "disk", TEXT, KEY, "",                                                   \
	  "text.id: the whole disk, as in disk_row: sda, nvme0n1, dm-0, loop0")                \
	X(BLOCK_OP, "op", TEXT, KEY, "",                                                       \
	  "text.id: read, write, flush, discard, erase, zero, other")                          \
	X(BLOCK_PROCESS, "process", PROCESS, KEY, "",                                          \
	  "process.id: who asked; 0: none was seen, or of those past the limit")               \
	X(BLOCK_CONTAINER, "container", CONTAINER, GAUGE, "", "container.id of the process")   \
	X(BLOCK_REQUESTS, "requests", NUMBER, COUNTER, "",                                     \
	  "requests that the device has answered")                                             \
	X(BLOCK_BYTES, "bytes", NUMBER, COUNTER, "bytes", "their size")                        \
	X(BLOCK_ERRORS, "errors", NUMBER, COUNTER, "", "of them, those that failed")           \
	X(BLOCK_QUEUE, "queue_us", NUMBER, COUNTER, "us",                                      \
	  "from when they were made to when the device got them, summed")                      \
	X(BLOCK_DEVICE, "device_us", NUMBER, COUNTER, "us", "from then to its answer, summed") \
	DISK_TIMES(X, BLOCK)

#define DEVICE_COLUMNS(X)                                                                          \
	X(DEVICE_DISK, "disk", TEXT, KEY, "", "text.id: as in block_row")                          \
	X(DEVICE_UNDER, "under", TEXT, GAUGE, "",                                                  \
	  "text.id: the disks that it lies on, with commas; empty: it lies on none")               \
	X(DEVICE_BUSY, "busy_us", NUMBER, COUNTER, "us", "time in which it had a request at hand") \
	X(DEVICE_IN_FLIGHT, "in_flight", NUMBER, GAUGE, "", "requests at hand at the last reading")

#define SLOW_COLUMNS(X)                                                                         \
	X(SLOW_DISK, "disk", TEXT, KEY, "", "text.id: as in block_row")                         \
	X(SLOW_OP, "op", TEXT, KEY, "", "text.id: as in block_row")                             \
	X(SLOW_PROCESS, "process", PROCESS, KEY, "", "process.id: who asked; 0: none was seen") \
	X(SLOW_SECTOR, "sector", TAG, KEY, "", "where it began on the disk, in 512 bytes")      \
	X(SLOW_AT, "at_us", TAG, KEY, "", "when the device answered, in us since 1970")         \
	X(SLOW_CONTAINER, "container", CONTAINER, GAUGE, "", "container.id of the process")     \
	X(SLOW_THREAD, "thread", TEXT, GAUGE, "", "text.id: name of the thread that asked")     \
	X(SLOW_BYTES, "bytes", NUMBER, GAUGE, "bytes", "its size")                              \
	X(SLOW_QUEUE, "queue_us", NUMBER, GAUGE, "us",                                          \
	  "from when it was made to when the device got it")                                    \
	X(SLOW_DEVICE, "device_us", NUMBER, GAUGE, "us", "from then to its answer")             \
	X(SLOW_FAILED, "failed", NUMBER, GAUGE, "", "1: it failed")

#define SLOWSTACK_COLUMNS(X)                                                \
	X(SLOWSTACK_DISK, "disk", TEXT, KEY, "", "text.id: as in slow_row") \
	X(SLOWSTACK_SECTOR, "sector", TAG, KEY, "", "as in slow_row")       \
	X(SLOWSTACK_AT, "at_us", TAG, KEY, "", "as in slow_row")            \
	X(SLOWSTACK_STACK, "stack", TEXT, GAUGE, "",                        \
	  "text.id: kernel functions in which the thread that asked was waiting when the device answered, innermost first, with blanks")

#define SYNC_COLUMNS(X)                                                                                                                                                                \
	X(SYNC_PROCESS, "process", PROCESS, KEY, "", "process.id: who called")                                                                                                         \
	X(SYNC_FILE, "file", TEXT, KEY, "",                                                                                                                                            \
	  "text.id: its path, of a container's file as the container sees it; where it was closed before that was read, its last four names at most; ~other: of those past the limit") \
	X(SYNC_CALL, "call", TEXT, KEY, "", "text.id: fsync, fdatasync, sync_file_range, syncfs")                                                                                      \
	X(SYNC_CONTAINER, "container", CONTAINER, GAUGE, "", "container.id of the process")                                                                                            \
	X(SYNC_CALLS, "calls", NUMBER, COUNTER, "", "calls that returned")                                                                                                             \
	X(SYNC_ERRORS, "errors", NUMBER, COUNTER, "", "of them, those that failed")                                                                                                    \
	X(SYNC_US, "us", NUMBER, COUNTER, "us", "how long they took, summed")                                                                                                          \
	DISK_TIMES(X, SYNC)

#define LASTING_COLUMNS(X)                                                                       \
	X(LASTING_PROCESS, "process", PROCESS, KEY, "", "process.id: who called")                \
	X(LASTING_FILE, "file", TEXT, KEY, "",                                                   \
	  "text.id: its path, of a container's file as the container sees it; empty: not known") \
	X(LASTING_CALL, "call", TEXT, KEY, "", "text.id: as in sync_row")                        \
	X(LASTING_CONTAINER, "container", CONTAINER, GAUGE, "", "container.id of the process")   \
	X(LASTING_CALLS, "calls", NUMBER, GAUGE, "",                                             \
	  "calls that had not returned after a second or more, at the last reading")             \
	X(LASTING_US, "us", NUMBER, GAUGE, "us", "how long the longest of them had lasted")

#define OPEN_COLUMNS(X)                                                                                              \
	X(OPEN_PROCESS, "process", PROCESS, KEY, "",                                                                 \
	  "process.id: who called, of several of one command and container one of them; 0: of those past the limit") \
	X(OPEN_PATH, "path", TEXT, KEY, "",                                                                          \
	  "text.id: as the program gave it, cut if it is long; ~other: of those past the limit")                     \
	X(OPEN_ERROR, "error", TEXT, KEY, "", "text.id: ENOENT, EACCES, ...")                                        \
	X(OPEN_CONTAINER, "container", CONTAINER, GAUGE, "", "container.id of the process")                          \
	X(OPEN_N, "opens", NUMBER, COUNTER, "", "opens that failed so")

#define FILE_COLUMNS(X)                                                                                                                                                                                                                                                                         \
	X(FILE_PROCESS, "process", PROCESS, KEY, "",                                                                                                                                                                                                                                            \
	  "process.id: who asked, of what is written later the kernel's thread; of what was made dirty who did that; 0: none was seen")                                                                                                                                                         \
	X(FILE_NAME, "file", TEXT, KEY, "",                                                                                                                                                                                                                                                     \
	  "text.id: its path as the host sees it, of a file in sixteen folders or more the end of it; /dev/NAME: the device itself, such as a file system's metadata; empty: pages of no file (O_DIRECT, swap, metadata of xfs and btrfs, what was ciphered); ~other: of those past the limit") \
	X(FILE_DISK, "disk", TEXT, KEY, "",                                                                                                                                                                                                                                                     \
	  "text.id: of requests the disk, as in block_row; empty: of what was made dirty")                                                                                                                                                                                                      \
	X(FILE_CONTAINER, "container", CONTAINER, GAUGE, "", "container.id of the process")                                                                                                                                                                                                     \
	X(FILE_READS, "reads", NUMBER, COUNTER, "", "read requests that the disk has answered")                                                                                                                                                                                                 \
	X(FILE_READ, "read_bytes", NUMBER, COUNTER, "bytes", "their size")                                                                                                                                                                                                                      \
	X(FILE_WRITES, "writes", NUMBER, COUNTER, "", "write requests that the disk has answered")                                                                                                                                                                                              \
	X(FILE_WRITTEN, "write_bytes", NUMBER, COUNTER, "bytes", "their size")                                                                                                                                                                                                                  \
	X(FILE_DIRTY, "dirty_bytes", NUMBER, COUNTER, "bytes",                                                                                                                                                                                                                                  \
	  "pages of it that were as on the disk and were changed")                                                                                                                                                                                                                              \
	X(FILE_GROWN, "grown_bytes", NUMBER, COUNTER, "bytes",                                                                                                                                                                                                                                  \
	  "by how much more it takes on the disk; with the process that changed most of it")                                                                                                                                                                                                    \
	X(FILE_SHRUNK, "shrunk_bytes", NUMBER, COUNTER, "bytes", "by how much less")

#define HELD_COLUMNS(X)                                                                     \
	X(HELD_PROCESS, "process", PROCESS, KEY, "",                                        \
	  "process.id: who has it open; of several the oldest")                             \
	X(HELD_FILE, "file", TEXT, KEY, "",                                                 \
	  "text.id: the path that it had, of a container's file as the container saw it")   \
	X(HELD_INO, "ino", TAG, KEY, "", "the number of its inode")                         \
	X(HELD_CONTAINER, "container", CONTAINER, GAUGE, "", "container.id of the process") \
	X(HELD_MOUNT, "mount", TEXT, GAUGE, "",                                             \
	  "text.id: the file system, as in fs_row; empty: not known")                       \
	X(HELD_BYTES, "bytes", NUMBER, GAUGE, "bytes",                                      \
	  "what it takes on the disk, which is free once the last one closes it")           \
	X(HELD_HOLDERS, "holders", NUMBER, GAUGE, "", "how many processes have it open")

#define CALL_COLUMNS(X)                                                                                           \
	X(CALL_PROCESS, "process", PROCESS, KEY, "", "process.id: who called")                                    \
	X(CALL_FILE, "file", TEXT, KEY, "",                                                                       \
	  "text.id: as in file_row, of a file in an overlay that of its layer; ~other: of those past the limit")  \
	X(CALL_CALL, "call", TEXT, KEY, "",                                                                       \
	  "text.id: read, write: system calls; ring_read, ring_write: by io_uring; resize: fallocate, ftruncate") \
	X(CALL_CONTAINER, "container", CONTAINER, GAUGE, "", "container.id of the process")                       \
	X(CALL_CALLS, "calls", NUMBER, COUNTER, "", "calls that returned")                                        \
	X(CALL_ERRORS, "errors", NUMBER, COUNTER, "", "of them, those that failed")                               \
	X(CALL_BYTES, "bytes", NUMBER, COUNTER, "bytes", "what they moved")                                       \
	X(CALL_US, "us", NUMBER, COUNTER, "us", "how long they took, summed")                                     \
	DISK_TIMES(X, CALL)

#define LOCK_COLUMNS(X)                                                                       \
	X(LOCK_PROCESS, "process", PROCESS, KEY, "", "process.id: who waited")                \
	X(LOCK_FILE, "file", TEXT, KEY, "", "text.id: as in call_row")                        \
	X(LOCK_LOCK, "lock", TEXT, KEY, "",                                                   \
	  "text.id: flock; posix: by fcntl or lockf; ofd: of an open file, by fcntl")         \
	X(LOCK_HOLDER, "holder", PROCESS, KEY, "",                                            \
	  "process.id: who had it when the wait began; 0: not known")                         \
	X(LOCK_CONTAINER, "container", CONTAINER, GAUGE, "", "container.id of the process")   \
	X(LOCK_WAITS, "waits", NUMBER, COUNTER, "", "waits that are over")                    \
	X(LOCK_ERRORS, "errors", NUMBER, COUNTER, "",                                         \
	  "of them, those that ended without the lock: by a signal or a deadlock")            \
	X(LOCK_US, "us", NUMBER, COUNTER, "us", "how long they took, summed")                 \
	X(LOCK_LONGEST, "longest_us", NUMBER, GAUGE, "us", "the longest of the last reading") \
	X(LOCK_LASTING, "lasting_us", NUMBER, GAUGE, "us",                                    \
	  "how long the longest wait that is not over had lasted, of a second or more")

#define ORDER_COLUMNS(X)                                                                     \
	X(ORDER_DISK, "disk", TEXT, KEY, "", "text.id: as in block_row")                     \
	X(ORDER_OP, "op", TEXT, KEY, "", "text.id: as in block_row")                         \
	X(ORDER_PROCESS, "process", PROCESS, KEY, "", "process.id: as in block_row")         \
	X(ORDER_CONTAINER, "container", CONTAINER, GAUGE, "", "container.id of the process") \
	X(ORDER_SEQUENTIAL, "sequential", NUMBER, COUNTER, "",                               \
	  "requests that began where the one before of these keys ended, within 128 KiB")

#define PLACE_COLUMNS(X)                                                                     \
	X(PLACE_PROCESS, "process", PROCESS, KEY, "", "process.id: who used the file")       \
	X(PLACE_FILE, "file", TEXT, KEY, "", "text.id: as in file_row and call_row")         \
	X(PLACE_CONTAINER, "container", CONTAINER, GAUGE, "", "container.id of the process") \
	X(PLACE_SEEN, "seen", TEXT, GAUGE, "", "text.id: the file's path as the container sees it")

enum block_column { BLOCK_COLUMNS(FACT_ID) BLOCK_N };
enum device_column { DEVICE_COLUMNS(FACT_ID) DEVICE_N };
enum slow_column { SLOW_COLUMNS(FACT_ID) SLOW_N };
enum slowstack_column { SLOWSTACK_COLUMNS(FACT_ID) SLOWSTACK_N };
enum sync_column { SYNC_COLUMNS(FACT_ID) SYNC_N };
enum lasting_column { LASTING_COLUMNS(FACT_ID) LASTING_N };
enum open_column { OPEN_COLUMNS(FACT_ID) OPENS_N };
enum file_column { FILE_COLUMNS(FACT_ID) FILE_N };
enum held_column { HELD_COLUMNS(FACT_ID) HELD_N };
enum call_column { CALL_COLUMNS(FACT_ID) CALL_N };
enum lock_column { LOCK_COLUMNS(FACT_ID) LOCK_N };
enum order_column { ORDER_COLUMNS(FACT_ID) ORDER_N };
enum place_column { PLACE_COLUMNS(FACT_ID) PLACE_N };

extern const struct fact BLOCK_FACT, DEVICE_FACT, SLOW_FACT, SYNC_FACT, OPEN_FACT, FILE_FACT,
	HELD_FACT, SLOWSTACK_FACT, LASTING_FACT, CALL_FACT, LOCK_FACT, ORDER_FACT, PLACE_FACT;

#endif
