-- SPDX-License-Identifier: Apache-2.0
-- requests-running: requests have had no answer for minutes
-- level = warning
-- threshold = 1: requests of one operation
-- for = 2: minutes
-- window = 5: minutes
-- unit = requests
-- needs = l7
-- next = sonde requests --running
WITH row AS (SELECT * FROM running_requests WHERE ts >= :from AND ts < :to),
mark AS ( -- a capture, or a parser of it, that began later knows nothing of earlier requests
  SELECT max(coalesce((SELECT max(at_ns) FROM row WHERE request = 0), 0),
             coalesce((SELECT max(r.from_ns) FROM runs r WHERE r.family = 'l7' AND r.from_ns < :to * 1000000000 AND NOT EXISTS (SELECT 1 FROM runs q
               WHERE q.family = 'l7' AND q.id <> r.id AND q.from_ns <= r.from_ns AND (q.token = r.token OR q.to_ns >= r.from_ns))), 0)) AS since_ns),
open AS ( -- the newest row of each is not its end, and not older than one is due
  SELECT request, exchange, side, protocol, service, operation, client, port, comm, container, at_ns, max(seen_ns) AS seen_ns, count(end_ns) AS ended, result, first_us
  FROM row WHERE request <> 0 GROUP BY request),
asked AS ( -- the two sides of a request count once
  SELECT o.*, (:to * 1000000000 - at_ns) / 1000000000 AS s FROM open o, mark WHERE NOT ended AND seen_ns >= since_ns
   AND seen_ns >= (:to - 90) * 1000000000 AND at_ns <= (:to - 60 * :for) * 1000000000
   AND NOT (side = 'client' AND EXISTS (SELECT 1 FROM open p WHERE p.side = 'server' AND NOT p.ended AND p.protocol = o.protocol
     AND (p.exchange = o.exchange OR p.client = o.client AND p.port = o.port AND p.service = o.service AND p.operation = o.operation)))),
work AS ( -- without streams and long polls: they last until the client leaves
  SELECT * FROM asked a WHERE NOT is_stream(a.protocol, a.service, a.operation, '', a.result, a.first_us, 1000000 * a.s))
SELECT service || ' ' || operation AS subject, count(*) AS value,
       printf('%s for %d s, since %s UTC', iif(count(*) = 1, 'it runs', 'the longest runs'), max(s), strftime('%H:%M:%S', min(at_ns) / 1000000000, 'unixepoch')) AS text
FROM work GROUP BY service, operation HAVING count(*) >= :threshold;
SELECT side, container, comm, client, port, operation, datetime(min(at_ns) / 1000000000, 'unixepoch') AS since, max(first_us) AS first_us FROM running_requests
WHERE ts >= :from AND ts < :to AND service || ' ' || operation = :subject GROUP BY request HAVING max(end_ns) IS NULL ORDER BY min(at_ns) LIMIT 5;
