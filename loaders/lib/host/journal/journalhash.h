/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journalhash: the hashes by which systemd's journal finds a field: SipHash-2-4 with the file's id
 * as key (since systemd 246), before that Bob Jenkins' lookup3. Pure.
 */
#ifndef SONDE_HOST_JOURNALHASH_H
#define SONDE_HOST_JOURNALHASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t journalhash_sip(const void *data, size_t len, const uint8_t key[16]);
uint64_t journalhash_jenkins(const void *data, size_t len);

#endif
