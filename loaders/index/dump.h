/* SPDX-License-Identifier: Apache-2.0 */
/* dump: an image index for a person to read. */
#ifndef SONDE_INDEX_DUMP_H
#define SONDE_INDEX_DUMP_H

#include "schema/base/err.h"

/* Identity ("# " lines), then "ADDR SIZE NAME" for each piece, ADDR and SIZE in hexadecimal. */
int dump_symbols(const char *path, struct err *e);
/* For each address on standard input (hexadecimal, the file's own virtual ones, one a line): its
 * frames, innermost first, each as two lines, the function ("??": not known) and FILE:LINE:COLUMN
 * ("??:0:0"), then an empty line. */
int dump_lines(const char *path, struct err *e);
/* The unwind rows, as rowprint.h writes them. Nothing is printed of an index without rows. */
int dump_rows(const char *path, struct err *e);
/* The probe sites of TLS, one a line. */
int dump_tls(const char *path, struct err *e);

#endif
