/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place: kernels and sandboxes that withhold eBPF in a way of their own, so that what mends it is another one than on a plain host.
 *
 *   PLACE_GVISOR  the kernel's log is gVisor's, which has no eBPF (it calls itself Linux 4.4)
 *   PLACE_GUEST   a user namespace other than the first: an LXC guest without privileges (Proxmox's default), rootless Docker or Podman.
 *                 Root has all capabilities there, and none of them counts for eBPF
 *   PLACE_LXC     an LXC guest that has the first user namespace (systemd's /run/systemd/container says so)
 *   PLACE_WSL     Windows' kernel for Linux: "microsoft" in its release
 */
#ifndef SONDE_BPF_PLACE_H
#define SONDE_BPF_PLACE_H

enum place { PLACE_PLAIN, PLACE_GVISOR, PLACE_GUEST, PLACE_LXC, PLACE_WSL };

/* From what stands there: uname's release, the kernel's log, /proc/self/uid_map, /run/systemd/container; "" for what cannot be read. Pure. */
enum place place_of(const char *release, const char *log, const char *uid_map, const char *manager);

enum place place_here(void);

/* What mends it, or NULL where it is as on any host. */
const char *place_fix(enum place place);

#endif
