/* SPDX-License-Identifier: Apache-2.0 */
/* runtimes: As probes/runtimes/runtime.h numbers them; the view `frames` has the
 * same names. */
#include "schema/base/runtimes.h"

static const char *const names[RUNTIMES_MAX] = {"",           "python", "ruby", "php",
						"javascript", "java",   "perl", "erlang"};

const char *runtime_name(uint32_t runtime)
{
	return runtime < RUNTIMES_MAX && names[runtime] ? names[runtime] : "";
}
