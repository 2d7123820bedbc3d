/* SPDX-License-Identifier: Apache-2.0 */
/* requests: The producer's side, and the rows of a batch. */
#include "schema/store/write/requests.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/mem.h"
#include "schema/store/write/wait_rows.h"
#include "schema/store/write/writer_state.h"

void request_rows_release(struct request_rows *r)
{
	for (uint32_t i = 0; i < r->n; i++)
		free(r->rows[i].steps);
	free(r->rows);
	memset(r, 0, sizeof(*r));
}

size_t request_rows_bytes(const struct request_rows *r)
{
	return r->cap * sizeof(*r->rows) + r->step_bytes;
}

void request_rows_add(struct request_rows *r, const struct request_row *row)
{
	size_t bytes = row->n_steps * sizeof(*row->steps);
	struct request_row *to;

	mem_grow(r->rows, r->n, r->cap);
	to = &r->rows[r->n++];
	*to = *row;
	to->steps = NULL;
	if (!row->steps || !bytes)
		return;
	to->steps = mem_array(row->n_steps, sizeof(*row->steps));
	memcpy(to->steps, row->steps, bytes);
	r->step_bytes += bytes;
}

uint64_t request_rows_events(const struct request_rows *r, uint32_t run)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < r->n; i++)
		n += (!run || r->rows[i].run == run) && !r->rows[i].part ? r->rows[i].value[0] : 0;
	return n;
}

int store_request(struct store_writer *w, uint32_t run, int64_t utc_ns,
		  const struct store_request *r)
{
	struct request_row row = {
		.run = writer_stretch(w, run),
		.process = writer_known(w, DICT_PROCESS, r->process),
		.side = (uint8_t)r->side,
		.result = (uint8_t)r->result,
		.part = (uint8_t)r->part,
		.value = {r->n, r->total_ns, r->max_ns, r->request_bytes, r->response_bytes},
		.steps = (uint32_t *)(uintptr_t)r->steps,
		.n_steps = r->steps ? r->n_steps : 0,
		.first_step = r->first_step};

	if (!row.run)
		return -EINVAL;
	if (events_room(w))
		return -ESTALE;
	for (int i = 0; i < REQUEST_ROW_NUMBERS; i++)
		if (row.value[i] > WAIT_ROW_MOST) {
			if (!r->part)
				store_loss(w, run, utc_ns, "range", 1);
			return 0;
		}
	row.text[0] = writer_text(w, r->protocol);
	row.text[1] = writer_text(w, r->service);
	row.text[2] = writer_text(w, r->operation);
	row.text[3] = writer_text(w, r->status);
	events_request(w, &row, utc_ns);
	return 0;
}
