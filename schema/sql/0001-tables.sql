-- SPDX-License-Identifier: Apache-2.0
-- Migration 1: the tables of a segment.
--
-- A segment is one file, complete in itself: its own dictionary, its own rows. Ids are dense, from 1, and mean
-- something in this file only; 0 is "none". Times are UTC: *_ns in nanoseconds since 1970; `ts` in seconds since the
-- segment's own origin (meta 't0'), which saves three bytes a row; the views show real times.
-- Migrations only append: a file that has been released is never edited.

CREATE TABLE meta(         -- facts about this segment
  key TEXT PRIMARY KEY,    -- schema_version, t0 (seconds since 1970), created_ns, host, kernel, boot_id, cpus
  value ANY                -- number or text
) STRICT, WITHOUT ROWID;

CREATE TABLE clock(            -- how kernel stamps became UTC: one row at the start and at each change of the wall clock
  utc_ns INTEGER PRIMARY KEY,  -- from when
  boot_offset_ns INTEGER NOT NULL  -- UTC minus CLOCK_BOOTTIME
) STRICT;

CREATE TABLE run(          -- one capture of one family
  id INTEGER PRIMARY KEY,  -- number within this file
  token INTEGER NOT NULL,  -- random; a capture that goes on in the next segment has the same token there
  family TEXT NOT NULL,    -- 'cpu'
  options TEXT NOT NULL,   -- the command line as typed
  scope INTEGER NOT NULL,  -- 0 whole host, 1 narrowed: covers wholly each process that it has, 2 covers none wholly
  bucket_s INTEGER NOT NULL,   -- width of its buckets in seconds
  cpus INTEGER NOT NULL,   -- CPUs that it watched
  from_ns INTEGER NOT NULL,    -- its data holds from here
  to_ns INTEGER NOT NULL,  -- up to here (as of the last commit)
  state INTEGER NOT NULL,  -- 0 going on, 1 ended, 2 was killed, 3 goes on in the next segment
  pid INTEGER NOT NULL,    -- of the program that wrote it
  accounted INTEGER NOT NULL   -- events stored or booked as lost so far, over all segments
) STRICT;

CREATE TABLE run_period(   -- what one sample stands for; may change while a run goes on
  run INTEGER NOT NULL,    -- run.id
  from_ns INTEGER NOT NULL,    -- for buckets that begin here or later; 0 for the first
  period_ns INTEGER NOT NULL,  -- CPU time of one sample; 0: the value is itself
  PRIMARY KEY(run, from_ns)
) STRICT, WITHOUT ROWID;

CREATE TABLE text(         -- long strings that processes share
  id INTEGER PRIMARY KEY,  -- number within this file
  value TEXT NOT NULL      -- the string
) STRICT;

CREATE TABLE container(    -- containers
  id INTEGER PRIMARY KEY,  -- number within this file
  hash INTEGER NOT NULL,   -- 31 bits of the content's hash, for look-up by writers
  name TEXT NOT NULL,      -- '' if not known
  runtime TEXT NOT NULL,   -- 'docker', 'containerd', 'podman', ...
  runtime_id TEXT NOT NULL,    -- full id, '' if none
  image TEXT NOT NULL,     -- '' if not known
  cgroup TEXT NOT NULL     -- path of its cgroup
) STRICT;
CREATE INDEX container_by_hash ON container(hash);

CREATE TABLE image(        -- files (and what stands for one) that frames lie in
  id INTEGER PRIMARY KEY,  -- number within this file
  hash INTEGER NOT NULL,   -- as in container
  kind INTEGER NOT NULL,   -- 0 ELF file, 1 kernel, 2 vDSO, 3 JIT code, 4 BPF program, 5 kernel module, 6 unknown
  name TEXT NOT NULL,      -- what people see: 'libc.so.6', '[kernel]'
  path TEXT NOT NULL,      -- as the process saw it
  build_id TEXT NOT NULL,  -- hex, '' if none
  key TEXT NOT NULL        -- file name of its image index, '' if none
) STRICT;
CREATE INDEX image_by_hash ON image(hash);

