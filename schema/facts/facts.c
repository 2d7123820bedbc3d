/* SPDX-License-Identifier: Apache-2.0 */
/* facts: the tables of wide rows, with their columns. */
#include "schema/base/array.h"
#include "schema/facts/disk.h"
#include "schema/facts/gpu.h"
#include "schema/facts/host.h"
#include "schema/facts/java.h"
#include "schema/facts/jvm.h"
#include "schema/facts/l7.h"
#include "schema/facts/logs.h"
#include "schema/facts/net.h"
#include "schema/facts/probe.h"

#define FACT(symbol, list, name, text) \
	const struct fact symbol = {   \
		.table = name, .comment = text, .columns = list, .n = ARRAY_SIZE(list)}

#define FACT_MINUTES(symbol, list, name, text)             \
	const struct fact symbol = {.table = name,         \
				    .comment = text,       \
				    .columns = list,       \
				    .n = ARRAY_SIZE(list), \
				    .minutes = 1}

#define FACT_BESIDE(symbol, list, name, text)              \
	const struct fact symbol = {.table = name,         \
				    .comment = text,       \
				    .columns = list,       \
				    .n = ARRAY_SIZE(list), \
				    .beside = 1}

static const struct fact_column host_columns[] = {HOST_COLUMNS(FACT_COLUMN)};
static const struct fact_column disk_columns[] = {DISK_COLUMNS(FACT_COLUMN)};
static const struct fact_column fs_columns[] = {FS_COLUMNS(FACT_COLUMN)};
static const struct fact_column nic_columns[] = {NIC_COLUMNS(FACT_COLUMN)};
static const struct fact_column sensor_columns[] = {SENSOR_COLUMNS(FACT_COLUMN)};
static const struct fact_column cgroup_columns[] = {CGROUP_COLUMNS(FACT_COLUMN)};
static const struct fact_column cgroup_disk_columns[] = {CGROUP_DISK_COLUMNS(FACT_COLUMN)};
static const struct fact_column process_columns[] = {PROCESS_COLUMNS(FACT_COLUMN)};
static const struct fact_column event_columns[] = {EVENT_COLUMNS(FACT_COLUMN)};
static const struct fact_column oom_columns[] = {OOM_COLUMNS(FACT_COLUMN)};
static const struct fact_column fds_columns[] = {FDS_COLUMNS(FACT_COLUMN)};
static const struct fact_column ended_columns[] = {ENDED_COLUMNS(FACT_COLUMN)};
static const struct fact_column oom_task_columns[] = {OOM_TASK_COLUMNS(FACT_COLUMN)};
static const struct fact_column process_mem_columns[] = {PROCESS_MEM_COLUMNS(FACT_COLUMN)};
static const struct fact_column fill_columns[] = {FILL_COLUMNS(FACT_COLUMN)};
static const struct fact_column event_log_columns[] = {EVENT_LOG_COLUMNS(FACT_COLUMN)};
static const struct fact_column gpu_columns[] = {GPU_COLUMNS(FACT_COLUMN)};
static const struct fact_column gpu_process_columns[] = {GPU_PROCESS_COLUMNS(FACT_COLUMN)};
static const struct fact_column jvm_columns[] = {JVM_COLUMNS(FACT_COLUMN)};
static const struct fact_column block_columns[] = {BLOCK_COLUMNS(FACT_COLUMN)};
static const struct fact_column device_columns[] = {DEVICE_COLUMNS(FACT_COLUMN)};
static const struct fact_column slow_columns[] = {SLOW_COLUMNS(FACT_COLUMN)};
static const struct fact_column slowstack_columns[] = {SLOWSTACK_COLUMNS(FACT_COLUMN)};
static const struct fact_column sync_columns[] = {SYNC_COLUMNS(FACT_COLUMN)};
static const struct fact_column lasting_columns[] = {LASTING_COLUMNS(FACT_COLUMN)};
static const struct fact_column open_columns[] = {OPEN_COLUMNS(FACT_COLUMN)};
static const struct fact_column file_columns[] = {FILE_COLUMNS(FACT_COLUMN)};
static const struct fact_column held_columns[] = {HELD_COLUMNS(FACT_COLUMN)};
static const struct fact_column java_wait_columns[] = {JAVA_WAIT_COLUMNS(FACT_COLUMN)};
static const struct fact_column java_wait_log_columns[] = {JAVA_WAIT_LOG_COLUMNS(FACT_COLUMN)};
static const struct fact_column call_columns[] = {CALL_COLUMNS(FACT_COLUMN)};
static const struct fact_column lock_columns[] = {LOCK_COLUMNS(FACT_COLUMN)};
static const struct fact_column order_columns[] = {ORDER_COLUMNS(FACT_COLUMN)};
static const struct fact_column place_columns[] = {PLACE_COLUMNS(FACT_COLUMN)};
static const struct fact_column probe_columns[] = {PROBE_COLUMNS(FACT_COLUMN)};
static const struct fact_column probe_sum_columns[] = {PROBE_SUM_COLUMNS(FACT_COLUMN)};
static const struct fact_column probe_event_columns[] = {PROBE_EVENT_COLUMNS(FACT_COLUMN)};
static const struct fact_column log_columns[] = {LOG_COLUMNS(FACT_COLUMN)};
static const struct fact_column log_pattern_columns[] = {LOG_PATTERN_COLUMNS(FACT_COLUMN)};
static const struct fact_column log_second_columns[] = {LOG_SECOND_COLUMNS(FACT_COLUMN)};
static const struct fact_column flow_columns[] = {FLOW_COLUMNS(FACT_COLUMN)};
static const struct fact_column listener_columns[] = {LISTENER_COLUMNS(FACT_COLUMN)};
static const struct fact_column netns_columns[] = {NETNS_COLUMNS(FACT_COLUMN)};
static const struct fact_column connection_columns[] = {CONNECTION_COLUMNS(FACT_COLUMN)};
static const struct fact_column flow_mark_columns[] = {FLOW_MARK_COLUMNS(FACT_COLUMN)};
static const struct fact_column peer_name_columns[] = {PEER_NAME_COLUMNS(FACT_COLUMN)};
static const struct fact_column request_log_columns[] = {REQUEST_LOG_COLUMNS(FACT_COLUMN)};
static const struct fact_column request_bytes_columns[] = {REQUEST_BYTES_COLUMNS(FACT_COLUMN)};
static const struct fact_column request_tag_columns[] = {REQUEST_TAG_COLUMNS(FACT_COLUMN)};
static const struct fact_column request_span_columns[] = {REQUEST_SPAN_COLUMNS(FACT_COLUMN)};
static const struct fact_column request_running_columns[] = {REQUEST_RUNNING_COLUMNS(FACT_COLUMN)};
static const struct fact_column request_sample_columns[] = {REQUEST_SAMPLE_COLUMNS(FACT_COLUMN)};

