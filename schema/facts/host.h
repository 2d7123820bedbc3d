/* SPDX-License-Identifier: Apache-2.0 */
/* host: what family host stores (loaders/host): the columns of its tables, in the tables' order. */
#ifndef SONDE_FACTS_HOST_H
#define SONDE_FACTS_HOST_H

#include "schema/facts/fact.h"

#define HOST_COLUMNS(X)                                                                        \
	X(HOST_CPUS, "cpus", NUMBER, GAUGE, "", "CPUs online")                                 \
	X(HOST_USER, "user_us", NUMBER, COUNTER, "us", "CPU time of programs")                 \
	X(HOST_NICE, "nice_us", NUMBER, COUNTER, "us", "the same at a lower priority")         \
	X(HOST_SYSTEM, "system_us", NUMBER, COUNTER, "us", "CPU time in the kernel")           \
	X(HOST_IRQ, "irq_us", NUMBER, COUNTER, "us", "CPU time of interrupts")                 \
	X(HOST_SOFTIRQ, "softirq_us", NUMBER, COUNTER, "us", "CPU time of soft interrupts")    \
	X(HOST_IDLE, "idle_us", NUMBER, COUNTER, "us", "idle, all CPUs together")              \
	X(HOST_IOWAIT, "iowait_us", NUMBER, COUNTER, "us", "idle while a disk was waited for") \
	X(HOST_STEAL, "steal_us", NUMBER, COUNTER, "us", "taken by the hypervisor")            \
	X(HOST_FORKS, "forks", NUMBER, TALLY, "", "processes and threads made")                \
	X(HOST_SWITCHES, "switches", NUMBER, TALLY, "", "context switches")                    \
	X(HOST_RUNNING, "running", NUMBER, GAUGE, "", "threads that could run")                \
	X(HOST_BLOCKED, "blocked", NUMBER, GAUGE, "", "threads that waited for a disk")        \
	X(HOST_LOAD1, "load1_m", NUMBER, GAUGE, "thousandths", "load average of a minute")     \
	X(HOST_LOAD5, "load5_m", NUMBER, GAUGE, "thousandths", "of five minutes")              \
	X(HOST_LOAD15, "load15_m", NUMBER, GAUGE, "thousandths", "of a quarter of an hour")    \
	X(HOST_MEM_TOTAL, "mem_total", NUMBER, GAUGE, "bytes", "memory of the host")           \
	X(HOST_MEM_FREE, "mem_free", NUMBER, GAUGE, "bytes", "unused")                         \
	X(HOST_MEM_AVAILABLE, "mem_available", NUMBER, GAUGE, "bytes",                         \
	  "what programs could still get")                                                     \
	X(HOST_ANON, "anon", NUMBER, GAUGE, "bytes", "programs' own memory")                   \
	X(HOST_CACHED, "cached", NUMBER, GAUGE, "bytes", "files in memory, shared memory too") \
	X(HOST_BUFFERS, "buffers", NUMBER, GAUGE, "bytes", "block devices in memory")          \
	X(HOST_SHMEM, "shmem", NUMBER, GAUGE, "bytes", "shared memory and tmpfs")              \
	X(HOST_SLAB, "slab", NUMBER, GAUGE, "bytes", "the kernel's objects")                   \
	X(HOST_DIRTY, "dirty", NUMBER, GAUGE, "bytes", "written, not on the disk yet")         \
	X(HOST_SWAP_TOTAL, "swap_total", NUMBER, GAUGE, "bytes", "swap space")                 \
	X(HOST_SWAP_FREE, "swap_free", NUMBER, GAUGE, "bytes", "unused swap space")            \
	X(HOST_MAJFLT, "majflt", NUMBER, COUNTER, "", "page faults that read from a disk")     \
	X(HOST_SWAP_IN, "swap_in", NUMBER, COUNTER, "pages", "read back from swap")            \
	X(HOST_SWAP_OUT, "swap_out", NUMBER, COUNTER, "pages", "written to swap")              \
	X(HOST_OOM_KILLS, "oom_kills", NUMBER, COUNTER, "",                                    \
	  "processes killed because memory ran out, in containers too")                        \
	X(HOST_PSI_CPU, "psi_cpu_us", NUMBER, COUNTER, "us", "some thread waited for a CPU")   \
	X(HOST_PSI_MEM, "psi_mem_us", NUMBER, COUNTER, "us", "some thread waited for memory")  \
	X(HOST_PSI_MEM_FULL, "psi_mem_full_us", NUMBER, COUNTER, "us",                         \
	  "all that could run waited for memory")                                              \
	X(HOST_PSI_IO, "psi_io_us", NUMBER, COUNTER, "us", "some thread waited for a disk")    \
	X(HOST_PSI_IO_FULL, "psi_io_full_us", NUMBER, COUNTER, "us",                           \
	  "all that could run waited for a disk")                                              \
	X(HOST_UPTIME, "uptime_s", NUMBER, GAUGE, "s", "since boot")

