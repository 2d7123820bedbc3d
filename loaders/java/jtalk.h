/* SPDX-License-Identifier: Apache-2.0 */
/* jtalk: the child of the helper for one command: opens the machine, becomes its user, asks, and
 * says in `told` what came of it. Never returns to another command. */
#ifndef SONDE_JAVA_JTALK_H
#define SONDE_JAVA_JTALK_H

#include <stdbool.h>

#include "loaders/java/jhelper.h"

struct jtalk_job {
	struct jhelper_ask ask;
	uint32_t recording, major; /* STOP and DUMP: from START's answer; 0: by the name alone */
	bool left;                 /* a recording named sonde is a killed helper's: stop it */
	int kept;                  /* its file of onrecord.h */
	bool tls;                  /* the agent, and not a recording */
};

/* *fd: the file of a dump, or -1. */
void jtalk(const struct jtalk_job *job, struct jhelper_told *told, int *fd);

#endif
