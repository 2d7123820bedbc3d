/* SPDX-License-Identifier: Apache-2.0 */
#include "export/metric.h"
#include "schema/base/array.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define C METRIC_COUNTER
#define G METRIC_GAUGE
#define H METRIC_HISTOGRAM

/* Metrics of a container and, under another name, of a unit. */
#define CGROUP(x, of)                                                                          \
	{"sonde_" x "_cpu_limit", G, 3, "CPUs that " of " may use.", NULL},                    \
		{"sonde_" x "_cpu_periods_total", C, 0,                                        \
		 "Periods of its CPU limit in which " of " ran.", NULL},                       \
		{"sonde_" x "_cpu_seconds_total", C, 6, "CPU time of " of ", by mode.", NULL}, \
		{"sonde_" x "_cpu_throttled_periods_total", C, 0,                              \
		 "Periods in which the CPU limit stopped " of ".", NULL},                      \
		{"sonde_" x "_cpu_throttled_seconds_total", C, 6,                              \
		 "How long the CPU limit stopped " of ", all CPUs together.", NULL},           \
		{"sonde_" x "_disk_bytes_total", C, 0,                                         \
		 "What " of " read from disks and wrote to them.", NULL},                      \
	{                                                                                      \
		"sonde_" x "_disk_operations_total", C, 0,                                     \
			"How often " of " read from disks and wrote to them.", NULL            \
	}

#define CGROUP_MEMORY(x, of)                                                                     \
	{"sonde_" x "_major_faults_total", C, 0, "Page faults of " of " that read from a disk.", \
	 NULL},                                                                                  \
		{"sonde_" x "_memory_bytes", G, 0,                                               \
		 "Memory of " of                                                                 \
		 ", by kind; working is all without files that were not used lately.",           \
		 NULL},                                                                          \
		{"sonde_" x "_memory_events_total", C, 0,                                        \
		 "How often " of " met its upper mark, its limit, or lost a process to it.",     \
		 NULL},                                                                          \
	{                                                                                        \
		"sonde_" x "_memory_limit_bytes", G, 0, "Memory that " of " may use.", NULL      \
	}

#define CGROUP_REST(x, of)                                                                      \
	{"sonde_" x "_pressure_seconds_total", C, 6,                                            \
	 "How long threads of " of " waited for a resource: some of them, or all.", NULL},      \
		{"sonde_" x "_swap_limit_bytes", G, 0, "Swap that " of " may use.", NULL},      \
		{"sonde_" x "_tasks", G, 0, "Processes and threads of " of ".", NULL},          \
	{                                                                                       \
		"sonde_" x "_tasks_limit", G, 0, "Processes and threads that " of " may have.", \
			NULL                                                                    \
	}

static const char *const CONNECT_BOUNDS[] = {"0.001", "0.01", "0.1", "1", NULL};

