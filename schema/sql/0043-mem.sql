-- SPDX-License-Identifier: Apache-2.0
-- Migration 43: memory by the stack that touched it first, of every program.

INSERT INTO kind VALUES
  (18, 'pagefaults', 'counter', 'events', 'bytes'),
  (19, 'mem', 'gauge', 'objects', 'bytes');
