// SPDX-License-Identifier: Apache-2.0
// A Java program that knows its own stack: three chains of calls share its CPU time 60, 30 and 10, through methods, a recursion, an
// interface, a lambda, and a method that native code calls. For JDK 11 and later.
//
//     JavaShares SECONDS
//
// Before it begins it says its chains as JSON, one line: {"chains": {NAME: [[method, file, line], ...]}, "spins": [first, last line]},
// innermost first; at the end how long it was in each: {"cpu": {NAME: seconds}}. Waits for a line of input in between, and for its end then.
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.TreeSet;

public class JavaShares {
    static boolean noting;
    static volatile long kept;
    static StackTraceElement[] said;

    static long spin(int n) {
        long x = 1;
        for (int i = 0; i < n; i++)
            x = x * 31 + (x >> 7);
        return x;
    }

    static final int FIRST = 22, LAST = 25;

    static long note() {
        said = new Throwable().getStackTrace();
        return 0;
    }

    static long work(int n) {
        return noting ? note() : spin(n);
    }

    static long deep(int n, int left) {
        return left > 0 ? deep(n, left - 1) : work(n);
    }

    static long alpha(int n) {
        return deep(n, 12);
    }

    interface Step {
        long run(int n);
    }

    static class Steps implements Step {
        public long run(int n) {
            return work(n);
        }
    }

    static class Other implements Step {
        public long run(int n) {
            return work(n + 1);
        }
    }

    static Step[] steps = {new Steps(), new Other()};

    static long beta(int n) {
        Arrays.asList(1).forEach(x -> kept = steps[0].run(n));
        return kept;
    }

    static class Key implements Comparable<Key> {
        public int compareTo(Key other) {
            return (int) (work(size) & 1) | 1;
        }
        static int size;
    }

    static long gamma(int n) {
        Key.size = n;
        TreeSet<Key> set = new TreeSet<>();
        set.add(new Key());
        return set.size();
    }

    static final String[] NAMES = {"alpha", "beta", "gamma"};
    static final int[] TIMES = {6, 3, 1};

    static long one(int which, int n) {
        return which == 0 ? alpha(n) : which == 1 ? beta(n) : gamma(n);
    }

    /** Of this thread, in nanoseconds; the JVM's own way to ask wants files that an unpacked JDK lacks. */
    static long cpuTime() {
        try {
            return Long.parseLong(new String(Files.readAllBytes(Paths.get("/proc/thread-self/schedstat"))).split(" ")[0]);
        } catch (java.io.IOException e) {
            throw new RuntimeException(e);
        }
    }

    static void turn(double[] cpu, int n, int turns) {
        for (int which = 0; which < 3; which++) {
            long before = cpuTime();
            for (int i = 0; i < TIMES[which] * turns; i++)
                kept = one(which, n);
            cpu[which] += (cpuTime() - before) / 1e9;
        }
    }

    static String frame(StackTraceElement e) {
        String at = e.getFileName() == null ? "null, null" : String.format("\"%s\", %d", e.getFileName(), e.getLineNumber());
        return String.format("[\"%s.%s\", %s]", e.getClassName(), e.getMethodName(), at);
    }

    public static void main(String[] args) throws Exception {
        List<String> chains = new ArrayList<>();
        noting = true;
        for (int which = 0; which < 3; which++) {
            one(which, 0);
            List<String> frames = new ArrayList<>();
            frames.add(String.format("[\"JavaShares.spin\", \"JavaShares.java\", %d]", LAST));
            for (int i = 1; i < said.length; i++)
                frames.add(frame(said[i]));
            chains.add("\"" + NAMES[which] + "\": [" + String.join(", ", frames) + "]");
        }
        noting = false;
        System.out.println("{\"chains\": {" + String.join(", ", chains) + "}, \"spins\": [" + FIRST + ", " + LAST + "]}");
        System.in.read();
        double[] cpu = new double[3];
        long until = System.nanoTime() + (long) (Double.parseDouble(args[0]) * 1e9);
        Thread worker = new Thread(() -> {
            while (System.nanoTime() < until)
                turn(cpu, 20000, 20);
        }, "worker");
        worker.start();
        worker.join();
        StringBuilder out = new StringBuilder();
        for (int which = 0; which < 3; which++)
            out.append(which > 0 ? ", " : "").append("\"").append(NAMES[which]).append("\": ").append(cpu[which]);
        System.out.println("{\"cpu\": {" + out + "}}");
        while (System.in.read() >= 0)
            ;
    }
}
