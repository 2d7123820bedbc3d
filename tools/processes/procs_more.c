/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/processes/procs_more.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "schema/base/units.h"
#include "tools/fold/fold_kind.h"

/* Memory of processes is a column already, from what the kernel charges; by line: sonde heap. */
bool procs_more_takes(const struct store_kind_info *kind)
{
	if (kind->kind == STORE_KIND_MEM)
		return false;
	return kind->class == STORE_DURATION ||
	       (kind->class == STORE_GAUGE && kind->unit_value == STORE_BYTES);
}

static void title_make(const char *name, char title[16])
{
	size_t i = 0;

	for (; name[i] && i + 1 < 16; i++)
		title[i] = (char)toupper((unsigned char)name[i]);
	title[i] = '\0';
}

int procs_more_make(struct procs_more *m, const struct selection *sel, struct err *e)
{
	uint32_t kinds = 0;
	int ret = fold_kinds_there(sel, &kinds, e);

	*m = (struct procs_more){0};
	for (int i = 1; !ret && i < STORE_KINDS; i++) {
		if (!(kinds & 1u << i) || !procs_more_takes(store_kind_info((enum store_kind)i)))
			continue;
		ret = fold_make(sel,
				&(struct fold_opts){.kind = (enum store_kind)i, .no_stacks = true},
				&m->fold[m->n], e);
		if (!ret)
			title_make(m->fold[m->n]->kind->name, m->title[m->n]);
		m->n += !ret;
		if (ret == -ENODATA) { /* the filters may leave nothing of one kind */
			*e = (struct err){0};
			ret = 0;
		}
	}
	return ret;
}

void procs_more_release(struct procs_more *m)
{
	for (size_t i = 0; i < m->n; i++)
		fold_free(m->fold[i]);
	*m = (struct procs_more){0};
}

size_t procs_more_named(const struct procs_more *m, const char *key)
{
	size_t i = 0;

	while (i < m->n && strcmp(m->fold[i]->kind->name, key))
		i++;
	return i;
}

void procs_more_names(struct strbuf *out)
{
	for (int i = 1; i < STORE_KINDS; i++) {
		const struct store_kind_info *kind = store_kind_info((enum store_kind)i);

		if (procs_more_takes(kind))
			strbuf_addf(out, "%s%s", out->len ? ", " : "", kind->name);
	}
}

const char *procs_more_say(const struct fold *f, uint64_t amount, char *buf, size_t size)
{
	if (!amount || (f->unit != STORE_BYTES && !fold_recorded_ns(f)))
		snprintf(buf, size, "-");
	else if (f->unit == STORE_BYTES)
		units_bytes(amount, buf, size);
	else if (fold_cores(f, amount) < 0.005)
		snprintf(buf, size, "<0.01");
	else
		snprintf(buf, size, "%.2f", fold_cores(f, amount));
	return buf;
}
