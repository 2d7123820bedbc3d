/* SPDX-License-Identifier: Apache-2.0 */
/*
 * environment: kernels and sandboxes that restrict eBPF in their own way, so that the fix differs
 * from that of a plain host.
 *
 *   ENVIRONMENT_GVISOR  the kernel's log is gVisor's, which has no eBPF (it calls itself Linux 4.4)
 *   ENVIRONMENT_GUEST   a user namespace other than the initial one: an LXC guest without
 *                       privileges (Proxmox's default), rootless Docker or Podman. Root has all
 *                       capabilities there, but none of them counts for eBPF
 *   ENVIRONMENT_LXC     an LXC guest in the initial user namespace (systemd's
 *                       /run/systemd/container says so)
 *   ENVIRONMENT_WSL     Windows' kernel for Linux: "microsoft" in its release
 */
#ifndef SONDE_BPF_ENVIRONMENT_H
#define SONDE_BPF_ENVIRONMENT_H

enum environment {
	ENVIRONMENT_PLAIN,
	ENVIRONMENT_GVISOR,
	ENVIRONMENT_GUEST,
	ENVIRONMENT_LXC,
	ENVIRONMENT_WSL
};

/* From uname's release, the kernel's log, /proc/self/uid_map and /run/systemd/container; "" for
 * what cannot be read. Pure. */
enum environment environment_of(const char *release, const char *log, const char *uid_map,
				const char *manager);

enum environment environment_here(void);

/* What the user can do about it; NULL: the same as on any host. */
const char *environment_fix(enum environment environment);

#endif
