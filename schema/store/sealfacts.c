/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sealfacts: what is counted, by bucket or by process, into a day, as rows. Two segments may both have rows of the bucket
 * in which one ended and the next began: they become one.
 *
 * The tables stand here with their columns, or are declared in schema/facts: a segment that has another one, or another column,
 * is not sealed (seal.h), so that nothing is lost by a list that is too short; a test holds the list against the migrations.
 */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/mem.h"
#include "schema/store/facts.h"
#include "schema/store/sealparts.h"

/* kinds: letters of sealdict.h; merge: k the key, + their sum, > the largest, = the later one, h histograms added */
struct seal_fact {
	const char *table, *columns, *kinds, *merge;
	const char *where; /* NULL: all rows */
};

#define GAUGES "(SELECT e.id FROM series e JOIN task t ON t.id = e.task JOIN kind y ON y.id = t.kind WHERE y.class = 'gauge')"

static const struct seal_fact COUNTED[] = {
	{"clock", "utc_ns,boot_offset_ns", "..", "k=", NULL},
	{"loss_row", "ts,run,reason,n", "TR..", "kkk+", NULL},
	{"cost_row", "ts,run,program,cpu_ns,runs,rss_bytes,private_bytes,map_bytes", "TR......", "kkk++===", NULL},
	{"unwound_row", "ts,run,exe,image,reason,n", "TRti..", "kkkkk+", NULL},
	{"amount", "ts,series,n,value,max,hist", "Te....", "kk++>h", "series NOT IN " GAUGES},
	{"amount", "ts,series,n,value,max,hist", "Te....", "kk====", "series IN " GAUGES},
	{"rate_row", "run,process,ts,rate", "RpT.", "kkk=", NULL},
	{"wait_row", "ts,task,class,flags,n,total_ns,max_ns,hist", "Tk......", "kkkk++>h", NULL},
	{"wake_row", "ts,task,class,waker,context,stack,n,total_ns", "Tk.k.S..", "kkkkkk++", NULL},
	{"wait_on_row", "ts,task,class,object,waker,stack,n,total_ns", "Tk.tkS..", "kkkkkk++", NULL},
	{"end_row", "ts,run,comm,container,how,status,n", "TRtc...", "kkkkkk+", NULL},
	{"culprit_row", "ts,task,culprit,kind,n,total_ns", "Tkk...", "kkkk++", NULL},
	{"throttle_row", "ts,run,cgroup,periods,throttled,throttled_ns", "TRt...", "kkk+++", NULL},
	{"steal_row", "ts,run,steal_ns,idle_ns,cpu_ns", "TR...", "kk+++", NULL},
	{"slowed_row", "ts,run,step,stack_rate", "TR..", "kk>=", NULL},
	{"request_row", "ts,run,process,side,protocol,service,operation,status,result,n,total_ns,max_ns,request_bytes,response_bytes,hist",
	 "TRp.tttt.......", "kkkkkkkkk++>++h", NULL},
	{"run_count", "run,kind,n", "R..", "kk+", "kind < 2"}, /* the others: sealday.c */
	{"process_note", "run,process,key,value", "Rp.t", "kkk=", NULL},
};
#define N_COUNTED (sizeof(COUNTED) / sizeof(COUNTED[0]))

/* Each file has its own, or they are taken over otherwise: with these columns. NULL: whatever they have. */
static const char *const OTHERS[][2] = {
	{"meta", NULL}, {"kind", NULL}, {"wait_class", NULL}, {"end_kind", NULL}, {"sealed", NULL}, {"sample_pack", NULL},
	{"packed_table", NULL}, {"packed_column", NULL}, {"run_named", NULL},
	{"run_loss", NULL}, {"run_cost", NULL}, {"run_unwound", NULL}, {"run_ending", NULL},
	{"sample", "ts,series,n"}, {"stack", "id,base,keep,leaf,tail"}, {"run_period", "run,from_ns,period_ns"},
	{"run", "id,token,family,options,scope,bucket_s,cpus,from_ns,to_ns,state,pid,accounted,recording"},
};

/* Of a declared one: those of them that it is declared with. */
static const struct fact *declared(const char *table)
{
	for (size_t i = 0; FACTS[i]; i++)
		if (!strcmp(FACTS[i]->table, table))
			return FACTS[i];
	return NULL;
}

static bool declares(const struct fact *f, const char *column)
{
	for (uint32_t i = 0; i < f->n; i++)
		if (!strcmp(f->columns[i].name, column))
			return true;
	return !strcmp(column, "ts") || !strcmp(column, "run");
}

/* NULL: it is not known. "": all its columns are as they should be. */
static const char *columns_of(const char *table)
{
	const char *found = sealdict_columns(table);

	for (size_t i = 0; !found && i < N_COUNTED; i++)
		if (!strcmp(COUNTED[i].table, table))
			found = COUNTED[i].columns;
	for (size_t i = 0; !found && i < sizeof(OTHERS) / sizeof(OTHERS[0]); i++)
		if (!strcmp(OTHERS[i][0], table))
			found = OTHERS[i][1] ? OTHERS[i][1] : "";
	return found;
}

