/* SPDX-License-Identifier: Apache-2.0 */
/* list: what this host offers for probes, and what a hit of each costs: `sonde-probe --list`. */
#ifndef SONDE_PROBE_LIST_H
#define SONDE_PROBE_LIST_H

/* The whole program, where its first argument is --list: the exit code. */
int list_main(int argc, char **argv);

#endif
