/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_parse_fuzz: accounts of any bytes are read within their bounds, and no number is negative,
 * whatever the format.
 *
 * covers: loaders/host/parse.c
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/host/parse.h"
#include "schema/facts/host.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void check(const struct fact_row *row, int n)
{
	for (int i = 0; i < n; i++)
		if (fact_has(row, i) && row->v[i].number < 0)
			abort();
	if (row->set >> n)
		abort();
}

static void lines(const char *text, size_t len)
{
	struct parse_disk d;
	struct parse_nic n;
	struct parse_mount m;
	size_t pos = 0;

	while (parse_next_disk(text, len, &pos, &d)) {
		check(&d.row, DISK_N);
		if (d.name < text || d.name + d.name_len > text + len)
			abort();
	}
	for (pos = 0; parse_next_nic(text, len, &pos, &n);) {
		check(&n.row, NIC_N);
		if (n.name < text || n.name + n.name_len > text + len)
			abort();
	}
	for (pos = 0; parse_next_mount(text, len, &pos, &m);)
		if (m.point < text || m.point + m.point_len > text + len ||
		    m.type + m.type_len > text + len)
			abort();
}

static void values(const char *text, size_t len)
{
	static const struct parse_key keys[] = {
		{"anon", 0, 0, 0}, {"MemTotal", 1, 1024, 0}, {"throttled_time", 2, 0, 1000}};
	struct parse_io io[PARSE_IO_MAX];
	struct fact_row row = {0};
	size_t n = 0;
	uint64_t v;

	parse_keys(text, len, keys, 3, &row);
	check(&row, 3);
	row.set = 0;
	parse_pressure(text, len, 0, 1, &row);
	check(&row, 2);
	row.set = 0;
	parse_stat(text, len, 100, &row);
	parse_loadavg(text, len, &row);
	check(&row, HOST_N);
	parse_io_stat(text, len, io, &n);
	parse_blkio(text, len, true, io, &n);
	parse_blkio(text, len, false, io, &n);
	if (n > PARSE_IO_MAX)
		abort();
	if (parse_limit(text, len, &v) && v >= 1ull << 60)
		abort();
	parse_cpu_max(text, len, &v);
	parse_has_option(text, len, "rw");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	char *text = malloc(len + !len); /* of just that length */
	struct parse_task t;

	memcpy(text, data, len);
	lines(text, len);
	values(text, len);
	if (parse_task_stat(text, len, 100, 4096, &t))
		check(&t.row, PROCESS_N);
	free(text);
	return 0;
}
