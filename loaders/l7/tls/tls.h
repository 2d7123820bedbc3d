/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tls: probes on the functions of TLS libraries, attached and detached as files come to be mapped.
 * The places are in each file's image index (schema/image/tls.h); the program is in
 * probes/l7/tls.bpf.h.
 *
 * 1. It requests the indexes of executables, of libraries whose name suggests TLS, and of large
 *    modules of Python, Node and Java (tables in tls.c); of a process whose TLS traffic is seen and
 *    not read, those of all large libraries, since any may have TLS inside. They are made within
 *    the CPU share of indexing; but at once for such a process, as long as it has no probes.
 * 2. A file is opened as the one that is mapped (/proc/PID/map_files), and its bytes are compared
 *    with the index's at each site before any probe is attached; if one differs, none is.
 * 3. Probes belong to the file, not to a process: attached once, for all containers. They are
 *    detached when no process maps it any more.
 * 4. Results are attached before entries; all of a file are detached at once (taps.h). A call that
 *    ends meanwhile is not recorded.
 */
#ifndef SONDE_L7_TLS_H
#define SONDE_L7_TLS_H

#include <stdint.h>

struct bpf_object;
struct family_host;
struct taps;
struct tls;

/* Borrows the loaded object. */
struct tls *tls_new(struct bpf_object *obj);
void tls_free(struct tls *t); /* NULL is fine; after tls_detach */
/* Checks which processes map which files. At most every LOOK_NS. */
void tls_poll(struct tls *t, struct family_host *h, int64_t now_ns);
/* A process has TLS traffic that was not read. */
void tls_unread(struct tls *t, uint32_t tgid);
/* `to` takes the taps of all. */
void tls_detach(struct tls *t, struct taps *to);

#endif