FACT_MINUTES(HOST_FACT, host_columns, "host_row",
	     "the host: CPU time by mode, load, memory, pressure");
FACT_MINUTES(DISK_FACT, disk_columns, "disk_row", "disks and their partitions");
FACT_MINUTES(FS_FACT, fs_columns, "fs_row", "file systems: how full");
FACT_MINUTES(NIC_FACT, nic_columns, "nic_row", "network interfaces, of the host and of containers");
FACT_MINUTES(SENSOR_FACT, sensor_columns, "sensor_row", "temperatures");
FACT_MINUTES(CGROUP_FACT, cgroup_columns, "cgroup_row",
	     "containers, units, slices and other cgroups, each with all that is below it");
FACT_MINUTES(CGROUP_DISK_FACT, cgroup_disk_columns, "cgroup_disk_row",
	     "what cgroups read and wrote, by disk; only where something was");
FACT_MINUTES(PROCESS_FACT, process_columns, "process_row", "processes, in buckets with changes");
FACT(EVENT_FACT, event_columns, "event_row",
     "what happened to containers, cgroups, file systems and the host");
FACT(OOM_FACT, oom_columns, "oom_row", "out-of-memory kills, as the kernel explains them");
FACT(OOM_TASK_FACT, oom_task_columns, "oom_task_row",
     "processes that held memory at such a kill, as the kernel lists them");
