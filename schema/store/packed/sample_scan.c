/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/store/packed/sample_scan.h"

#include <errno.h>

int sample_scan_begin(struct sample_scan *s, struct packedtable *t, int64_t first, int64_t last)
{
	if (t->n != 3 || !t->is_number[0] || !t->is_number[1] || !t->is_number[2])
		return -EBADMSG;
	if (t->range && (t->range[0].first <= -SAMPLE_TS_MAX ||
			 t->range[t->n_blocks - 1].last >= SAMPLE_TS_MAX))
		return -EBADMSG;
	*s = (struct sample_scan){
		.t = t, .first = first, .last = last, .block = packedtable_block_of(t, first)};
	return 0;
}

static bool is_over(const struct sample_scan *s)
{
	return s->block >= s->t->n_blocks || (s->t->range && s->t->range[s->block].first > s->last);
}

static int decode(struct sample_scan *s)
{
	const struct column *c[3];

	for (int i = 0; i < 3; i++) {
		int rc = packedtable_column(s->t, i, s->block, &c[i]);

		if (rc)
			return rc;
	}
	s->ts = c[0]->numbers;
	s->series = c[1]->numbers;
	s->count = c[2]->numbers;
	s->n = c[0]->n;
	s->at = 0;
	return 0;
}

static size_t take(struct sample_scan *s, struct sample_row *rows, size_t max)
{
	size_t n = 0;

	for (; s->at < s->n && n < max; s->at++) {
		int64_t series = s->series[s->at];

		if (s->ts[s->at] >= s->first && s->ts[s->at] <= s->last && series > 0 &&
		    series <= UINT32_MAX && s->count[s->at] > 0)
			rows[n++] = (struct sample_row){s->ts[s->at], (uint64_t)s->count[s->at],
							(uint32_t)series};
	}
	return n;
}

size_t sample_scan_next(struct sample_scan *s, struct sample_row *rows, size_t max, int *rc)
{
	size_t n = 0;

	*rc = 0;
	while (!n && !is_over(s)) {
		if (!s->n)
			*rc = decode(s);
		if (*rc)
			break;
		n = take(s, rows, max);
		if (s->at == s->n) {
			packedtable_release(s->t, s->block++);
			s->n = 0;
		}
	}
	return n;
}
