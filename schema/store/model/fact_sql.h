/* SPDX-License-Identifier: Apache-2.0 */
/* fact_sql: the SQL that a declaration of wide rows (schema/facts/fact.h) makes. Pure. */
#ifndef SONDE_STORE_MODEL_FACT_SQL_H
#define SONDE_STORE_MODEL_FACT_SQL_H

#include "schema/base/strbuf.h"
#include "schema/facts/fact.h"

/* "ts,run,disk,...": its columns, as a list. */
void fact_columns_sql(const struct fact *f, struct strbuf *out);
/* " ON CONFLICT DO UPDATE SET ...": what becomes of two rows of one bucket and keys. Counters add
 * up; of gauges and references the one that came later holds, and what is not measured in one of
 * them is what the other one has. */
void fact_merge_sql(const struct fact *f, struct strbuf *out);
/* INSERT INTO ... of a row, or its merge: ?1 ts, ?2 run, then the columns. */
void fact_insert_sql(const struct fact *f, struct strbuf *out);

#endif
