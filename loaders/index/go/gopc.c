/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/index/go/gopc.h"

struct gopc gopc_open(const struct pclntab *t, uint32_t place, uint64_t size)
{
	const uint8_t *stop = t->data + t->len;
	const uint8_t *at = place && place < t->len - t->pctab ? t->data + t->pctab + place : stop;

	return (struct gopc){.value = -1,
			     .at = at,
			     .stop = stop,
			     .limit = size,
			     .quantum = t->quantum,
			     .first = true};
}

static bool varint(struct gopc *p, uint32_t *out)
{
	uint32_t v = 0;

	for (unsigned shift = 0; shift < 35 && p->at < p->stop; shift += 7) {
		uint8_t b = *p->at++;

		v |= (uint32_t)(b & 0x7f) << shift;
		if (!(b & 0x80)) {
			*out = v;
			return true;
		}
	}
	p->at = p->stop;
	return false;
}

bool gopc_next(struct gopc *p)
{
	uint32_t delta, length;
	unsigned empty = 0;

	do {
		if (empty++ > GOPC_EMPTY_MAX || p->next >= p->limit || !varint(p, &delta) ||
		    (!delta && !p->first) || !varint(p, &length)) {
			p->at = p->stop;
			return false;
		}
		p->first = false;
		p->value = (int32_t)((uint32_t)p->value + (-(delta & 1) ^ delta >> 1));
		p->start = p->next;
		p->next += (uint64_t)length * p->quantum;
		p->end = p->next < p->limit ? p->next : p->limit;
	} while (p->end <= p->start);
	return true;
}

int32_t gopc_value(struct gopc *p, uint64_t at)
{
	while (p->end <= at)
		if (!gopc_next(p)) {
			p->start = p->end;
			p->end = UINT64_MAX;
			p->value = -1;
		}
	return p->value;
}
