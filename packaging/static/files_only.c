/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files_only: names of users and groups in a static program come from /etc/passwd and /etc/group
 * alone. glibc would load what nsswitch.conf(5) names from the host, which is made for the host's
 * own glibc and may end a program of another one. Users of directories (LDAP, systemd's dynamic
 * ones) are shown as numbers then.
 */
#include <nss.h>

static __attribute__((constructor)) void files_only(void)
{
	__nss_configure_lookup("passwd", "files");
	__nss_configure_lookup("group", "files");
}