#define DISK_COLUMNS(X)                                                                            \
	X(DISK_NAME, "disk", TEXT, KEY, "", "text.id: sda, nvme0n1, dm-0, loop0")                  \
	X(DISK_READS, "reads", NUMBER, TALLY, "", "completed reads")                               \
	X(DISK_READ_BYTES, "read_bytes", NUMBER, COUNTER, "bytes", "read")                         \
	X(DISK_READ_US, "read_us", NUMBER, COUNTER, "us", "time of the reads, summed")             \
	X(DISK_WRITES, "writes", NUMBER, TALLY, "", "completed writes")                            \
	X(DISK_WRITE_BYTES, "write_bytes", NUMBER, COUNTER, "bytes", "written")                    \
	X(DISK_WRITE_US, "write_us", NUMBER, COUNTER, "us", "time of the writes, summed")          \
	X(DISK_BUSY_US, "busy_us", NUMBER, COUNTER, "us", "something was under way")               \
	X(DISK_WAIT_US, "wait_us", NUMBER, COUNTER, "us", "the same times how much was under way") \
	X(DISK_IN_FLIGHT, "in_flight", NUMBER, GAUGE, "", "requests under way")

#define FS_COLUMNS(X)                                                                         \
	X(FS_MOUNT, "mount", TEXT, KEY, "", "text.id: where it is mounted")                   \
	X(FS_SOURCE, "source", TEXT, GAUGE, "", "text.id: its device or server")              \
	X(FS_TYPE, "fstype", TEXT, GAUGE, "", "text.id: ext4, btrfs, overlay, nfs4, ...")     \
	X(FS_SIZE, "size", NUMBER, GAUGE, "bytes", "all of it")                               \
	X(FS_FREE, "free", NUMBER, GAUGE, "bytes", "unused")                                  \
	X(FS_AVAILABLE, "available", NUMBER, GAUGE, "bytes", "unused, and not kept for root") \
	X(FS_INODES, "inodes", NUMBER, GAUGE, "", "files that it can have; 0: no limit")      \
	X(FS_INODES_FREE, "inodes_free", NUMBER, GAUGE, "", "of those, unused")               \
	X(FS_READ_ONLY, "read_only", NUMBER, GAUGE, "", "1: nothing can be written")          \
	X(FS_HANGS, "hangs", NUMBER, GAUGE, "", "1: it did not answer in time; its sizes are NULL")

#define NIC_COLUMNS(X)                                                                       \
	X(NIC_NAME, "interface", TEXT, KEY, "", "text.id: eth0, wlan0, docker0, veth12ab")   \
	X(NIC_CONTAINER, "container", CONTAINER, KEY, "",                                    \
	  "container.id: in whose namespace it is; 0: the host's")                           \
	X(NIC_RX_BYTES, "rx_bytes", NUMBER, COUNTER, "bytes", "received")                    \
	X(NIC_RX_PACKETS, "rx_packets", NUMBER, TALLY, "", "packets received")               \
	X(NIC_RX_ERRORS, "rx_errors", NUMBER, COUNTER, "", "packets received damaged")       \
	X(NIC_RX_DROPS, "rx_drops", NUMBER, COUNTER, "", "packets received and dropped")     \
	X(NIC_TX_BYTES, "tx_bytes", NUMBER, COUNTER, "bytes", "sent")                        \
	X(NIC_TX_PACKETS, "tx_packets", NUMBER, TALLY, "", "packets sent")                   \
	X(NIC_TX_ERRORS, "tx_errors", NUMBER, COUNTER, "", "packets that could not be sent") \
	X(NIC_TX_DROPS, "tx_drops", NUMBER, COUNTER, "", "packets dropped instead of sent")

#define SENSOR_COLUMNS(X)                                                                        \
	X(SENSOR_NAME, "sensor", TEXT, KEY, "", "text.id: x86_pkg_temp, acpitz, ...")            \
	X(SENSOR_TEMPERATURE, "temperature_m", NUMBER, GAUGE, "thousandths of a degree Celsius", \
	  "temperature")

