/* SPDX-License-Identifier: Apache-2.0 */
/*
 * procevents: how processes end, from the kernel's process connector (netlink, needs
 * CAP_NET_ADMIN). Without a BPF program this is sonde-maps' only source of exit codes. A message
 * (linux/cn_proc.h): nlmsghdr, cn_msg, proc_event; for an exit the thread, its process, and the
 * code as in wait(2). Only the code is kept, by process, until the side-band's record of the exit
 * asks for it.
 */
#ifndef SONDE_MAPS_PROCEVENTS_H
#define SONDE_MAPS_PROCEVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct procevents;

/* NULL: the kernel has none, or does not let us. */
struct procevents *procevents_open(void);
void procevents_close(struct procevents *p); /* NULL is fine, here and below */
/* Take in what has come. */
void procevents_read(struct procevents *p);
/* How did this process end? Once. false: it was not told. */
bool procevents_take(struct procevents *p, uint32_t tgid, uint32_t *code);

/* Pure: one datagram. True if it tells that a process's first thread ended. */
bool procevents_parse(const void *bytes, size_t len, uint32_t *tgid, uint32_t *code);

#endif
