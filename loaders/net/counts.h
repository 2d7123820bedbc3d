/* SPDX-License-Identifier: Apache-2.0 */
/* counts: what the kernel counts of a network namespace, as text: /proc/PID/net/snmp and netstat.
 * Pure. */
#ifndef SONDE_NET_COUNTS_H
#define SONDE_NET_COUNTS_H

#include <stddef.h>

#include "schema/facts/fact.h"

/* Stores the columns of NETNS_FACT that the text has ("Tcp: A B\nTcp: 1 2\n") in `row`; an invalid
 * number (-1) leaves its column unset. */
void counts_parse(const char *text, size_t len, struct fact_row *row);

#endif
