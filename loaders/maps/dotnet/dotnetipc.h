/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dotnetipc: the two commands of .NET's diagnostic protocol that make a runtime begin and end a
 * list of its functions. Pure.
 *
 * Source: dotnet/diagnostics, documentation/design-docs/ipc-protocol.md (.NET 8 and later have
 * these commands). All numbers are little-endian.
 *
 * 1. A message: "DOTNET_IPC_V1" and NUL (14 bytes); u16 size of all of it; u8 command set, u8
 *    command; u16 0; the payload. One command a connection.
 * 2. EnablePerfMap is (4, 5), with u32 type: 1 both files, 2 the jitdump, 3 the perf map. It writes
 *    the functions that are there already, then those that come. Only the jitdump has functions
 *    that were compiled before (those of the framework). DisablePerfMap is (4, 6).
 * 3. The answer is of set 255: command 0, well; command 255, and u32 why (an HRESULT).
 */
#ifndef SONDE_MAPS_DOTNETIPC_H
#define SONDE_MAPS_DOTNETIPC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DOTNETIPC_REQUEST_MAX 24
#define DOTNETIPC_ANSWER_MAX  64 /* one that says more is cut there */

#define DOTNETIPC_UNKNOWN_COMMAND 0x80131385u

/* The jitdump begins, or ends. Returns its length. */
size_t dotnetipc_request(bool begin, uint8_t out[DOTNETIPC_REQUEST_MAX]);
/* The first bytes of an answer. 1: well. 0: more of it is needed. -EREMOTEIO: refused, *why says
 * with what. -EPROTO: it is no answer. */
int dotnetipc_answer(const uint8_t *bytes, size_t len, uint32_t *why);

/* "dotnet-diagnostic-PID-KEY-socket", of that pid (in its own pid namespace)? */
bool dotnetipc_is_socket(const char *name, uint32_t nspid);

#endif