#define CGROUP_COLUMNS(X)                                                                          \
	X(CGROUP_PATH, "cgroup", TEXT, KEY, "", "text.id: its path in the hierarchy")              \
	X(CGROUP_CONTAINER, "container", CONTAINER, GAUGE, "",                                     \
	  "container.id, if it is a container's; 0: none")                                         \
	X(CGROUP_UNIT, "unit", TEXT, GAUGE, "",                                                    \
	  "text.id: systemd unit, if it is a unit's; 0: none")                                     \
	X(CGROUP_USER, "user_us", NUMBER, COUNTER, "us", "CPU time of programs")                   \
	X(CGROUP_SYSTEM, "system_us", NUMBER, COUNTER, "us", "CPU time in the kernel")             \
	X(CGROUP_PERIODS, "periods", NUMBER, TALLY, "",                                            \
	  "periods of its CPU limit in which it ran")                                              \
	X(CGROUP_THROTTLED, "throttled", NUMBER, COUNTER, "", "of those, in which it was stopped") \
	X(CGROUP_THROTTLED_US, "throttled_us", NUMBER, COUNTER, "us",                              \
	  "stopped, all CPUs together")                                                            \
	X(CGROUP_CPU_LIMIT, "cpu_limit_m", NUMBER, GAUGE, "thousandths of a CPU",                  \
	  "limit; NULL: none")                                                                     \
	X(CGROUP_MEM, "mem", NUMBER, GAUGE, "bytes", "memory with files that are kept in memory")  \
	X(CGROUP_WORKING, "working", NUMBER, GAUGE, "bytes",                                       \
	  "the same without files not used lately")                                                \
	X(CGROUP_ANON, "anon", NUMBER, GAUGE, "bytes",                                             \
	  "programs' own memory, and shared memory and tmpfs: what the kernel cannot reclaim")     \
	X(CGROUP_FILE, "file", NUMBER, GAUGE, "bytes", "files in memory")                          \
	X(CGROUP_KERNEL, "kernel", NUMBER, GAUGE, "bytes", "the kernel's memory for it")           \
	X(CGROUP_SWAP, "swap", NUMBER, GAUGE, "bytes", "in swap")                                  \
	X(CGROUP_MEM_LIMIT, "mem_limit", NUMBER, GAUGE, "bytes", "limit of mem; NULL: none")       \
	X(CGROUP_SWAP_LIMIT, "swap_limit", NUMBER, GAUGE, "bytes", "limit of swap; NULL: none")    \
	X(CGROUP_MAJFLT, "majflt", NUMBER, COUNTER, "", "page faults that read from a disk")       \
	X(CGROUP_MEM_HIGH, "mem_high", NUMBER, COUNTER, "",                                        \
	  "times it was slowed down at its upper mark")                                            \
	X(CGROUP_MEM_MAX, "mem_max", NUMBER, COUNTER, "", "times it reached its limit")            \
	X(CGROUP_OOM_KILLS, "oom_kills", NUMBER, COUNTER, "",                                      \
	  "processes killed because memory ran out")                                               \
	X(CGROUP_PSI_CPU, "psi_cpu_us", NUMBER, TALLY, "us", "some thread waited for a CPU")       \
	X(CGROUP_PSI_MEM, "psi_mem_us", NUMBER, COUNTER, "us", "some thread waited for memory")    \
	X(CGROUP_PSI_MEM_FULL, "psi_mem_full_us", NUMBER, COUNTER, "us",                           \
	  "all that could run waited for memory")                                                  \
	X(CGROUP_PSI_IO, "psi_io_us", NUMBER, COUNTER, "us", "some thread waited for a disk")      \
	X(CGROUP_PSI_IO_FULL, "psi_io_full_us", NUMBER, COUNTER, "us",                             \
	  "all that could run waited for a disk")                                                  \
	X(CGROUP_READ_BYTES, "read_bytes", NUMBER, COUNTER, "bytes", "read from disks")            \
	X(CGROUP_WRITE_BYTES, "write_bytes", NUMBER, COUNTER, "bytes", "written to disks")         \
	X(CGROUP_READS, "reads", NUMBER, TALLY, "", "reads from disks")                            \
	X(CGROUP_WRITES, "writes", NUMBER, TALLY, "", "writes to disks")                           \
	X(CGROUP_RX_BYTES, "rx_bytes", NUMBER, COUNTER, "bytes",                                   \
	  "received in its network namespace; NULL: it is the host's")                             \
	X(CGROUP_RX_PACKETS, "rx_packets", NUMBER, TALLY, "", "packets received")                  \
	X(CGROUP_RX_DROPS, "rx_drops", NUMBER, COUNTER, "",                                        \
	  "packets received damaged or thrown away")                                               \
	X(CGROUP_TX_BYTES, "tx_bytes", NUMBER, COUNTER, "bytes", "sent")                           \
	X(CGROUP_TX_PACKETS, "tx_packets", NUMBER, TALLY, "", "packets sent")                      \
	X(CGROUP_TX_DROPS, "tx_drops", NUMBER, COUNTER, "", "packets not sent")                    \
	X(CGROUP_PIDS, "pids", NUMBER, GAUGE, "", "processes and threads")                         \
	X(CGROUP_PIDS_LIMIT, "pids_limit", NUMBER, GAUGE, "", "limit; NULL: none")

