/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/fold/unread.h"

#include <string.h>

#include "schema/base/array.h"
#include "schema/base/strbuf.h"
#include "tools/fold/fold.h"

#define TELL 0.05 /* share of the answer from which it is reported */

static const struct unread UNREAD[] = {
	{"python",
	 "their layout in this build is unknown (a pre-release, a build without a GIL of 3.14 or later, or one without its symbols)",
	 "a released build of 2.7 or 3.6 to 3.15, with its dynamic symbols"},
	{"php",
	 "their layout in this build is unknown (one with thread safety, or of another version)",
	 "a PHP 7.4 to 8.6 without thread safety"},
	{"ruby", "their layout in this version is unknown", "a Ruby 2.7, 3.1, 3.3, 3.4 or 4.0"},
	{"java", "this libjvm has no tables that say where they are", "a JDK 8 to 26 of HotSpot"},
	{"javascript",
	 "their layout in this V8 is unknown (another version, or without its v8dbg_ symbols)",
	 "Node 16, 18, 20, 22, 24 or 26; or node --perf-basic-prof: its functions then have names"},
	{"dotnet", "sonde does not read its tables",
	 ".NET 8 or later: sonde record with SONDE_DOTNET=on, or dotnet = on in [runtimes] of sonde.conf (see sonde-maps(8)); any: start it with DOTNET_PerfMapEnabled=1",
	 .maps = true, .told = true},
	{"erlang", "this runtime has no JIT, or not its dynamic symbols",
	 "an OTP 24 or later with its JIT and its dynamic symbols; or start it with erl +JPperf true: its functions then have names",
	 .maps = true, .told = true},
	{"perl", "their layout in this version is unknown", "a Perl 5.32 to 5.42"},
	{"native-image",
	 "its functions are native code that describes no frames, and a stripped image names none of them",
	 "build it with -g and -H:+PreserveFramePointer: stacks are then whole, with names",
	 .native = true},
	{"ghc",
	 "its functions are native code on a stack of Haskell's own, which no unwind rows describe",
	 "its own profiler: build it with -prof, and start it with +RTS -p", .native = true},
	{"ocaml",
	 "its functions are native code, shown as its compiler names them: camlModule__function_123",
	 NULL, .native = true},
	{"lua",
	 "nothing outside of Lua's own variables leads to the state of the script that runs; the interpreter's own functions are shown",
	 "Lua has no option for it; a hook in the script itself (debug.sethook) can count its functions",
	 .told = true},
	{"luajit",
	 "nothing outside of LuaJIT's own variables leads to the state of the script that runs; the interpreter's own code is shown",
	 "its own profiler: luajit -jp SCRIPT, or require('jit.p').start() in the script",
	 .told = true},
	{"r", "sonde does not read R's contexts; the interpreter's own functions are shown",
	 "its own profiler: Rprof()", .told = true},
	{"julia", "sonde does not read its tables",
	 "a Julia that was built with USE_PERF_JITEVENTS=1, with ENABLE_JITPROFILING=1: its functions then have names",
	 .maps = true, .told = true},
	{"wasmtime", "sonde does not read its tables",
	 "start it with --profile=perfmap: functions of WebAssembly then have names", .maps = true,
	 .told = true},
	{"deno", "it does not say where its frames are",
	 "start it with --v8-flags=--perf-basic-prof: its functions then have names", .maps = true,
	 .told = true},
	{"bun", "sonde does not read JavaScriptCore's tables",
	 "start it with BUN_JSC_useJITDump=1 BUN_JSC_jitDumpDirectory=/tmp: its compiled functions then have names",
	 .maps = true, .told = true},
};

const struct unread *unread_of(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(UNREAD); i++)
		if (!strcmp(UNREAD[i].name, name))
			return &UNREAD[i];
	return NULL;
}

/* "lua5.4" is lua's, "luajit-2.1.0-beta3" luajit's, "R" r's; "luac" belongs to none of them. */
static bool is_its(const struct unread *u, const struct fold_process *p)
{
	const char *slash = strrchr(p->exe, '/'), *name = slash ? slash + 1 : p->exe;
	size_t n = strlen(u->name);

	if (!strcmp(p->lang, u->name))
		return true;
	return !strncasecmp(name, u->name, n) &&
	       (name[n] == '-' || strspn(name + n, "0123456789.") == strlen(name + n));
}

static double share_of(const struct fold *f, const struct unread *u, uint64_t all)
{
	uint64_t its = 0;

	for (size_t i = 0; i < f->n_processes; i++)
		if (!f->processes[i].self && is_its(u, &f->processes[i]))
			its += f->processes[i].ns;
	return (double)its / (double)all;
}

/* Code that a process made, without a name. */
static bool is_nameless(const struct fold_frame *fr)
{
	return !fr->named && (!strcmp(fr->module, "[anon]") || !strncmp(fr->module, "memfd:", 6));
}

static double nameless_of(const struct fold *f, uint64_t all)
{
	uint64_t sum = 0;

	for (size_t i = 0; f->flat && i < f->n_frames; i++)
		if (is_nameless(&f->frames[i]))
			sum += f->flat[i].self_ns;
	for (size_t i = 1; !f->flat && i < f->n_nodes; i++)
		if (is_nameless(&f->frames[f->nodes[i].frame]))
			sum += f->nodes[i].self_ns;
	return (double)sum / (double)all;
}

void unread_each(const struct fold *f, unread_take *take, void *ctx)
{
	uint64_t all = f->n_nodes ? f->nodes[0].total_ns : 0;

	for (size_t i = 0; all && i < ARRAY_SIZE(UNREAD); i++) {
		const struct unread *u = &UNREAD[i];
		double share = u->told ? share_of(f, u, all) : 0;
		struct strbuf s cleanup_strbuf = STRBUF_INIT;

		if (share < TELL || (u->maps && nameless_of(f, all) < TELL))
			continue;
		strbuf_addf(&s,
			    "%.0f %% of this is of programs in %s, whose own functions are not "
			    "shown: %s; what helps: %s",
			    100 * (share < 1 ? share : 1), u->name, u->why, u->fix);
		take(ctx, strbuf_str(&s));
	}
}
