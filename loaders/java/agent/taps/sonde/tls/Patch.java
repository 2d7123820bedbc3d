/* SPDX-License-Identifier: Apache-2.0 */
package sonde.tls;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;

/**
 * A class file of the JDK's TLS with calls of {@link Door} in it. Code is only ever put in front of a method's own code,
 * which stays as it is: what is added has a length of a multiple of 4, so that tables of switches stay aligned, and all
 * branches are relative. What has places in code is moved by that length: exception table, frames (StackMapTable) with their
 * places of `new`, lines, variables. A method that has a result calls itself:
 *
 * <pre>
 *   if (Door.first()) return Door.read(this$0, bytes, at, this.read(bytes, at, n));
 * </pre>
 *
 * Format: The Java Virtual Machine Specification, chapter 4. No class is read but those whose names are in METHODS.
 */
final class Patch {
	private static final String RECORD = "sun/security/ssl/SSLSocketInputRecord", DOOR = "sonde/tls/Door", BUFFER = "Ljava/nio/ByteBuffer;", BUFFERS = "[" + BUFFER,
			RESULT = "Ljavax/net/ssl/SSLEngineResult;", OBJECT = "Ljava/lang/Object;", BYTES = "([BII)";
	static final String WRITE = "write" + BYTES + "V", READ = "read" + BYTES + "I",
			DECODE = "decodeInputRecord()[Lsun/security/ssl/Plaintext;", DECODE_HEADER = "decodeInputRecord([B)[Lsun/security/ssl/Plaintext;",
			WRAP = "wrap(" + BUFFERS + "II" + BUFFER + ")" + RESULT, UNWRAP = "unwrap(" + BUFFER + BUFFERS + "II)" + RESULT;

	/**
	 * Classes, and which of their methods. The last two of streams: of JDK 8 before update 251. The record's: JDKs have one of the
	 * two, or, when old, none; it is for reads that wait when the recording begins.
	 */
	static final String[][] METHODS = {
		{"sun/security/ssl/SSLEngineImpl", WRAP, UNWRAP},
		{"sun/security/ssl/SSLSocketImpl$AppOutputStream", WRITE},
		{"sun/security/ssl/SSLSocketImpl$AppInputStream", READ},
		{RECORD, DECODE, DECODE_HEADER},
		{"sun/security/ssl/AppOutputStream", WRITE},
		{"sun/security/ssl/AppInputStream", READ},
	};
	private static final String[] SOCKET_FIELDS = {"this$0", "c"};

	private final ByteBuffer in;
	private final String name;
	private final int[] constants; /* where each begins */
	private final ByteArrayOutputStream added = new ByteArrayOutputStream();
	private final DataOutputStream more = new DataOutputStream(added);
	private final ByteArrayOutputStream made = new ByteArrayOutputStream();
	private final DataOutputStream out = new DataOutputStream(made);
	private final HashMap<String, Integer> members = new HashMap<String, Integer>(); /* that were added */
	private int count; /* of constants */
	private String socketField, socketType;
	private int patched;

	private Patch(byte[] bytes, String name) {
		in = ByteBuffer.wrap(bytes);
		this.name = name;
		in.position(8);
		count = in.getShort() & 0xffff;
		constants = new int[count];
	}

	static String[] methodsOf(String name) {
		for (String[] m : METHODS)
			if (m[0].equals(name))
				return m;
		return null;
	}

	/** A class without its methods is a reason not to begin. */
	static boolean isNeeded(String name) {
		return !name.equals(RECORD);
	}

	/** null: it is none of these classes, or has none of the methods. */
	static byte[] apply(String name, byte[] bytes) throws IOException {
		String[] methods = methodsOf(name);

		return methods == null ? null : new Patch(bytes, name).run(methods);
	}

	/* ---- reading ---- */

	private int u1() {
		return in.get() & 0xff;
	}

	private int u2() {
		return in.getShort() & 0xffff;
	}

