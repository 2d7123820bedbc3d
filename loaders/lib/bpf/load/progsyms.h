/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progsyms: the BPF programs that are loaded, as /proc/kallsyms has them ("bpf_prog_TAG_NAME",
 * module "bpf"), asked of bpf(2): some calls a program, where the kernel takes 50 ms of CPU to
 * write all its symbols. Trampolines are not among them.
 *
 * Asked for anew when an address is not known, after a pause that doubles while that finds no other
 * programs; and every ten minutes, because a program may have made room for another one. Needs
 * CAP_SYS_ADMIN: without it nothing is known.
 */
#ifndef SONDE_BPF_PROGSYMS_H
#define SONDE_BPF_PROGSYMS_H

#include <stdbool.h>
#include <stdint.h>

struct kallsyms_symbol;
struct progsyms;

struct progsyms *progsyms_new(void);
void progsyms_free(struct progsyms *p); /* NULL is fine */
/* As kallsyms_find, for the address of a program or one of its functions; `ctx` is the progsyms.
 * What is given is valid until the next call. */
bool progsyms_find(void *ctx, uint64_t addr, struct kallsyms_symbol *out);

#endif
