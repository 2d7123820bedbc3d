/* SPDX-License-Identifier: Apache-2.0 */
/*
 * no_devices: libpcap's table of devices names D-Bus, whose library Debian has no static build of
 * (it wants libsystemd). sonde reads files of packets and opens no device, so that a static
 * sonde-replay can say for libpcap that there is no such one.
 */
#include <stddef.h>

struct pcap;
struct pcap *dbus_create(const char *device, char *errors, int *is_ours);
int dbus_findalldevs(void *devices, char *errors);

struct pcap *dbus_create(const char *device, char *errors, int *is_ours)
{
	(void)device;
	(void)errors;
	*is_ours = 0;
	return NULL;
}

int dbus_findalldevs(void *devices, char *errors)
{
	(void)devices;
	(void)errors;
	return 0;
}
