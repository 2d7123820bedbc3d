/* SPDX-License-Identifier: Apache-2.0 */
/*
 * maproom: how much memory BPF maps take on this host.
 *
 * 1. A hash takes memory for all the entries that it may have when it is made. From 6.1 on it can
 *    take memory for each entry when a program adds it, safely in any program (the kernel's
 *    bpf_mem_alloc). Then a table of 65 536 connections costs an idle host nothing but its buckets.
 * 2. That kernel keeps some freed memory for each CPU, and fills it up again when interrupts are
 *    next on. A program where they are off (a sample, a switch of threads) may add more entries
 *    than that: the tables that it adds to keep their memory. Family offcpu, all of whose tables
 *    are such ones, does not call this.
 * 3. A ring has room for what the CPUs of this host write until its reader has its turn.
 */
#ifndef SONDE_BPF_MAPROOM_H
#define SONDE_BPF_MAPROOM_H

#include <stdbool.h>
#include <stdint.h>

struct bpf_object;

/* Does this kernel do what rule 1 says? */
bool maproom_grows(void);
/* Rule 1, for each hash of this object, and maproom_fixed; between open and load. Maps of other
 * programs (tables_reuse) stay as they are. */
void maproom_on_demand(struct bpf_object *obj);
/* For tests of what happens where a table is full: SONDE_MAP_ENTRIES=NAME=N,NAME=N says how many
 * entries maps have. Between open and load, after all else that sets that. */
void maproom_fixed(struct bpf_object *obj);
/* Rule 3: `each` bytes for each CPU, within [least, most]; all three powers of two, and so is the
 * result. */
uint32_t maproom_ring(uint32_t cpus, uint32_t each, uint32_t least, uint32_t most);

#endif
