-- SPDX-License-Identifier: Apache-2.0
-- Migration 44: waits for memory, by stack.

INSERT INTO kind VALUES
  (20, 'memwait', 'duration', 'events', 'ns');
