/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dotnettalk: one conversation with a .NET program, by a child that becomes the program's user for
 * it (asuser.h).
 *
 * The runtime listens on dotnet-diagnostic-PID-KEY-socket in its temporary folder ($TMPDIR as it
 * was started, else /tmp), and writes jit-PID.dump there, or in $DOTNET_PerfMapJitDumpPath. The
 * socket's other end must be that process. A program that was started with names
 * ($DOTNET_PerfMapEnabled), or whose jitdump another tool began, is not asked.
 */
#ifndef SONDE_MAPS_DOTNETTALK_H
#define SONDE_MAPS_DOTNETTALK_H

#include <stdint.h>
#include <sys/types.h>

#define DOTNETTALK_FOLDER 256
#define DOTNETTALK_WHY    160

enum dotnet_op {
	DOTNET_BEGIN,
	DOTNET_END,   /* and the file is removed */
	DOTNET_REMOVE /* the program has ended: only that */
};

/* What a program that writes has told, and what it takes to end that. */
struct dotnet_writes {
	uint32_t nspid;
	uid_t uid;
	gid_t gid;
	uint64_t dev, ino; /* its file; 0: not known */
	char folder[DOTNETTALK_FOLDER];
};

struct dotnet_job {
	uint32_t pid;
	enum dotnet_op op;
	uint64_t start_ticks;
	struct dotnet_writes its; /* of END and REMOVE */
};

/* rc 0: it writes (or has stopped). -EALREADY: it wrote before. -ENOENT: it has no socket: no .NET,
 * or one that was started without diagnostics. Else `why` says it in words. */
struct dotnet_told {
	int32_t rc;
	struct dotnet_writes its;
	char why[DOTNETTALK_WHY];
};

void dotnettalk_run(const struct dotnet_job *job, struct dotnet_told *out);

/* Its file as it is now, by who may look into the process: bytes; 0: none, or another file. */
uint64_t dotnettalk_size(uint32_t pid, const struct dotnet_writes *its);

#endif