FACT_MINUTES(FDS_FACT, fds_columns, "fds_row",
	     "processes with at least half as many files open as allowed");
FACT_MINUTES(PROCESS_MEM_FACT, process_mem_columns, "process_mem_row",
	     "processes with 8 MiB or more of files and shared memory in theirs");
FACT(FILL_FACT, fill_columns, "fill_row",
     "what fills file systems, each time one of them was looked through");
FACT_MINUTES(ENDED_FACT, ended_columns, "ended_row",
	     "processes that lived between two readings, by cgroup and command");
FACT_BESIDE(EVENT_LOG_FACT, event_log_columns, "event_log_row",
	    "the last output of containers before they ended badly; only if configured");
FACT(GPU_FACT, gpu_columns, "gpu_row", "GPUs");
FACT(GPU_PROCESS_FACT, gpu_process_columns, "gpu_process_row",
     "processes that have something of a GPU");
FACT(JVM_FACT, jvm_columns, "jvm_row", "Java virtual machines, in buckets with changes");
FACT(BLOCK_FACT, block_columns, "block_row", "requests of disks, by who asked");
FACT(DEVICE_FACT, device_columns, "device_row", "disks that family disk watched");
FACT(SLOW_FACT, slow_columns, "slow_row",
     "single requests of disks: slow ones, and the slowest of each minute; bounded");
FACT_BESIDE(SLOWSTACK_FACT, slowstack_columns, "slow_stack_row",
	    "where threads waited for the requests of slow_row");
FACT(SYNC_FACT, sync_columns, "sync_row", "calls that wait until a file is on its disk");
FACT_BESIDE(LASTING_FACT, lasting_columns, "sync_lasting_row",
	    "calls that wait for a disk and had not returned, at the end of a bucket; bounded");
FACT(OPEN_FACT, open_columns, "open_row", "opens of files that failed");
FACT(FILE_FACT, file_columns, "file_row",
     "files that disks read and wrote, and who made their pages dirty");
FACT(HELD_FACT, held_columns, "held_row", "deleted files that programs have open, once a minute");
FACT(CALL_FACT, call_columns, "call_row", "reads and writes of files as programs ask for them");
FACT(LOCK_FACT, lock_columns, "lock_row", "waits for locks of files, and who had them");
FACT_BESIDE(ORDER_FACT, order_columns, "block_order_row",
	    "how many of the requests of block_row were sequential");
FACT_BESIDE(PLACE_FACT, place_columns, "place_row",
	    "where containers see the files of file_row and call_row");
FACT(PROBE_FACT, probe_columns, "probe_row", "probes: what each is, and how much it saw");
FACT(PROBE_SUM_FACT, probe_sum_columns, "probe_sum_row",
     "hits of probes, by process and by the arguments that they are summed by");
FACT(PROBE_EVENT_FACT, probe_event_columns, "probe_event_row", "single hits of probes; bounded");
FACT_MINUTES(LOG_FACT, log_columns, "log_row", "lines of logs, by who wrote them and level");
FACT(LOG_PATTERN_FACT, log_pattern_columns, "log_pattern_row",
     "messages of logs by their words: warnings and worse, others in a burst; bounded");
FACT_BESIDE(LOG_SECOND_FACT, log_second_columns, "log_second_row",
	    "messages of logs by the second, of kept windows of the flight ring");
FACT(FLOW_FACT, flow_columns, "flow_row",
     "connections by process, side, peer and port, in buckets with changes");
FACT(LISTENER_FACT, listener_columns, "listener_row",
     "sockets that others can open connections to");
FACT(NETNS_FACT, netns_columns, "netns_row",
     "network namespaces: what the kernel counted, and how much of it was recorded with its process");
