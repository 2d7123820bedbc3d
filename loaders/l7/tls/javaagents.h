/* SPDX-License-Identifier: Apache-2.0 */
/*
 * javaagents: which Java programs have an agent that shows the clear text of their TLS
 * (probes/l7/java.bpf.h). sonde-java notes them in a folder of this user's, one file each
 * (loaders/java/onrecord.h): PID-START with the secret of the agent. Once the programs know it,
 * that is noted in the file; the agent begins after that, so that its first word is believed.
 */
#ifndef SONDE_L7_JAVAAGENTS_H
#define SONDE_L7_JAVAAGENTS_H

#include <stdint.h>

#include "schema/base/idmap.h"

#define JAVAAGENTS_DIR "/run/sonde/java-tls"

struct bpf_object;

struct javaagents {         /* all 0 at first */
	struct idmap known; /* tgid -> secret */
	int64_t looked_ns;
};

/* At most each quarter of a second. *count: how many there are, where the programs look; one that
 * is new counts before its file says that it is believed. */
void javaagents_poll(struct javaagents *a, const char *dir, struct bpf_object *obj, uint32_t *count,
		     int64_t now_ns);
void javaagents_release(struct javaagents *a);

#endif
