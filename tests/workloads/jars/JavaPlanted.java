// SPDX-License-Identifier: Apache-2.0
// Three things are planted in it, each in a line that says so: a place that allocates, a convoy at a monitor, a slow statement that JDBC sends to PostgreSQL. It counts
// what they do. For Java 8 and newer.
//   JavaPlanted JDBC-URL; prints 0, then for each line of input, "calm N" or "storm N", does N rounds, after a storm of collections if that is asked for, and prints
//   {"crate": bytes, "waits": of 1 ms or longer, "waited": ns, "slow": statements, "slow_ns": ns, "quick": statements}
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.util.concurrent.atomic.AtomicLong;

public final class JavaPlanted {
	static final class Till {
	}

	static final Till TILL = new Till();
	static final AtomicLong waits = new AtomicLong(), waited = new AtomicLong();
	static volatile Object sink;
	static Connection db;
	static long crate, slow, slowNs, quick;

	private JavaPlanted() {
	}

	static void crate() {
		for (int i = 0; i < 3000; i++)
			sink = new byte[20000]; // planted: allocates
		crate += 3000 * 20016L;
	}

	static void pay() throws InterruptedException {
		long t = System.nanoTime();

		synchronized (TILL) { // planted: convoy
			t = System.nanoTime() - t;
			Thread.sleep(20);
		}
		if (t < 1_000_000)
			return;
		waits.incrementAndGet();
		waited.addAndGet(t);
	}

	static void convoy() throws InterruptedException {
		Thread[] all = new Thread[3];

		for (int i = 0; i < all.length; i++) {
			all[i] = new Thread(new Runnable() {
				@Override
				public void run() {
					try {
						for (int k = 0; k < 8; k++)
							pay();
					} catch (InterruptedException e) {
						return;
					}
				}
			}, "customer " + i);
			all[i].start();
		}
		for (Thread one : all)
			one.join();
	}

	static void list() throws SQLException {
		long t = System.nanoTime();

		try (PreparedStatement s = db.prepareStatement("SELECT pg_sleep(0.15) AS slow")) {
			s.execute(); // planted: asks
		}
		slowNs += System.nanoTime() - t;
		slow++;
		for (int i = 0; i < 3; i++, quick++)
			try (PreparedStatement s = db.prepareStatement("SELECT 1 AS quick")) {
				s.execute();
			}
	}

	static void storm() {
		for (int i = 0; i < 20; i++) {
			byte[][] kept = new byte[40][];

			for (int k = 0; k < 4000; k++)
				kept[k % 40] = new byte[50000]; // planted: storm
			sink = kept;
			System.gc();
		}
		sink = null;
	}

	public static void main(String[] args) throws Exception {
		BufferedReader in = new BufferedReader(new InputStreamReader(System.in));

		db = DriverManager.getConnection(args[0]);
		System.out.println(0);
		for (String line; (line = in.readLine()) != null;) {
			String[] words = line.split(" ");

			crate = slow = slowNs = quick = 0;
			waits.set(0);
			waited.set(0);
			if (words[0].equals("storm"))
				storm();
			for (int i = 0; i < Integer.parseInt(words[1]); i++) {
				crate();
				convoy();
				list();
			}
			System.out.println("{\"crate\": " + crate + ", \"waits\": " + waits + ", \"waited\": " + waited + ", \"slow\": " + slow + ", \"slow_ns\": " + slowNs
					+ ", \"quick\": " + quick + "}");
		}
		System.exit(0);
	}
}
