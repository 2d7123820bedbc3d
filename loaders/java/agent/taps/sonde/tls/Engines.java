/* SPDX-License-Identifier: Apache-2.0 */
package sonde.tls;

import java.lang.ref.ReferenceQueue;
import java.lang.ref.WeakReference;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;

/** A number for each object, which no other one gets, as long as it lives. */
final class Engines {
	private final ConcurrentHashMap<Object, Long> numbers = new ConcurrentHashMap<Object, Long>();
	private final ReferenceQueue<Object> gone = new ReferenceQueue<Object>();
	private final AtomicLong last;

	private static final class Key extends WeakReference<Object> {
		private final int hash;

		Key(Object of, ReferenceQueue<Object> gone) {
			super(of, gone);
			hash = System.identityHashCode(of);
		}

		@Override
		public int hashCode() {
			return hash;
		}

		@Override
		public boolean equals(Object o) {
			Object of = get();

			return this == o || of != null && of == (o instanceof Key ? ((Key) o).get() : ((Same) o).of);
		}
	}

	/** Asks for one, and keeps nothing. */
	private static final class Same {
		private final Object of;

		Same(Object of) {
			this.of = of;
		}

		@Override
		public int hashCode() {
			return System.identityHashCode(of);
		}

		@Override
		public boolean equals(Object o) {
			return o instanceof Key && ((Key) o).get() == of;
		}
	}

	/** Those of another recording are other numbers. */
	Engines(long secret) {
		last = new AtomicLong(secret >>> 2);
	}

	long numberOf(Object of) {
		Long n = numbers.get(new Same(of));
		Long mine;

		if (n != null)
			return n;
		for (Object k; (k = gone.poll()) != null;)
			numbers.remove(k);
		mine = last.incrementAndGet();
		n = numbers.putIfAbsent(new Key(of, gone), mine);
		return n == null ? mine : n;
	}
}
