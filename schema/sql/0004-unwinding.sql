-- SPDX-License-Identifier: Apache-2.0
-- Migration 4: why user stacks end where they do.
--
-- Counted by minute, not by sample: a stack that is cut short shows that by itself; what is asked of the reasons is which
-- programs they hit, and where. Samples of user space only: those of kernel threads have no user part.

CREATE TABLE unwound_row(  -- user stacks by how they end
  ts INTEGER NOT NULL,     -- start of the minute, seconds since t0
  run INTEGER NOT NULL,    -- run.id
  exe INTEGER NOT NULL,    -- text.id of the path of the process's executable, 0 not known
  image INTEGER NOT NULL,  -- image.id of what the outermost frame lies in; 0: none, or the stack is complete
  reason INTEGER NOT NULL, -- see unwinding_reason
  n INTEGER NOT NULL,      -- samples
  PRIMARY KEY(ts, run, exe, image, reason)
) STRICT, WITHOUT ROWID;

CREATE VIEW unwinding_reason AS
  SELECT column1 AS reason, column2 AS words FROM (VALUES
    (1, 'complete'), (2, 'its mappings were not known'), (3, 'the caller lies in no mapped code'),
    (4, 'the file''s rows were not there yet'), (5, 'a rule that cannot be expressed'),
    (6, 'the stack could not be read'), (7, 'a rule led to an impossible place'),
    (8, 'the chain of frame pointers ended'), (9, 'deeper than the limit'), (10, 'a file was replaced meanwhile'),
    (11, '32-bit code'), (12, 'its registers could not be read'), (13, 'the copy of the stack was too short'),
    (14, 'its memory was gone, by exec or exit'));

CREATE VIEW unwinding AS
  WITH summed AS (
    SELECT u.run, coalesce(t.value, '') AS executable, coalesce(i.name, '') AS module, u.reason, sum(u.n) AS samples
    FROM unwound_row u LEFT JOIN text t ON t.id = u.exe LEFT JOIN image i ON i.id = u.image
    GROUP BY 1, 2, 3, 4)
  SELECT s.run AS run_id, s.executable, s.module, coalesce(w.words, 'reason ' || s.reason) AS reason,
         iif(s.reason = 14, NULL, s.reason = 1) AS complete, s.samples,
         1.0 * s.samples / sum(s.samples) OVER (PARTITION BY s.run, s.executable) AS share
  FROM summed s LEFT JOIN unwinding_reason w ON w.reason = s.reason;
