/* SPDX-License-Identifier: Apache-2.0 */
/* output_note: a verb's message about the file that it wrote, the file's default name, and opening
 * it in a browser. */
#ifndef SONDE_TOOLS_OUTPUT_NOTE_H
#define SONDE_TOOLS_OUTPUT_NOTE_H

#include <stdint.h>

#include "schema/base/err.h"
#include "tools/cli/verb.h"
#include "tools/page/output.h"
#include "tools/select/select.h"

/* ./sonde-VERB-WHAT-HHMM.html, owned by the caller. WHAT may come from outside: only harmless
 * characters are kept. */
char *output_note_default_path(const char *verb, const struct selection *sel);
/* On stdout: path and size, with --json as JSON (schema VERB.written); on stderr: what to do
 * next. */
void output_note_say(const struct verb_call *call, const char *path, enum output_form form,
		     uint64_t bytes);
/* Runs xdg-open. The file stays even if that fails. */
int output_note_open(const char *path, struct err *e);

#endif
