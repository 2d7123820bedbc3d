/* SPDX-License-Identifier: Apache-2.0 */
package sonde.tls;

import java.lang.reflect.Field;
import java.nio.ByteBuffer;
import java.util.Map;
import java.util.WeakHashMap;

/**
 * Reads of SSLSockets that waited for the peer when the recording began: code that runs is not patched, so what they return is
 * not seen. But the record that ends such a wait is deciphered by a method that is called then, and is patched: all its text
 * is told there. The read may take only a part of it. The rest is read by patched methods, which must not tell it again:
 * until the socket's next record is deciphered, which is when nothing is left.
 */
final class Waiting {
	private static final int TEXT = 23; /* kind of records */
	private final Field context, transport, kind, fragment;
	private final Map<Object, Boolean> told = new WeakHashMap<Object, Boolean>();
	private volatile boolean empty = true;

	private Waiting() throws Exception {
		context = of("InputRecord", "tc");
		transport = of("TransportContext", "transport");
		kind = of("Plaintext", "contentType");
		fragment = of("Plaintext", "fragment");
	}

	private static Field of(String name, String field) throws Exception {
		return Taps.reachable(Taps.field(Class.forName("sun.security.ssl." + name), field));
	}

	/** null: an old JDK, of which such reads are not seen. */
	static Waiting of() {
		try {
			return new Waiting();
		} catch (Exception e) {
			return null;
		}
	}

	boolean isEmpty() {
		return empty;
	}

	Object socketOf(Object record) throws Exception {
		return transport.get(context.get(record));
	}

	/** null: none of these has text. */
	byte[] textOf(Object socket, Object[] records) throws Exception {
		for (Object r : records) {
			ByteBuffer from = r == null || kind.getByte(r) != TEXT ? null : (ByteBuffer) fragment.get(r);

			if (from == null || !from.hasRemaining())
				continue;
			byte[] text = new byte[from.remaining()];

			from.duplicate().get(text);
			synchronized (told) {
				told.put(socket, Boolean.TRUE);
				empty = false;
			}
			return text;
		}
		return null;
	}

	boolean hasTold(Object socket) {
		if (empty)
			return false;
		synchronized (told) {
			return told.containsKey(socket);
		}
	}

	void done(Object socket) {
		synchronized (told) {
			told.remove(socket);
			empty = told.isEmpty();
		}
	}
}