#define CGROUP_DISK_COLUMNS(X)                                                             \
	X(CGROUP_DISK_PATH, "cgroup", TEXT, KEY, "", "text.id: its path in the hierarchy") \
	X(CGROUP_DISK_NAME, "disk", TEXT, KEY, "", "text.id: as in disk_row")              \
	X(CGROUP_DISK_READ_BYTES, "read_bytes", NUMBER, COUNTER, "bytes", "read")          \
	X(CGROUP_DISK_WRITE_BYTES, "write_bytes", NUMBER, COUNTER, "bytes", "written")     \
	X(CGROUP_DISK_READS, "reads", NUMBER, TALLY, "", "reads")                          \
	X(CGROUP_DISK_WRITES, "writes", NUMBER, TALLY, "", "writes")

#define PROCESS_COLUMNS(X)                                                                        \
	X(PROCESS_ID, "process", PROCESS, KEY, "", "process.id")                                  \
	X(PROCESS_USER, "user_us", NUMBER, COUNTER, "us", "CPU time in user mode")                \
	X(PROCESS_SYSTEM, "system_us", NUMBER, COUNTER, "us", "CPU time in the kernel")           \
	X(PROCESS_DELAY, "runq_us", NUMBER, TALLY, "us",                                          \
	  "could run and waited for a CPU; NULL: it has more threads than one")                   \
	X(PROCESS_MINFLT, "minflt", NUMBER, TALLY, "", "page faults that read from no disk")      \
	X(PROCESS_MAJFLT, "majflt", NUMBER, COUNTER, "", "page faults that read from a disk")     \
	X(PROCESS_READ_BYTES, "read_bytes", NUMBER, COUNTER, "bytes", "read from disks")          \
	X(PROCESS_WRITE_BYTES, "write_bytes", NUMBER, COUNTER, "bytes", "to be written to disks") \
	X(PROCESS_RSS, "rss", NUMBER, GAUGE, "bytes", "memory in use, what is shared too")        \
	X(PROCESS_SWAP, "swap", NUMBER, GAUGE, "bytes", "in swap")                                \
	X(PROCESS_THREADS, "threads", NUMBER, GAUGE, "", "threads")                               \
	X(PROCESS_FDS, "fds", NUMBER, GAUGE, "", "open files")

#define ENDED_COLUMNS(X)                                                                        \
	X(ENDED_CGROUP, "cgroup", TEXT, KEY, "",                                                \
	  "text.id: path in which they ended; of a container its own")                          \
	X(ENDED_COMM, "comm", TEXT, KEY, "",                                                    \
	  "text.id: command at the end; empty: many different ones")                            \
	X(ENDED_CONTAINER, "container", CONTAINER, GAUGE, "",                                   \
	  "container.id: whose they were; 0: of none")                                          \
	X(ENDED_SELF, "self", NUMBER, GAUGE, "", "1: they were sonde's own")                    \
	X(ENDED_N, "n", NUMBER, COUNTER, "", "how many ended")                                  \
	X(ENDED_USER, "user_us", NUMBER, COUNTER, "us", "CPU time in user mode")                \
	X(ENDED_SYSTEM, "system_us", NUMBER, COUNTER, "us", "CPU time in the kernel")           \
	X(ENDED_DELAY, "runq_us", NUMBER, TALLY, "us",                                          \
	  "could run and waited for a CPU, those of one thread")                                \
	X(ENDED_MINFLT, "minflt", NUMBER, TALLY, "", "page faults that read from no disk")      \
	X(ENDED_MAJFLT, "majflt", NUMBER, COUNTER, "", "page faults that read from a disk")     \
	X(ENDED_READ_BYTES, "read_bytes", NUMBER, COUNTER, "bytes", "read from disks")          \
	X(ENDED_WRITE_BYTES, "write_bytes", NUMBER, COUNTER, "bytes", "to be written to disks") \
	X(ENDED_LIVED, "lived_us", NUMBER, TALLY, "us", "from start to end, summed")            \
	X(ENDED_RSS_MAX, "rss_max", NUMBER, GAUGE, "bytes",                                     \
	  "highest memory use of one of them, as of wait4(2)")

