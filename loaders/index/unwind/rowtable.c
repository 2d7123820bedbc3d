/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/index/unwind/rowtable.h"

#include <errno.h>
#include <stdlib.h>

#include "schema/base/cleanup.h"

struct parts {
	const uint64_t *pages, *rules;
	const uint32_t *rows;
};

static bool parts_find(struct rowtable *t, struct parts *p, const void *data, size_t size)
{
	const struct unwind_head *h = data;
	uint64_t elements;

	if (size < sizeof(*h) || (uintptr_t)data % 8 || h->version != TABLES_VERSION)
		return false;
	elements = (uint64_t)h->page_count + h->rule_count + 2 * (uint64_t)h->ext_count +
		   ((uint64_t)h->row_count + 1) / 2;
	if (sizeof(*h) + elements * 8 != size)
		return false;
	p->pages = (const uint64_t *)(h + 1);
	p->rules = p->pages + h->page_count;
	t->head = h;
	t->exts = (const struct row_ext *)(p->rules + h->rule_count);
	p->rows = (const uint32_t *)(t->exts + h->ext_count);
	return true;
}

/* false: there is no such rule. */
static bool take(struct rowtable *t, const struct parts *p, uint64_t addr, uint32_t number)
{
	if (number >= t->head->rule_count)
		return false;
	if (!t->count ? p->rules[number] != 0 : t->rows[t->count - 1].rule != p->rules[number])
		t->rows[t->count++] = (struct rowtable_row){addr, p->rules[number]};
	return true;
}

static bool take_page(struct rowtable *t, const struct parts *p, uint32_t k)
{
	const uint64_t page = p->pages[k],
		       at = t->head->text_base + ((uint64_t)k << TABLES_PAGE_SHIFT);
	const uint32_t first = ROW_PAGE_FIRST(page), n = ROW_PAGE_COUNT(page);
	uint32_t last = 0;

	if (first > t->head->row_count || n > t->head->row_count - first ||
	    !take(t, p, at, ROW_PAGE_NUMBER(page)))
		return false;
	for (uint32_t i = first; i < first + n; i++) {
		const uint32_t in_page = ROW_IN_PAGE(p->rows[i]);

		if (in_page <= last || in_page >> TABLES_PAGE_SHIFT ||
		    !take(t, p, at + in_page, ROW_NUMBER(p->rows[i])))
			return false;
		last = in_page;
	}
	return true;
}

int rowtable_init(struct rowtable *t, const void *data, size_t size)
{
	struct rowtable made = {0};
	struct parts p;
	uint64_t rows = 0;

	if (!parts_find(&made, &p, data, size))
		return -EBADMSG;
	/* of a damaged one, pages may share rows */
	for (uint32_t k = 0; k < made.head->page_count; k++)
		rows += 1 + (uint64_t)ROW_PAGE_COUNT(p.pages[k]);
	if (rows > (uint64_t)made.head->page_count + made.head->row_count)
		return -EBADMSG;
	made.rows = malloc((size_t)(rows + 1) * sizeof(*made.rows));
	if (!made.rows)
		return -ENOMEM;
	for (uint32_t k = 0; k < made.head->page_count; k++)
		if (!take_page(&made, &p, k)) {
			rowtable_release(&made);
			return -EBADMSG;
		}
	*t = made;
	return 0;
}

void rowtable_release(struct rowtable *t)
{
	free(take_ptr(t->rows));
	t->count = 0;
}
