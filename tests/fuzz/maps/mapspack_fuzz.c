/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mapspack_fuzz: any packet is read or refused, and what hostmaps makes of it can be asked.
 * covers: loaders/lib/host/maps/mapspack.c loaders/lib/host/maps/mapset.c
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/lib/host/maps/hostmaps.h"
#include "loaders/lib/host/maps/hostmaps_packet.h"
#include "loaders/lib/host/maps/mapset.h"
#include "loaders/lib/host/maps/mapspack.h"
#include "probes/lib/stack.h"
#include "schema/base/strbuf.h"

static const int no_fds[MP_FDS_MAX] = {-1, -1, -1, -1, -1, -1, -1};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* What was read is written again as it was, but for the bytes between messages. */
static void again(const struct mapspack_msg *m)
{
	struct strbuf b = STRBUF_INIT;
	struct mapspack_msg n;
	size_t pos = 0;

	mapspack_add(&b, m->type, &m->m, m->str);
	if (mapspack_next(b.buf, b.len, &pos, &n) != 1 || n.type != m->type)
		abort();
	for (int i = 0; i < MAPSPACK_STRINGS; i++)
		if (!m->str[i] != !n.str[i] ||
		    (m->str[i] && strlen(m->str[i]) < 16000 && strcmp(m->str[i], n.str[i])))
			abort();
	strbuf_release(&b);
}

static void ask(struct hostmaps *hm, const struct mapspack_msg *m)
{
	struct hostmaps_process *p;
	struct hostmaps_frame f;

	if (m->type != MP_MAP)
		return;
	p = hostmaps_process(hm, m->m.map.tgid, m->m.map.start_ns, m->m.map.exec_id);
	if (!p)
		return;
	hostmaps_frame(hm, p, m->m.map.start, m->m.map.time_ns, &f);
	hostmaps_frame(hm, p, m->m.map.end, 0, &f);
	hostmaps_frame(hm, p, m->m.map.end - 1, UINT64_MAX, &f);
	hostmaps_frame_owner(hm, p, m->m.map.start, m->m.map.offset, m->m.map.time_ns, &f);
	hostmaps_frame_owner(
		hm, p,
		FRAME_IMAGE | (uint64_t)(m->m.map.image & FRAME_IMAGE_MAX) << FRAME_OFFSET_BITS | 1,
		m->m.map.time_ns, UINT64_MAX, &f);
	hostmaps_frame_owner(hm, p, FRAME_IMAGE | FRAME_EXACT | 1ull << FRAME_OFFSET_BITS, 0,
			     m->m.map.time_ns, &f);
}

/* Small numbers, so that ranges overlap. */
static void check_mapset(const uint8_t *data, size_t len)
{
	struct mapset s = {0}, copy = {0};

	for (size_t i = 0; i + 6 <= len; i += 6) {
		const uint8_t *d = data + i;

		if (d[0] == 255)
			mapset_end(&s, i, d[1] & 1);
		else if (d[0] == 254)
			mapset_forget(&s, d[1]);
		else
			mapset_put(&s, d[0], (uint64_t)d[0] + d[1], d[2], d[3] & 1 ? &s : NULL, i,
				   d[4] & 1);
		for (size_t k = 0; k < s.n_now; k++)
			if (s.now[k].start >= s.now[k].end ||
			    (k && s.now[k - 1].end > s.now[k].start))
				abort();
		(void)mapset_find(&s, d[5], i);
	}
	mapset_copy(&copy, &s, 1);
	mapset_release(&copy);
	mapset_release(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct hostmaps *hm = hostmaps_new();
	struct mapspack_msg m;
	size_t pos = 0;

	hostmaps_packet(hm, data, len, no_fds);
	while (mapspack_next(data, len, &pos, &m) == 1) {
		again(&m);
		ask(hm, &m);
	}
	while (hostmaps_next_ready(hm))
		;
	hostmaps_close(hm);
	check_mapset(data, len);
	return 0;
}
