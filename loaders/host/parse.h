/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parse: parses the kernel's statistics. Numbers go into the columns of a fact's row unchanged: a
 * counter as the kernel counts it (meter.h makes differences of it).
 *
 * An invalid number (no digits, too large for 64 bits) leaves its column unset; unknown lines are
 * skipped; columns set before stay. Nothing is allocated, nothing is read beyond `len`.
 */
#ifndef SONDE_HOST_FAMILY_PARSE_H
#define SONDE_HOST_FAMILY_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/facts/fact.h"

/* A line "NAME VALUE", "NAME: VALUE" or "NAME: VALUE kB" that goes to a column, times mul, by div
 * (0 is 1). `add`: to what an earlier line gave the column. */
struct parse_key {
	const char *name;
	int column;
	uint32_t mul, div;
	bool add;
};

/* Of each line the first two words. meminfo, vmstat, cpu.stat, memory.stat, memory.events,
 * /proc/PID/io and status, ... */
void parse_keys(const char *text, size_t len, const struct parse_key *keys, size_t n,
		struct fact_row *out);

/* The first word of a file as a number; false: it is not one ("max"). */
bool parse_number(const char *text, size_t len, uint64_t *out);
/* The same for a limit; false if there is no limit: "max", -1, or v1's value for it, 2^63 less a
 * page. */
bool parse_limit(const char *text, size_t len, uint64_t *out);
/* cpu.max, "QUOTA PERIOD": thousandths of a CPU. */
bool parse_cpu_max(const char *text, size_t len, uint64_t *out);

/* /proc/pressure/X, X.pressure: total= of the lines "some" and "full", in us, to columns; -1: not
 * wanted. */
void parse_pressure(const char *text, size_t len, int some, int full, struct fact_row *out);

/* /proc/stat: the line of all CPUs (ticks a second as sysconf says), how many CPUs there are, and
 * the lines of names. */
void parse_stat(const char *text, size_t len, long ticks, struct fact_row *out);
/* /proc/loadavg. */
void parse_loadavg(const char *text, size_t len, struct fact_row *out);

/* What a step through a file's lines found; the texts are borrowed from it and not terminated. */
struct parse_disk {
	const char *name;
	size_t name_len;
	uint32_t major, minor;
	struct fact_row row; /* columns of disk_row but the name */
};
/* /proc/diskstats, line by line: *pos begins at 0. Kernels have 11, 15 or 17 numbers a line;
 * sectors are of 512 bytes. */
bool parse_next_disk(const char *text, size_t len, size_t *pos, struct parse_disk *out);

struct parse_nic {
	const char *name;
	size_t name_len;
	struct fact_row row; /* columns of nic_row but its keys */
};
/* /proc/net/dev. */
bool parse_next_nic(const char *text, size_t len, size_t *pos, struct parse_nic *out);

struct parse_mount {
	uint64_t id; /* as in /proc/PID/fdinfo */
	uint32_t major, minor;
	const char *root, *point, *type, *source, *options,
		*super; /* still escaped: proc_unescape */
	size_t root_len, point_len, type_len, source_len, options_len, super_len;
};
/* /proc/PID/mountinfo. */
bool parse_next_mount(const char *text, size_t len, size_t *pos, struct parse_mount *out);
/* Is `word` one of a list with commas? */
bool parse_has_option(const char *list, size_t len, const char *word);

#define PARSE_IO_MAX 64
struct parse_io { /* by device */
	uint32_t major, minor;
	uint64_t read_bytes, write_bytes, reads, writes;
};
/* v2's io.stat: "254:0 rbytes=1 wbytes=2 rios=3 wios=4 ...". Adds devices, at most PARSE_IO_MAX. */
void parse_io_stat(const char *text, size_t len, struct parse_io *out, size_t *n);
/* v1's blkio.*io_service_bytes and io_serviced: "254:0 Read 1". */
void parse_blkio(const char *text, size_t len, bool bytes, struct parse_io *out, size_t *n);

/* /proc/PID/stat: columns of process_row (pages of that many bytes); kernel: it is a thread of the
 * kernel. false: no such file. */
struct parse_task {
	struct fact_row row;
	uint64_t start_ticks;
	bool kernel;
};
bool parse_task_stat(const char *text, size_t len, long ticks, long page, struct parse_task *out);

#endif
