/* SPDX-License-Identifier: Apache-2.0 */
/* merge_sql: how rows of one key become one: what follows ON CONFLICT DO UPDATE SET. Of a bucket
 * that two batches wrote into, and of a minute that an archive's rows are summed to. */
#ifndef SONDE_STORE_MODEL_MERGE_SQL_H
#define SONDE_STORE_MODEL_MERGE_SQL_H

#define MERGE_N       "n = n + excluded.n"
#define MERGE_N_TOTAL MERGE_N ", total_ns = total_ns + excluded.total_ns"
#define MERGE_HIST    ", hist = hist_sum(hist, excluded.hist)" /* model/hist.h */
#define MERGE_WAIT    MERGE_N_TOTAL ", max_ns = max(max_ns, excluded.max_ns)" MERGE_HIST
#define MERGE_AMOUNT \
	MERGE_N ", value = value + excluded.value, max = max(max, excluded.max)" MERGE_HIST
#define MERGE_AMOUNT_ERROR \
	"n_variance = n_variance + excluded.n_variance, value_variance = value_variance + excluded.value_variance"
#define MERGE_THROTTLE \
	"periods = periods + excluded.periods, throttled = throttled + excluded.throttled, throttled_ns = throttled_ns + excluded.throttled_ns"
#define MERGE_STEAL \
	"steal_ns = steal_ns + excluded.steal_ns, idle_ns = idle_ns + excluded.idle_ns, cpu_ns = cpu_ns + excluded.cpu_ns"

#endif
