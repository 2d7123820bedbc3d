/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jsonschema: what `sonde VERB --json` prints, as a JSON Schema (draft 2020-12), from the short
 * notation of tools/print/schema/jsonshapes.c.
 *
 * Within sonde.VERB/1 keys are only added, so programs must accept keys that they do not know, and
 * the schema does. Any value but most lists may be null: it is not known or was not measured.
 * Required are the envelope's keys (tools/print/json.h).
 */
#ifndef SONDE_TOOLS_JSONSCHEMA_H
#define SONDE_TOOLS_JSONSCHEMA_H

#include <jansson.h>
#include <stdio.h>

/* The shape of an object in the short notation; NULL: there is no such verb, or it has no JSON. */
const char *jsonshape_of(const char *verb);
/* Its lists that are printed only if asked for by name, with a comma between; NULL: none. */
const char *jsonshape_lists(const char *verb);
/* The schema of one object; NULL: `shape` is not of the notation. The caller owns it. Pure. */
json_t *jsonschema_of(const char *shape);
/* 0 or -EIO; -ENOENT: no such verb. */
int jsonschema_print(const char *verb, FILE *out);

#endif
