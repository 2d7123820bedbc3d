/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target: the receivers of sonde-push: sections [export.NAME] of a configuration file.
 *
 *   type = clickhouse | pyroscope | otlp    (without it clickhouse)
 *   url = https://HOST:PORT    http or https, without user, path or query
 *   database = sonde           letters, digits and _
 *   user = NAME   password-file = FILE   token-file = FILE     (Bearer; one of the two ways)
 *   ca-file = FILE             certificate authorities to trust instead of the host's
 *   every = 60s   timeout = 30s   backfill = 1h     (how far back the first round goes)
 *   tables = host_stats, cpu   (of clickhouse; default: all)
 *   profiles = cpu, memory     (of pyroscope; default: all, see export/push/profile.h)
 *   tenant = NAME              (of pyroscope: X-Scope-OrgID)
 *   signals = metrics, logs, traces  (of otlp; default: these three; profiles-v1development
 *                              must be named)
 *   path = /otlp               (of otlp: the path before /v1/metrics and so on)
 *   compression = gzip | none
 */
#ifndef SONDE_PUSH_TARGET_H
#define SONDE_PUSH_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "schema/base/err.h"

#define TARGETS_MOST 16

enum target_type { TARGET_CLICKHOUSE = 0, TARGET_PYROSCOPE, TARGET_OTLP };

struct target {
	enum target_type type;
	char name[32], url[256], database[64], user[64], tenant[64], path[128];
	char password_file[256], token_file[256], ca_file[256], tables[512], profiles[128],
		signals[64];
	uint32_t every_s, timeout_s, backfill_s;
	bool plain; /* not compressed */
};

/* The word in `signals` for a signal that OpenTelemetry still develops and may change without
 * notice; off by default. */
#define TARGET_PROFILES "profiles-v1development"

struct targets {
	struct target items[TARGETS_MOST];
	size_t n;
};

/* EXIT_USAGE, with the line: an unknown key or section, or a wrong value. `what` names the text in
 * messages. */
int targets_parse(const char *text, const char *what, struct targets *out, struct err *e);
int targets_read(const char *path, struct targets *out, struct err *e);
/* Is it in the list, of tables, profiles or signals, or is that empty? */
bool target_wants(const char *list, const char *name);
bool target_wants_profiles(const struct target *t);

#endif
