/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/base/sibling.h"
#include "schema/base/array.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int sibling_find(const char *program, char path[PATH_MAX], struct err *e)
{
	static const char *const places[] = {"%s/%s", "%s/../libexec/sonde/%s",
					     "%s/../lib/sonde/%s", "%s/../../bin/%s"};
	char self[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	self[len > 0 ? len : 0] = '\0';
	slash = strrchr(self, '/');
	if (slash)
		*slash = '\0';
	for (size_t i = 0; slash && i < ARRAY_SIZE(places); i++) {
		int n = snprintf(path, PATH_MAX, places[i], self, program);

		if (n > 0 && n < PATH_MAX && access(path, X_OK) == 0)
			return 0;
	}
	err_set(e, -ENOENT, EXIT_PREREQUISITE,
		"%s is not installed: it is neither in %s nor in %s/../libexec/sonde", program,
		self, self);
	err_fix(e, "install the capture side (make install), or run it on the host that records");
	return -ENOENT;
}
