-- SPDX-License-Identifier: Apache-2.0
-- Migration 47: waits for memory have a class of their own. Before they were by what the thread had called: page fault, disk, other.

INSERT INTO wait_class VALUES
  (10, 'memory', 2);
