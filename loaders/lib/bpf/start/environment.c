/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/bpf/start/environment.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/klog.h>
#include <sys/utsname.h>
#include <unistd.h>

#define LOG_ALL 3 /* SYSLOG_ACTION_READ_ALL */

/* A single row that maps all user ids: the initial user namespace. */
static int is_first(const char *uid_map)
{
	unsigned long inside, outside, count;

	return sscanf(uid_map, "%lu %lu %lu", &inside, &outside, &count) != 3 ||
	       (!inside && !outside && count == 4294967295ul);
}

enum environment environment_of(const char *release, const char *log, const char *uid_map,
				const char *manager)
{
	if (strstr(log, "gVisor"))
		return ENVIRONMENT_GVISOR;
	if (!is_first(uid_map))
		return ENVIRONMENT_GUEST;
	if (!strncmp(manager, "lxc", 3))
		return ENVIRONMENT_LXC;
	return strstr(release, "icrosoft") ? ENVIRONMENT_WSL : ENVIRONMENT_PLAIN;
}

static const char *read_into(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t n = fd < 0 ? 0 : read(fd, text, size - 1);

	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
	return text;
}

enum environment environment_here(void)
{
	char log[16384], uid_map[256], manager[64];
	struct utsname u;
	int n = klogctl(LOG_ALL, log, sizeof(log) - 1); /* its newest; gVisor's is short */

	log[n > 0 ? n : 0] = '\0';
	if (uname(&u))
		u.release[0] = '\0';
	/* a real Linux of that version could log a line about gVisor, written by someone else */
	return environment_of(u.release, strncmp(u.release, "4.4", 3) ? "" : log,
			      read_into("/proc/self/uid_map", uid_map, sizeof(uid_map)),
			      read_into("/run/systemd/container", manager, sizeof(manager)));
}

const char *environment_fix(enum environment environment)
{
	switch (environment) {
	case ENVIRONMENT_GVISOR:
		return "start it on the host of this sandbox: gVisor has no eBPF, but its processes are seen from there";
	case ENVIRONMENT_GUEST:
		return "start it on the host, where this container's processes are seen too: rights of a user namespace (an unprivileged LXC guest, rootless "
		       "Docker or Podman) do not count for eBPF";
	case ENVIRONMENT_LXC:
		return "start it on the LXC host (Proxmox: its own shell), where this guest's processes are seen too";
	case ENVIRONMENT_WSL:
		return "wsl --update    (in Windows: newer WSL kernels have BTF)";
	case ENVIRONMENT_PLAIN:
		break;
	}
	return NULL;
}
