/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place: kernels and sandboxes that withhold eBPF in a way of their own, so that what mends it is
 * another one than on a plain host.
 *
 *   ENVIRONMENT_GVISOR  the kernel's log is gVisor's, which has no eBPF (it calls itself Linux 4.4)
 *   ENVIRONMENT_GUEST   a user namespace other than the first: an LXC guest without privileges
 *                       (Proxmox's default), rootless Docker or Podman.
 *                 Root has all capabilities there, and none of them counts for eBPF
 *   ENVIRONMENT_LXC     an LXC guest that has the first user namespace (systemd's
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

/* From what stands there: uname's release, the kernel's log, /proc/self/uid_map,
 * /run/systemd/container; "" for what cannot be read. Pure. */
enum environment environment_of(const char *release, const char *log, const char *uid_map,
				const char *manager);

enum environment environment_here(void);

/* What mends it, or NULL where it is as on any host. */
const char *environment_fix(enum environment place);

#endif
