/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/net/marks.h"

void marks_release(struct marks *m)
{
	idmap_release(&m->least);
	idmap_release(&m->told);
}

void marks_again(struct marks *m)
{
	idmap_clear(&m->told);
	idmap_clear(&m->least);
}

static void turn(struct marks *m, int64_t ts)
{
	if (m->minute != ts / 60)
		idmap_clear(&m->least);
	if (m->hour != ts / 3600)
		idmap_clear(&m->told);
	m->minute = ts / 60;
	m->hour = ts / 3600;
}

bool marks_take(struct marks *m, uint64_t flow, uint64_t mark, int64_t ts)
{
	uint64_t least, *at;
	bool fresh;

	turn(m, ts);
	if (!idmap_get(&m->least, flow, &least) && m->least.n >= MARKS_FLOWS)
		return false;
	at = idmap_ref(&m->least, flow, &fresh);
	if (!fresh && mark >= *at)
		return false;
	*at = mark;
	if (idmap_get(&m->told, mark, &least) || m->told.n >= MARKS_FLOWS)
		return false;
	idmap_set(&m->told, mark, 1);
	return true;
}