#define EVENT_COLUMNS(X)                                                                 \
	X(EVENT_KIND, "kind", TEXT, KEY, "",                                             \
	  "text.id: what happened: started, stopped, throttled, full, ...")              \
	X(EVENT_SUBJECT, "subject", TEXT, KEY, "",                                       \
	  "text.id: to what: container, unit, cgroup, file system, process, host")       \
	X(EVENT_NAME, "name", TEXT, KEY, "", "text.id: its name")                        \
	X(EVENT_DETAIL, "detail", TEXT, KEY, "", "text.id: details in words")            \
	X(EVENT_WHICH, "which", TEXT, GAUGE, "",                                         \
	  "text.id: id of the container, path of the cgroup, source of the file system") \
	X(EVENT_PROCESS, "process", PROCESS, GAUGE, "",                                  \
	  "process.id: a container's first one, who was killed; 0: none")                \
	X(EVENT_BY, "caused_by", TEXT, GAUGE, "", "text.id: the cause")                  \
	X(EVENT_N, "n", NUMBER, COUNTER, "", "how often")                                \
	X(EVENT_AT, "at_us", NUMBER, GAUGE, "us", "when, for the last time, since 1970")

#define OOM_COLUMNS(X)                                                                          \
	X(OOM_VICTIM, "victim", PROCESS, KEY, "", "process.id: who was killed")                 \
	X(OOM_CGROUP, "cgroup", TEXT, GAUGE, "",                                                \
	  "text.id: whose limit was reached; empty: the host had no memory left")               \
	X(OOM_OF, "victim_cgroup", TEXT, GAUGE, "", "text.id: in which cgroup it was")          \
	X(OOM_ASKED, "asked_by", TEXT, GAUGE, "", "text.id: command that asked for the memory") \
	X(OOM_LIMIT, "mem_limit", NUMBER, GAUGE, "bytes", "the limit; NULL: unknown")           \
	X(OOM_USAGE, "mem", NUMBER, GAUGE, "bytes", "memory of the cgroup")                     \
	X(OOM_ANON, "anon", NUMBER, GAUGE, "bytes", "private memory of the victim")             \
	X(OOM_FILE, "file", NUMBER, GAUGE, "bytes", "files in the victim's memory")             \
	X(OOM_SHMEM, "shmem", NUMBER, GAUGE, "bytes", "shared memory of the victim")            \
	X(OOM_AT, "at_us", NUMBER, GAUGE, "us", "when, since 1970")

#define OOM_TASK_COLUMNS(X)                                                         \
	X(OOM_TASK_VICTIM, "victim", PROCESS, KEY, "", "process.id: as in oom_row") \
	X(OOM_TASK_HOLDER, "holder", TEXT, KEY, "",                                 \
	  "text.id: command and pid of who held memory then")                       \
	X(OOM_TASK_COMM, "comm", TEXT, GAUGE, "", "text.id: its command")           \
	X(OOM_TASK_PID, "pid", NUMBER, GAUGE, "", "its pid")                        \
	X(OOM_TASK_RSS, "rss", NUMBER, GAUGE, "bytes", "memory in use")             \
	X(OOM_TASK_SWAP, "swap", NUMBER, GAUGE, "bytes", "in swap")

#define FDS_COLUMNS(X)                                            \
	X(FDS_PROCESS, "process", PROCESS, KEY, "", "process.id") \
	X(FDS_OPEN, "fds", NUMBER, GAUGE, "", "open files")       \
	X(FDS_LIMIT, "fds_limit", NUMBER, GAUGE, "",              \
	  "how many it may have (RLIMIT_NOFILE, the soft one)")

