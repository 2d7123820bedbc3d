/* SPDX-License-Identifier: Apache-2.0 */
/*
 * indexproto: the protocol between sonde-maps (parent) and one sonde-index child, which makes one
 * image index.
 *
 * The child starts with exactly these descriptors: 0-2, INDEX_FD_SOCKET (SOCK_SEQPACKET),
 * INDEX_FD_ELF (the file, read-only, regular), INDEX_FD_OUT (an empty read-write file). It enters
 * its sandbox before it reads a byte of the file. It may ask for debug files; the parent finds,
 * opens and checks them (only the parent touches the file system), and answers each request with
 * one packet, which carries one descriptor, or none. Then the child writes the index and reports
 * the result.
 *
 * Lines and inlined functions are included if they are quick to read; --all-lines always includes
 * them (minutes, for the largest files), --no-lines leaves them out; --lost-lines too, and notes in
 * the index that reading them failed. With --rows-first the child writes an index with the rows and
 * without symbols as soon as it can, sends INDEX_MSG_ROWS, and continues when the parent says so,
 * with lines or without; the parent may also end it: it has the rows, and names can wait.
 *
 * A child that dies, or takes longer or more memory than allowed, has refused the file; one that
 * was killed from outside (SIGKILL: by the OOM killer) says nothing about the file.
 */
#ifndef SONDE_HOST_INDEXPROTO_H
#define SONDE_HOST_INDEXPROTO_H

#include <stdint.h>

#define INDEX_FD_SOCKET 3
#define INDEX_FD_ELF    4
#define INDEX_FD_OUT    5

enum index_msg_type {
	INDEX_MSG_WANT_BUILD_ID =
		1, /* child: the debug file of this build-id (build_id, build_id_len) */
	INDEX_MSG_WANT_DEBUGLINK, /* child: the n-th candidate (n from 0) of .gnu_debuglink `name`;
				     the child checks the CRC and asks for the next one, until there
				     are no more */
	INDEX_MSG_WANT_ALT,       /* child: the dwz file `name` with this build-id */
	INDEX_MSG_FILE,           /* parent: status 1 and a descriptor, or status 0 */
	INDEX_MSG_ROWS, /* child: an index with only the rows is written; its key in `name` */
	INDEX_MSG_GO,  /* parent: make the rest, with lines (status 1) if they are quick, or without
			  (0) */
	INDEX_MSG_DONE /* child: status 0, INDEX_DONE_* in `n` and the key in `name`, or -errno and
			  the reason in `name` */
};

/* the file has lines, but the index has none yet: ask for all of them */
#define INDEX_DONE_LINES_LATER 1u

struct index_msg {
	uint32_t type;
	int32_t status;
	uint32_t n;
	uint32_t build_id_len;
	uint8_t build_id[64];
	char name[256]; /* NUL-terminated; for debuglink a bare file name: the parent refuses any
			   '/' */
};

#endif
