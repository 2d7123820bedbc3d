// SPDX-License-Identifier: Apache-2.0
// Leak: keeps KIB more each 20 ms outside the heap, SECONDS long; says how many bytes. Leak KIB SECONDS [none|heap]: on the heap, and drops it each 4 MiB, or never
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

public class Leak {
	static final List<Object> kept = new ArrayList<>();

	static void leaky(int bytes) {
		ByteBuffer b = ByteBuffer.allocateDirect(bytes);
		for (int i = 0; i < bytes; i += 4096)
			b.put(i, (byte) 1);
		kept.add(b);
	}

	static void cached(int bytes) {
		kept.add(new byte[bytes]);
		if (kept.size() * (long) bytes > 4 << 20)
			kept.clear();
	}

	static void held(int bytes) {
		kept.add(new byte[bytes]);
	}

	public static void main(String[] args) throws Exception {
		int kib = Integer.parseInt(args[0]);
		for (int i = 0; i < Integer.parseInt(args[1]) * 50; i++) {
			if (args.length > 2 && args[2].equals("heap"))
				held(kib << 10);
			else if (args.length > 2)
				cached(kib << 10);
			else
				leaky(kib << 10);
			Thread.sleep(20);
		}
		System.out.println((long) kept.size() * kib * 1024);
		System.out.flush();
		System.in.read();
	}
}
