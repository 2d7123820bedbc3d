/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hostnames: what /etc/hosts says, as processes see it: below their own root, so that of a
 * container the container's. A process's file is looked at again after HOSTNAMES_NS; the same file
 * of several processes is read once.
 */
#ifndef SONDE_NET_HOSTNAMES_H
#define SONDE_NET_HOSTNAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "loaders/lib/bpf/family.h"
#include "loaders/net/procs.h"
#include "schema/base/idmap.h"

#define HOSTNAMES_NS      60000000000ll
#define HOSTNAMES_BYTES   (1u << 20) /* a larger file is not read */
#define HOSTNAMES_ENTRIES 4096       /* of a file */
#define HOSTNAMES_FILES   64

struct hostnames_file {
	uint64_t id;        /* of the file as it was: device, inode, size, time */
	struct idmap names; /* hash of an address -> char * */
};

struct hostnames {
	struct hostnames_file files[HOSTNAMES_FILES];
	size_t n;
	struct idmap file_of; /* process -> its file's place + 1; 0: it has none */
	int64_t looked_ns;    /* since when those hold */
	struct idmap told;    /* processes and addresses, in this hour */
	int64_t hour;
};

void hostnames_release(struct hostnames *h);
/* A process talks to that address (as text): its name goes to the store, where there is one, once
 * an hour. `ts`: the bucket, seconds. */
void hostnames_store(struct hostnames *n, struct family_host *h, struct store_rows_proc *who,
		     const char *address, int64_t ts);

#endif
