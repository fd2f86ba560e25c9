/** Server-sent events read from a fetch body, so that a key can travel in a header. Parsing only; nothing is interpreted. */

export interface Frame {
  id: string | null;
  data: string;
}

/** Cuts text into frames. Feed it pieces of any size; what is not whole yet waits for the rest. */
export class FrameReader {
  private rest = "";

  push(piece: string): Frame[] {
    this.rest += piece;
    const frames: Frame[] = [];
    for (;;) {
      const end = this.rest.indexOf("\n\n");
      if (end < 0) return frames;
      const frame = readFrame(this.rest.slice(0, end));
      this.rest = this.rest.slice(end + 2);
      if (frame) frames.push(frame);
    }
  }
}

function readFrame(block: string): Frame | null {
  let id: string | null = null;
  const data: string[] = [];
  for (const line of block.split("\n")) {
    if (line.startsWith("data:")) data.push(line.slice(line[5] === " " ? 6 : 5));
    else if (line.startsWith("id:")) id = line.slice(3).trim();
  }
  return data.length ? { id, data: data.join("\n") } : null;
}

/** The host says something at least every 15 seconds; a body silent for longer than this is a lost connection. */
export const SILENCE_MS = 45_000;

/** Every whole frame of a body, until it ends. A frame that was cut off is not given; silence is an error. */
export async function* framesOf(body: ReadableStream<Uint8Array>): AsyncGenerator<Frame[]> {
  const decoder = new TextDecoder();
  const reader = new FrameReader();
  const source = body.getReader();
  try {
    for (;;) {
      const { done, value } = await within(SILENCE_MS, source.read());
      if (done) return;
      const frames = reader.push(decoder.decode(value, { stream: true }));
      if (frames.length) yield frames;
    }
  } finally {
    source.cancel().catch(() => undefined);
  }
}

async function within<T>(ms: number, promise: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const silence = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error("the stream fell silent")), ms);
  });
  try {
    return await Promise.race([promise, silence]);
  } finally {
    clearTimeout(timer);
  }
}
