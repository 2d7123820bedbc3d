/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/host/hostwide.h"

#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loaders/host/parse.h"
#include "loaders/host/textfile.h"
#include "schema/base/array.h"
#include "schema/base/mem.h"
#include "schema/facts/host.h"

#define SENSORS_MAX 64

/* clang-format off */
static const struct parse_key MEMINFO[] = {
	{"MemTotal", HOST_MEM_TOTAL, 1024, 0}, {"MemFree", HOST_MEM_FREE, 1024, 0}, {"MemAvailable", HOST_MEM_AVAILABLE, 1024, 0},
	{"AnonPages", HOST_ANON, 1024, 0}, {"Cached", HOST_CACHED, 1024, 0}, {"Buffers", HOST_BUFFERS, 1024, 0},
	{"Shmem", HOST_SHMEM, 1024, 0}, {"Slab", HOST_SLAB, 1024, 0}, {"Dirty", HOST_DIRTY, 1024, 0},
	{"SwapTotal", HOST_SWAP_TOTAL, 1024, 0}, {"SwapFree", HOST_SWAP_FREE, 1024, 0},
};
/* clang-format on */
static const struct parse_key VMSTAT[] = {
	{"pgmajfault", HOST_MAJFLT, 0, 0},
	{"pswpin", HOST_SWAP_IN, 0, 0},
	{"pswpout", HOST_SWAP_OUT, 0, 0},
	{"oom_kill", HOST_OOM_KILLS, 0, 0},
};
static const struct {
	const char *path;
	int some, full;
} PRESSURE[] = {
	{"/proc/pressure/cpu", HOST_PSI_CPU, -1},
	{"/proc/pressure/memory", HOST_PSI_MEM, HOST_PSI_MEM_FULL},
	{"/proc/pressure/io", HOST_PSI_IO, HOST_PSI_IO_FULL},
};

/* Thermal zones, each with its type; of several with the same one, "type#N". */
static void sensors_find(struct hostwide *w)
{
	glob_t g = {0};

	if (glob("/sys/class/thermal/thermal_zone*/temp", 0, NULL, &g))
		return;
	for (size_t i = 0; i < g.gl_pathc && w->n_sensors < SENSORS_MAX; i++) {
		struct hostwide_sensor s;
		char type[96];
		int alike = 0;

		snprintf(s.path, sizeof(s.path), "%s", g.gl_pathv[i]);
		snprintf(type, sizeof(type), "%.*stype", (int)(strlen(s.path) - 4), s.path);
		if (textfile_read(AT_FDCWD, type, &w->text))
			continue;
		snprintf(s.name, sizeof(s.name), "%.*s", (int)strcspn(strbuf_str(&w->text), "\n"),
			 strbuf_str(&w->text));
		for (size_t k = 0; k < w->n_sensors; k++)
			alike += !strncmp(w->sensors[k].name, s.name, strlen(s.name));
		if (alike)
			snprintf(s.name + strlen(s.name), sizeof(s.name) - strlen(s.name), "#%d",
				 alike + 1);
		mem_grow(w->sensors, w->n_sensors, w->cap_sensors);
		w->sensors[w->n_sensors++] = s;
	}
	globfree(&g);
}

void hostwide_init(struct hostwide *w, int64_t idle_ns)
{
	*w = (struct hostwide){
		.host = {.fact = &HOST_FACT, .idle_ns = idle_ns},
		.disk = {.fact = &DISK_FACT, .idle_ns = idle_ns},
		.nic = {.fact = &NIC_FACT, .idle_ns = idle_ns},
		.sensor = {.fact = &SENSOR_FACT, .idle_ns = idle_ns},
	};
	sensors_find(w);
}

void hostwide_release(struct hostwide *w)
{
	meter_release(&w->host);
	meter_release(&w->disk);
	meter_release(&w->nic);
	meter_release(&w->sensor);
	free(w->sensors);
	strbuf_release(&w->text);
	strbuf_release(&w->key);
}

/* Each of these tables has one key, a text, which is its first column. */
static bool name_put(void *ctx, struct fact_row *row)
{
	fact_put_text(row, 0, ctx);
	return true;
}

static bool name_none(void *ctx, struct fact_row *row)
{
	(void)ctx;
	(void)row;
	return true;
}

static bool nic_name(void *ctx, struct fact_row *row)
{
	fact_put(row, NIC_CONTAINER, 0);
	return name_put(ctx, row);
}

