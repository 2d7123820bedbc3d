/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/base/cli/escapes.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool escapes_known(void)
{
	const char *term = getenv("TERM");

	return term && *term && strcmp(term, "dumb");
}

bool escapes_on(int fd)
{
	return escapes_known() && isatty(fd);
}
