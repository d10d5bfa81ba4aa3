// Tasks of the tests of large messages.
import { attach } from "pamir";
import { pattern } from "./random.js";

const [DATA, OTHER] = [10, 11];
const MIB = 1024 ** 2;

const client = await attach();
const context = client.createContext();
const other = client.endpoint(0);

/** @type {Record<string, () => void>} */
const scenarios = {
  callee() {
    context.dispatch(DATA, (message) => message.payload.slice());
    context.advanceUntil(() => false);
  },

  /** Replies with the sum of a request's bytes. Keeps a request that has a header. */
  reader() {
    context.dispatch(DATA, (message) => {
      const { bytes } = message.headerBytes > 0 ? message.keep() : { bytes: message.payload };
      return Uint32Array.of(bytes.reduce((sum, byte) => sum + byte, 0));
    });
    context.advanceUntil(() => false);
  },

  /** Keeps one request, and dies while it reads the next one. */
  "dying reader"() {
    let count = 0;
    context.dispatch(DATA, (message) => {
      if (count++ === 0) message.keep();
      else process.exit(0);
    });
    context.advanceUntil(() => false);
  },

  /** Takes one message in a while, and tells its number. */
  slow() {
    const gate = new Int32Array(new SharedArrayBuffer(4));
    context.dispatch(DATA, (message) => {
      Atomics.wait(gate, 0, 0, 2);
      context.sendImmediate(other, OTHER, null, Int32Array.of(message.getInt32(0)));
    });
    context.advanceUntil(() => false);
  },

  "dying origin"() {
    for (let i = 0; i < 3; i++) {
      while (context.send({ to: other, dispatch: DATA, payload: pattern(MIB) }) !== 0) context.advance();
    }
    process.exit(0);
  },

  /** Reads two, keeps one of them, and dies while the others lie there. */
  "dying target"() {
    let count = 0;
    context.dispatch(DATA, (message) => {
      if (count++ === 0) message.keep();
      else process.exit(0);
    });
    context.advanceUntil(() => false);
  },
};
/** @type {{ scenario: string }} */ (client.args);
scenarios[/** @type {{ scenario: string }} */ (client.args).scenario]?.();
