/* SPDX-License-Identifier: Apache-2.0 */
/* demo: rows that family demo stores (loaders/demo). */
#ifndef SONDE_FACTS_DEMO_H
#define SONDE_FACTS_DEMO_H

#include "schema/facts/fact.h"

#define RESIDENT_COLUMNS(X)                                            \
	X(RESIDENT_PROCESS, "process", PROCESS, KEY, "", "process.id") \
	X(RESIDENT_PAGES, "resident", NUMBER, GAUGE, "pages", "of it in memory")

enum resident_column { RESIDENT_COLUMNS(FACT_ID) RESIDENT_COLUMNS_N };

extern const struct fact RESIDENT_FACT;

#endif
