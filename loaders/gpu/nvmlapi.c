/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/gpu/nvmlapi.h"
#include "schema/base/array.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Where the loader's own search does not look: what runs in containers finds the host's driver
 * there. */
static const char *const PLACES[] = {
	"libnvidia-ml.so.1",
	"/usr/lib/x86_64-linux-gnu/nvidia/current/libnvidia-ml.so.1",
	"/usr/lib/wsl/lib/libnvidia-ml.so.1",
	"/run/nvidia/driver/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1",
	"/run/nvidia/driver/usr/lib64/libnvidia-ml.so.1",
	"/usr/local/nvidia/lib64/libnvidia-ml.so.1",
	"/run/opengl-driver/lib/libnvidia-ml.so.1",
};

struct wanted {
	size_t at; /* of the member */
	int needed;
	const char *name, *before;
};

#define NVML_WANTED(member, need, args, symbol, old) \
	{offsetof(struct nvmlapi, member), need, symbol, old},
static const struct wanted WANTED[] = {NVML_FUNCTIONS(NVML_WANTED)};

static void *library_find(struct err *e)
{
	char why[300] = "";

	for (size_t i = 0; i < ARRAY_SIZE(PLACES); i++) {
		void *so = dlopen(PLACES[i], RTLD_NOW | RTLD_LOCAL);
		const char *said = so ? NULL : dlerror();

		if (so)
			return so;
		if (said && (!i || !strstr(said, "No such file"))) /* of those that are there */
			snprintf(why, sizeof(why), "%s", said);
	}
	err_set(e, -ENOENT, EXIT_PREREQUISITE, "NVIDIA's libnvidia-ml.so.1 cannot be loaded: %s",
		why);
	err_fix(e,
		"install the driver's own library: apt-get install libnvidia-ml1 (of the driver's version)");
	return NULL;
}

static int functions_find(struct nvmlapi *api, void *so, struct strbuf *missing, struct err *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(WANTED); i++) {
		const struct wanted *w = &WANTED[i];
		void *f = dlsym(so, w->name);

		if (!f && w->before)
			f = dlsym(so, w->before);
		memcpy((char *)api + w->at, &f, sizeof(f));
		if (!f && w->needed != NVML_FALLBACK)
			strbuf_addf(missing, "%s%s", missing->len ? " " : "", w->name);
		if (f || w->needed != NVML_NEEDED)
			continue;
		err_set(e, -ENOSYS, EXIT_PREREQUISITE,
			"NVIDIA's libnvidia-ml.so.1 is too old: it has no %s", w->name);
		err_fix(e, "a driver of version 390 or newer");
		return -ENOSYS;
	}
	*(void **)&api->error = dlsym(so, "nvmlErrorString");
	return 0;
}

int nvmlapi_open(struct nvmlapi *api, struct strbuf *missing, struct err *e)
{
	void *so = library_find(e); /* stays */
	int rc;

	*api = (struct nvmlapi){0};
	if (!so)
		return -ENOENT;
	rc = functions_find(api, so, missing, e);
	if (rc)
		return rc;
	rc = api->init();
	if (rc == NVML_OK)
		return 0;
	err_set(e, -EIO, EXIT_PREREQUISITE, "NVIDIA's driver does not answer: %.200s (%d)",
		api->error ? api->error(rc) : "error", rc);
	err_fix(e, "nvidia-smi says more; after an upgrade of the driver: reboot");
	return -EIO;
}
