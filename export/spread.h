/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spread: stored histograms (schema/store/model/hist.h) added up, as an aggregate function of
 * SQLite:
 *
 *   hist_all(hist, steps, n)   hist: as stored, or NULL; steps: 8 of table request_row, 1 of the
 *                              others; n: how many values there are. Text: how many values lie
 *                              below each bound of export/metric.h, then all: "3 5 5 ... 6".
 */
#ifndef SONDE_EXPORT_SPREAD_H
#define SONDE_EXPORT_SPREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "export/metric.h"

struct sqlite3;

/* The count of values below each bound is added. false: it is no histogram; nothing, or a part, is
 * added. */
bool spread_add(uint64_t below[METRIC_BOUNDS], const char *text, size_t len, unsigned steps);
/* SQLite's code. */
int spread_register(struct sqlite3 *db);

#endif
