/* SPDX-License-Identifier: Apache-2.0 */
/*
 * container_fuzz: any cgroup path, any file of a runtime and any command line of an engine are
 * taken without harm.
 *
 * covers: loaders/lib/host/proc/container.c loaders/lib/host/proc/containerfile.c
 *         loaders/lib/host/proc/engines.c
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/lib/host/proc/container.h"
#include "loaders/lib/host/proc/containerfile.h"
#include "loaders/lib/host/proc/engines.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void path(const char *data, size_t len)
{
	struct container_ref ref, outer;

	if (!container_parse(data, len, &ref)) {
		if (ref.runtime[0] || ref.id[0] || ref.end)
			abort();
		return;
	}
	if (!ref.runtime[0] || !ref.id[0] || ref.end > len || strlen(ref.id) >= CONTAINER_ID_MAX)
		abort();
	while (container_outer(data, &ref, &outer)) {
		if (outer.end >= ref.end)
			abort();
		ref = outer;
	}
}

static void engine(const char *data, size_t len)
{
	char folder[64], *cwd = strndup(data, len);

	if (!cwd)
		abort();
	if (engines_data_root(data, len, folder, sizeof(folder)) &&
	    (folder[0] != '/' || strlen(folder) >= sizeof(folder)))
		abort();
	if (engines_config_file(data, len, folder, sizeof(folder)) && folder[0] != '/')
		abort();
	if (engines_storage(data, len, folder, sizeof(folder)) && folder[0] != '/')
		abort();
	if (engines_tasks(cwd, folder, sizeof(folder)) && folder[0] != '/')
		abort();
	free(cwd);
}

static void state(const char *data, size_t len)
{
	struct container_happened h;
	struct container_state s;
	char *text = strndup(data, len);
	int64_t ns;

	if (!text)
		abort();
	if (!containerfile_state(data, len, &s) &&
	    (s.exit_code < -255 || s.exit_code > 255 || strchr(s.said, '\n')))
		abort();
	if (!containerfile_podman_event(data, len, &h) &&
	    (strlen(h.id) != 64 || !h.status[0] || h.exit_code < -255 || h.exit_code > 255))
		abort();
	if (containerfile_time(text, &ns) && ns < -86400000000000)
		abort();
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct container_names n = {0};
	char home[64];

	path((const char *)data, len);
	engine((const char *)data, len);
	state((const char *)data, len);
	if (!containerfile_docker((const char *)data, len, &n))
		container_names_release(&n);
	if (!containerfile_storage((const char *)data, len, "0123456789abcdef", &n))
		container_names_release(&n);
	if (!containerfile_bundle((const char *)data, len, &n)) {
		if ((!n.name && !n.image && !n.project && !n.labels) || (n.name && !n.name[0]))
			abort();
		container_names_release(&n);
	}
	if (!containerfile_home((const char *)data, len, 1000, home, sizeof(home)) &&
	    home[0] != '/')
		abort();
	return 0;
}
