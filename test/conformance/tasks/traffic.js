// @ts-check
// Messages between members, while they are about something else: each comes once, unharmed and in the order of its sender.

const SUCCESS = 0;
/** Lengths below these: of one record, of several ones, of what the receiver fetches. */
const BELOW = [64, 3000, 30_000];

/** One member's messages to all, itself among them. */
export class Traffic {
  /** What is wrong with what has come. @type {string[]} */
  wrong = [];
  #context;
  #dispatch;
  #members;
  #rank;
  /** Messages so far, by receiver and by sender. @type {number[]} */
  #sent;
  /** @type {number[]} */
  #came;
  /** Messages of which bytes are still under way, either way. */
  #open = 0;
  /** Members that have had the last message of this one, and whose last one has come. */
  #told = 0;
  #ended = 0;

  /**
   * @param {import("pamir").Context} context
   * @param {number} dispatch an id that nothing else has
   * @param {readonly number[]} members endpoints, by rank
   * @param {number} rank of this one
   */
  constructor(context, dispatch, members, rank) {
    this.#context = context;
    this.#dispatch = dispatch;
    this.#members = members;
    this.#rank = rank;
    this.#sent = members.map(() => 0);
    this.#came = members.map(() => 0);
    context.dispatch(dispatch, (message) => this.#receive(message));
  }

  /** Sends to some members, if there is room. @param {(below: number) => number} random */
  send(random) {
    for (let count = random(3); count > 0; count--) {
      const to = random(this.#members.length);
      const number = this.#sent[to] ?? 0;
      const kind = random(8) === 0 ? 2 : random(2);
      const payload = new Uint8Array(random(BELOW[kind] ?? 0)).fill(number);
      const header = Int32Array.of(this.#rank, number, payload.length, 0);
      if (this.#post(to, header, payload, kind === 2)) this.#sent[to] = number + 1;
    }
  }

  /** Whether all that was sent has come, both ways. Says goodbye to those that have not heard it: nothing is sent any more. */
  isOver() {
    const size = this.#members.length;
    while (this.#told < size) {
      const header = Int32Array.of(this.#rank, this.#sent[this.#told] ?? 0, 0, 1);
      if (!this.#post(this.#told, header, new Uint8Array(0), false)) break;
      this.#told++;
    }
    return this.#told === size && this.#ended === size && this.#open === 0;
  }

  /** @param {number} to @param {Int32Array} header @param {Uint8Array} payload @param {boolean} isFetched */
  #post(to, header, payload, isFetched) {
    const endpoint = this.#members[to] ?? 0;
    if (!isFetched) return this.#context.sendImmediate(endpoint, this.#dispatch, header, payload) === SUCCESS;
    const onLocal = () => this.#open--;
    this.#open++;
    const result = this.#context.send({ to: endpoint, dispatch: this.#dispatch, header, payload, onLocal });
    if (result !== SUCCESS) this.#open--;
    return result === SUCCESS;
  }

  /** @param {import("pamir").Message} message */
  #receive(message) {
    const [from = 0, number = 0, length = 0, isLast = 0] = new Int32Array(message.header.slice().buffer);
    const what = `message ${number} from ${from} to ${this.#rank}`;
    const expected = this.#came[from] ?? 0;
    this.#came[from] = number + 1;
    if (number !== expected) this.wrong.push(`${what}: ${expected} is next`);
    if (message.payloadBytes !== length) this.wrong.push(`${what}: ${message.payloadBytes} bytes of ${length}`);
    this.#ended += isLast;
    /** @param {Uint8Array} bytes */
    const check = (bytes) => {
      if (bytes.some((byte) => byte !== (number & 255))) this.wrong.push(`${what} has other bytes`);
    };
    if (message.immediate) check(message.payload);
    else {
      const bytes = new Uint8Array(message.payloadBytes);
      this.#open++;
      message.receive(bytes, () => {
        this.#open--;
        check(bytes);
      });
    }
  }
}
