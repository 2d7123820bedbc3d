/* SPDX-License-Identifier: Apache-2.0 */
/* doctor: the parts of the verb: findings about the host (verb_doctor.c) and about one process
 * (doctor_pid.c). */
#ifndef SONDE_TOOLS_DOCTOR_H
#define SONDE_TOOLS_DOCTOR_H

#include <jansson.h>
#include <stdint.h>

#include "schema/base/err.h"

struct verb_call;

/* One finding. state: "ok", "warn", "fail", "off"; family and fix may be NULL. */
json_t *doctor_item(const char *family, const char *name, const char *state, const char *text,
		    const char *fix);
void doctor_print(json_t *row);
/* How the stacks of this process can be unwound, and how they were in the newest recording. */
int doctor_pid(struct verb_call *call, uint64_t pid, struct err *e);

#endif
