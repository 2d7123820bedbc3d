/* SPDX-License-Identifier: Apache-2.0 */
package sonde.tls;

import java.io.ByteArrayOutputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.lang.instrument.Instrumentation;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.security.ProtectionDomain;
import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;

/**
 * What a Java virtual machine calls when sonde loads the jar into it. The argument is one line:
 *
 * <pre>
 *   on REPORT SECRET JAR   begins: all taps are in place when this returns
 *   off REPORT             ends
 * </pre>
 *
 * REPORT is a file that exists; what came of it is written there, "ok" or why not. Nothing is thrown, because the
 * machine would print that into the program's output.
 *
 * This class and Door stay until the machine ends. All else comes from a class loader of its own, and is
 * freed with it.
 */
public final class Agent {
	private static Runnable end;

	private Agent() {
	}

	public static synchronized void agentmain(String line, Instrumentation machine) {
		String[] words = line.split(" ", 4);
		String said = "ok";

		try {
			if (end != null) {
				end.run();
				end = null;
			}
			if (words[0].equals("on"))
				end = begin(machine, words[2], words[3]);
		} catch (Throwable e) {
			while (e.getCause() != null)
				e = e.getCause();
			said = String.valueOf(e);
		}
		try (OutputStream report = new FileOutputStream(words[1])) {
			report.write(said.getBytes("UTF-8"));
		} catch (Throwable e) {
			/* who asked finds an empty report */
		}
	}

	private static Runnable begin(Instrumentation machine, String secret, String jar) throws Exception {
		try {
			Class.forName("sonde.tls.Door", false, null);
		} catch (ClassNotFoundException e) {
			open(machine, "jdk.internal.misc", Agent.class);
			Map<String, byte[]> boot = below(jar, "boot/");

			define("sonde.tls.Door$Taps", boot.get("sonde.tls.Door$Taps"));
			define("sonde.tls.Door", boot.get("sonde.tls.Door"));
		}
		return (Runnable) new Freed(below(jar, "taps/")).loadClass("sonde.tls.Taps").getConstructor(Instrumentation.class, String.class)
				.newInstance(machine, secret);
	}

	/** From Java 9 on; by reflection, because this is compiled for Java 8. */
	private static void open(Instrumentation machine, String name, Class<?> to) throws Exception {
		Class<?> module;
		Method of;

		try {
			module = Class.forName("java.lang.Module");
		} catch (ClassNotFoundException e) {
			return;
		}
		of = Class.class.getMethod("getModule");
		Instrumentation.class.getMethod("redefineModule", module, Set.class, Map.class, Map.class, Set.class, Map.class).invoke(
			machine, of.invoke(Object.class), Collections.emptySet(), Collections.emptyMap(),
			Collections.singletonMap(name, Collections.singleton(of.invoke(to))), Collections.emptySet(), Collections.emptyMap());
	}

	/**
	 * A class that the JDK's own classes find. Not by appendToBootstrapClassLoaderSearch: the machine would print a warning, and
	 * load the program's classes from its archive no longer.
	 */
	private static void define(String name, byte[] bytes) throws Exception {
		Class<?> unsafe;
		Field the;

		try {
			unsafe = Class.forName("jdk.internal.misc.Unsafe");
		} catch (ClassNotFoundException e) {
			unsafe = Class.forName("sun.misc.Unsafe");
		}
		the = unsafe.getDeclaredField("theUnsafe");
		the.setAccessible(true);
		unsafe.getMethod("defineClass", String.class, byte[].class, int.class, int.class, ClassLoader.class, ProtectionDomain.class)
				.invoke(the.get(null), name, bytes, 0, bytes.length, null, null);
	}

	private static byte[] bytes(JarFile from, JarEntry entry) throws IOException {
		try (InputStream in = from.getInputStream(entry)) {
			ByteArrayOutputStream out = new ByteArrayOutputStream();
			byte[] part = new byte[4096];

			for (int n; (n = in.read(part)) > 0;)
				out.write(part, 0, n);
			return out.toByteArray();
		}
	}

	/** The classes below a folder of the jar, all read at once: its file is removed soon. */
	private static Map<String, byte[]> below(String jar, String folder) throws IOException {
		Map<String, byte[]> found = new HashMap<String, byte[]>();

		try (JarFile from = new JarFile(jar)) {
			for (JarEntry e : Collections.list(from.entries())) {
				String name = e.getName();

				if (name.startsWith(folder) && name.endsWith(".class"))
					found.put(name.substring(folder.length(), name.length() - 6).replace('/', '.'), bytes(from, e));
			}
		}
		return found;
	}

	private static final class Freed extends ClassLoader {
		private final Map<String, byte[]> classes;

		Freed(Map<String, byte[]> classes) {
			super(null);
			this.classes = classes;
		}

		@Override
		protected Class<?> findClass(String name) throws ClassNotFoundException {
			byte[] b = classes.get(name);

			if (b == null)
				throw new ClassNotFoundException(name);
			return defineClass(name, b, 0, b.length);
		}
	}
}
