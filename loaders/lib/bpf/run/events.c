/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/bpf/run/events.h"

#include <errno.h>
#include <jansson.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "loaders/lib/bpf/family.h"
#include "loaders/lib/bpf/run/progress.h"
#include "loaders/lib/host/names/naming.h"
#include "schema/base/strbuf.h"
#include "schema/facts/host.h"
#include "schema/store/write/facts.h"

void event_row_put(struct family_host *h, int64_t utc_ns, const struct fact *f,
		   struct fact_row *row, int column, struct hostmaps_process *process)
{
	int rc = -ESTALE;

	for (int i = 0; i < 3 && rc == -ESTALE; i++) {
		if (column >= 0)
			fact_put(row, column, process ? naming_row(h->naming, process) : 0);
		rc = store_fact(h->store, h->run, utc_ns, f, row);
	}
	if (f->beside) /* such rows do not count as events (schema/facts/fact.h) */
		return;
	h->added += rc == 0;
	h->refused += rc == -ESTALE;
}

void event_tell(struct family_host *h, const char *cause, const char *why)
{
	struct strbuf text cleanup_strbuf = STRBUF_INIT, what cleanup_strbuf = STRBUF_INIT;

	if (!h->progress)
		return;
	strbuf_addshown(&text, why, strlen(why));
	strbuf_addshown(&what, cause, strlen(cause));
	progress_send(h->progress,
		      json_pack("{s:s, s:s, s:s}", "event", "happened", "cause", strbuf_str(&what),
				"why", strbuf_str(&text)),
		      true);
}

static void cause_tell(struct family_host *h, const struct event *e)
{
	char why[200], cause[160];

	snprintf(cause, sizeof(cause), "%s %s", e->cause, e->name);
	snprintf(why, sizeof(why), "%s %s %s%s%s", e->subject, e->name, e->kind,
		 e->detail && *e->detail ? ": " : "", e->detail ? e->detail : "");
	event_tell(h, cause, why);
}

void event_put(struct family_host *h, const struct event *e)
{
	struct fact_row row = {0};

	if (e->cause)
		cause_tell(h, e);

	fact_put_text(&row, EVENT_KIND, e->kind);
	fact_put_text(&row, EVENT_SUBJECT, e->subject);
	fact_put_text(&row, EVENT_NAME, e->name);
	fact_put_text(&row, EVENT_DETAIL, e->detail ? e->detail : "");
	fact_put_text(&row, EVENT_WHICH, e->which ? e->which : "");
	fact_put_text(&row, EVENT_BY, e->by ? e->by : "");
	fact_put(&row, EVENT_N, e->n ? e->n : 1);
	fact_put(&row, EVENT_AT, (uint64_t)(e->utc_ns > 0 ? e->utc_ns / 1000 : 0));
	event_row_put(h, e->utc_ns, &EVENT_FACT, &row, EVENT_PROCESS, e->process);
}
