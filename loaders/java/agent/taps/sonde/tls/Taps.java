/* SPDX-License-Identifier: Apache-2.0 */
package sonde.tls;

import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.lang.instrument.ClassFileTransformer;
import java.lang.instrument.Instrumentation;
import java.lang.reflect.AccessibleObject;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.net.Socket;
import java.net.SocketImpl;
import java.nio.ByteBuffer;
import java.security.ProtectionDomain;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReferenceArray;

/**
 * Writes each piece of clear text to /dev/null, where the kernel drops it and sonde's programs see the system call: a
 * head of HEAD bytes, which is probes/l7_tls.h's struct tls_java_head, and the text. No byte leaves the process in another
 * way, and no native code is loaded. run() ends it: the classes of the JDK get their own code back.
 *
 * A socket is named by its descriptor. An engine has none: it is named by a number (Engines), and its socket is found by
 * the record that was wrapped or unwrapped, which a system call moves.
 */
public final class Taps implements Door.Taps, ClassFileTransformer, Runnable {
	private static final int HEAD = 40, TEXT_MOST = 16384, BUFFERS = 32;
	private static final int OUT = 0, IN = 1, CLOSE_TRIES = 100;

	private final Instrumentation machine;
	private final FileOutputStream nowhere;
	private final long secret;
	private final Engines engines;
	private final AtomicReferenceArray<byte[]> buffers = new AtomicReferenceArray<byte[]>(BUFFERS);
	private final Field self, socketImpl, number;
	private final Waiting waiting;
	private final Method descriptor;
	private volatile Throwable failed;
	private volatile boolean ends;
	private final AtomicInteger writers = new AtomicInteger(); /* threads that are in write() */

	public Taps(Instrumentation machine, String secret) throws Exception {
		this.machine = machine;
		this.secret = Long.parseUnsignedLong(secret, 16);
		engines = new Engines(this.secret);
		nowhere = new FileOutputStream("/dev/null");
		open();
		self = reachable(field(Class.forName("sun.security.ssl.BaseSSLSocketImpl"), "self"));
		socketImpl = reachable(field(Socket.class, "impl"));
		number = reachable(field(FileDescriptor.class, "fd"));
		descriptor = reachable(SocketImpl.class.getDeclaredMethod("getFileDescriptor"));
		/* of a Door that an older agent left: an exception now, not later in the program */
		Door.class.getMethod("decoded", Object[].class, Object.class);
		waiting = Waiting.of();
		begin();
	}

	static Field field(Class<?> of, String name) throws NoSuchFieldException {
		return of.getDeclaredField(name);
	}

	static <T extends AccessibleObject> T reachable(T of) {
		of.setAccessible(true);
		return of;
	}

	/** From Java 9 on a module must be opened to this loader; as a call of what Java 8 does not have. */
	private void open() throws Exception {
		Class<?> module;

		try {
			module = Class.forName("java.lang.Module");
		} catch (ClassNotFoundException e) {
			return;
		}
		Method of = Class.class.getMethod("getModule");
		Set<Object> us = Collections.singleton(of.invoke(Taps.class));
		Map<String, Set<Object>> opens = new java.util.HashMap<String, Set<Object>>();

		for (String p : new String[] {"java.io", "java.net", "sun.security.ssl"})
			opens.put(p, us);
		Instrumentation.class.getMethod("redefineModule", module, Set.class, Map.class, Map.class, Set.class, Map.class).invoke(
			machine, of.invoke(Object.class), Collections.singleton(of.invoke(Door.class)), Collections.emptyMap(), opens, Collections.emptySet(),
			Collections.emptyMap());
	}

	/* ---- classes ---- */

	@Override
	public byte[] transform(ClassLoader loader, String name, Class<?> was, ProtectionDomain domain, byte[] bytes) {
		if (ends || loader != null || name == null || Patch.methodsOf(name) == null)
			return null;
		try {
			byte[] patched = Patch.apply(name, bytes);

			if (patched == null && Patch.isNeeded(name))
				failed = new IOException(name + " does not have the expected methods");
			return patched;
		} catch (Throwable e) {
			failed = e;
			return null;
		}
	}

	private void retransform() throws Exception {
		List<Class<?>> which = new ArrayList<Class<?>>();

		for (Class<?> c : machine.getAllLoadedClasses())
			if (c.getClassLoader() == null && Patch.methodsOf(c.getName().replace('.', '/')) != null)
				which.add(c);
		if (!which.isEmpty())
			machine.retransformClasses(which.toArray(new Class<?>[0]));
	}

