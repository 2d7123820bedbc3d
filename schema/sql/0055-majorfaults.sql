-- SPDX-License-Identifier: Apache-2.0
-- Migration 55: page faults that had to read, by stack; the stack's leaf says which file.

INSERT INTO kind VALUES
  (28, 'majorfaults', 'counter', 'events', 'events');
