/* SPDX-License-Identifier: Apache-2.0 */
/* framename: a frame's name where names are joined by `;`: a `;` in the name is \x3b, control bytes
 * \xNN (strbuf_addshown). */
#ifndef SONDE_TOOLS_FRAMENAME_H
#define SONDE_TOOLS_FRAMENAME_H

#include "schema/base/strbuf.h"

void framename_add(struct strbuf *s, const char *name);

#endif
