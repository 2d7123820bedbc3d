/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/cli/verb.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int verb_flush(int rc, struct err *e)
{
	if (rc && e->code)
		return rc;
	if (!rc && !fflush(stdout) && !ferror(stdout))
		return 0;
	return err_set(e, -EIO, EXIT_RUNTIME, "cannot write standard output: %s", strerror(errno));
}
