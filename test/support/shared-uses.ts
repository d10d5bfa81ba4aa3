// Functions of hosts that are given a view of shared memory, as `message.payload` and `region.bytes` are: which of them refuse
// it. docs/hosts.md has the same table.

/** Taken; refused by an error; or taken without an error, and something else comes of it; undefined: the host lacks it. */
export type Outcome = "yes" | "no" | "wrong" | "–";

export interface SharedUse {
  readonly name: string;
  readonly use: (bytes: Uint8Array<ArrayBuffer>) => unknown;
  /** By major version of Node, from that on. */
  readonly node: Readonly<Record<number, Outcome>>;
  readonly chromium: Outcome;
  readonly firefox: Outcome;
}

class Wrong extends Error {}

/** The bytes come through a body as they are. */
async function whole(body: { arrayBuffer(): Promise<ArrayBuffer> }, { length }: Uint8Array): Promise<void> {
  const { byteLength } = await body.arrayBuffer();
  if (byteLength !== length) throw new Wrong(`${byteLength} bytes`);
}

/** What a transformation of a stream does with one chunk. */
async function through({ readable, writable }: ReadableWritablePair, chunk: unknown): Promise<void> {
  const read = (async () => {
    const reader = readable.getReader();
    while (!(await reader.read()).done) {}
  })();
  const writer = writable.getWriter();
  const ends = [read, writer.closed];
  for (const end of ends) end.catch(() => {});
  await writer.write(chunk);
  await writer.close();
  await Promise.all(ends);
}

interface Host {
  ImageData: new (data: Uint8ClampedArray, width: number, height: number) => unknown;
  AudioBuffer?: new (options: {
    length: number;
    sampleRate: number;
  }) => {
    copyToChannel(source: Float32Array, channel: number): void;
  };
  XMLHttpRequest: new () => { open(method: string, url: string): void; send(body: unknown): void };
}
const host = globalThis as unknown as Host;
const NEVER: SharedUse["node"] = { 20: "–" };

export const SHARED_USES: readonly SharedUse[] = [
  {
    name: "TextDecoder.decode",
    use: (bytes) => new TextDecoder().decode(bytes),
    node: { 20: "yes" },
    chromium: "no",
    firefox: "no",
  },
  {
    name: "TextEncoder.encodeInto",
    use: (bytes) => new TextEncoder().encodeInto("a", bytes),
    node: { 20: "yes" },
    chromium: "no",
    firefox: "no",
  },
  {
    name: "crypto.getRandomValues",
    use: (bytes) => crypto.getRandomValues(bytes),
    node: { 20: "yes", 26: "no" },
    chromium: "no",
    firefox: "no",
  },
  {
    name: "crypto.subtle.digest",
    use: (bytes) => crypto.subtle.digest("SHA-256", bytes),
    node: { 20: "no" },
    chromium: "no",
    firefox: "no",
  },
  {
    name: "crypto.subtle.importKey",
    use: (bytes) => crypto.subtle.importKey("raw", bytes, "AES-GCM", false, ["encrypt"]),
    node: { 20: "no" },
    chromium: "no",
    firefox: "yes",
  },
  {
    name: "new Blob",
    use: (bytes) => whole(new Blob([bytes]), bytes),
    node: { 20: "yes" },
    chromium: "no",
    firefox: "no",
  },
  {
    name: "new Response",
    use: (bytes) => whole(new Response(bytes), bytes),
    node: { 20: "no", 24: "wrong" },
    chromium: "yes",
    firefox: "no",
  },
  {
    name: "new Request",
    use: (bytes) => whole(new Request("http://localhost/", { method: "POST", body: bytes }), bytes),
    node: { 20: "no", 24: "wrong" },
    chromium: "yes",
    firefox: "no",
  },
  {
    name: "CompressionStream",
    use: (bytes) => through(new CompressionStream("gzip"), bytes),
    node: { 20: "yes", 24: "no" },
    chromium: "no",
    firefox: "no",
  },
  {
    name: "TextDecoderStream",
    use: (bytes) => through(new TextDecoderStream(), bytes),
    node: { 20: "yes" },
    chromium: "no",
    firefox: "no",
  },
  {
    name: "enqueue() of a ReadableStream of bytes",
    use: (bytes) =>
      new ReadableStream({ type: "bytes", start: (controller) => controller.enqueue(bytes) }).getReader().read(),
    node: { 20: "no" },
    chromium: "no",
    firefox: "no",
  },
  {
    name: "structuredClone, postMessage",
    // They share the memory; a transfer of it is refused.
    use(bytes) {
      const { buffer } = structuredClone(bytes) as Uint8Array;
      if (!(buffer instanceof SharedArrayBuffer)) throw new Wrong("a copy");
    },
    node: { 20: "yes" },
    chromium: "yes",
    firefox: "yes",
  },
  {
    name: "the same, in the list of transfers",
    use: (bytes) => structuredClone(bytes, { transfer: [bytes.buffer] }),
    node: { 20: "no" },
    chromium: "no",
    firefox: "no",
  },
  {
    name: "WebAssembly.compile",
    use: (bytes) => WebAssembly.compile(bytes.subarray(0, 8)),
    node: { 20: "yes" },
    chromium: "yes",
    firefox: "yes",
  },
  {
    name: "new ImageData",
    use: ({ buffer }) => new host.ImageData(new Uint8ClampedArray(buffer, 0, 16), 2, 2),
    node: NEVER,
    chromium: "no",
    firefox: "no",
  },
  {
    name: "AudioBuffer.copyToChannel",
    use: ({ buffer }) =>
      new (host.AudioBuffer as NonNullable<Host["AudioBuffer"]>)({ length: 4, sampleRate: 44_100 }).copyToChannel(
        new Float32Array(buffer, 0, 4),
        0,
      ),
    node: NEVER,
    chromium: "no",
    firefox: "no",
  },
  {
    name: "XMLHttpRequest.send",
    use(bytes) {
      const request = new host.XMLHttpRequest();
      request.open("POST", "/nothing");
      request.send(bytes);
    },
    node: NEVER,
    chromium: "no",
    firefox: "no",
  },
];

/** What comes of a view of 16 bytes, which are those of an empty wasm module. */
export async function outcomeOf({ use }: SharedUse): Promise<Outcome> {
  const { buffer } = new WebAssembly.Memory({ initial: 1, maximum: 1, shared: true });
  const bytes = new Uint8Array(buffer, 0, 16);
  bytes.set([0, 97, 115, 109, 1, 0, 0, 0]);
  try {
    await use(bytes as unknown as Uint8Array<ArrayBuffer>);
    return "yes";
  } catch (error) {
    if (error instanceof Wrong) return "wrong";
    return error instanceof ReferenceError || /is not a constructor/.test(String(error)) ? "–" : "no";
  }
}
