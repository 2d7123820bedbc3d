/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/maps/dump.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <linux/types.h>

#include "loaders/lib/host/maps/mapslink.h"
#include "loaders/lib/host/maps/mapspack.h"
#include "loaders/maps/publish/tablemaps.h"
#include "probes/lib/tables.h"
#include "schema/base/cleanup.h"
#include "schema/base/clock.h"

#define WAIT_MS 3000

/* The maps come in a separate packet right after the hello. */
static int receive(int sock, int fds[MP_TABLES_N])
{
	static char packet[MP_PACKET_MAX];
	int64_t until = clock_boot_ns() + WAIT_MS * 1000000ll;

	while (clock_boot_ns() < until) {
		struct pollfd pfd = {.fd = sock, .events = POLLIN};
		struct mapspack_msg m;
		size_t len = 0, pos = 0;
		int rc;

		poll(&pfd, 1, 100);
		rc = maps_link_receive(sock, packet, sizeof(packet), &len, fds);
		if (rc < 0)
			return rc;
		if (!rc || mapspack_next(packet, len, &pos, &m) != 1)
			continue;
		if (m.type == MP_HELLO && !(m.m.hello.flags & MP_HELLO_TABLES))
			return -ENODATA;
		if (m.type == MP_TABLES)
			return 0;
	}
	return -ETIMEDOUT;
}

static json_t *hex(uint64_t v)
{
	char s[32];

	snprintf(s, sizeof(s), "0x%" PRIx64, v);
	return json_string(s);
}

static uint64_t word(const struct tablemaps *t, uint32_t i)
{
	return i < t->n_mappings ? t->mappings[i] : 0;
}

/* Parts of its rows that are there; -1: they are in one piece. */
static json_int_t parts_here(const struct tablemaps *t, const struct tables_image *img)
{
	struct tablemaps_window w = {0};
	json_int_t n = 0;

	if (!img->use_first || tablemaps_window_open(t, img->page_first, img->page_count, &w))
		return -1;
	for (uint32_t i = 0; i < img->page_count; i += 1u << TABLES_PART_SHIFT)
		n += ROW_PAGE_COUNT(w.at[i]) != ROW_PAGE_ABSENT;
	tablemaps_window_close(&w);
	return n;
}

static json_t *mapping_json(const struct tablemaps *t, const struct tables_process *p, uint32_t i)
{
	uint32_t at = p->first + p->count + i * MAPPING_WORDS, slot = (uint32_t)word(t, at + 3);
	const struct tables_image none = {0},
				  *img = slot && slot < TABLES_IMAGES ? &t->images[slot] : &none;

	return json_pack("{s:o, s:o, s:o, s:o, s:i, s:i, s:i, s:I, s:I, s:I, s:I}", "start",
			 hex(word(t, p->first + i)), "end", hex(word(t, at)), "to_offset",
			 hex(word(t, at + 1)), "to_row", hex(word(t, at + 2)), "slot", (int)slot,
			 "state", (int)img->state, "image", (int)img->id, "rows",
			 (json_int_t)img->row_count, "row_first", (json_int_t)img->row_first,
			 "used", (json_int_t)img->used, "parts_here", parts_here(t, img));
}

static json_t *process_json(const struct tablemaps *t, uint32_t tgid)
{
	struct tables_process p;
	json_t *o, *list = json_array();

	if (bpf_map_lookup_elem(t->fd[MP_TABLES_PROCESSES], &tgid, &p)) {
		json_decref(list);
		return json_null();
	}
	for (uint32_t i = 0; i < p.count && i < TABLES_SLICE_MAX; i++)
		json_array_append_new(list, mapping_json(t, &p, i));
	o = json_pack("{s:i, s:I, s:I, s:i, s:I, s:i, s:i}", "tgid", (int)tgid, "start_ns",
		      (json_int_t)p.start_ns, "as_of_ns", (json_int_t)p.as_of_ns, "exec_id",
		      (int)p.exec_id, "flags", (json_int_t)p.flags, "first", (int)p.first, "count",
		      (int)p.count);
	json_object_set_new(o, "mappings", list);
	return o;
}

static json_int_t count_entries(const struct tablemaps *t)
{
	uint32_t key, *prev = NULL;
	json_int_t n = 0;

	while (n <= TABLES_PROCESSES &&
	       !bpf_map_get_next_key(t->fd[MP_TABLES_PROCESSES], prev, &key)) {
		prev = &key;
		n++;
	}
	return n;
}

static json_t *state_json(const struct tablemaps *t)
{
	json_int_t states[TABLES_IMAGE_REFUSED + 1] = {0};

	for (uint32_t i = 1; i < TABLES_IMAGES; i++)
		if (t->images[i].state <= TABLES_IMAGE_REFUSED)
			states[t->images[i].state]++;
	return json_pack("{s:I, s:i, s:i, s:I, s:I, s:I, s:I, s:I, s:I}", "heartbeat_ns",
			 (json_int_t)t->state->heartbeat_ns, "generation",
			 (int)t->state->generation, "last_image", (int)t->state->last_image,
			 "pending", states[TABLES_IMAGE_PENDING], "ready",
			 states[TABLES_IMAGE_READY], "refused", states[TABLES_IMAGE_REFUSED],
			 "processes", count_entries(t), "row_elements", (json_int_t)t->n_rows,
			 "bytes", (json_int_t)tablemaps_bytes(t));
}

int dump_tables(const char *socket_path, uint32_t tgid, struct err *e)
{
	struct tablemaps t = TABLEMAPS_NONE;
	int fds[MP_TABLES_N] = {-1, -1, -1, -1, -1, -1, -1, -1}, rc;
	cleanup_fd int sock = -1;
	json_t *out;

	rc = maps_link_connect(socket_path, &sock, e);
	if (rc)
		return rc;
	rc = receive(sock, fds);
	if (!rc)
		rc = tablemaps_open(&t, 0, fds);
	for (int i = 0; i < MP_TABLES_N; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	if (rc)
		return err_set(e, rc, EXIT_RUNTIME, "no tables come from %s: %s", socket_path,
			       strerror(-rc));
	out = json_object();
	json_object_set_new(out, "state", state_json(&t));
	if (tgid)
		json_object_set_new(out, "process", process_json(&t, tgid));
	json_dumpf(out, stdout, JSON_COMPACT);
	putchar('\n');
	json_decref(out);
	tablemaps_close(&t);
	return 0;
}
