// SPDX-License-Identifier: Apache-2.0
// Fills its heap and collects it, as often as it is told, then waits for a line: prints its pid and how many full collections it asked for.
import java.util.ArrayList;
import java.util.List;

public class JavaHeap {
	static List<byte[]> held = new ArrayList<>();

	public static void main(String[] args) throws Exception {
		int rounds = Integer.parseInt(args[0]);

		for (int i = 0; i < rounds; i++) {
			for (int k = 0; k < 20000; k++) {
				byte[] b = new byte[2000];

				if (k % 10 == 0)
					held.add(b);
			}
			if (i % 2 == 1)
				held.clear();
			System.gc();
		}
		System.out.println(rounds);
		System.out.flush();
		System.in.read();
	}
}
