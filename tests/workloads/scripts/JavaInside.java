// SPDX-License-Identifier: Apache-2.0
// Allocates in two places, waits for a monitor, parks, throws, and counts all of it. For each line of input it prints what it has done so far; it ends
// with its input. "storm" in a line: 20 000 exceptions a second from then on.
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;

public class JavaInside {
	static final class Till {
	}

	static volatile Object sink;
	static volatile boolean storm;
	static final Till TILL = new Till();
	static final AtomicLong small = new AtomicLong(), large = new AtomicLong(), waits = new AtomicLong(), waited = new AtomicLong(),
			thrown = new AtomicLong(), parked = new AtomicLong();

	static void small() {
		sink = new byte[1000]; // 1016 bytes
		small.addAndGet(1016);
	}

	static void large() {
		sink = new int[1500]; // 6016 bytes
		large.addAndGet(6016);
	}

	/** In no fixed order: in a rhythm a thread's buffer would end at the same place each time. */
	static void allocate() {
		long x = 88172645463325252L;

		while (true) {
			for (int i = 0; i < 100; i++) {
				x ^= x << 13;
				x ^= x >>> 7;
				x ^= x << 17;
				if ((x & 3) == 0)
					large();
				else
					small();
			}
			LockSupport.parkNanos(200_000);
		}
	}

	static void pause(long ms) {
		try {
			Thread.sleep(ms);
		} catch (InterruptedException e) {
			return;
		}
	}

	static void hold() {
		synchronized (TILL) {
			pause(20);
		}
	}

	static void pay() {
		long t = System.nanoTime();
		synchronized (TILL) {
			t = System.nanoTime() - t;
		}
		if (t >= 1_000_000) {
			waits.incrementAndGet();
			waited.addAndGet(t);
		}
	}

	static void refuse() {
		throw new IllegalStateException("no");
	}

	static void refuseOften() {
		while (true) {
			for (int i = 0; i < (storm ? 400 : 1); i++)
				try {
					refuse();
				} catch (IllegalStateException e) {
					thrown.incrementAndGet();
				}
			pause(20);
		}
	}

	static void doze() {
		long t = System.nanoTime();
		LockSupport.parkNanos(TILL, 15_000_000);
		parked.addAndGet(System.nanoTime() - t);
	}

	static void start(String name, Runnable r) {
		Thread t = new Thread(r, name);
		t.setDaemon(true);
		t.start();
	}

	static void say() {
		System.out.println("{\"small\": " + small + ", \"large\": " + large + ", \"waits\": " + waits + ", \"waited\": " + waited + ", \"thrown\": "
				+ thrown + ", \"parked\": " + parked + "}");
		System.out.flush();
	}

	public static void main(String[] args) throws Exception {
		BufferedReader in = new BufferedReader(new InputStreamReader(System.in));

		start("allocates", JavaInside::allocate);
		start("holds", () -> {
			while (true) {
				hold();
				pause(10);
			}
		});
		start("asks", () -> {
			while (true) {
				pay();
				pause(3);
			}
		});
		start("dozes", () -> {
			while (true)
				doze();
		});
		start("refuses", JavaInside::refuseOften);
		for (String line = in.readLine(); line != null; line = in.readLine()) {
			storm = line.contains("storm");
			say();
		}
	}
}
