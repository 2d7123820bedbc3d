-- SPDX-License-Identifier: Apache-2.0
-- Migration 52: pages in use, the kernel's too, by the stack that took them.

INSERT INTO kind VALUES
  (23, 'pages', 'gauge', 'objects', 'bytes');
