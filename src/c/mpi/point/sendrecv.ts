// A send and a receive as one request. Source: MPI 5.0, section 3.10.
import { ANY_SOURCE, ERR, SUCCESS } from "../constants.js";
import type { Messages } from "../messages.js";
import { NO_MESSAGE, type OpenRequest, type Outcome, type RequestWork } from "../requests/open-request.js";
import { isOver, take } from "../requests/requests.js";
import type { Call, MpiState } from "../state.js";

/** Over once both are, or once the rank that has to send has ended. */
class Both implements RequestWork {
  readonly #state: MpiState;
  readonly #send: OpenRequest;
  readonly #receive: OpenRequest;

  constructor(state: MpiState, send: OpenRequest, receive: OpenRequest) {
    this.#state = state;
    this.#send = send;
    this.#receive = receive;
  }

  isOver(): boolean {
    return isOver(this.#state, this.#send) && (isOver(this.#state, this.#receive) || this.#hasEnded);
  }

  /** As the receive has ended; a send that has failed counts before. */
  take(): Outcome {
    const sent = take(this.#state, this.#send);
    if (!isOver(this.#state, this.#receive)) {
      this.#state.engine.cancel(this.#receive.engine);
      take(this.#state, this.#receive);
      return { ...NO_MESSAGE, error: ERR.PROC_FAILED, why: `rank ${this.#receive.peer} has ended` };
    }
    const received = take(this.#state, this.#receive);
    return sent.error === SUCCESS ? received : sent;
  }

  get #hasEnded(): boolean {
    const { comm, peer, engine } = this.#receive;
    return peer >= 0 && this.#state.engine.isLost(comm, peer, engine);
  }
}

export function sendrecvCalls(state: MpiState, messages: Messages): Record<string, readonly [number, Call]> {
  const opened = (send: OpenRequest, receive: OpenRequest, pointer: number): number => {
    const work = new Both(state, send, receive);
    const request = { comm: receive.comm, isReceive: false, peer: ANY_SOURCE, engine: 0, work };
    state.setWord(pointer, state.requests.add(request));
    return SUCCESS;
  };
  return {
    MPI_Isendrecv: [
      10,
      (...args) => {
        const [from, sendCount, sendType, to, sendTag, buffer, count, type, peer, tag, comm, pointer] =
          args as number[] & { length: 12 };
        const receive = messages.receive({
          buffer: (buffer as number) >>> 0,
          count: count as number,
          type: type as number,
          peer: peer as number,
          tag: tag as number,
          comm: comm as number,
        });
        const send = messages.send({
          buffer: (from as number) >>> 0,
          count: sendCount as number,
          type: sendType as number,
          peer: to as number,
          tag: sendTag as number,
          comm: comm as number,
        });
        return opened(send, receive, pointer as number);
      },
    ],
    MPI_Isendrecv_replace: [
      7,
      (...args) => {
        const [buffer, count, type, to, sendTag, peer, tag, comm, pointer] = args as number[] & { length: 9 };
        const given = {
          buffer: (buffer as number) >>> 0,
          count: count as number,
          type: type as number,
          comm: comm as number,
        };
        // The copy is sent; so the buffer is free for what comes.
        const send = messages.send({ ...given, peer: to as number, tag: sendTag as number }, false, true);
        const receive = messages.receive({ ...given, peer: peer as number, tag: tag as number });
        return opened(send, receive, pointer as number);
      },
    ],
  };
}
