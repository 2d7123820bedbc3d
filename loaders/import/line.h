/* SPDX-License-Identifier: Apache-2.0 */
/*
 * line: what `sonde import` tells, one JSON object a line. Pure over bytes. Numbers are from 0;
 * what is missing is 0 or "".
 *
 *   {"run": "x.pb.gz", "from_ns": N, "to_ns": N, "bucket_s": N, "period_ns": N}
 *       the first; then in any order:
 *   {"frame": "name", "module": "", "path": "", "build_id": "", "file": "", "line": N, "offset": N,
 *    "kernel": true, "jit": true, "inlined": true, "unnamed": true}
 *       frames are counted from 0; inlined: into the one before it in a stack
 *   {"process": "comm", "pid": N, "ppid": N, "uid": N, "start_ns": N, "exe": "", "args": "",
 *    "unit": "", "container": "", "container_id": "", "image": ""}
 *       counted from 0
 *   {"add": "cpu", "process": N, "thread": "", "tid": N, "label": N, "labels": "", "stack": [N,
 * ...], "times": [at_ns, n, value, ...]} root first; kinds are those of store/model/kinds.h; three
 * numbers a time
 */
#ifndef SONDE_IMPORT_LINE_H
#define SONDE_IMPORT_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"
#include "schema/store/write/writer.h"

#define LINE_MAX_BYTES (1u << 20)
#define LINE_STACK_MAX 2048

struct json_t;

enum line_what { LINE_RUN, LINE_FRAME, LINE_PROCESS, LINE_ADD };

struct line {
	enum line_what what;
	const char *name; /* of the run, frame, process; borrowed until line_release */
	/* run */
	int64_t from_ns, to_ns;
	uint32_t bucket_s;
	uint64_t period_ns;
	/* frame */
	const char *module, *path, *build_id, *file;
	uint32_t line;
	uint64_t offset;
	bool kernel, jit, inlined, unnamed;
	/* process */
	uint32_t pid, ppid, uid;
	int64_t start_ns;
	const char *exe, *args, *unit, *container, *container_id, *image;
	/* add */
	enum store_kind kind;
	const char *thread, *labels; /* labels: a JSON object as text */
	uint32_t process, tid, label, n_stack;
	uint32_t *stack;
	struct line_time {
		int64_t at_ns;
		uint64_t n, value;
	} * times;
	size_t n_times;

	struct json_t *json; /* that the strings are of */
};

/* 0, or -EBADMSG with what is wrong. Release in any case. */
int line_parse(const char *bytes, size_t len, struct line *out, struct err *e);
void line_release(struct line *l);

#endif