	private void constantsRead() throws IOException {
		for (int i = 1; i < count; i++) {
			int tag;

			constants[i] = in.position();
			tag = u1();
			switch (tag) {
			case 1:
				skip(u2());
				break;
			case 5:
			case 6:
				skip(8);
				i++;
				break;
			case 7:
			case 8:
			case 16:
			case 19:
			case 20:
				skip(2);
				break;
			case 15:
				skip(3);
				break;
			case 3:
			case 4:
			case 9:
			case 10:
			case 11:
			case 12:
			case 17:
			case 18:
				skip(4);
				break;
			default:
				throw new IOException("a constant of kind " + tag);
			}
		}
	}

	private void skip(int n) {
		in.position(in.position() + n);
	}

	private String utf8(int index) {
		int at = constants[index];
		int n = in.getShort(at + 1) & 0xffff;

		return new String(in.array(), at + 3, n, StandardCharsets.UTF_8);
	}

	/* ---- constants that are added ---- */

	private int text(String s) throws IOException {
		more.writeByte(1);
		more.writeUTF(s);
		return count++;
	}

	private int one(int tag, int index) throws IOException {
		more.writeByte(tag);
		more.writeShort(index);
		return count++;
	}

	private int two(int tag, int a, int b) throws IOException {
		more.writeByte(tag);
		more.writeShort(a);
		more.writeShort(b);
		return count++;
	}

	private int member(int tag, String owner, String member, String type) throws IOException {
		String key = tag + owner + member + type;
		Integer there = members.get(key);
		int made;

		if (there != null)
			return there;
		made = one(7, text(owner));
		made = two(tag, made, two(12, text(member), text(type)));
		members.put(key, made);
		return made;
	}

	/* ---- code that is added; a byte of 0 is nop ---- */

	private static final int ILOAD = 0x15, ALOAD_0 = 0x2a, DUP = 0x59, IRETURN = 0xac, ARETURN = 0xb0, GETFIELD = 0xb4, INVOKEVIRTUAL = 0xb6,
			INVOKESPECIAL = 0xb7, INVOKESTATIC = 0xb8, IFEQ = 0x99, STACK = 12;

	private static final class Added {
		final ByteArrayOutputStream bytes = new ByteArrayOutputStream();
		final DataOutputStream code = new DataOutputStream(bytes);
		int branch = -1;

		void op(int... of) throws IOException {
			for (int b : of)
				code.writeByte(b);
		}

		void ref(int op, int index) throws IOException {
			code.writeByte(op);
			code.writeShort(index);
		}
	}

	private void door(Added a, String method, String type) throws IOException {
		a.ref(INVOKESTATIC, member(10, DOOR, method, type));
	}

	private void itself(Added a, int how, String method) throws IOException {
		int at = method.indexOf('(');

		a.ref(how, member(10, name, method.substring(0, at), method.substring(at)));
	}

	private void first(Added a, String which) throws IOException {
		door(a, which, "()Z");
		a.branch = a.code.size();
		a.ref(IFEQ, 0);
	}

	private void socket(Added a) throws IOException {
		a.op(ALOAD_0);
		if (socketField != null)
			a.ref(GETFIELD, member(9, name, socketField, socketType));
	}

