/* SPDX-License-Identifier: Apache-2.0 */
/* timeline_parts: a timeline in the making: what timeline.c (values) and timeline_events.c (what
 * happened) share. */
#ifndef SONDE_TOOLS_TIMELINE_PARTS_H
#define SONDE_TOOLS_TIMELINE_PARTS_H

#include "schema/base/idmap.h"
#include "tools/events/event_list.h"
#include "tools/fold/fold_slices.h"
#include "tools/timeline/incidents.h"
#include "tools/timeline/timeline.h"

struct timelining {
	struct timeline pub; /* first: timeline_free finds the rest by it */
	enum timeline_by by;
	enum timeline_of of; /* at hand */
	struct idmap process_of, group_of;
	size_t cap_processes, cap_groups, cap_cells[TIMELINE_OF], cap_events;
	struct fold_spans spans; /* when CPU samples were recorded */
	struct incidents incidents;
	struct event_list happenings; /* what the two do not tell */
	int64_t bucket_ns;            /* of the coarsest run in the range */

	/* of the segment at hand */
	struct store_segment *seg;
	const struct store_dict *dict;
	uint32_t *seg_process; /* + 1, 0: not met yet */
};

/* The process of an id of the segment at hand. */
uint32_t timelining_process(struct timelining *l, uint32_t id);
/* What happened, as the segment at hand tells. */
int timelining_events(struct timelining *l, const char *path, struct err *e);
/* Gaps, when all is read; and in order of time. */
void timelining_events_end(struct timelining *l);

#endif
