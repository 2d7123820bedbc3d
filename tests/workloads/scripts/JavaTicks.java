// SPDX-License-Identifier: Apache-2.0
// The main loop of a game's server: one thread, 20 ticks a second. Every tenth tick waits for a monitor that another thread holds, for 3 ms; from "slow" on for
// 80 ms, and another tenth calls what computes for 90 ms. Both lines say so. For Java 8 and newer.
//   JavaTicks; for each line of input ("calm", "slow") it goes on so, and prints what it has done so far:
//   {"ticks": n, "late": of more than 50 ms, "entities": ns of CPU, "light": ns of CPU, "waits": of 1 ms or longer, "waited": ns}
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;

public final class JavaTicks {
	static final class Region {
	}

	static final Region REGION = new Region();
	static final AtomicLong ticks = new AtomicLong(), late = new AtomicLong(), entities = new AtomicLong(), light = new AtomicLong(), waits = new AtomicLong(),
			waited = new AtomicLong();
	static final long TICK_NS = 50_000_000;
	static volatile boolean slow, held;
	static volatile long kept;

	private JavaTicks() {
	}

	/** Of this thread. */
	static long cpu() {
		try {
			return Long.parseLong(new String(Files.readAllBytes(Paths.get("/proc/thread-self/schedstat"))).split(" ")[0]);
		} catch (IOException e) {
			throw new RuntimeException(e);
		}
	}

	static void entities() {
		long x = 1, t = cpu(), until = System.nanoTime() + 4_000_000;

		while (System.nanoTime() < until)
			for (int i = 0; i < 10000; i++)
				x = x * 31 + (x >> 7);
		kept = x;
		entities.addAndGet(cpu() - t);
	}

	static void light() {
		long x = 1, t = cpu(), until = System.nanoTime() + 90_000_000;

		while (System.nanoTime() < until)
			for (int i = 0; i < 10000; i++)
				x = x * 33 + (x >> 5);
		kept = x;
		light.addAndGet(cpu() - t);
	}

	static void save() {
		long t;

		while (!held)
			LockSupport.parkNanos(200_000);
		t = System.nanoTime();
		synchronized (REGION) { // planted: save
			t = System.nanoTime() - t;
		}
		if (t < 1_000_000)
			return;
		waits.incrementAndGet();
		waited.addAndGet(t);
	}

	static void tick(long n) {
		entities();
		if (slow && n % 10 == 0)
			light(); // planted: light
		if (n % 10 == 5)
			save();
	}

	static void loop() {
		long next = System.nanoTime();

		for (long n = 0;; n++) {
			long t = System.nanoTime();

			tick(n);
			t = System.nanoTime() - t;
			ticks.incrementAndGet();
			if (t > TICK_NS)
				late.incrementAndGet();
			next = Math.max(next + TICK_NS, System.nanoTime());
			while (System.nanoTime() < next)
				LockSupport.parkNanos(next - System.nanoTime());
		}
	}

	static void pause(long ms) {
		try {
			Thread.sleep(ms);
		} catch (InterruptedException e) {
			return;
		}
	}

	static void autosave() {
		while (true) {
			synchronized (REGION) {
				held = true;
				pause(slow ? 80 : 3);
				held = false;
			}
			pause(20);
		}
	}

	static void start(String name, Runnable r) {
		Thread t = new Thread(r, name);

		t.setDaemon(true);
		t.start();
	}

	public static void main(String[] args) throws Exception {
		BufferedReader in = new BufferedReader(new InputStreamReader(System.in));

		start("Server thread", JavaTicks::loop);
		start("Autosave", JavaTicks::autosave);
		for (String line; (line = in.readLine()) != null;) {
			slow = line.contains("slow");
			System.out.println("{\"ticks\": " + ticks + ", \"late\": " + late + ", \"entities\": " + entities + ", \"light\": " + light + ", \"waits\": " + waits
					+ ", \"waited\": " + waited + "}");
		}
	}
}
