// SPDX-License-Identifier: Apache-2.0
// Threads that stand in known Java code, for JDK 8 and later. Prints one line of JSON when all of them stand: of each its frames as
// Java itself says them (Thread.getStackTrace), by the thread's name, innermost first: [class.method, file, line]. Then waits for the end of its
// standard input.
//
//     JavaStand [warm]      warm: what recurses is compiled first
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.locks.*;
import java.util.function.*;

public class JavaStand {
    static final Object monitor = new Object();
    static final ReentrantLock lock = new ReentrantLock();
    static volatile boolean standing;
    static int sum;

    static int stand() {
        if (standing)
            LockSupport.park();
        return 1;
    }

    static int recursion(int n) {
        return n > 0 ? recursion(n - 1) + 1 : stand();
    }

    static int inlined(int n) {
        int got = small(n);
        return got + 1;
    }

    static int small(int n) {
        return smaller(n)
            + 1;
    }

    static int smaller(int n) {
        return recursion(n);
    }

    static int bySort(int n) {
        List<Integer> l = new ArrayList<>(Arrays.asList(3, 2, 1));
        l.sort((a, b) -> {
            recursion(n);
            return a - b;
        });
        return 1;
    }

    static int byStream(int n) {
        return Arrays.asList(1).stream().map(x -> x + inlined(n)).mapToInt(x -> x).sum();
    }

    static int byReflection(int n) throws Exception {
        return (Integer) JavaStand.class.getDeclaredMethod("recursion", int.class).invoke(null, n);
    }

    interface Shape {
        int area(int n);
    }

    static class Square implements Shape {
        public int area(int n) {
            return inlined(n);
        }
    }

    static class Circle implements Shape {
        public int area(int n) {
            return recursion(n);
        }
    }

    static int byInterface(int n) {
        int got = 0;
        for (Shape s : new Shape[] {new Circle(), new Square()})
            got += s.area(n);
        return got;
    }

    static class Initialised {
        static int value = stand();
    }

    interface Run {
        int run() throws Exception;
    }

    static final Map<String, Run> kinds = new LinkedHashMap<>();

    static void add(String name, Run r) {
        kinds.put(name, r);
    }

    static String json(StackTraceElement[] frames) {
        StringJoiner all = new StringJoiner(", ", "[", "]");
        for (StackTraceElement f : frames) {
            String file = f.getFileName() == null ? "null" : "\"" + f.getFileName() + "\"";
            all.add("[\"" + f.getClassName() + "." + f.getMethodName() + "\", " + file + ", " + (f.getLineNumber() > 0 ? f.getLineNumber() : "null") + "]");
        }
        return all.toString();
    }

    public static void main(String[] args) throws Exception {
        add("plain", () -> stand());
        add("recursion", () -> recursion(30));
        add("deep", () -> recursion(350));
        add("inlined", () -> inlined(3));
        add("sort", () -> bySort(2));
        add("stream", () -> byStream(2));
        add("reflection", () -> byReflection(2));
        add("interface", () -> byInterface(2));
        add("initialised", () -> Initialised.value);
        add("sleep", () -> { Thread.sleep(1000000); return 1; });
        add("wait", () -> { synchronized (monitor) { monitor.wait(); } return 1; });
        add("enter", () -> { synchronized (JavaStand.class) { return 1; } });
        add("lock", () -> { lock.lock(); return 1; });
        add("queue", () -> { new LinkedBlockingQueue<Integer>().take(); return 1; });
        if (args.length > 0)
            for (int i = 0; i < 30000; i++) {
                sum += recursion(3) + inlined(2) + bySort(1) + byInterface(2) + byStream(1);
                if (i % 100 == 0)
                    sum += byReflection(1);
            }
        standing = true;
        lock.lock();
        List<Thread> threads = new ArrayList<>();
        synchronized (JavaStand.class) {
            for (Map.Entry<String, Run> k : kinds.entrySet()) {
                Thread t = new Thread(() -> {
                    try {
                        k.getValue().run();
                    } catch (Exception e) {
                        throw new RuntimeException(e);
                    }
                }, k.getKey());
                t.setDaemon(true);
                t.start();
                threads.add(t);
            }
            for (Thread t : threads)
                while (t.getState() == Thread.State.RUNNABLE || t.getState() == Thread.State.NEW)
                    Thread.sleep(1);
            StringJoiner all = new StringJoiner(", ", "{", "}");
            for (Thread t : threads)
                all.add("\"" + t.getName() + "\": " + json(t.getStackTrace()));
            System.out.println(all);
            System.out.flush();
            System.in.read();
        }
    }
}