FACT(CONNECTION_FACT, connection_columns, "connection_row",
     "single connections that ended: those that failed, and the longest; bounded");
FACT(FLOW_MARK_FACT, flow_mark_columns, "flow_mark_row",
     "marks of connections whose other end is not on this host: of family net");
FACT(PEER_NAME_FACT, peer_name_columns, "peer_name_row",
     "addresses and what programs called them: of families l7 and net");
FACT(REQUEST_LOG_FACT, request_log_columns, "request_log_row",
     "single requests: failed ones, the slowest, and a sample of the others; bounded");
FACT(REQUEST_BYTES_FACT, request_bytes_columns, "request_bytes_row",
     "how the bytes of connections were treated: seen = parsed + skipped + blind");
FACT_BESIDE(
	REQUEST_TAG_FACT, request_tag_columns, "request_tag_row",
	"single requests of request_log_row that were answered here: how their samples are found");
FACT_BESIDE(REQUEST_SAMPLE_FACT, request_sample_columns, "request_sample_row",
	    "CPU samples and waits of threads while they served a request");
FACT_BESIDE(REQUEST_SPAN_FACT, request_span_columns, "request_span_row",
	    "single requests of request_log_row: which one caused which");
FACT_BESIDE(REQUEST_RUNNING_FACT, request_running_columns, "request_running_row",
	    "requests that last, while they run; bounded");

FACT_BESIDE(JAVA_WAIT_FACT, java_wait_columns, "java_wait_row",
	    "what threads of Java programs waited for, and who had it");
FACT_BESIDE(JAVA_WAIT_LOG_FACT, java_wait_log_columns, "java_wait_log_row",
	    "single waits of java_wait_row for monitors and locks; bounded");

const struct fact *const FACTS[] = {&HOST_FACT,
				    &DISK_FACT,
				    &FS_FACT,
				    &NIC_FACT,
				    &SENSOR_FACT,
				    &CGROUP_FACT,
				    &CGROUP_DISK_FACT,
				    &PROCESS_FACT,
				    &EVENT_FACT,
				    &OOM_FACT,
				    &OOM_TASK_FACT,
				    &FDS_FACT,
				    &PROCESS_MEM_FACT,
				    &FILL_FACT,
				    &ENDED_FACT,
				    &FLOW_FACT,
				    &LISTENER_FACT,
				    &NETNS_FACT,
				    &CONNECTION_FACT,
				    &PEER_NAME_FACT,
				    &FLOW_MARK_FACT,
				    &REQUEST_LOG_FACT,
				    &REQUEST_BYTES_FACT,
				    &REQUEST_TAG_FACT,
				    &REQUEST_SAMPLE_FACT,
				    &REQUEST_SPAN_FACT,
				    &REQUEST_RUNNING_FACT,
				    &EVENT_LOG_FACT,
				    &GPU_FACT,
				    &GPU_PROCESS_FACT,
				    &JVM_FACT,
				    &BLOCK_FACT,
				    &DEVICE_FACT,
				    &SLOW_FACT,
				    &SYNC_FACT,
				    &OPEN_FACT,
				    &FILE_FACT,
				    &HELD_FACT,
				    &SLOWSTACK_FACT,
				    &LASTING_FACT,
				    &CALL_FACT,
				    &LOCK_FACT,
				    &ORDER_FACT,
				    &PLACE_FACT,
				    &PROBE_FACT,
				    &PROBE_SUM_FACT,
				    &PROBE_EVENT_FACT,
				    &LOG_FACT,
				    &LOG_PATTERN_FACT,
				    &LOG_SECOND_FACT,
				    &JAVA_WAIT_FACT,
				    &JAVA_WAIT_LOG_FACT,
				    NULL};

_Static_assert(ARRAY_SIZE(FACTS) - 1 <= FACT_TABLES_MAX, "room for their statements");
_Static_assert((int)HOST_N <= FACT_COLUMNS_MAX && (int)CGROUP_N <= FACT_COLUMNS_MAX,
	       "one bit a column");
