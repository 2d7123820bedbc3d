/* SPDX-License-Identifier: Apache-2.0 */
/*
 * javatls: the agent that shows the clear text of a chosen Java program's TLS (loaders/java/agent).
 * A second helper loads it and ends it (jhelper.h, 4).
 */
#ifndef SONDE_JAVA_JAVATLS_H
#define SONDE_JAVA_JAVATLS_H

#include <stdbool.h>
#include <stdint.h>

#include "loaders/java/jhelper.h"

enum javatls_state { JAVATLS_NONE, JAVATLS_ASKED, JAVATLS_ON, JAVATLS_ENDING, JAVATLS_ENDED };

struct javatls { /* of one program; all 0: nothing was asked */
	enum javatls_state state;
	int64_t next_ns;
	unsigned int tries;
	bool refused;
	char why[JHELPER_WHY];
};

/* `helper` is borrowed. */
void javatls_begin(struct javatls *t, const struct jhelper *helper, uint32_t pid,
		   uint64_t start_ticks, int64_t now_ns);
/* true: an end was asked for. */
bool javatls_end(struct javatls *t, const struct jhelper *helper, uint32_t pid,
		 uint64_t start_ticks);
/* The process is gone. */
void javatls_gone(struct javatls *t, const struct jhelper *helper, uint32_t pid,
		  uint64_t start_ticks);
void javatls_told(struct javatls *t, const struct jhelper_told *told, int64_t now_ns);

#endif