	private byte[] begin(String method) throws IOException {
		Added a = new Added();
		byte[] bytes;

		if (method.equals(WRITE)) {
			socket(a);
			a.op(ALOAD_0 + 1, ILOAD, 2, ILOAD, 3);
			door(a, "write", "(" + OBJECT + "[BII)V");
		} else if (method.equals(READ)) {
			first(a, "firstRead");
			socket(a);
			a.op(ALOAD_0 + 1, ILOAD, 2, ALOAD_0, ALOAD_0 + 1, ILOAD, 2, ILOAD, 3);
			itself(a, INVOKEVIRTUAL, method);
			door(a, "read", "(" + OBJECT + "[BII)I");
			a.op(IRETURN);
		} else if (method.equals(DECODE) || method.equals(DECODE_HEADER)) { /* private */
			first(a, "first");
			a.op(ALOAD_0);
			if (method.equals(DECODE_HEADER))
				a.op(ALOAD_0 + 1);
			itself(a, INVOKESPECIAL, method);
			a.op(DUP, ALOAD_0);
			door(a, "decoded", "([" + OBJECT + OBJECT + ")V");
			a.op(ARETURN);
		} else if (method.equals(UNWRAP)) {
			first(a, "first");
			a.op(ALOAD_0 + 1);
			door(a, "record", "(" + BUFFER + ")J");
			a.op(ALOAD_0 + 2, ILOAD, 3, ILOAD, 4);
			door(a, "before", "(" + BUFFERS + "II)" + OBJECT);
			a.op(ALOAD_0, ALOAD_0 + 1, ALOAD_0 + 2, ILOAD, 3, ILOAD, 4);
			itself(a, INVOKEVIRTUAL, method);
			a.op(ALOAD_0, ALOAD_0 + 2, ILOAD, 3, ILOAD, 4);
			door(a, "unwrapped", "(J" + OBJECT + RESULT + OBJECT + BUFFERS + "II)" + RESULT);
			a.op(ARETURN);
		} else {
			first(a, "first");
			a.op(ALOAD_0 + 1, ILOAD, 2, ILOAD, 3);
			door(a, "before", "(" + BUFFERS + "II)" + OBJECT);
			a.op(ALOAD_0, ALOAD_0 + 1, ILOAD, 2, ILOAD, 3, 0x19, 4);
			itself(a, INVOKEVIRTUAL, method);
			a.op(ALOAD_0, ALOAD_0 + 1, ILOAD, 2, ILOAD, 3, 0x19, 4);
			door(a, "wrapped", "(" + OBJECT + RESULT + OBJECT + BUFFERS + "II" + BUFFER + ")" + RESULT);
			a.op(ARETURN);
		}
		bytes = a.bytes.toByteArray();
		if (a.branch >= 0) { /* to the method's own code */
			int by = bytes.length - a.branch;

			bytes[a.branch + 1] = (byte) (by >> 8);
			bytes[a.branch + 2] = (byte) by;
		}
		/* in front: behind a return a frame would be needed */
		byte[] padded = new byte[bytes.length + 3 & ~3];

		System.arraycopy(bytes, 0, padded, padded.length - bytes.length, bytes.length);
		return padded;
	}

	/* ---- the class ---- */

	private void copy(int from, int to) {
		made.write(in.array(), from, to - from);
	}

	private byte[] run(String[] methods) throws IOException {
		ByteArrayOutputStream whole = new ByteArrayOutputStream();
		DataOutputStream head = new DataOutputStream(whole);
		int after, n, from;

		constantsRead();
		after = in.position();
		skip(6);
		skip(2 * u2());
		for (int i = u2(); i > 0; i--)
			field();
		copy(after, in.position());
		n = u2();
		out.writeShort(n);
		for (int i = 0; i < n; i++)
			method(methods);
		from = in.position();
		copy(from, in.limit());
		if (isNeeded(name) ? patched != methods.length - 1 : patched == 0)
			return null;
		head.write(in.array(), 0, 8);
		head.writeShort(count);
		head.write(in.array(), 10, after - 10);
		added.writeTo(head);
		made.writeTo(head);
		return whole.toByteArray();
	}

	private void field() {
		String field, type;

		skip(2);
		field = utf8(u2());
		type = utf8(u2());
		for (String f : SOCKET_FIELDS)
			if (field.equals(f) && type.equals("Lsun/security/ssl/SSLSocketImpl;")) {
				socketField = field;
				socketType = type;
			}
		for (int i = u2(); i > 0; i--) {
			skip(2);
			skip(in.getInt());
		}
	}

	private void method(String[] methods) throws IOException {
		int from = in.position(), attributes;
		String method;
		boolean wanted = false;

		skip(2);
		method = utf8(u2());
		method += utf8(u2());
		for (int i = 1; i < methods.length; i++)
			wanted |= methods[i].equals(method);
		attributes = u2();
		copy(from, in.position());
		for (int i = 0; i < attributes; i++) {
			int at = in.position(), kind = u2(), len = in.getInt(), end = in.position() + len;

			if (wanted && utf8(kind).equals("Code"))
				code(method, kind);
			else
				copy(at, end);
			in.position(end);
		}
	}

