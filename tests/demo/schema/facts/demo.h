/* SPDX-License-Identifier: Apache-2.0 */
/* demo: what family demo stores (loaders/demo). */
#ifndef SONDE_FACTS_DEMO_H
#define SONDE_FACTS_DEMO_H

#include "schema/facts/fact.h"

#define FAULT_COLUMNS(X)                                                        \
	X(FAULT_PROCESS, "process", PROCESS, KEY, "", "process.id")             \
	X(FAULT_N, "faults", NUMBER, COUNTER, "", "page faults of the program") \
	X(FAULT_RESIDENT, "resident", NUMBER, GAUGE, "pages", "of it in memory; NULL: it has ended")

enum fault_column { FAULT_COLUMNS(FACT_ID) FAULT_COLUMNS_N };

extern const struct fact FAULT_FACT;

#endif