/* clang-format off */
const struct metric METRICS[] = {
	/* as node_exporter has them */
	{"node_disk_io_now", G, 0, "Requests that are under way at a disk.", NULL},
	{"node_disk_io_time_seconds_total", C, 6, "How long something was under way at a disk.", NULL},
	{"node_disk_io_time_weighted_seconds_total", C, 6, "The same times how much was under way.", NULL},
	{"node_disk_read_bytes_total", C, 0, "Bytes read from a disk.", NULL},
	{"node_disk_read_time_seconds_total", C, 6, "How long reads of a disk took, added up.", NULL},
	{"node_disk_reads_completed_total", C, 0, "Reads of a disk.", NULL},
	{"node_disk_write_time_seconds_total", C, 6, "How long writes of a disk took, added up.", NULL},
	{"node_disk_writes_completed_total", C, 0, "Writes of a disk.", NULL},
	{"node_disk_written_bytes_total", C, 0, "Bytes written to a disk.", NULL},
	{"node_filesystem_avail_bytes", G, 0, "Room of a file system for programs without root's rights.", NULL},
	{"node_filesystem_files", G, 0, "Inodes of a file system.", NULL},
	{"node_filesystem_files_free", G, 0, "Inodes of a file system that are free.", NULL},
	{"node_filesystem_free_bytes", G, 0, "Room of a file system.", NULL},
	{"node_filesystem_readonly", G, 0, "1: nothing can be written to a file system.", NULL},
	{"node_filesystem_size_bytes", G, 0, "Size of a file system.", NULL},
	{"sonde_connect_seconds", H, 6, "How long clients' connections took to open.", CONNECT_BOUNDS},
	{"sonde_connection_attempts_total", C, 0, "Connections that clients began to open.", NULL},
	{"sonde_connection_bytes_total", C, 0, "Bytes of connections: sent and acknowledged, received.", NULL},
	{"sonde_connection_failures_total", C, 0, "Connections that were not opened, by reason.", NULL},
	{"sonde_connection_retransmitted_segments_total", C, 0, "Retransmitted segments of connections.", NULL},
	{"sonde_connection_round_trip_seconds_total", C, 6, "Smoothed round-trip times of connections, one for each reading, added up.", NULL},
	{"sonde_connection_round_trips_total", C, 0, "How many round-trip times were added up.", NULL},
	{"sonde_connection_segments_total", C, 0, "Segments of connections.", NULL},
	{"sonde_connections_ended_total", C, 0, "Established connections that ended, by reason.", NULL},
	{"sonde_connections_opened_total", C, 0, "Connections established, or of a server accepted.", NULL},
	CGROUP("container", "a container"),
	{"sonde_container_gpu_busy_seconds_total", C, 6, "How long a container's kernels ran on a GPU, by the driver's samples.", NULL},
	{"sonde_container_info", G, 0, "Which image, compose project and service a container is of. Always 1.", NULL},
	CGROUP_MEMORY("container", "a container"),
	{"sonde_container_network_bytes_total", C, 0, "Bytes through a container's network namespace, without lo.", NULL},
	{"sonde_container_network_dropped_packets_total", C, 0, "Packets dropped in a container's network namespace.", NULL},
	{"sonde_container_network_packets_total", C, 0, "Packets through a container's network namespace, without lo.", NULL},
	CGROUP_REST("container", "a container"),
	{"sonde_disk_busy_seconds_total", C, 6, "How long something was under way at a disk.", NULL},
	{"sonde_disk_bytes_total", C, 0, "Bytes read from a disk and written to it.", NULL},
	{"sonde_disk_operation_seconds_total", C, 6, "How long reads and writes of a disk took, added up.", NULL},
	{"sonde_disk_operations_in_flight", G, 0, "Requests that are under way at a disk.", NULL},
	{"sonde_disk_operations_total", C, 0, "Reads and writes of a disk.", NULL},
	{"sonde_events_total", C, 0, "What happened to containers, units, processes, file systems and the host.", NULL},
	{"sonde_filesystem_bytes", G, 0, "Size of a file system, and what is free of it; available: to ordinary users.", NULL},
	{"sonde_filesystem_hangs", G, 0, "1: the file system did not answer in time.", NULL},
	{"sonde_filesystem_inodes", G, 0, "Files that a file system can have, and how many more.", NULL},
	{"sonde_filesystem_read_only", G, 0, "1: nothing can be written to the file system.", NULL},
	{"sonde_fsync_seconds_total", C, 6, "How long calls waited until a file was on its disk.", NULL},
	{"sonde_fsyncs_total", C, 0, "Calls that wait until a file is on its disk.", NULL},
	{"sonde_gpu_busy_seconds_total", C, 6, "How long some kernel ran on a GPU, by the driver's samples.", NULL},
	{"sonde_gpu_clock_hertz", G, 0, "Clocks of a GPU.", NULL},
	{"sonde_gpu_energy_joules_total", C, 3, "What a GPU drew.", NULL},
	{"sonde_gpu_fan_ratio", G, 2, "Speed of a GPU's fan.", NULL},
	{"sonde_gpu_memory_busy_seconds_total", C, 6, "How long a GPU's memory was read or written.", NULL},
	{"sonde_gpu_memory_bytes", G, 0, "Memory of a GPU: all of it, and what is in use.", NULL},
	{"sonde_gpu_memory_errors_total", C, 0, "Errors of a GPU's memory that could not be corrected.", NULL},
	{"sonde_gpu_power_limit_watts", G, 3, "What a GPU may draw.", NULL},
	{"sonde_gpu_power_watts", G, 3, "What a GPU draws.", NULL},
	{"sonde_gpu_temperature_celsius", G, 3, "How warm a GPU is.", NULL},
	{"sonde_gpu_throttled_seconds_total", C, 6, "How long a GPU was slowed down, by reason.", NULL},
	{"sonde_gpu_video_seconds_total", C, 6, "How long a GPU's video encoder and decoder were busy.", NULL},
	{"sonde_host_context_switches_total", C, 0, "Switches of the host's CPUs from one thread to another.", NULL},
	{"sonde_host_cpu_seconds_total", C, 6, "Time of the host's CPUs by mode, all CPUs together.", NULL},
	{"sonde_host_cpus", G, 0, "CPUs of the host.", NULL},
	{"sonde_host_forks_total", C, 0, "Processes and threads that were started.", NULL},
	{"sonde_host_load_average", G, 3, "Load average of the host over this many minutes.", NULL},
	{"sonde_host_major_faults_total", C, 0, "Page faults that read from a disk.", NULL},
	{"sonde_host_memory_bytes", G, 0, "Memory of the host, by kind.", NULL},
	{"sonde_host_oom_kills_total", C, 0, "Processes killed by the out-of-memory killer, containers included.", NULL},
	{"sonde_host_pressure_seconds_total", C, 6, "How long threads of the host waited for a resource: some of them, or all.", NULL},
	{"sonde_host_swap_bytes", G, 0, "Swap of the host.", NULL},
	{"sonde_host_swap_pages_total", C, 0, "Pages read back from swap, and written to it.", NULL},
	{"sonde_host_threads", G, 0, "Threads that could run, or waited for a disk.", NULL},
	{"sonde_host_uptime_seconds", G, 0, "Time since the host was booted.", NULL},
	{"sonde_interface_bytes_total", C, 0, "Bytes through a network interface of the host.", NULL},
	{"sonde_interface_dropped_packets_total", C, 0, "Packets that a network interface of the host dropped.", NULL},
	{"sonde_interface_errors_total", C, 0, "Packets received damaged, or that could not be sent.", NULL},
	{"sonde_interface_packets_total", C, 0, "Packets through a network interface of the host.", NULL},
	{"sonde_jvm_collection_seconds_total", C, 6, "How long collections of Java's virtual machines took, by kind.", NULL},
	{"sonde_jvm_collections_total", C, 0, "Collections of Java's virtual machines, by kind.", NULL},
	{"sonde_jvm_safepoint_seconds_total", C, 6, "How long all threads of Java's virtual machines were stopped.", NULL},
	{"sonde_jvm_safepoints_total", C, 0, "How often all threads of Java's virtual machines were stopped.", NULL},
	{"sonde_listener_dropped_total", C, 0, "Connections and packets that listening sockets had no room for.", NULL},
	{"sonde_listener_repeated_answers_total", C, 0, "Retransmitted SYN-ACKs of opening connections.", NULL},
	{"sonde_log_bytes_total", C, 0, "Bytes of text that were logged, by level.", NULL},
	{"sonde_log_lines_total", C, 0, "Lines that were logged, by level.", NULL},
	{"sonde_log_messages_total", C, 0, "Messages that were logged, by level: a line with those that continue it.", NULL},
	{"sonde_lost_total", C, 0, "What sonde could not see or keep, by family and reason.", NULL},
	{"sonde_process_ends_total", C, 0, "Processes that ended, by how they ended.", NULL},
	{"sonde_profile_cpu_seconds_total", C, 9, "CPU time by samples of stacks, without sonde's own.", NULL},
	{"sonde_profile_samples_total", C, 0, "Samples of stacks on CPUs, without sonde's own.", NULL},
	{"sonde_request_first_byte_seconds", H, 9, "How long requests took to the first byte of their answer, of those that were answered.", NULL},
	{"sonde_request_queue_seconds", H, 9, "How long requests lay in their server's socket before they were read, where that is known.", NULL},
	{"sonde_request_seconds", H, 9, "How long requests took that were answered: first byte of the request to last byte of the answer.", NULL},
	{"sonde_requests_total", C, 0, "Requests, by protocol, class of operation, and what became of them.", NULL},
	{"sonde_runqueue_wait_seconds", H, 9, "How long threads that could have run waited for a CPU.", NULL},
	{"sonde_self_cpu_seconds_total", C, 9, "CPU time of sonde's own programs; bpf:NAME is one in the kernel.", NULL},
	{"sonde_self_memory_bytes", G, 0, "Private memory of sonde's own programs.", NULL},
	{"sonde_sensor_temperature_celsius", G, 3, "Temperature that a sensor shows.", NULL},
	{"sonde_thread_changes_total", C, 0, "How often threads left a state.", NULL},
	{"sonde_thread_seconds_total", C, 9, "Time of threads: running, blocked (by what they waited for), or ready and not running.", NULL},
	CGROUP("unit", "a systemd unit"),
	CGROUP_MEMORY("unit", "a systemd unit"),
	CGROUP_REST("unit", "a systemd unit"),
};
/* clang-format on */
const size_t N_METRICS = ARRAY_SIZE(METRICS);

