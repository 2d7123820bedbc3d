/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tally: what a program of samples counts itself: one value per CPU in the array map `tally`, so
 * that a sample costs one look-up. At rest (detached, no sample running) seen = sent + late +
 * ring_full + no_room, exactly. Read by BPF programs and loaders.
 */
#ifndef SONDE_PROBES_TALLY_H
#define SONDE_PROBES_TALLY_H

#define SAMPLE_TALLY_SLOTS 32

struct sample_tally {
	__u64 seen;       /* samples that were in the capture's scope, by their weight */
	__u64 sent;       /* of those, put into the ring `events` */
	__u64 late;       /* of those, put into the ring `late` */
	__u64 ring_full;  /* of those, lost: no room */
	__u64 no_room;    /* of those, lost: a table was full, or had no memory for an entry */
	__u64 unfollowed; /* child processes that --'s pid set had no room for */
	__u64 run_ns;     /* time in this program, entry to exit, for the samples seen */
	__u64 slot[SAMPLE_TALLY_SLOTS]; /* of run_ns: slot i counts runs of [2^i, 2^(i+1)) ns */
};

#endif
