/* SPDX-License-Identifier: Apache-2.0 */
/*
 * secrets: hides the secrets in a command line or in text. Pure and linear, over untrusted bytes.
 * `args.h` says what is found, and what cannot be.
 *
 * All rules mark bytes of the input; each run of marked bytes becomes "***". The result is looked
 * at again until nothing is found in it any more: what is masked stays as it is if it is masked
 * again.
 */
#ifndef SONDE_HOST_SECRETS_SECRETS_H
#define SONDE_HOST_SECRETS_SECRETS_H

#include <stddef.h>

struct strbuf;

/* Arguments, each ended by NUL (the last NUL may be missing); they stay separated. At most three
 * times as long as the input. */
void secrets_mask_args(const char *data, size_t len, struct strbuf *out);

/* A text, such as a line of a log. */
void secrets_mask_text(const char *data, size_t len, struct strbuf *out);

#endif