static int find_exact(const char *name, size_t len)
{
	for (size_t i = 0; i < N_METRICS; i++)
		if (!strncmp(METRICS[i].name, name, len) && !METRICS[i].name[len])
			return (int)i;
	return -1;
}

bool metric_is_alias(unsigned metric)
{
	return !strncmp(METRICS[metric].name, "node_", strlen("node_"));
}

int metric_find(const char *name, size_t len, unsigned *part)
{
	static const struct {
		const char *text;
		unsigned part;
	} ends[] = {{"_sum", METRIC_SUM}, {"_bucket", 0}};
	int found = find_exact(name, len);

	*part = 0;
	for (size_t i = 0; found < 0 && i < ARRAY_SIZE(ends); i++) {
		size_t n = strlen(ends[i].text);

		if (len <= n || strncmp(name + len - n, ends[i].text, n))
			continue;
		found = find_exact(name, len - n);
		*part = ends[i].part;
		if (found >= 0 && METRICS[found].type != METRIC_HISTOGRAM)
			found = -1;
	}
	return found;
}

const char *metric_bound(int metric, unsigned i, char buf[32])
{
	const char *const *own = METRICS[metric].bounds;
	struct strbuf text cleanup_strbuf = STRBUF_INIT;

	if (own) {
		for (unsigned k = 0; own[k]; k++)
			if (k == i)
				return own[k];
		return NULL;
	}
	if (i >= METRIC_BOUNDS)
		return NULL;
	metric_value(&text, (1ull << METRIC_BOUND_EXPONENT(i)) - 1, 9);
	snprintf(buf, 32, "%s", strbuf_str(&text));
	return buf;
}

void metric_value(struct strbuf *out, uint64_t value, unsigned decimals)
{
	uint64_t one = 1, rest;

	for (unsigned i = 0; i < decimals; i++)
		one *= 10;
	strbuf_addu(out, value / one);
	rest = value % one;
	if (!rest)
		return;
	for (; rest % 10 == 0; rest /= 10)
		decimals--;
	strbuf_addf(out, ".%0*" PRIu64, (int)decimals, rest);
}