/* What is missing here costs its columns. */
static void host_read(struct hostwide *w, const struct meter_round *r)
{
	struct meter_reading x = {.key = ""};
	uint64_t n;

	if (!textfile_read(AT_FDCWD, "/proc/stat", &w->text))
		parse_stat(strbuf_str(&w->text), w->text.len, sysconf(_SC_CLK_TCK), &x.row);
	if (!textfile_read(AT_FDCWD, "/proc/meminfo", &w->text))
		parse_keys(strbuf_str(&w->text), w->text.len, MEMINFO, ARRAY_SIZE(MEMINFO), &x.row);
	if (!textfile_read(AT_FDCWD, "/proc/vmstat", &w->text))
		parse_keys(strbuf_str(&w->text), w->text.len, VMSTAT, ARRAY_SIZE(VMSTAT), &x.row);
	if (!textfile_read(AT_FDCWD, "/proc/loadavg", &w->text))
		parse_loadavg(strbuf_str(&w->text), w->text.len, &x.row);
	if (!textfile_read(AT_FDCWD, "/proc/uptime", &w->text) &&
	    parse_number(strbuf_str(&w->text), w->text.len, &n))
		fact_put(&x.row, HOST_UPTIME, n);
	for (size_t i = 0; i < ARRAY_SIZE(PRESSURE); i++)
		if (!textfile_read(AT_FDCWD, PRESSURE[i].path, &w->text))
			parse_pressure(strbuf_str(&w->text), w->text.len, PRESSURE[i].some,
				       PRESSURE[i].full, &x.row);
	meter_take(&w->host, r, &x, name_none, NULL);
	meter_end(&w->host);
}

static char *key_set(struct hostwide *w, const char *name, size_t len)
{
	strbuf_reset(&w->key);
	strbuf_add(&w->key, name, len);
	return w->key.buf;
}

/* A partition is part of a disk that has a row. */
static bool is_disk(const char *name)
{
	char path[300];

	snprintf(path, sizeof(path), "/sys/block/%.200s", name);
	for (char *c = path + strlen("/sys/block/"); *c; c++)
		*c = *c == '/' ? '!' : *c;
	return !access(path, F_OK);
}

/* One that was never used has no rows. */
static void disks_read(struct hostwide *w, const struct meter_round *r)
{
	const struct meter_round silent = {.now_ns = r->now_ns, .utc_ns = r->utc_ns};
	struct parse_disk d;
	size_t pos = 0;

	if (textfile_read(AT_FDCWD, "/proc/diskstats", &w->text))
		return;
	while (parse_next_disk(strbuf_str(&w->text), w->text.len, &pos, &d)) {
		char *name = key_set(w, d.name, d.name_len);
		struct meter_reading x = {.key = name,
					  .identity = (uint64_t)d.major << 32 | d.minor,
					  .young = true,
					  .row = d.row};
		bool used = d.row.v[DISK_READS].number || d.row.v[DISK_WRITES].number;

		if (is_disk(name))
			meter_take(&w->disk, used ? r : &silent, &x, name_put, name);
	}
	meter_end(&w->disk);
}

static void nics_read(struct hostwide *w, const struct meter_round *r)
{
	struct parse_nic n;
	size_t pos = 0;

	if (textfile_read(AT_FDCWD, "/proc/1/net/dev", &w->text) &&
	    textfile_read(AT_FDCWD, "/proc/net/dev", &w->text))
		return;
	while (parse_next_nic(strbuf_str(&w->text), w->text.len, &pos, &n)) {
		char *name = key_set(w, n.name, n.name_len);
		struct meter_reading x = {.key = name, .young = true, .row = n.row};

		meter_take(&w->nic, r, &x, nic_name, name);
	}
	meter_end(&w->nic);
}

static void sensors_read(struct hostwide *w, const struct meter_round *r)
{
	for (size_t i = 0; i < w->n_sensors; i++) {
		struct meter_reading x = {.key = w->sensors[i].name};
		uint64_t n;

		if (textfile_read(AT_FDCWD, w->sensors[i].path, &w->text) ||
		    !parse_number(strbuf_str(&w->text), w->text.len, &n))
			continue; /* also below 0: a freezer */
		fact_put(&x.row, SENSOR_TEMPERATURE, n);
		meter_take(&w->sensor, r, &x, name_put, w->sensors[i].name);
	}
	meter_end(&w->sensor);
}

void hostwide_read(struct hostwide *w, const struct meter_round *r)
{
	host_read(w, r);
	disks_read(w, r);
	nics_read(w, r);
	sensors_read(w, r);
}
