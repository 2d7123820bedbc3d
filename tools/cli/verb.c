/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/cli/verb.h"

#include "schema/base/cli/options.h"

int verb_flush(int rc, struct err *e)
{
	return rc && e->code ? rc : program_flush(rc, e);
}
