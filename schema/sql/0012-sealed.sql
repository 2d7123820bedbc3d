-- SPDX-License-Identifier: Apache-2.0
-- Migration 12: sealed days.
--
-- A sealed day (NAME Z-dNNN.db, meta 'sealed_ns') holds what the segments of `sealed` held. Its counts of samples stand in
-- blocks, exact to the bucket (schema/store/pack.h); `sample` holds their sums by the hour, so that every view
-- answers in plain sqlite3: what counts where two captures ran at once, at the hour's start, or at the first bucket of the
-- hour that is counted, or whose period it is, where those of its start are others. All else stands as in any segment.

CREATE TABLE sample_pack(  -- samples of a sealed day, in blocks that do not overlap; else empty
  ts INTEGER PRIMARY KEY,  -- its first bucket, seconds since t0
  last INTEGER NOT NULL,   -- its last bucket
  rows INTEGER NOT NULL,   -- how many (bucket, series) it holds
  n INTEGER NOT NULL,      -- their samples
  data BLOB NOT NULL       -- as schema/store/pack.h tells
) STRICT;

CREATE TABLE sealed(       -- the files whose data is in this one: where one of them is still there, it is not to be read
  name TEXT PRIMARY KEY,   -- its name in the store's folder
  created_ns INTEGER NOT NULL, -- its meta 'created_ns': another file may get the name later
  at_ns INTEGER NOT NULL,  -- when it was sealed
  rows INTEGER NOT NULL,   -- of its sample; 0 of an earlier day file, which holds what others brought
  n INTEGER NOT NULL       -- its samples
) STRICT, WITHOUT ROWID;
