-- SPDX-License-Identifier: Apache-2.0
-- Migration 40: a stack that found no room on its way to where it is unwound says so.

DROP VIEW unwinding_reason;

CREATE VIEW unwinding_reason AS
  SELECT column1 AS reason, column2 AS words FROM (VALUES
    (1, 'complete'), (2, 'its mappings were not known'), (3, 'the caller lies in no mapped code'),
    (4, 'the file''s rows were not there yet'), (5, 'a rule that cannot be expressed'),
    (6, 'the stack could not be read'), (7, 'a rule led to an impossible place'),
    (8, 'the chain of frame pointers ended'), (9, 'deeper than the limit'), (10, 'a file was replaced meanwhile'),
    (11, '32-bit code'), (12, 'its registers could not be read'), (13, 'the copy of the stack was too short'),
    (14, 'its memory was gone, by exec or exit'), (15, 'no room to hold it until it could be unwound'));
