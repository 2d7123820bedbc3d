-- SPDX-License-Identifier: Apache-2.0
-- Migration 21: what Go's profiles only count, as `sonde import` puts it: both numbers are the count.

INSERT INTO kind(id, name, class, unit_n, unit_value) VALUES
  (9, 'goroutine', 'gauge', 'objects', 'objects'), (10, 'threadcreate', 'counter', 'objects', 'objects');
