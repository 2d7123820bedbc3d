/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/probe/code.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "loaders/probe/asked.h"
#include "loaders/probe/plan.h"

int code_find(struct asked_probe *p, struct err *e)
{
	if (!p->spec.offset) {
		err_set(e, -ENOTSUP, EXIT_USAGE, "probe %s: names of functions and USDT probes are not looked up yet",
			p->spec.name);
		err_fix(e, "give its offset in the file: func:%s:0xOFFSET", p->spec.group);
		return -ENOTSUP;
	}
	snprintf(p->path, sizeof(p->path), "%s", p->spec.group);
	p->offset = p->spec.offset;
	return plan_make(&p->spec, NULL, 0, NULL, &p->plan, e);
}

uint64_t code_price(const struct asked_probe *p)
{
	switch (p->spec.kind) {
	case PROBESPEC_TRACEPOINT:
		return 250;
	case PROBESPEC_SYSCALL:
		return 600;
	default:
		return 2000;
	}
}
