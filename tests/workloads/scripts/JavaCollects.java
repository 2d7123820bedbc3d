/* SPDX-License-Identifier: Apache-2.0 */
/* Collects its garbage five times, after a line. */
public class JavaCollects {
    public static void main(String[] a) throws Exception {
        System.out.println("ready"); System.in.read();
        for (int i = 0; i < 5; i++) System.gc();
        System.out.println("done"); System.in.read();
    }
}
