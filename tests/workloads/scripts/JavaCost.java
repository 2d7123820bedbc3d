// SPDX-License-Identifier: Apache-2.0
// What a program does in a given amount of work: for each line of input "HOW N" it does that, and prints CPU time, of the threads that work and of the whole program
// (in steps of 10 ms), and the time that passed. For Java 8 and newer.
//   small: N times 1000 objects of 24 bytes by each of two threads; arrays: N times 10 arrays of 64 KB; locks: N turns by each of four threads at one monitor,
//   each holds it for some microseconds
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.util.concurrent.atomic.AtomicLong;

public final class JavaCost {
	static final class Small {
		final long a;

		Small(long a) {
			this.a = a;
		}
	}

	private static final Object TILL = new Object();
	static volatile Object sink;
	private static long kept;

	private JavaCost() {
	}

	private static void small(int n) {
		for (int i = 0; i < n; i++) {
			Small[] some = new Small[1000];

			for (int k = 0; k < some.length; k++)
				some[k] = new Small(k);
			sink = some;
		}
	}

	private static void arrays(int n) {
		for (int i = 0; i < n; i++)
			for (int k = 0; k < 10; k++)
				sink = new byte[65536];
	}

	private static void locks(int n) {
		for (int i = 0; i < n; i++) {
			synchronized (TILL) {
				for (int k = 0; k < 4000; k++)
					kept = kept * 31 + k;
			}
			Thread.yield();
		}
	}

	private static void work(String how, int n) {
		if (how.equals("small"))
			small(n);
		else if (how.equals("arrays"))
			arrays(n);
		else
			locks(n);
	}

	public static void main(String[] args) throws Exception {
		BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
		com.sun.management.OperatingSystemMXBean host = (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

		System.out.println(0);
		for (String line; (line = in.readLine()) != null;) {
			final String how = line.split(" ")[0];
			final int n = Integer.parseInt(line.split(" ")[1]);
			Thread[] all = new Thread[how.equals("locks") ? 4 : how.equals("small") ? 2 : 1];
			final AtomicLong threads = new AtomicLong();
			long cpu = host.getProcessCpuTime(), t = System.nanoTime();

			for (int i = 0; i < all.length; i++) {
				all[i] = new Thread(new Runnable() {
					@Override
					public void run() {
						work(how, n);
						threads.addAndGet(ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime());
					}
				}, how);
				all[i].start();
			}
			for (Thread one : all)
				one.join();
			t = System.nanoTime() - t;
			System.out.println("{\"threads_ns\": " + threads + ", \"cpu_ns\": " + (host.getProcessCpuTime() - cpu) + ", \"ns\": " + t + "}");
		}
		System.exit(0);
	}
}
