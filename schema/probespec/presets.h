/* SPDX-License-Identifier: Apache-2.0 */
/* presets: names for probes that people often want. */
#ifndef SONDE_PROBESPEC_PRESETS_H
#define SONDE_PROBESPEC_PRESETS_H

#include <stddef.h>

struct probespec_preset {
	const char *name; /* NULL ends the list */
	const char *spec; /* without a name; its file goes in place of {} */
	const char *help; /* one line */
	const char *file; /* where PRESET:FILE names none; "": it has to; NULL: it has no file */
};

extern const struct probespec_preset PROBESPEC_PRESETS[];

/* A word of `len` bytes; NULL: no preset has that name. */
const struct probespec_preset *probespec_preset(const char *word, size_t len);

#endif
