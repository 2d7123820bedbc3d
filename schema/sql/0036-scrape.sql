-- SPDX-License-Identifier: Apache-2.0
-- Migration 36: what Go programs tell of themselves by /debug/pprof (family scrape). Kinds of their own: where sonde measures the same, neither
-- is counted into the other.

INSERT INTO kind VALUES
  (11, 'gocpu', 'counter', 'samples', 'ns'),
  (12, 'goalloc', 'counter', 'objects', 'bytes'),
  (13, 'goinuse', 'gauge', 'objects', 'bytes'),
  (14, 'goblock', 'counter', 'events', 'ns'),
  (15, 'gomutex', 'counter', 'events', 'ns');

CREATE VIEW scraped AS -- every Go program that is asked for its own profiles, also those that are not, and why
  SELECT coalesce(c.name, '') AS container, p.comm, p.pid,
         max(iif(n.key = 'version', n.value, '')) AS version, max(iif(n.key = 'state', n.value, '')) AS state,
         max(iif(n.key = 'reason', n.value, '')) AS reason, max(iif(n.key = 'address', n.value, '')) AS address,
         max(iif(n.key = 'cpu', n.value, '')) AS cpu, max(iif(n.key = 'heap', n.value, '')) AS heap,
         max(iif(n.key = 'goroutine', n.value, '')) AS goroutine, max(iif(n.key = 'block', n.value, '')) AS block,
         max(iif(n.key = 'mutex', n.value, '')) AS mutex, n.process_id, n.run_id, p.self
  FROM process_notes n JOIN process p ON p.id = n.process_id LEFT JOIN containers c ON c.id = p.container
  WHERE n.family = 'scrape' GROUP BY n.run_id, n.process_id HAVING max(n.key = 'state');