static bool names(const char *columns, const char *column)
{
	size_t len = strlen(column);

	for (const char *at = columns; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
		if (!strncmp(at, column, len) && (at[len] == ',' || !at[len]))
			return true;
	return false;
}

int sealfacts_unknown(sqlite3 *segment, char *out, size_t size)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(segment, "SELECT m.name, c.name FROM sqlite_master m JOIN pragma_table_info(m.name) c"
					     " WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%'", -1, &st, NULL);

	while (rc == SQLITE_OK || rc == SQLITE_ROW) {
		rc = sqlite3_step(st);
		if (rc != SQLITE_ROW)
			break;
		const char *table = (const char *)sqlite3_column_text(st, 0), *column = (const char *)sqlite3_column_text(st, 1);
		const char *columns = columns_of(table);
		const struct fact *f = declared(table);

		if (f ? !declares(f, column) : !columns || (*columns && strcmp(column, "id") && !names(columns, column))) {
			snprintf(out, size, "%s.%s", table, column);
			break;
		}
	}
	sqlite3_finalize(st);
	return rc;
}

/* --- one table --- */

static void add_merge(struct strbuf *sql, const char *column, char merge)
{
	switch (merge) {
	case '+':
		strbuf_addf(sql, "%s = %s + excluded.%s", column, column, column);
		break;
	case '>':
		strbuf_addf(sql, "%s = max(%s, excluded.%s)", column, column, column);
		break;
	case 'h':
		strbuf_addf(sql, "%s = hist_sum(%s, excluded.%s)", column, column, column);
		break;
	default:
		strbuf_addf(sql, "%s = excluded.%s", column, column);
	}
}

static int prepare_put(sqlite3 *day, const struct seal_fact *f, sqlite3_stmt **out)
{
	struct strbuf sql cleanup_strbuf = STRBUF_INIT, set cleanup_strbuf = STRBUF_INIT;
	char columns[160], *save = NULL, *column;
	size_t i = 0;

	snprintf(columns, sizeof(columns), "%s", f->columns);
	strbuf_addf(&sql, "INSERT INTO %s(%s) VALUES(", f->table, f->columns);
	for (column = strtok_r(columns, ",", &save); column; column = strtok_r(NULL, ",", &save), i++) {
		strbuf_addstr(&sql, i ? ", ?" : "?");
		if (f->merge[i] == 'k')
			continue;
		strbuf_addstr(&set, set.len ? ", " : "");
		add_merge(&set, column, f->merge[i]);
	}
	strbuf_addf(&sql, ") ON CONFLICT DO UPDATE SET %s", strbuf_str(&set));
	return sqlite3_prepare_v2(day, strbuf_str(&sql), -1, out, NULL);
}

static int take_row(const struct sealdict *d, const char *kinds, sqlite3_stmt *from, sqlite3_stmt *put, int64_t shift)
{
	for (int i = 0; kinds[i]; i++) {
		int64_t v = sqlite3_column_int64(from, i);

		if (kinds[i] == SEAL_VALUE)
			sqlite3_bind_value(put, i + 1, sqlite3_column_value(from, i));
		else if (kinds[i] == SEAL_TIME)
			sqlite3_bind_int64(put, i + 1, v + shift);
		else
			sqlite3_bind_int64(put, i + 1, sealdict_id(d, kinds[i], v));
	}
	sqlite3_step(put);
	return sqlite3_reset(put);
}

/* All rows that `sql`, which is freed, has in the segment; `put` is finalized. */
static int take_rows(const struct sealdict *d, sqlite3 *segment, char *sql, const char *kinds, sqlite3_stmt *put, int64_t shift)
{
	sqlite3_stmt *from = NULL;
	int rc = sqlite3_prepare_v2(segment, sql, -1, &from, NULL);

	sqlite3_free(sql);
	while (rc == SQLITE_OK && (rc = sqlite3_step(from)) == SQLITE_ROW)
		rc = take_row(d, kinds, from, put, shift);
	sqlite3_finalize(from);
	sqlite3_finalize(put);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int take_table(const struct sealdict *d, sqlite3 *segment, const struct seal_fact *f, int64_t shift)
{
	sqlite3_stmt *put = NULL;
	int rc = prepare_put(d->day, f, &put);

	if (rc != SQLITE_OK)
		return rc;
	return take_rows(d, segment, sqlite3_mprintf("SELECT %s FROM %s%s%s", f->columns, f->table, f->where ? " WHERE " : "",
						     f->where ? f->where : ""), f->kinds, put, shift);
}

static int take_declared(const struct sealdict *d, sqlite3 *segment, const struct fact *f, int64_t shift)
{
	static const char letters[] = {[FACT_NUMBER] = SEAL_VALUE, [FACT_TEXT] = SEAL_TEXT, [FACT_PROCESS] = SEAL_PROCESS,
				       [FACT_CONTAINER] = SEAL_CONTAINER};
	struct strbuf insert cleanup_strbuf = STRBUF_INIT, columns cleanup_strbuf = STRBUF_INIT;
	char kinds[FACT_COLUMNS_MAX + 3] = {SEAL_TIME, SEAL_RUN};
	sqlite3_stmt *put = NULL;
	int rc;

	for (uint32_t i = 0; i < f->n; i++)
		kinds[i + 2] = letters[f->columns[i].type];
	facts_insert_sql(f, &insert);
	facts_columns(f, &columns);
	rc = sqlite3_prepare_v2(d->day, strbuf_str(&insert), -1, &put, NULL);
	if (rc != SQLITE_OK)
		return rc;
	return take_rows(d, segment, sqlite3_mprintf("SELECT %s FROM %s", strbuf_str(&columns), f->table), kinds, put, shift);
}

int sealfacts_take(struct sealdict *d, sqlite3 *segment, int64_t shift)
{
	int rc = SQLITE_OK;

	for (size_t i = 0; rc == SQLITE_OK && i < N_COUNTED; i++)
		rc = take_table(d, segment, &COUNTED[i], shift);
	for (size_t i = 0; rc == SQLITE_OK && FACTS[i]; i++)
		rc = take_declared(d, segment, FACTS[i], shift);
	return rc;
}
