/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jsonshapes: the keys that each verb prints with --json, without those of every envelope
 * (tools/print/json.h), in a short notation. A shape is names with a blank between, each with a
 * mark for its value:
 *
 *   name     a text                 name{...}  an object with these
 *   name#    a whole number         name[...]  a list of objects with these
 *   name%    a number               name[$]    a list of texts; [#] and [%] of numbers
 *   name!    true or false          name{}     an object whose keys depend on the data
 *   name*    anything               name[]     a list of such objects
 *   name?[...]  a list that may be null
 *
 * A shape that begins with '=' is no envelope: another program prints it. Rows of different
 * questions to one verb (requests, --slowest, --running) are one list of keys here. After the
 * shape: its lists that are printed only if asked for by name (--with), with a comma between.
 */
#include <string.h>

#include "schema/base/array.h"
#include "tools/print/schema/jsonschema.h"

#define WRITTEN " path bytes#"
#define LATENCY "{requests# mean_ns# p50_ns# p95_ns# p99_ns# max_ns# hist[#]}"
#define OPERATION                                                                                   \
	"side container comm pid# protocol service operation status requests# per_second% errors# " \
	"latency" LATENCY " first_byte" LATENCY " queue" LATENCY                                    \
	" blind# request_bytes# response_bytes#"
#define END "{container comm pid# tid# address}"
#define RUNNING                                                                             \
	"since% since_ns# at at_ns# lasts_ns# client" END " server" END                     \
	" protocol service operation doing stack first_us# request_bytes# response_bytes# " \
	"stream! trace"
#define SUMS                                                                                      \
	" opened# open_now# tx_bytes# rx_bytes# rtt_us# attempts# refused# timed_out# "           \
	"unreachable# given_up# failed# closed# reset_in# reset_out# broken# segs_out# segs_in# " \
	"retrans# lost# rtt_sum_us# rtt_n# connect_us# life_us#"
#define EDGE                                                                    \
	"from{name kind} to{name kind} protocol port# own_port# quic path" SUMS \
	" requests# errors# p95_ns#"
#define DISK_HIST "[us# n#]"
#define DISK_SUMS                                                                                   \
	" reads# read_bytes# read_p50_us# read_p99_us# writes# write_bytes# write_p50_us# "         \
	"write_p99_us# others# queue_us# device_us# depth% sequential# errors# read_hist" DISK_HIST \
	" write_hist" DISK_HIST
#define NEW_EDGE "[" EDGE " text since since_ns#]"
#define GREW     "[who function file line# grown_bytes# inuse_bytes#]"
#define LOG      "?[line cut!]"
#define PAIR     "{now% before%}"
#define VALUE                                                                                      \
	"{before% after% change% change_percent% before_ns# after_ns# before_samples# "            \
	"after_samples# before_n# after_n# before_value# after_value# p% q% tested! significant! " \
	"detectable%}"
#define SIDE                                                                         \
	"{what from from_ns# to to_ns# seconds% samples# n# cpu_ns# value# slices# " \
	"slice_s%}"
#define CALLERS "[function module samples# p% q% significant!]"
#define ENDED \
	"[comm container processes# cpu_used_ns# read_bytes# write_bytes# mean_lived_ns# mem_max_bytes#]"
#define USED                                                                                   \
	" cpu_ns# cpu_cores% share% samples# top_function top_share% cpu_used_ns# mem_bytes# " \
	"mem_held_bytes# read_bytes# write_bytes# rx_bytes# tx_bytes# gpu_ns# gpu_mem_bytes# disk_ns# fsync_ns#"
#define PROCESSES                                                                               \
	"rows[pid# ppid# parent_comm uid# user comm exe args container container_id unit lang " \
	"runtime started started_ns# ended ended_ns# how status#" USED                          \
	" host offcpu_ns# runqueue_ns# inuse_bytes# alloc_bytes# mem_limit_bytes# "             \
	"ended_processes# cpu_unattributed_ns# io_of_processes!] cpu_ns# ended" ENDED           \
	" ended_total# cpu_charged_ns# cpu_unattributed_ns# running[" RUNNING "] running_total#"
#define PAIRS                                                                                                  \
	"rows[container comm pid# processes# by_container by_comm by_pid# by_processes# who "                  \
	"reason idle! context function stacks[stack count# total_ns#] stacks_total# count# total_ns# share%] " \
	"summary throttled[cgroup container periods# throttled# throttled_ns#] throttled_total# steal_ns# "    \
	"cpu_time_ns#"

static const struct {
	const char *verb, *shape, *lists;
} SHAPES[] = {
	{"overview",
	 "rows[name container! cores" PAIR " memory" PAIR " disk_bytes_per_s" PAIR
	 " net_bytes_per_s" PAIR " requests" PAIR " failed" PAIR " restarts" PAIR " oom" PAIR
	 "] before_from before_from_ns# before_to before_to_ns# recording! host{cores" PAIR
	 " cpus% load1" PAIR " waited_cpu" PAIR " waited_memory" PAIR " waited_io" PAIR
	 " memory_used" PAIR " memory_total% swapped_pages" PAIR " busiest_disk disk_busy" PAIR
	 " fsync_us" PAIR " fsyncs" PAIR " disk_errors" PAIR
	 "} checks# wrong[check level subject text command] wrong_total# "
	 "pending[check level subject text command] pending_total# slowest[now{" OPERATION
	 "} before{" OPERATION "} slower!] failing[now{" OPERATION "} before{" OPERATION
	 "} slower!] running[" RUNNING "] running_total# not_recorded[$]"},
	{"timeline",
	 "rows[from from_ns# to to_ns# who who_is processes# cpu_ns# share% cpu_cores% peak_cores% "
	 "usual_cores% deviation_cores% excess_core_seconds% top_comm top_pid# top_cpu_ns# command "
	 "last% most% most_at most_at_ns# ended ended_ns# by_column[%]] of unit cpus# step_s# "
	 "columns[from from_ns# to to_ns# recorded_ns#] cpu_by_column_ns[#] "
	 "allocated_by_column_bytes[#] inuse_by_column_bytes[#] groups[who who_is processes# "
	 "cpu_ns# by_column_ns[#]] groups_total# events[from from_ns# to to_ns# event who n# text] "
	 "events_total#"},
	{"explain",
	 "rows[text about name module type unit change difference% percent% "
	 "before{amount# samples# value% seconds% query} after{amount# samples# value% seconds% "
	 "query} mostly{function module amount_before# amount_after#} causes[what name container "
	 "pid# amount_before# amount_after# query_before query_after] since since_ns# p% q% "
	 "command what total_ns# share% n# who reason function object peer by by_tid# operation "
	 "service protocol] before_from before_from_ns# before_to before_to_ns# asked_from "
	 "asked_from_ns# asked_to asked_to_ns# slower compared[$] limits[what text command] chain{felt! "
	 "requests_known! requests# links[what who container! text before% after% unit share% "
	 "sure command] others not_recorded} changed! detectable% unit incidents[container text "
	 "restarts# oom# restarts_before# oom_before# grew?" GREW
	 "] incidents_total# happened[time time_ns# kind name text] "
	 "happened_total# logged[source level pattern before# after# text failed{errors# requests# service operation status}] hung[" RUNNING
	 " text] hung_total# new_connections" NEW_EDGE
	 " new_connections_total# requests# side services[container comm requests# took_ns#] took_ns# slower_us#"},
	{"events",
	 "rows[first first_ns# last last_ns# kind subject name which detail container comm pid# "
	 "caused_by count# bad! text log" LOG "]"},
	{"oom",
	 "rows[time time_ns# comm pid# container kernel_told! cgroup own_limit! asked_by "
	 "limit_bytes# used_bytes# anon_bytes# file_bytes# shmem_bytes# tasks[name pid# bytes#] "
	 "containers[name pid# bytes#] memory[from from_ns# bytes#] hottest[function share%] "
	 "log" LOG " grew" GREW "]"},
	{"check",
	 "rows[check state level subject value% unit threshold% for_minutes# lasted_minutes# text evidence?[] "
	 "command summary threshold_is window_minutes# needs own! query] checks# bad# pending# recovered# "
	 "not_measured#"},
	{"ps", PROCESSES, "ended"},
	{"top", PROCESSES, "ended,running"},
	{"containers",
	 "rows[container container_id image processes# top_comm top_pid# restarts# oom# "
	 "throttled_ns#" USED " host ended_processes# cpu_unattributed_ns# io_of_processes! "
	 "mem_limit_bytes#] cpu_ns# ended" ENDED
	 " ended_total# cpu_charged_ns# cpu_unattributed_ns#",
	 "ended"},
	{"stacks",
	 "rows[function module file inlined! self_ns# self_samples# self_cores% total_ns# "
	 "total_samples# total_cores% self_value# self_n# total_value# total_n# path[$] cpu_ns# "
	 "samples# cores% value# n# share%] type unit counted cpu_ns# samples# cores% value# n#"},
	{"lines", "rows[function module file line# inlined! self_ns# total_ns# self_samples# "
		  "total_samples# self_share% total_share% text] functions#"},
	{"heap", "rows[who use function module file line# inuse_bytes# inuse_objects# alloc_bytes# "
		 "alloc_objects# growth_bytes_per_s% grown_bytes#] touched! java[#]"},
	{"flame",
	 "rows[id# parent# name module file line# origin runtime named! inlined! self_ns# "
	 "total_ns# self_samples# total_samples# self_value# total_value# self_n# total_n#" WRITTEN
	 "] host kernel cpus# period_ns# type unit count_unit counted cumulative! recorded_ns# samples# "
	 "cpu_ns# unnamed_ns# n# value# unnamed_value# elided# losses[reason n# from from_ns# to "
	 "to_ns#] shed[$]"},
	{"diff",
	 "rows[function module file inlined! significant! since since_ns# new_callers" CALLERS
	 " gone_callers" CALLERS " new_callers_total# gone_callers_total# self" VALUE " total" VALUE
	 " id# parent# name origin before_self_ns# after_self_ns# before_total_ns# "
	 "after_total_ns# before_self_samples# after_self_samples# before_total_samples# "
	 "after_total_samples#" WRITTEN "] type unit test alpha% before" SIDE " after" SIDE
	 " all" VALUE " functions_tested# functions_significant# new_connections" NEW_EDGE
	 " new_connections_total#"},
	{"waits",
	 "rows[pid# processes# comm thread container reason purpose purpose_ns# idle! timer_ns# "
	 "background! partial! exact! count# count_error# total_ns# total_error_ns# max_ns# function object peer by_thread "
	 "by_tid# p50_ns# p95_ns# p99_ns# by_container by_comm by_pid# by_processes# who context "
	 "stacks[stack count# total_ns#] stacks_total# share%] summary throttled[cgroup container periods# "
	 "throttled# throttled_ns#] throttled_total# java[pid# comm container kind class owner waits# total_ns# place idle!] java_total# "
	 "idle_hidden# idle_hidden_ns# steal_ns# cpu_time_ns#"},
	{"neighbours", PAIRS},
	{"wakers", PAIRS},
	{"logs",
	 "rows[level messages# source container comm pid# pattern sample first first_ns# last last_ns# "
	 "before# new!] sources[source kind container lines# bytes# errors# warnings# burst_lines# cuts# "
	 "messages{unknown# debug# info# warning# error# fatal#}] sources_total#"},
	{"disk",
	 "rows[disk" DISK_SUMS
	 " busy_us# in_flight# under[$] pid# comm container us# time time_ns# op "
	 "bytes# sector# thread failed! stack[$] call calls# lasting_us# p50_us# p99_us# hist" DISK_HIST
	 " file seen opens# error disk_bytes# lock waits# longest_us# holder holder_pid# "
	 "path later_bytes# deleted_bytes# dirty_bytes# grown_bytes# mount size# left# filled_bytes# full_s% inodes# inodes_left# holders# "
	 "ino# by[file comm container pid# grown_bytes# written_bytes#]] bytes# who[pid# comm container disk us#" DISK_SUMS
	 "] who_total# seconds%"},
	{"net",
	 "rows[who{container comm pid#} side other{container comm pid#} peer peer_name class "
	 "protocol port# quic path" SUMS " address open_to backlog# backlog_max# dropped# "
	 "repeated#]"},
	{"map",
	 "rows[" EDGE WRITTEN "] requests_unplaced# drawing{width# height# left_out# nodes[name "
	 "kind label said x# y# w# h#] links[from# to# first_row# rows# path head thick# trouble! "
	 "x# y# w# lines[text trouble!] title]}"},
	{"requests",
	 "rows[" OPERATION
	 " time% at at_ns# tid# result first_us# total_us# why weight# stream! trace since% since_ns# "
	 "lasts_ns# client" END " server" END
	 " doing stack] bytes{seen# parsed# skipped# blind# blind_requests#} unread_tls[comm pid# "
	 "bytes# until until_ns#] unread_tls_total# running* running_total# ended! streams# others#",
	 "unread_tls,running"},
	{"trace",
	 "rows[depth# span parent root parent_lost! joined_by unlinked_why trace time time_ns# "
	 "operation result partial! start_us# total_us# asked_by{container comm pid# tid# "
	 "total_us#} answered_by{container comm pid# tid# total_us#} protocol service status "
	 "linked_by] trees# asked# unlinked#"},
	{"sql", "rows[]"},
	{"status",
	 "rows[rec# family options state pid# from from_ns# to to_ns# bucket_seconds# period_ns# "
	 "samples# events# named_share% user_samples# complete_share% cut_short[executable "
	 "samples# complete_share% cuts[module reason samples#]] lost{} refused[why what pid# "
	 "comm] refused_total# self_cpu_ns# self_edges_cpu_ns# self_cores% self_private_bytes# self_map_bytes#] "
	 "store{path bytes# segments# damaged[$] damaged_total#} sonded{}"},
	{"doctor", "rows[family name state text fix] host ok! process{}"},
	{"record",
	 "rows[family rec# run# from from_ns# to to_ns# segment samples# seen# lost{} processes# "
	 "frames# frames_named# user_samples# user_complete# self_cores% edges_cpu_s% "
	 "first_sample_seconds% command_status#]"},
	{"report", "rows[path bytes#]"},
	{"pstack",
	 "rows[container comm pid# thread tid# state reason syscall wchan on peer watches[on peer] "
	 "more_watches# since_boot_ns# blocked_ns# gil moved! end frames[function module file "
	 "line# offset# inlined! kernel! runtime]] running# total# rest#"},
	{"probes", "=schema rows[probe args help hit_ns#]"},
	{"symbolize",
	 "rows[path build_id unnamed# without_line# names# lines# inlined# reason] fetched# total# rest#"},
	{"seal",
	 "=busy! segments# put_off# set_aside# bytes_before# bytes_after# thinned# fine_before# "
	 "fine_after# days# days_bytes#"},
	{"prune",
	 "=verb dry_run! rows[segment why bytes# counted! from to rows# events# lost#] "
	 "before{bytes# images_bytes# free_bytes# disk_bytes# segments#} after{bytes# "
	 "images_bytes# free_bytes# disk_bytes# segments#} unmet[$] budget_bytes# reserve_bytes# "
	 "age_seconds# keep_days# thinned# fine_before# fine_after# fine_seconds# history_begins"},
	{"replay",
	 "=rows[protocol service operation count# ok# errors# one_way# opened# no_answer# blind# "
	 "sum_ns# p50_ns# p95_ns# p99_ns# max_ns# request_bytes# response_bytes# statuses{}] "
	 "capture{packets# other_packets# fragments# bytes# connections# datagram_flows# evicted# "
	 "repeated_bytes# missing_bytes# blind_bytes# unknown_connections# unknown_bytes# "
	 "unfinished#}"},
	{"help",
	 "rows[verb now summary usage examples[$] more options[name letter arg repeatable! help] "
	 "json[name letter arg repeatable! help] store[name letter arg repeatable! help] "
	 "range[name letter arg repeatable! help] filters[name letter arg repeatable! help] "
	 "common[name letter arg repeatable! help]]"},
	{"version", "rows[version sqlite]"},
};

const char *jsonshape_of(const char *verb)
{
	for (size_t i = 0; i < ARRAY_SIZE(SHAPES); i++)
		if (!strcmp(SHAPES[i].verb, verb))
			return SHAPES[i].shape;
	return NULL;
}

const char *jsonshape_lists(const char *verb)
{
	for (size_t i = 0; i < ARRAY_SIZE(SHAPES); i++)
		if (!strcmp(SHAPES[i].verb, verb))
			return SHAPES[i].lists;
	return NULL;
}