	private void begin() throws Exception {
		machine.addTransformer(this, true);
		try {
			Door.turn = new Object();
			Door.taps = this;
			retransform();
			if (failed != null)
				throw new IOException(String.valueOf(failed));
		} catch (Exception | Error e) {
			run();
			throw e;
		}
	}

	@Override
	public void run() {
		Door.taps = null;
		ends = true;
		try {
			retransform();
		} catch (Throwable e) {
			/* what is patched calls Door, which has no taps */
		}
		machine.removeTransformer(this);
		try {
			close();
		} catch (Exception e) {
			/* the collector closes it */
		}
	}

	/** A thread that still writes must not find another file behind the descriptor's number. */
	private void close() throws Exception {
		for (int i = 0; i < CLOSE_TRIES && writers.get() > 0; i++)
			Thread.sleep(10);
		if (writers.get() == 0)
			nowhere.close();
	}

	/* ---- text ---- */

	@Override
	public void moved(boolean out, Object socket, byte[] bytes, int at, int n) {
		try {
			if (!out && waiting != null && waiting.hasTold(socket))
				return;
			socketMoved(out, socket, bytes, at, n);
		} catch (Throwable e) {
			/* never into the program */
		}
	}

	@Override
	public void decoded(boolean unseen, Object record, Object[] texts) {
		try {
			if (waiting == null || !unseen && waiting.isEmpty())
				return;
			Object socket = waiting.socketOf(record);
			byte[] text = unseen ? waiting.textOf(socket, texts) : null;

			if (text != null)
				socketMoved(false, socket, text, 0, text.length);
			else if (!unseen)
				waiting.done(socket);
		} catch (Throwable e) {
			/* never into the program */
		}
	}

	private void socketMoved(boolean out, Object socket, byte[] bytes, int at, int n) throws Exception {
		int fd = fdOf(socket);

		for (int part; n > 0; at += part, n -= part) {
			byte[] b = take();

			part = Math.min(n, TEXT_MOST);
			System.arraycopy(bytes, at, b, HEAD, part);
			write(b, out, fd < 0 ? engines.numberOf(socket) : 0, 0, fd, part);
		}
	}

	@Override
	public void moved(boolean out, Object engine, long record, ByteBuffer[] buffers, Object before, int at, int len, int n) {
		try {
			int[] places = (int[]) before;
			long conn = engines.numberOf(engine);
			byte[] b = take();
			int fill = 0;

			for (int i = 0; i < len && n > 0; i++) {
				ByteBuffer from = buffers[at + i];
				int begin = places != null ? places[i] : from.position() - n;
				int some = Math.min(n, from.position() - begin);

				from = from.duplicate();
				from.position(begin);
				for (int part; some > 0; some -= part, n -= part, fill += part) {
					part = Math.min(some, TEXT_MOST - fill);
					if (part == 0) {
						write(b, out, conn, record, -1, fill);
						b = take();
						fill = 0;
					} else {
						from.get(b, HEAD + fill, part);
					}
				}
			}
			write(b, out, conn, record, -1, fill);
		} catch (Throwable e) {
			/* never into the program */
		}
	}

	private int fdOf(Object socket) throws Exception {
		Object under = self.get(socket), impl = socketImpl.get(under == null ? socket : under), fd;

		fd = impl == null ? null : descriptor.invoke(impl);
		return fd == null ? -1 : number.getInt(fd);
	}

	/* ---- buffers ---- */

	private static int slot() {
		return (int) (Thread.currentThread().getId() & BUFFERS - 1);
	}

	private byte[] take() {
		byte[] b = buffers.getAndSet(slot(), null);

		return b == null ? new byte[HEAD + TEXT_MOST] : b;
	}

	private void write(byte[] b, boolean out, long conn, long record, int fd, int n) throws IOException {
		put(b, 0, secret);
		put(b, 8, conn);
		put(b, 16, record);
		put(b, 24, fd & 0xffffffffL | (long) n << 32);
		put(b, 32, out ? OUT : IN);
		writers.incrementAndGet();
		try {
			if (!ends)
				nowhere.write(b, 0, HEAD + n);
		} finally {
			writers.decrementAndGet();
		}
		buffers.set(slot(), b);
	}

	private static void put(byte[] b, int at, long v) {
		for (int i = 0; i < 8; i++, v >>>= 8)
			b[at + i] = (byte) v;
	}
}
