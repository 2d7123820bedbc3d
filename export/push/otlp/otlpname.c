/* SPDX-License-Identifier: Apache-2.0 */
/* otlpname: see the header. Names are those of OpenTelemetry's semantic conventions, "container
 * metrics" and "system metrics". */
#include "export/push/otlp/otlpname.h"

#include <stdio.h>
#include <string.h>

#include "export/metric.h"
#include "schema/base/array.h"

static const struct known {
	const char *metric, *kind; /* NULL: any */
	const char *name, *unit;
	bool additive, without_kind;
} KNOWN[] = {
	{"sonde_container_cpu_seconds_total", NULL, "container.cpu.time", "s", false, false},
	{"sonde_container_disk_bytes_total", NULL, "container.disk.io", "By", false, false},
	{"sonde_container_memory_bytes", "all", "container.memory.usage", "By", true, true},
	{"sonde_container_memory_bytes", "working", "container.memory.working_set", "By", true,
	 true},
	{"sonde_container_network_bytes_total", NULL, "container.network.io", "By", false, false},
	{"sonde_disk_busy_seconds_total", NULL, "system.disk.io_time", "s", false, false},
	{"sonde_disk_bytes_total", NULL, "system.disk.io", "By", false, false},
	{"sonde_disk_operation_seconds_total", NULL, "system.disk.operation_time", "s", false,
	 false},
	{"sonde_disk_operations_total", NULL, "system.disk.operations", "{operation}", false,
	 false},
	{"sonde_filesystem_bytes", "free", "system.filesystem.usage", "By", true, false},
	{"sonde_filesystem_bytes", "size", "system.filesystem.limit", "By", true, true},
	{"sonde_host_cpu_seconds_total", NULL, "system.cpu.time", "s", false, false},
	{"sonde_host_cpus", NULL, "system.cpu.logical.count", "{cpu}", true, false},
	{"sonde_host_memory_bytes", "available", "system.memory.linux.available", "By", true, true},
	{"sonde_host_memory_bytes", "buffers", "system.memory.usage", "By", true, false},
	{"sonde_host_memory_bytes", "cached", "system.memory.usage", "By", true, false},
	{"sonde_host_memory_bytes", "free", "system.memory.usage", "By", true, false},
	{"sonde_host_memory_bytes", "total", "system.memory.limit", "By", true, true},
	{"sonde_host_swap_bytes", "free", "system.paging.usage", "By", true, false},
	{"sonde_host_uptime_seconds", NULL, "system.uptime", "s", false, false},
	{"sonde_interface_bytes_total", NULL, "system.network.io", "By", false, false},
	{"sonde_interface_dropped_packets_total", NULL, "system.network.packet.dropped", "{packet}",
	 false, false},
	{"sonde_interface_errors_total", NULL, "system.network.errors", "{error}", false, false},
	{"sonde_interface_packets_total", NULL, "system.network.packet.count", "{packet}", false,
	 false},
};

/* prefix of a metric, label -> attribute; "" fits all */
/* clang-format off */
static const char *const LABELS[][3] = {
	{"container.cpu.", "mode", "cpu.mode"}, {"system.cpu.", "mode", "cpu.mode"},
	{"container.disk.", "direction", "disk.io.direction"}, {"system.disk.", "direction", "disk.io.direction"},
	{"container.network.", "direction", "network.io.direction"}, {"system.network.", "direction", "network.io.direction"},
	{"system.memory.", "kind", "system.memory.state"}, {"system.paging.", "kind", "system.paging.state"},
	{"system.filesystem.", "kind", "system.filesystem.state"}, {"system.filesystem.", "mount", "system.filesystem.mountpoint"},
	{"system.filesystem.", "fstype", "system.filesystem.type"}, {"system.disk.", "disk", "system.device"},
	{"system.network.", "interface", "network.interface.name"},
};
/* clang-format on */

/* attribute, value -> value */
static const char *const VALUES[][3] = {
	{"cpu.mode", "irq", "interrupt"},
	{"network.io.direction", "received", "receive"},
	{"network.io.direction", "sent", "transmit"},
};

static const struct {
	const char *end, *unit;
} UNITS[] = {{"_seconds", "s"}, {"_bytes", "By"}, {"_celsius", "Cel"}};

static size_t without(const char *name, size_t len, const char *end)
{
	size_t n = strlen(end);

	return len > n && !strncmp(name + len - n, end, n) ? len - n : len;
}

static void own_name(const char *metric, struct otlp_name *out)
{
	size_t len = without(metric, strlen(metric), "_total"), skip = strlen("sonde_");

	out->unit = "1";
	for (size_t i = 0; i < ARRAY_SIZE(UNITS); i++) {
		size_t less = without(metric, len, UNITS[i].end);

		if (less < len)
			out->unit = UNITS[i].unit;
		len = less;
	}
	snprintf(out->name, sizeof(out->name), "sonde.%.*s", (int)(len - skip), metric + skip);
}

void otlp_name_of(unsigned metric, const char *kind, struct otlp_name *out)
{
	const char *name = METRICS[metric].name;

	*out = (struct otlp_name){.unit = "1"};
	for (size_t i = 0; i < ARRAY_SIZE(KNOWN); i++) {
		const struct known *k = &KNOWN[i];

		if (strcmp(k->metric, name) || (k->kind && strcmp(k->kind, kind)))
			continue;
		snprintf(out->name, sizeof(out->name), "%s", k->name);
		out->unit = k->unit;
		out->additive = k->additive;
		out->without_kind = k->without_kind;
		return;
	}
	own_name(name, out);
}

const char *otlp_label(const char *metric, const char *label)
{
	for (size_t i = 0; i < ARRAY_SIZE(LABELS); i++)
		if (!strncmp(metric, LABELS[i][0], strlen(LABELS[i][0])) &&
		    !strcmp(label, LABELS[i][1]))
			return LABELS[i][2];
	return label;
}

const char *otlp_value(const char *attribute, const char *value)
{
	for (size_t i = 0; i < ARRAY_SIZE(VALUES); i++)
		if (!strcmp(attribute, VALUES[i][0]) && !strcmp(value, VALUES[i][1]))
			return VALUES[i][2];
	return value;
}

bool otlp_label_next(const char **labels, struct strbuf *name, struct strbuf *value)
{
	const char *p = *labels + (**labels == ',');
	const char *eq = strchr(p, '=');

	if (!eq || eq[1] != '"')
		return false;
	strbuf_reset(name);
	strbuf_reset(value);
	strbuf_add(name, p, (size_t)(eq - p));
	for (p = eq + 2; *p && *p != '"'; p++) {
		if (*p == '\\' && p[1])
			strbuf_addch(value, *++p == 'n' ? '\n' : *p);
		else
			strbuf_addch(value, *p);
	}
	*labels = *p ? p + 1 : p;
	return true;
}
