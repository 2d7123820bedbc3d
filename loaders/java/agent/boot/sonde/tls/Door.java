/* SPDX-License-Identifier: Apache-2.0 */
package sonde.tls;

import java.nio.ByteBuffer;

import javax.net.ssl.SSLEngineResult;

/**
 * What the patched methods of the JDK's TLS call (see Patch). It is found by all class loaders, and therefore stays until
 * the machine ends: it holds nothing but a reference to the taps, none where nothing is recorded.
 *
 * A method that has a result calls itself once more to get it. {@link #first} tells the two calls apart: they follow each
 * other on one thread with nothing in between.
 */
public final class Door {
	/** Must not throw. */
	public interface Taps {
		void moved(boolean out, Object socket, byte[] bytes, int at, int n);

		void moved(boolean out, Object engine, long record, ByteBuffer[] after, Object before, int at, int len, int n);

		void decoded(boolean unseen, Object record, Object[] texts);
	}

	public static volatile Taps taps;
	/** Of each recording another object, which is not the taps': threads remember it. */
	public static volatile Object turn;
	private static final ThreadLocal<Object> SEEN = new ThreadLocal<Object>();
	private static final ThreadLocal<Boolean> SECOND = new ThreadLocal<Boolean>();

	private Door() {
	}

	public static boolean first() {
		if (SECOND.get() != null) {
			SECOND.remove();
			return false;
		}
		if (taps == null) {
			SECOND.remove();
			return false;
		}
		SECOND.set(Boolean.TRUE);
		return true;
	}

	/* ---- SSLSocket ---- */

	/** From here on no call of this thread goes on that began before its method was patched. */
	public static boolean firstRead() {
		Object now = turn;

		if (SEEN.get() != now)
			SEEN.set(now);
		return first();
	}

	/**
	 * A record was deciphered. Where the thread has called no patched method it does so in a read that began, and waited for
	 * the peer, before the method was patched: its result is seen nowhere else.
	 */
	public static void decoded(Object[] texts, Object record) {
		Taps t = taps;

		if (t != null && texts != null)
			t.decoded(SEEN.get() != turn, record, texts);
	}

	public static void write(Object socket, byte[] bytes, int at, int n) {
		Taps t = taps;

		if (t != null && bytes != null && n > 0 && at >= 0 && n <= bytes.length - at)
			t.moved(true, socket, bytes, at, n);
	}

	public static int read(Object socket, byte[] bytes, int at, int n) {
		Taps t = taps;

		if (t != null && n > 0)
			t.moved(false, socket, bytes, at, n);
		return n;
	}

	/* ---- SSLEngine: a record has clear text of several buffers ---- */

	/** Of one buffer the place is known from its end. */
	public static Object before(ByteBuffer[] buffers, int at, int len) {
		if (len < 2 || buffers == null || at < 0 || len > buffers.length - at)
			return null;
		int[] places = new int[len];

		for (int i = 0; i < len; i++)
			places[i] = buffers[at + i] == null ? 0 : buffers[at + i].position();
		return places;
	}

	/** Before it is deciphered, which is done in place. */
	public static long record(ByteBuffer from) {
		return from == null ? 0 : record(from, from.position(), from.limit());
	}

	/**
	 * Eight bytes of a record that no other record has: of data those behind what may be a counter, of a hello of its
	 * random number. 0: it has none.
	 */
	private static long record(ByteBuffer b, int at, int end) {
		int type;
		long mark = 0;

		if (end - at < 21)
			return 0;
		type = b.get(at);
		if (type != 23 && (type != 22 || (b.get(at + 5) != 1 && b.get(at + 5) != 2)))
			return 0;
		for (int i = 20; i >= 13; i--)
			mark = mark << 8 | b.get(at + i) & 0xff;
		return mark;
	}

	public static SSLEngineResult unwrapped(long record, Object before, SSLEngineResult r, Object engine, ByteBuffer[] to, int at,
			int len) {
		Taps t = taps;

		if (t != null && r != null && (r.bytesProduced() > 0 || record != 0 && r.bytesConsumed() > 0))
			t.moved(false, engine, record, to, before, at, len, r.bytesProduced());
		return r;
	}

	public static SSLEngineResult wrapped(Object before, SSLEngineResult r, Object engine, ByteBuffer[] from, int at, int len,
			ByteBuffer to) {
		Taps t = taps;
		long mark;

		if (t == null || r == null || r.bytesProduced() <= 0)
			return r;
		mark = record(to, to.position() - r.bytesProduced(), to.position());
		if (mark != 0 || r.bytesConsumed() > 0)
			t.moved(true, engine, mark, from, before, at, len, r.bytesConsumed());
		return r;
	}
}