#define PROCESS_MEM_COLUMNS(X)                                       \
	X(PROCESS_MEM_ID, "process", PROCESS, KEY, "", "process.id") \
	X(PROCESS_MEM_FILE, "file", NUMBER, GAUGE, "bytes",          \
	  "files in its memory, which the kernel can drop")          \
	X(PROCESS_MEM_SHMEM, "shmem", NUMBER, GAUGE, "bytes",        \
	  "shared memory and tmpfs in its memory")

#define FILL_COLUMNS(X)                                                                            \
	X(FILL_MOUNT, "mount", TEXT, KEY, "", "text.id: the file system, as in fs_row")            \
	X(FILL_KIND, "kind", TEXT, KEY, "", "text.id: folder, file, deleted")                      \
	X(FILL_PATH, "path", TEXT, KEY, "",                                                        \
	  "text.id: its path, of a container's file as the container sees it; cut in front if it " \
	  "is long")                                                                               \
	X(FILL_CONTAINER, "container", CONTAINER, KEY, "",                                         \
	  "container.id: in whose layers it lies; 0: of none")                                     \
	X(FILL_PROCESS, "process", PROCESS, GAUGE, "",                                             \
	  "process.id: of a deleted file who has it open; 0: not known")                           \
	X(FILL_BYTES, "bytes", NUMBER, GAUGE, "bytes",                                             \
	  "on the disk; of a folder what lies right in it")                                        \
	X(FILL_HOUR, "hour", NUMBER, GAUGE, "bytes",                                               \
	  "of those, in files that were written to in the last hour")                              \
	X(FILL_HOURS, "hours", NUMBER, GAUGE, "bytes", "the same of the last six hours")           \
	X(FILL_DAY, "day", NUMBER, GAUGE, "bytes", "of the last day")                              \
	X(FILL_WEEK, "week", NUMBER, GAUGE, "bytes", "of the last seven days")

enum host_column { HOST_COLUMNS(FACT_ID) HOST_N };
enum disk_column { DISK_COLUMNS(FACT_ID) DISK_N };
enum fs_column { FS_COLUMNS(FACT_ID) FS_N };
enum nic_column { NIC_COLUMNS(FACT_ID) NIC_N };
enum sensor_column { SENSOR_COLUMNS(FACT_ID) SENSOR_N };
enum cgroup_column { CGROUP_COLUMNS(FACT_ID) CGROUP_N };
enum cgroup_disk_column { CGROUP_DISK_COLUMNS(FACT_ID) CGROUP_DISK_N };
enum process_column { PROCESS_COLUMNS(FACT_ID) PROCESS_N };
enum ended_column { ENDED_COLUMNS(FACT_ID) ENDED_N_COLUMNS };
#define EVENT_LOG_COLUMNS(X)                                                                       \
	X(EVENT_LOG_WHICH, "which", TEXT, KEY, "",                                                 \
	  "text.id: id of the container, as in event_row")                                         \
	X(EVENT_LOG_AT, "at_us", TAG, KEY, "", "when it ended, as in event_row")                   \
	X(EVENT_LOG_NTH, "nth", TAG, KEY, "", "which line, from 1 on: the last one is the newest") \
	X(EVENT_LOG_LINE, "line", TEXT, GAUGE, "", "text.id: the line, secrets masked")            \
	X(EVENT_LOG_CUT, "cut", NUMBER, GAUGE, "", "1: it is longer than what is here")

enum event_log_column { EVENT_LOG_COLUMNS(FACT_ID) EVENT_LOG_N };
enum event_column { EVENT_COLUMNS(FACT_ID) EVENT_N_COLUMNS };
enum oom_column { OOM_COLUMNS(FACT_ID) OOM_N };
enum fds_column { FDS_COLUMNS(FACT_ID) FDS_N };
enum oom_task_column { OOM_TASK_COLUMNS(FACT_ID) OOM_TASK_N };
enum process_mem_column { PROCESS_MEM_COLUMNS(FACT_ID) PROCESS_MEM_N };
enum fill_column { FILL_COLUMNS(FACT_ID) FILL_N };

extern const struct fact HOST_FACT, DISK_FACT, FS_FACT, NIC_FACT, SENSOR_FACT, CGROUP_FACT,
	CGROUP_DISK_FACT, PROCESS_FACT, EVENT_FACT, OOM_FACT, OOM_TASK_FACT, FDS_FACT, ENDED_FACT,
	EVENT_LOG_FACT, PROCESS_MEM_FACT, FILL_FACT;

#endif
