/* SPDX-License-Identifier: Apache-2.0 */
/*
 * naming_runtime: languages and runtimes of processes (runtime.h), from what hostmaps knows. A
 * process is first seen when it has hardly begun: its libraries are not mapped yet, its
 * executable's index is not ready. So it is checked again after one second, after three, after
 * nine, and at its end.
 */
#include <string.h>

#include "loaders/lib/host/names/private.h"
#include "schema/base/clock.h"
#include "schema/image/go.h"

#define PATHS_MAX 256
#define LOOKS     3

bool naming_runtime(struct process_note *note, const struct hostmaps_process *p)
{
	struct image_go_record go;
	const struct hostmaps_image *exe;
	const char *paths[PATHS_MAX];
	struct runtime_facts f = {.exe = p->exe, .paths = paths};
	struct runtime now;

	f.n_paths = hostmaps_files(p, paths, PATHS_MAX, &exe);
	if (exe && exe->index && image_ident(exe->index)->go)
		f.go_version = image_go(exe->index, &go) ? go.version : "";
	runtime_tell(&f, &now);
	if (now.lang == note->runtime.lang && now.linking == note->runtime.linking &&
	    now.libc == note->runtime.libc && !strcmp(now.version, note->runtime.version))
		return false;
	if (!*now.lang && note->runtime.lang && *note->runtime.lang)
		return false; /* it is exiting and its files are gone: keep the previous result */
	note->runtime = now;
	return true;
}

void naming_runtime_due(struct naming *n, const struct process_note *note)
{
	if (hostmaps_has_mappings(n->hm) && note->looks < LOOKS &&
	    note->look_ns < n->runtimes_due_ns)
		n->runtimes_due_ns = note->look_ns;
}

static void look_again(void *ctx, struct hostmaps_process *p)
{
	struct process_note *note = p->user;
	struct naming *n = ctx;
	int64_t now = clock_boot_ns();

	if (!note || !note->store_process || note->looks >= LOOKS)
		return;
	if (now < note->look_ns) {
		naming_runtime_due(n, note);
		return;
	}
	note->looks++;
	note->look_ns = now + (int64_t)note->looks * 3 * NSEC_PER_SEC;
	naming_runtime_due(n, note);
	if (!naming_runtime(note, p) || note->epoch != n->epoch)
		return;
	note->serial = p->serial - 1; /* so that its row is written again */
	naming_process(n, p, NULL);
}

void naming_runtime_tick(struct naming *n)
{
	int64_t now = clock_boot_ns();

	if (!hostmaps_has_mappings(n->hm) || now < n->runtimes_next_ns || now < n->runtimes_due_ns)
		return;
	n->runtimes_next_ns = now + NSEC_PER_SEC;
	n->runtimes_due_ns = INT64_MAX;
	hostmaps_each(n->hm, look_again, n);
}
