/* SPDX-License-Identifier: Apache-2.0 */
/*
 * beamname: functions as people who write Erlang and Elixir know them.
 *
 *   lists:map/2                        Erlang: module:function/arity, as its stack traces say it;
 *   shares:'-wrap/1-fun-0-'/1          an atom that is no plain one has quotes
 *   Enum.map/2                         Elixir, whose modules are atoms that begin with "Elixir."
 *   anonymous fn/1 in Shop.total/2     a function without a name, of Elixir
 *
 * Pure.
 */
#ifndef SONDE_RUNTIMES_BEAMNAME_H
#define SONDE_RUNTIMES_BEAMNAME_H

#include <stddef.h>
#include <stdint.h>

/* The name; who asked frees it. NULL: no module. Texts are UTF-8. */
char *beamname_make(const char *module, const char *function, uint32_t arity);
/* The same of a name that the runtime writes for perf with +JPperf ("$'Elixir.Enum':map/2",
 * "$lists:map/2-CodeInfoPrologue", which is the part before a function's entry). NULL: it is no
 * such name. */
char *beamname_of_perf(const char *name);

#endif
