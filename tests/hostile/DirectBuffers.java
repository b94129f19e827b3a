// SPDX-License-Identifier: LGPL-2.1-or-later
// DirectBuffers.java - a virtual machine with guard pages, signals of its own for null
// checks, and memory outside of its heap

import java.nio.ByteBuffer;

public class DirectBuffers {
	static final int BUFFER_BYTES = 2023176;
	static final int BUFFERS = 10;

	static int depth(int n) {
		return 1 + depth(n + 1);
	}

	public static void main(String[] arguments) throws InterruptedException {
		ByteBuffer[] buffers = new ByteBuffer[BUFFERS];
		int caught = 0;
		String nothing = arguments.length > 100 ? "" : null;

		for (int i = 0; i < BUFFERS; i++) {
			buffers[i] = ByteBuffer.allocateDirect(BUFFER_BYTES);
			buffers[i].put(BUFFER_BYTES - 1, (byte) i);
		}
		try {
			depth(0);
		} catch (StackOverflowError error) {
			caught++;
		}
		for (int i = 0; i < 1000; i++) {
			try {
				caught += nothing.length();
			} catch (NullPointerException error) {
				caught++;
			}
		}
		Thread thread = new Thread(() -> System.gc());
		thread.start();
		thread.join();
		System.out.println(caught + " " + buffers[BUFFERS - 1].get(BUFFER_BYTES - 1));
	}
}