CREATE TABLE process(      -- processes that had samples; an exec begins a new one
  id INTEGER PRIMARY KEY,  -- number within this file
  pid INTEGER NOT NULL,    -- in the host's pid namespace
  ppid INTEGER NOT NULL,   -- its parent's
  uid INTEGER NOT NULL,    -- user id
  exec_id INTEGER NOT NULL,    -- the kernel's count of execs
  start_ns INTEGER NOT NULL,   -- start, UTC
  start_ticks INTEGER NOT NULL,  -- start on the boot clock, ns
  comm TEXT NOT NULL,      -- command name
  exe INTEGER NOT NULL,    -- text.id of the executable's path, 0 none
  args_base INTEGER NOT NULL,  -- text.id of a command line like this one, 0 none. The command line (masked) is:
  args_keep INTEGER NOT NULL,  -- so many first characters of that,
  args TEXT NOT NULL,      -- then this,
  args_end INTEGER NOT NULL,   -- then so many last characters of that
  cgroup INTEGER NOT NULL, -- text.id of the cgroup's path, 0 none
  unit INTEGER NOT NULL,   -- text.id of the systemd unit, 0 none
  container INTEGER NOT NULL,  -- container.id, 0 none
  self INTEGER NOT NULL    -- 1: one of sonde's own
) STRICT;
CREATE INDEX process_by_pid ON process(pid);

CREATE TABLE function(     -- functions by name
  id INTEGER PRIMARY KEY,  -- number within this file
  hash INTEGER NOT NULL,   -- as in container
  image INTEGER NOT NULL,  -- image.id of its module
  line INTEGER NOT NULL,   -- its first line, 0 if not known
  name TEXT NOT NULL,      -- demangled
  file TEXT NOT NULL       -- source file, '' if not known
) STRICT;
CREATE INDEX function_by_hash ON function(hash);

CREATE TABLE frame(        -- places in code; equal ones of two writers may stand here twice
  id INTEGER PRIMARY KEY,  -- number within this file
  image INTEGER NOT NULL,  -- image.id, 0 none
  offset INTEGER NOT NULL, -- within the file; an address where image is 0 or JIT code
  function INTEGER NOT NULL,   -- function.id, 0: has no name (yet)
  line INTEGER NOT NULL,   -- 0 if not known
  flags INTEGER NOT NULL   -- 1 inlined, 2 a leaf folded to its function (offset is that of its first byte)
) STRICT;

CREATE TABLE stack(        -- stacks, root first: the first `keep` frames of stack `base`, then `tail`, then `leaf`
  id INTEGER PRIMARY KEY,  -- number within this file
  base INTEGER NOT NULL,   -- stack.id of an earlier stack, 0: none
  keep INTEGER NOT NULL,   -- how many frames are the same as in base
  leaf INTEGER NOT NULL,   -- frame.id
  tail TEXT NOT NULL       -- frame.id of those between, with commas: '12,7,9'
) STRICT;

CREATE TABLE task(         -- whose samples: a thread of a process in a run
  id INTEGER PRIMARY KEY,  -- number within this file
  run INTEGER NOT NULL,    -- run.id
  process INTEGER NOT NULL,    -- process.id
  tid INTEGER NOT NULL,    -- thread id
  kind INTEGER NOT NULL,   -- 1 counter of CPU samples
  thread TEXT NOT NULL     -- thread name
) STRICT;
CREATE INDEX task_by_run ON task(run, process);

CREATE TABLE series(       -- what is counted: a task in a stack
  id INTEGER PRIMARY KEY,  -- number within this file
  task INTEGER NOT NULL,   -- task.id
  stack INTEGER NOT NULL   -- stack.id of the leaf, 0: no frame
) STRICT;

CREATE TABLE sample(       -- the counts
  ts INTEGER NOT NULL,     -- start of the bucket, seconds since t0
  series INTEGER NOT NULL, -- series.id
  n INTEGER NOT NULL,      -- samples in this bucket
  PRIMARY KEY(ts, series)
) STRICT, WITHOUT ROWID;

CREATE TABLE loss_row(     -- events that were lost, by reason
  ts INTEGER NOT NULL,     -- start of the bucket, seconds since t0
  run INTEGER NOT NULL,    -- run.id
  reason TEXT NOT NULL,    -- 'ring', 'maps', 'store' (the disk), 'killed' (held by a program that was killed), ...
  n INTEGER NOT NULL,      -- events
  PRIMARY KEY(ts, run, reason)
) STRICT, WITHOUT ROWID;

CREATE TABLE cost_row(     -- what measuring cost
  ts INTEGER NOT NULL,     -- start of the bucket, seconds since t0
  run INTEGER NOT NULL,    -- run.id
  program TEXT NOT NULL,   -- 'sonde-cpu', 'sonde-maps', or 'bpf:NAME' for a program in the kernel
  cpu_ns INTEGER NOT NULL, -- CPU time used in this bucket
  runs INTEGER NOT NULL,   -- how often it ran, where that is counted
  rss_bytes INTEGER NOT NULL,      -- resident memory, latest
  private_bytes INTEGER NOT NULL,  -- private memory, latest
  map_bytes INTEGER NOT NULL,      -- BPF maps, latest
  PRIMARY KEY(ts, run, program)
) STRICT, WITHOUT ROWID;