	private void code(String method, int kind) throws IOException {
		byte[] begin = begin(method);
		ByteArrayOutputStream bytes = new ByteArrayOutputStream();
		DataOutputStream to = new DataOutputStream(bytes);
		int stack = u2(), locals = u2(), len = in.getInt(), n;
		boolean branches = !method.equals(WRITE);

		to.writeShort(Math.max(stack, STACK));
		to.writeShort(locals);
		to.writeInt(begin.length + len);
		to.write(begin);
		to.write(in.array(), in.position(), len);
		skip(len);
		n = u2();
		to.writeShort(n);
		for (int i = 0; i < n; i++) {
			for (int k = 0; k < 3; k++)
				to.writeShort(u2() + begin.length);
			to.writeShort(u2());
		}
		codeAttributes(to, begin.length, branches);
		out.writeShort(kind);
		out.writeInt(bytes.size());
		bytes.writeTo(out);
		patched++;
	}

	private void codeAttributes(DataOutputStream to, int by, boolean branches) throws IOException {
		ByteArrayOutputStream kept = new ByteArrayOutputStream();
		DataOutputStream k = new DataOutputStream(kept);
		int n = 0;
		boolean framed = false;

		for (int i = u2(); i > 0; i--) {
			int kind = u2(), len = in.getInt(), end = in.position() + len;
			String what = utf8(kind);
			byte[] body;

			if (what.equals("StackMapTable")) {
				body = frames(by, branches);
				framed = true;
			} else if (what.equals("LineNumberTable")) {
				body = places(by, 4);
			} else if (what.startsWith("LocalVariable")) {
				body = places(by, 10);
			} else { /* annotations of types, which nothing needs */
				in.position(end);
				continue;
			}
			k.writeShort(kind);
			k.writeInt(body.length);
			k.write(body);
			n++;
			in.position(end);
		}
		if (!framed && branches) {
			k.writeShort(text("StackMapTable"));
			k.writeInt(5);
			k.writeShort(1);
			k.writeByte(251);
			k.writeShort(by);
			n++;
		}
		to.writeShort(n);
		kept.writeTo(to);
	}

	/** A table whose rows begin with a place. */
	private byte[] places(int by, int size) throws IOException {
		ByteArrayOutputStream bytes = new ByteArrayOutputStream();
		DataOutputStream to = new DataOutputStream(bytes);
		int n = u2();

		to.writeShort(n);
		for (; n > 0; n--) {
			to.writeShort(u2() + by);
			to.write(in.array(), in.position(), size - 2);
			skip(size - 2);
		}
		return bytes.toByteArray();
	}

	private void types(DataOutputStream to, int n, int by) throws IOException {
		for (; n > 0; n--) {
			int tag = u1();

			to.writeByte(tag);
			if (tag == 7)
				to.writeShort(u2());
			else if (tag == 8) /* where `new` stands */
				to.writeShort(u2() + by);
		}
	}

	/**
	 * The first frame is `by` further on. With a branch to the old begin there is one more, at that place, unless the first
	 * frame is there already.
	 */
	private byte[] frames(int by, boolean branches) throws IOException {
		ByteArrayOutputStream bytes = new ByteArrayOutputStream();
		DataOutputStream to = new DataOutputStream(bytes);
		int n = u2();
		boolean more = branches && in.get(in.position()) != 0;

		to.writeShort(more ? n + 1 : n);
		if (more) {
			to.writeByte(251);
			to.writeShort(by);
		}
		for (int i = 0; i < n; i++)
			frame(to, by, i > 0 ? 0 : more ? -1 : by);
		return bytes.toByteArray();
	}

	private void frame(DataOutputStream to, int by, int shift) throws IOException {
		int tag = u1(), delta = (tag < 64 ? tag : tag < 128 ? tag - 64 : u2()) + shift;

		if (tag < 64)
			tag = delta < 64 ? delta : 251;
		else if (tag < 128)
			tag = delta < 64 ? delta + 64 : 247;
		to.writeByte(tag);
		if (tag >= 128)
			to.writeShort(delta);
		if (tag >= 64 && tag < 128 || tag == 247)
			types(to, 1, by);
		else if (tag >= 252 && tag < 255)
			types(to, tag - 251, by);
		for (int k = 0; tag == 255 && k < 2; k++) {
			int many = u2();

			to.writeShort(many);
			types(to, many, by);
		}
	}
}
